/**
 * A request as it was sent, in the parts that break detection compares and names: tools, sections, messages,
 * parameters, markers. Parts are shared by reference between requests and are never changed. Then as the provider's
 * cache sees it: blocks, the key, and the prefixes that end at a marker.
 */

import type { TracedMessage } from '../context/flatten.ts'
import type { Block } from '../log/block.ts'
import { isObject, type Json, type JsonObject } from '../log/json.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import {
  type BlockIndex,
  type BlockPosition,
  blocksOfMessage,
  indexBlocks,
  type MessageList,
  type MessageTraits,
  messageAt,
  totalsThroughBlock,
} from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PlannedMarker } from '../request/cache-markers.ts'
import {
  type CacheLevel,
  findCacheLevel,
  isLoadedUpfront,
  type RequestPrefix,
  toolName,
} from '../request/prefix.ts'

export interface SentRequest {
  /** The query source: `repl_main_thread`, `agent:…`, `compact` … */
  readonly source: string
  /** When it was sent, in milliseconds since 1970: cache lifetimes start here. */
  readonly at: number
  readonly tools: readonly SentPrefixPiece[]
  readonly system: readonly SentPrefixPiece[]
  readonly messages: MessageList
  readonly parameters: SentParameters
  /** In the order of the request. */
  readonly markers: readonly SentMarker[]
  /**
   * For a fork, the source whose cache it reads: it repeats that source's last request and adds messages that are
   * not sent again. Without it, a `compact` request counts as a fork of the main thread.
   */
  readonly forkOf?: string
  /**
   * Messages, by index, that differ from their records, and what changed them. For hosts that build requests
   * themselves; the engine always sends what its records hold.
   */
  readonly touched?: ReadonlyMap<number, Exclude<MessageEditor, 'unknown'>>
}

/** A tool or a section of the system prompt, as text without cache markers. */
export type SentPrefixPiece = { readonly name: string; readonly text: string }

/** What changed a message that had been sent before. */
export type MessageEditor = 'clearing' | 'compaction' | 'hook' | 'host' | 'unknown'

/** The other inputs of the provider's cache key, as text. Fields outside the key (`max_tokens`, `metadata`) are left out. */
export interface SentParameters {
  readonly model: string
  readonly speed?: string | undefined
  readonly effort?: string | undefined
  readonly thinking?: string | undefined
  readonly toolChoice?: string | undefined
  readonly betas?: readonly string[] | undefined
  /** By name: extra body, context management, output format; also circumstances that are not sent (overage, mode). */
  readonly others?: Readonly<Record<string, string>> | undefined
}

export interface SentMarker {
  readonly zone: CacheLevel
  /** Of the tool, system block or message. */
  readonly index: number
  /** Which block of the message. */
  readonly block?: number
  /** The lifetime, by the provider's name and in seconds. */
  readonly ttl: string
  readonly seconds: number
  readonly scope?: string
}

/** What is known only when the request is sent. */
export interface SendContext extends Pick<SentRequest, 'source' | 'at' | 'forkOf' | 'touched'> {
  readonly cache: Pick<CacheRules, 'ttls' | 'defaultTtl'>
  /** Facts that are not sent but may explain a cache break: overage, mode, strategy. */
  readonly circumstances?: Readonly<Record<string, string>>
  /** The request before it: the texts of an unchanged prefix are taken from there. */
  readonly previous?: MonitoredRequest
}

export interface MonitoredRequest extends SentRequest {
  readonly front: RequestPrefix
}

export function toSentRequest(request: AssembledRequest, sending: SendContext): MonitoredRequest {
  const { cache, previous, circumstances, ...given } = sending
  const { front, messages, markers, extra } = request
  const pieces = previous?.front === front ? previous : listPrefixPieces(front)
  return {
    ...given,
    front,
    tools: pieces.tools,
    system: pieces.system,
    messages,
    parameters: toSentParameters(front.model, { ...front.parameters, ...extra }, circumstances),
    markers: markers.map((marker) => toSentMarker(marker, cache)),
  }
}

function listPrefixPieces({ tools, system, current }: RequestPrefix): Pick<SentRequest, 'tools' | 'system'> {
  const texts = new Map(current.epoch.sections.map(({ name, text }) => [name, text]))
  const names = system.flatMap(({ sections }) => sections)
  return {
    tools: tools.map((tool): SentPrefixPiece => ({ name: toolName(tool), text: JSON.stringify(tool) })),
    system: names.map((name): SentPrefixPiece => ({ name, text: texts.get(name) ?? '' })),
  }
}

const SEPARATE_PARAMETERS = new Set(['speed', 'thinking', 'tool_choice', 'betas', 'output_config'])

/** The request fields that belong to the cache key, in the form in which they are compared. */
export function toSentParameters(
  model: string,
  fields: JsonObject,
  circumstances: SendContext['circumstances'] = {},
): SentParameters {
  const { effort, ...output } = isObject(fields.output_config) ? fields.output_config : {}
  // The provider's own edits are not part of the key, but they explain many misses.
  const isCompared = (name: string): boolean => findCacheLevel(name) !== null || name === 'context_management'
  const rest = Object.entries(fields).filter(([name]) => !SEPARATE_PARAMETERS.has(name) && isCompared(name))
  const others = { ...Object.fromEntries(rest), ...(Object.keys(output).length === 0 ? {} : { output }) }
  return {
    model,
    speed: toParameterText(fields.speed),
    effort: typeof effort === 'string' ? effort : undefined,
    thinking: toParameterText(fields.thinking),
    toolChoice: toParameterText(fields.tool_choice),
    betas: Array.isArray(fields.betas) ? fields.betas.map(String) : undefined,
    others: {
      ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)])),
      ...circumstances,
    },
  }
}

