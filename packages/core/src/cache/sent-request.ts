/**
 * An API request as it was sent, split into the parts that cache-break detection compares: tools, sections, messages,
 * parameters, markers. Also the same request as the provider caches it: blocks, cache key, and prefixes that end at a
 * cache marker. Unchanged parts are shared between requests and never mutated.
 */

import type { TracedMessage } from '../context/flatten-context.ts'
import type { Block } from '../log/block.ts'
import type { Json, JsonObject } from '../log/json.ts'
import type { CacheRules, ProviderProfile } from '../policy/provider-profile.ts'
import type { CacheRelevantParameters, PrefixPart } from '../policy/provider-spelling.ts'
import {
  type BlockIndex,
  type BlockPosition,
  countTotalsThroughBlock,
  findMessageAt,
  indexBlocks,
  type MessageList,
  type MessageTraits,
  toMessageBlocks,
} from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PlannedMarker } from '../request/cache-markers.ts'
import { isLoadedUpfront, type RequestPrefix, readToolOrTypeName } from '../request/prefix-snapshot.ts'

/** An API request as break detection compares it. */
export interface SentRequest {
  /** Caller that sent the API request (query source), such as `repl_main_thread`, `agent:…` or `compact`. */
  readonly source: string
  /** When the API request was sent, in milliseconds since 1970; cache lifetimes start at this time. */
  readonly at: number
  readonly tools: readonly SentPrefixPiece[]
  readonly system: readonly SentPrefixPiece[]
  readonly messages: MessageList
  readonly parameters: SentParameters
  /** Cache markers in the order of the API request. */
  readonly markers: readonly SentMarker[]
  /**
   * Set for a fork: the caller whose last API request the fork repeats in order to read its cached prefix. If absent,
   * only requests of the caller `compact` count as forks, and as forks of the main thread.
   */
  readonly forkOf?: string
  /**
   * Who changed a message before it was sent, by message index. Used only by hosts that build API requests themselves;
   * the engine sends messages as logged.
   */
  readonly touched?: ReadonlyMap<number, Exclude<MessageChangeSource, 'unknown'>>
}

/** A tool definition or system prompt section, as text without cache markers. */
export type SentPrefixPiece = { readonly name: string; readonly text: string }

/** Who changed a message that was already sent. */
export type MessageChangeSource = 'clearing' | 'compaction' | 'hook' | 'host' | 'unknown'

/** The parameters of an API request that break detection compares. */
export interface SentParameters extends CacheRelevantParameters {
  readonly model: string
}

/** A cache marker with its lifetime; a marker that names none has the provider's default. */
export interface SentMarker {
  readonly zone: PrefixPart
  /** Index of the marked tool, system block or message. */
  readonly index: number
  /** Index of the marked block within its message; absent for tools and system blocks. */
  readonly block?: number
  /** Cache lifetime: the provider's name for it (`ttl`) and its length (`seconds`). */
  readonly ttl: string
  readonly seconds: number
  readonly scope?: string
}

/** Facts about an API request that are known only when it is sent. */
export interface SendContext extends Pick<SentRequest, 'source' | 'at' | 'forkOf' | 'touched'> {
  readonly profile: Pick<ProviderProfile, 'cache' | 'spelling'>
  /** The previous API request; if its prefix is unchanged, its prefix texts are reused. */
  readonly previous?: SentRequestWithPrefix
}

/** A sent request with the prefix object that it was built from. */
export interface SentRequestWithPrefix extends SentRequest {
  readonly front: RequestPrefix
}

/** Returns the parts of a request that break detection compares. Texts of an unchanged prefix are taken from `previous`. */
export function toSentRequest(request: AssembledRequest, sending: SendContext): SentRequestWithPrefix {
  const { profile, previous, ...given } = sending
  const { cache, spelling } = profile
  const { front, messages, markers, extra } = request
  const pieces = previous?.front === front ? previous : listPrefixPieces(front)
  return {
    ...given,
    front,
    tools: pieces.tools,
    system: pieces.system,
    messages,
    parameters: {
      model: front.model,
      ...spelling.readCacheParameters({ ...front.parameters, ...extra }),
    },
    markers: markers.map((marker) => toSentMarker(marker, cache)),
  }
}

