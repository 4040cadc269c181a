/**
 * What besides the blocks of a request a provider's cache depends on, level by level: a change on one level
 * loses that level and those behind it, never those before. What no cache depends on may change at any time.
 */
import type { Json, JsonObject } from '../conversation/json.ts'
import type { Traits } from './count.ts'

/** The order of a prefix: tools first, then the system prompt, then the messages. */
export type Level = 'tools' | 'system' | 'messages'

export type CacheKey = Readonly<Record<Level, string>>

/** Parameters on another level than the messages'; null: on none. */
const LEVELS: ReadonlyMap<string, Level | null> = new Map([
  ['model', 'tools'],
  ['speed', 'system'],
  ['cache_control', null],
  ['compaction', null],
  ['context_management', null],
  ['diagnostics', null],
  ['max_tokens', null],
  ['metadata', null],
  ['service_tier', null],
  ['stop_sequences', null],
  ['stream', null],
])

/** The level that a change of this parameter loses; null where it loses nothing. One nobody knows counts as the messages'. */
export function levelOf(parameter: string): Level | null {
  const level = LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}

/** What a request says that its cache depends on, its blocks aside. */
export interface Keyed {
  /** The model among them. */
  readonly parameters: JsonObject
  readonly traits: Traits
  /** Tools are declared in front: where none is, the first that comes later changes how everything begins. */
  readonly declaresTools: boolean
}

export function cacheKey({ parameters, traits, declaresTools }: Keyed): CacheKey {
  const on = (level: Level): readonly string[] =>
    Object.keys(parameters)
      .filter((name) => levelOf(name) === level)
      .sort()
      .map((name) => `${name}=${spelled(name, parameters[name] ?? null)}`)
  const tools = [...on('tools'), traits.definesTools && !declaresTools ? 'tools in messages' : '']
  const system = [...on('system'), traits.cites ? 'citations' : '']
  const messages = [...on('messages'), traits.hasImages ? 'images' : '']
  return { tools: tools.join('\n'), system: system.join('\n'), messages: messages.join('\n') }
}

/** Betas are a set. */
function spelled(name: string, value: Json): string {
  const isSet = name === 'betas' && Array.isArray(value)
  return JSON.stringify(isSet ? value.toSorted() : value)
}

const LEVEL_ORDER: readonly Level[] = ['tools', 'system', 'messages']

/** Would a prefix that ends on `level` be found under the other key? */
export function sameKey(one: CacheKey, other: CacheKey, level: Level): boolean {
  const levels = LEVEL_ORDER.slice(0, LEVEL_ORDER.indexOf(level) + 1)
  return levels.every((each) => one[each] === other[each])
}