function toParameterText(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function toSentMarker({ place, control }: PlannedMarker, cache: SendContext['cache']): SentMarker {
  const { ttls, defaultTtl } = cache
  const ttl = typeof control.ttl === 'string' ? control.ttl : defaultTtl
  const seconds = ttls.find(({ name }) => name === ttl)?.seconds ?? 0
  return { ...place, ttl, seconds, ...(typeof control.scope === 'string' ? { scope: control.scope } : {}) }
}

/** The JSON text of a block as sent; empty if there is no such block. */
export function findBlockText(messages: MessageList, { message, block }: BlockPosition): string {
  const found = messageAt(messages, message)
  return found === undefined || block >= blocksOfMessage(found).length ? '' : toBlockText(found, block)
}

export function toBlockText(message: TracedMessage, index: number): string {
  return message.raw?.get(index) ?? JSON.stringify(blocksOfMessage(message)[index] ?? null)
}

// A request as the provider's cache sees it.

export interface CacheableRequest {
  /** Blocks before the messages: tools, then system prompt. */
  readonly front: readonly (Block | JsonObject)[]
  readonly blockIndex: BlockIndex
  readonly key: CacheKey
  /** In request order. */
  readonly markedPrefixes: readonly MarkedPrefix[]
}

/** What must match besides the blocks, by level: a change loses its own level and those behind it. */
export type CacheKey = Readonly<Record<CacheLevel, string>>

/** A cache marker: the prefix that ends at it, and how long that is to live. */
export interface MarkedPrefix {
  readonly blocks: number
  readonly level: CacheLevel
  readonly ttl: string
  readonly seconds: number
}

export function toCacheableRequest(request: AssembledRequest, cache: CacheRules): CacheableRequest {
  const { front, blockIndex, markers, extra } = request
  const offered = front.tools.filter(isLoadedUpfront)
  return buildCacheableRequest({
    tools: offered,
    countToolBlocks: (index) => front.tools.slice(0, index + 1).filter(isLoadedUpfront).length,
    system: front.system.map(({ block }) => block),
    blockIndex,
    parameters: { ...front.parameters, ...extra, model: front.model },
    markers: markers.map((marker) => toSentMarker(marker, cache)),
  })
}

/** For requests that are known only by what was sent, as a log has them. `from`: the messages counted before. */
export function toCacheableFromSent(
  sent: SentRequest,
  cache: CacheRules,
  from?: BlockIndex,
): CacheableRequest {
  const { tools, system, messages, parameters, markers } = sent
  const { others = {}, betas = [], ...plain } = parameters
  const given = Object.entries(plain).filter(([, value]) => value !== undefined)
  return buildCacheableRequest({
    tools,
    countToolBlocks: (index) => index + 1,
    system,
    blockIndex: indexBlocks(messages, cache.collapsesToolRuns, from),
    parameters: { ...Object.fromEntries(given), betas, ...others },
    markers,
  })
}

interface RequestParts {
  readonly tools: CacheableRequest['front']
  /** Blocks up to and including the tool at this index. */
  readonly countToolBlocks: (index: number) => number
  readonly system: CacheableRequest['front']
  readonly blockIndex: BlockIndex
  /** The model among them. */
  readonly parameters: JsonObject
  readonly markers: readonly SentMarker[]
}

function buildCacheableRequest({
  tools,
  countToolBlocks,
  system,
  blockIndex,
  parameters,
  markers,
}: RequestParts): CacheableRequest {
  const front = [...tools, ...system]
  const countBlocksThrough = ({ zone, index, block = 0 }: SentMarker): number => {
    if (zone === 'tools') return countToolBlocks(index)
    if (zone === 'system') return tools.length + index + 1
    return front.length + totalsThroughBlock(blockIndex, index, block).blocks
  }
  return {
    front,
    blockIndex,
    key: toCacheKey(parameters, blockIndex.end.traits, tools.length > 0),
    markedPrefixes: markers.map((marker) => {
      const { zone, ttl, seconds } = marker
      return { blocks: countBlocksThrough(marker), level: zone, ttl, seconds }
    }),
  }
}

/** `declaresTools`: without tools in front, the first that a message defines changes how the prompt begins. */
function toCacheKey(parameters: JsonObject, traits: MessageTraits, declaresTools: boolean): CacheKey {
  const listParameters = (level: CacheLevel): readonly string[] =>
    Object.keys(parameters)
      .filter((name) => findCacheLevel(name) === level)
      .sort()
      .map((name) => `${name}=${formatParameter(name, parameters[name] ?? null)}`)
  const tools = [...listParameters('tools'), traits.definesTools && !declaresTools ? 'tools in messages' : '']
  const system = [...listParameters('system'), traits.hasCitations ? 'citations' : '']
  const messages = [...listParameters('messages'), traits.hasImages ? 'images' : '']
  return { tools: tools.join('\n'), system: system.join('\n'), messages: messages.join('\n') }
}

/** Betas are a set. */
function formatParameter(name: string, value: Json): string {
  return JSON.stringify(name === 'betas' && Array.isArray(value) ? value.toSorted() : value)
}

const LEVEL_ORDER: readonly CacheLevel[] = ['tools', 'system', 'messages']

/** A prefix that ends on `level` is found under either key. */
export function hasSameCacheKey(one: CacheKey, other: CacheKey, level: CacheLevel): boolean {
  const levels = LEVEL_ORDER.slice(0, LEVEL_ORDER.indexOf(level) + 1)
  return levels.every((each) => one[each] === other[each])
}