function listPrefixPieces({ tools, system, current }: RequestPrefix): Pick<SentRequest, 'tools' | 'system'> {
  const texts = new Map(current.epoch.sections.map(({ name, text }) => [name, text]))
  const names = system.flatMap(({ sections }) => sections)
  return {
    tools: tools.map(
      (tool): SentPrefixPiece => ({ name: readToolOrTypeName(tool), text: JSON.stringify(tool) }),
    ),
    system: names.map((name): SentPrefixPiece => ({ name, text: texts.get(name) ?? '' })),
  }
}

function toSentMarker({ place, scope, ...marker }: PlannedMarker, cache: CacheRules): SentMarker {
  const { ttls, defaultTtl } = cache
  const ttl = marker.ttl ?? defaultTtl
  const seconds = ttls.find(({ name }) => name === ttl)?.seconds ?? 0
  return { ...place, ttl, seconds, ...(scope === undefined ? {} : { scope }) }
}

/** Returns the JSON text of a block as it was sent; empty if there is no such block. */
export function findSentBlockText(messages: MessageList, { message, block }: BlockPosition): string {
  const found = findMessageAt(messages, message)
  return found === undefined || block >= toMessageBlocks(found).length ? '' : toSentBlockText(found, block)
}

/** Returns the JSON text of a block as it is sent. */
export function toSentBlockText(message: TracedMessage, index: number): string {
  return message.raw?.get(index) ?? JSON.stringify(toMessageBlocks(message)[index] ?? null)
}

// An API request as the provider caches it: a list of blocks, a cache key, and prefixes that end at a cache marker.

/** A request as the provider's cache sees it. */
export interface CacheableRequest {
  /** Blocks before the messages: tools, then the system prompt. */
  readonly front: readonly (Block | JsonObject)[]
  readonly blockIndex: BlockIndex
  readonly key: CacheKey
  /** Prefixes that the provider caches: those that end at a cache marker and, if it caches by itself, the whole prompt. */
  readonly markedPrefixes: readonly MarkedPrefix[]
}

/**
 * The parameters that must be equal for a cached prefix to be found, for tools, system prompt and messages. A changed
 * parameter also invalidates the parts after its own.
 */
export type CacheKey = Readonly<Record<PrefixPart, string>>

/** A prefix that ends at a cache marker, and the lifetime that the marker asks for. */
export interface MarkedPrefix {
  readonly blocks: number
  readonly level: PrefixPart
  readonly ttl: string
  readonly seconds: number
}

export function toCacheableRequest(
  request: AssembledRequest,
  { cache, spelling }: CacheKeyRules,
): CacheableRequest {
  const { front, blockIndex, markers, extra } = request
  const offered = front.tools.filter(isLoadedUpfront)
  return buildCacheableRequest({
    tools: offered,
    countToolBlocks: (index) => front.tools.slice(0, index + 1).filter(isLoadedUpfront).length,
    system: front.system.map(({ block }) => block),
    blockIndex,
    parameters: { ...front.parameters, ...extra, model: front.model },
    markers: markers.map((marker) => toSentMarker(marker, cache)),
    cache,
    spelling,
  })
}

/**
 * Converts a sent API request, for example one restored from a log, to the form in which the provider caches it.
 * `from`: block index of an earlier request, so that only new messages are counted.
 */
export function toCacheableSentRequest(
  sent: SentRequest,
  { cache, spelling }: CacheKeyRules,
  from?: BlockIndex,
): CacheableRequest {
  const { tools, system, messages, parameters, markers } = sent
  const { others = {}, betas = [], ...plain } = parameters
  const given = Object.entries(plain).filter(([, value]) => value !== undefined)
  return buildCacheableRequest({
    tools,
    countToolBlocks: (index) => index + 1,
    system,
    // Usage nearly always tells the sizes of these prefixes. Bytes are counted only when a size has to be estimated.
    blockIndex: indexBlocks(messages, cache.collapsesToolRuns, from, { countsBytes: false }),
    parameters: { ...Object.fromEntries(given), betas, ...others },
    markers,
    cache,
    spelling,
  })
}

