/**
 * What a host gives for the prefix, made fit for the log before anything is built on it: fields that say nothing
 * are left out as JSON would leave them out, cache markers of the host's own too where the caching is ours. What
 * cannot be had ends the turn with words that name it.
 */
import { firstNonJson, isObject, isTooDeep } from '../conversation/json.ts'
import { mechanismStates } from '../policy/mechanisms.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import type { PlacedSection, SectionText } from '../prompt/section.ts'
import { unmarkedFields } from '../prompt/unmarked.ts'
import type { Halt } from './turn-event.ts'
import type { Offered, TurnHost } from './turn-host.ts'

export type PrefixHalt = Extract<Halt, { readonly reason: 'prefix' }>

/** Tools, model and parameters as they should be now. */
export function offeredNow(host: TurnHost): Offered | PrefixHalt {
  let offered: Offered
  try {
    offered = host.offered()
  } catch (thrown) {
    return haltOf(`Tools, model and parameters could not be had: ${wordsOf(thrown)}`)
  }
  const said = { ...offered, tools: offered.tools.map(saying), parameters: saying(offered.parameters) }
  const { tools, parameters, model } = said
  const path = firstNonJson({ model, parameters, tools })
  if (path !== null) return haltOf(`${nameOf(path, tools)} is no JSON value: give only what JSON can say.`)
  return cachingIsOurs(host)
    ? { ...said, tools: tools.map(unmarkedFields), parameters: unmarkedFields(parameters) }
    : said
}

function cachingIsOurs({ policy, switches = NO_SWITCHES }: TurnHost): boolean {
  return mechanismStates(policy, switches).caching.on
}

/** `tools.3.description` says less than whose description it is. */
function nameOf(path: string, tools: Offered['tools']): string {
  const [head, index, ...rest] = path.split('.')
  const tool = head === 'tools' ? tools[Number(index)] : undefined
  const name = isObject(tool) && typeof tool.name === 'string' ? tool.name : null
  return name === null ? path : `${rest.join('.') || 'the definition'} of tool ${name}`
}

/** Texts of sections by name, computed side by side. */
export async function computedNow(
  due: readonly PlacedSection[],
): Promise<ReadonlyMap<string, SectionText> | PrefixHalt> {
  const computed = await Promise.all(due.map(computedText))
  const failed = computed.find((each) => 'ok' in each)
  if (failed !== undefined) return failed
  return new Map(computed.flatMap((each) => ('ok' in each ? [] : [[each.name, each.text] as const])))
}

interface Computed {
  readonly name: string
  readonly text: SectionText
}

async function computedText({ name, compute }: PlacedSection): Promise<Computed | PrefixHalt> {
  try {
    const text: unknown = await compute()
    if (text === null || text === undefined) return { name, text: null }
    return typeof text === 'string'
      ? { name, text }
      : haltOf(`Section "${name}" gave no text: ${typeof text}.`)
  } catch (thrown) {
    return haltOf(`Section "${name}" could not be computed: ${wordsOf(thrown)}`)
  }
}

function haltOf(message: string): PrefixHalt {
  return { ok: false, reason: 'prefix', message }
}

function wordsOf(thrown: unknown): string {
  const words = thrown instanceof Error ? thrown.message : String(thrown)
  return words.trim() === '' ? 'no reason was given' : words
}

/** The very same value where every field of it says something. */
function saying<T>(value: T): T {
  return firstNonJson(value) === null || isTooDeep(value) ? value : (withoutUndefined(value) as T)
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined)
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([name, item]) => [name, withoutUndefined(item)]))
}