/** The rules of a provider by which a cached prefix is found again. */
type CacheKeyRules = Pick<ProviderProfile, 'cache' | 'spelling'>

interface RequestParts {
  readonly tools: CacheableRequest['front']
  /** Counts the tools up to and including the one at `index`. Tools with deferred loading are not counted. */
  readonly countToolBlocks: (index: number) => number
  readonly system: CacheableRequest['front']
  readonly blockIndex: BlockIndex
  /** Request parameters, including the model. */
  readonly parameters: JsonObject
  readonly markers: readonly SentMarker[]
  readonly cache: CacheRules
  readonly spelling: ProviderProfile['spelling']
}

function buildCacheableRequest({
  tools,
  countToolBlocks,
  system,
  blockIndex,
  parameters,
  markers,
  cache,
  spelling,
}: RequestParts): CacheableRequest {
  const front = [...tools, ...system]
  const countBlocksThrough = ({ zone, index, block = 0 }: SentMarker): number => {
    if (zone === 'tools') return countToolBlocks(index)
    if (zone === 'system') return tools.length + index + 1
    return front.length + countTotalsThroughBlock(blockIndex, index, block).blocks
  }
  const marked = markers.map((marker): MarkedPrefix => {
    const { zone, ttl, seconds } = marker
    return { blocks: countBlocksThrough(marker), level: zone, ttl, seconds }
  })
  return {
    front,
    blockIndex,
    key: toCacheKey(groupByLevel(parameters, spelling), blockIndex.end.traits, tools.length > 0),
    markedPrefixes: withWholePrompt(marked, front.length + blockIndex.end.blocks, cache),
  }
}

/** Adds the whole prompt, which some providers cache by themselves, with the usual lifetime. */
function withWholePrompt(
  marked: readonly MarkedPrefix[],
  blocks: number,
  { kind, ttls, defaultTtl }: CacheRules,
): readonly MarkedPrefix[] {
  if (kind === 'markers' || blocks === 0 || marked.at(-1)?.blocks === blocks) return marked
  const seconds = ttls.find(({ name }) => name === defaultTtl)?.seconds ?? 0
  return [...marked, { blocks, level: 'messages', ttl: defaultTtl, seconds }]
}

/**
 * Builds the cache key. `declaresTools`: true if the request field `tools` is not empty. If it is empty, the first tool
 * that a message defines changes the key.
 */
function toCacheKey(parts: PartsByLevel, traits: MessageTraits, declaresTools: boolean): CacheKey {
  parts.tools.push(traits.definesTools && !declaresTools ? 'tools in messages' : '')
  parts.system.push(traits.hasCitations ? 'citations' : '')
  parts.messages.push(traits.hasImages ? 'images' : '')
  return {
    tools: parts.tools.join('\n'),
    system: parts.system.join('\n'),
    messages: parts.messages.join('\n'),
  }
}

type PartsByLevel = Readonly<Record<PrefixPart, string[]>>

function groupByLevel(parameters: JsonObject, spelling: RequestParts['spelling']): PartsByLevel {
  const parts: PartsByLevel = { tools: [], system: [], messages: [] }
  for (const name of Object.keys(parameters).sort()) {
    const level = spelling.findCacheLevel(name)
    if (level !== null) parts[level].push(`${name}=${formatParameter(name, parameters[name] ?? null)}`)
  }
  return parts
}

/** Formats a parameter for the cache key; betas are sorted because their order does not matter. */
function formatParameter(name: string, value: Json): string {
  return JSON.stringify(name === 'betas' && Array.isArray(value) ? value.toSorted() : value)
}
