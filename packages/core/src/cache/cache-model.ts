/**
 * Model of what the provider has cached: prefixes of this session's API requests that ended at a cache marker, or that it
 * caches by itself, with lifetime and size in tokens. Immutable, with a limited number of prefixes. `cache-forecast.ts`
 * predicts cache reads from the model and updates it; cache-break detection computes from it what should have been read.
 */
import { type Block, isThinkingBlock } from '../log/block.ts'
import { countJsonBytes, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { isKnownRecord, type SessionRecord, SYNTHETIC_MODEL } from '../log/record.ts'
import type { SessionLog } from '../log/session-log.ts'
import type { ClearPolicy } from '../policy/clear-policy.ts'
import type { CacheRules, ProviderProfile } from '../policy/provider-profile.ts'
import type { PrefixPart } from '../policy/provider-spelling.ts'
import {
  type BlockIndex,
  countMessages,
  countSharedMessageBlocks,
  findMessageAt,
  findMessageIndexOfBlock,
  isSameJson,
  readTotalsBeforeMessage,
  readTotalsOfFirstBlocks,
  toMessageBlocks,
} from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { findResultPlace, type MessagesWithCalls, MOVING_MARKER_KINDS } from '../request/cache-markers.ts'
import { findCacheLifetimes } from '../request/cache-ttl.ts'
import { splitBlockForEstimate } from '../tokens/estimator.ts'
import { type CacheableRequest, toCacheableRequest } from './sent-request.ts'

/** A prefix of an API request that the provider has cached. */
export interface CachedPrefix {
  /** Number of blocks in the prefix, counting tools, system prompt blocks and message blocks. */
  readonly blocks: number
  readonly level: PrefixPart
  /** Estimated tokens of the prefix. The exact number is in `RequestChain.sizes` if a response has reported it. */
  readonly tokens: number
  /** True if the prefix may not be cached, because its estimated size is close to the provider's minimum for caching. */
  readonly isDoubtful: boolean
  readonly ttl: string
  readonly seconds: number
  /** When the prefix was last written or read, in milliseconds since 1970. */
  readonly usedAt: number
}

/** Exact size of a prefix, as reported in the usage of a response: its number of blocks and its tokens. */
export interface PrefixSize {
  readonly blocks: number
  readonly tokens: number
}

/**
 * A request chain: successive API requests, each of which only adds to the one before. Holds the newest request and all
 * prefixes that the requests have cached.
 */
export interface RequestChain extends CacheableRequest {
  /** Cached prefixes, shortest first. */
  readonly prefixes: readonly CachedPrefix[]
  /** Prefix sizes that responses have reported, oldest report first. */
  readonly sizes: AppendList<PrefixSize>
}

/**
 * What the provider may have cached, as request chains (API requests that each add to the one before), newest first.
 * Rewriting earlier messages starts a new chain. After an undo, the older chain can be read again.
 */
export interface CacheModel {
  readonly chains: readonly RequestChain[]
}

export const EMPTY_CACHE_MODEL: CacheModel = { chains: [] }

const MAX_CHAINS = 8
const MAX_PREFIXES = 256
const MAX_SIZES = 2 * MAX_PREFIXES

/** Adds a request chain as the newest one. `follows`: true if it continues the newest chain so far and replaces it. */
export function addRequestChain({ chains }: CacheModel, chain: RequestChain, follows: boolean): CacheModel {
  const prefixes = limitPrefixes(chain.prefixes)
  const limited = { ...chain, prefixes, sizes: limitSizes(chain.sizes, prefixes) }
  return { chains: [limited, ...(follows ? chains.slice(1) : chains)].slice(0, MAX_CHAINS) }
}

function limitPrefixes(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  if (prefixes.length <= MAX_PREFIXES) return prefixes
  const byLife = prefixes.toSorted((one, other) => computePrefixExpiry(other) - computePrefixExpiry(one))
  const kept = new Set(byLife.slice(0, MAX_PREFIXES))
  return prefixes.filter((prefix) => kept.has(prefix))
}

/** If there are too many sizes, keeps those of the cached prefixes. The search for a size then takes a limited time. */
function limitSizes(
  sizes: AppendList<PrefixSize>,
  prefixes: readonly CachedPrefix[],
): AppendList<PrefixSize> {
  if (sizes.length <= MAX_SIZES) return sizes
  const byLength = new Map(sizes.toArray().map((size) => [size.blocks, size]))
  return AppendList.of(prefixes.flatMap(({ blocks }) => byLength.get(blocks) ?? []))
}

/**
 * Returns when the cached prefix of the newest API request expires if nothing reads it again, in milliseconds since
 * 1970; null if nothing is known to be cached.
 */
export function findNewestPrefixExpiry({ chains: [newest] }: CacheModel): number | null {
  const last = newest?.prefixes.at(-1)
  return last === undefined ? null : computePrefixExpiry(last)
}

/**
 * Returns true if a request with these blocks before its messages (tools, then the system prompt) could still read
 * something that this session has cached, on any of its branches.
 */
export function hasLiveCache({ chains }: CacheModel, front: CacheableRequest['front'], now: number): boolean {
  return chains.some((chain) => {
    const shared = countSharedFront(front, chain.front)
    const isWhole = shared === front.length && shared === chain.front.length
    return chain.prefixes.some(
      (each) => !each.isDoubtful && (isWhole || each.blocks <= shared) && isPrefixLive(each, now),
    )
  })
}

/** Returns true if the newest requests of the model have this cached prefix, last used at the same time. */
export function hasCachedPrefix({ chains: [newest] }: CacheModel, { blocks, usedAt }: CachedPrefix): boolean {
  return newest?.prefixes.some((prefix) => prefix.blocks === blocks && prefix.usedAt === usedAt) === true
}

/** Returns when a prefix expires unless it is read, in milliseconds since 1970. */
export function computePrefixExpiry({ usedAt, seconds }: CachedPrefix): number {
  return usedAt + seconds * 1000
}

export function isPrefixLive(prefix: CachedPrefix, now: number): boolean {
  return now < computePrefixExpiry(prefix)
}

/**
 * Returns the cached prefix that ends at the last cache marker of the newest API request in the chain; null if that
 * prefix was not cached.
 */
export function findLastCachedPrefix({ markedPrefixes, prefixes, sizes }: RequestChain): CachedPrefix | null {
  const blocks = markedPrefixes.at(-1)?.blocks
  const last = prefixes.findLast((prefix) => prefix.blocks === blocks)
  return last === undefined ? null : { ...last, tokens: findPrefixSize(sizes, last.blocks) ?? last.tokens }
}

// The following functions find the cached prefixes that an API request can read.

/**
 * Returns the position of a block in the provider's count. Cache markers look back a limited number of positions.
 * Thinking blocks that the provider strips from finished turns are not counted.
 */
function findLookBackPosition(
  { front, blockIndex }: CacheableRequest,
  blocks: number,
  strips: boolean,
): number {
  const inMessages = blocks - front.length
  if (inMessages <= 0) return blocks
  const stripped = strips
    ? readTotalsOfFirstBlocks(blockIndex, Math.min(inMessages, blockIndex.end.blocksBeforePrompt))
        .thinkingBlocks
    : 0
  return front.length + readTotalsOfFirstBlocks(blockIndex, inMessages).positions - stripped
}

/**
 * Checks whether the API request can find a cached prefix of `blocks` blocks. One of its cache markers must stand at or
 * after the end of the prefix, within the provider's look-back distance; a cache of any prefix needs no marker.
 */
export function canReachPrefix(
  request: CacheableRequest,
  blocks: number,
  { cache, thinking }: ReadRules,
): boolean {
  const toPosition = (at: number): number => findLookBackPosition(request, at, thinking.stripsFinishedTurns)
  if (cache.kind === 'prefix') return true
  return request.markedPrefixes.some(
    (mark) => mark.blocks >= blocks && toPosition(mark.blocks) - toPosition(blocks) < cache.lookBack,
  )
}

/**
 * Returns the beginning of a chain up to `blocks`, as a provider that caches any prefix has it cached; null for other
 * providers, if the chain cached no more than that, or if it is too short to be cached.
 */
export function findImplicitPrefix(
  chain: RequestChain,
  blocks: number,
  cache: CacheRules,
): CachedPrefix | null {
  const longer = chain.prefixes.findLast((prefix) => prefix.blocks > blocks)
  if (cache.kind !== 'prefix' || longer === undefined || blocks === 0) return null
  const { tokens } = estimatePrefixSize(chain, chain.sizes, blocks)
  const level = blocks > chain.front.length ? 'messages' : 'system'
  return tokens < (cache.minimumTokens ?? 0) ? null : { ...longer, blocks, level, tokens }
}

/** Counts the leading blocks that two API requests have in common: tools, system prompt, then messages. */
export function countSharedRequestBlocks(one: CacheableRequest, other: CacheableRequest): number {
  const shared = countSharedFront(one.front, other.front)
  return shared < Math.max(one.front.length, other.front.length)
    ? shared
    : shared + countSharedMessageBlocks(one.blockIndex, other.blockIndex)
}

function countSharedFront(one: CacheableRequest['front'], other: CacheableRequest['front']): number {
  const differs = one.findIndex((block, index) => !isSameJson(block, other[index]))
  return differs === -1 ? one.length : differs
}

/**
 * Returns the number of message blocks before the first thinking block that only one of the two API requests strips;
 * null if there is none. Some models strip the thinking of finished turns, so a new prompt changes the prefix although
 * the messages sent are the same.
 */
export function countBlocksBeforeStrippedThinking(one: BlockIndex, other: BlockIndex): number | null {
  const [further, nearer] =
    one.end.blocksBeforePrompt > other.end.blocksBeforePrompt ? [one, other] : [other, one]
  const [from, to] = [nearer.end.blocksBeforePrompt, further.end.blocksBeforePrompt]
  if (from === to) return null
  for (
    let index = findMessageIndexOfBlock(further, from + 1);
    index < countMessages(further.messages);
    index += 1
  ) {
    const start = readTotalsBeforeMessage(further, index).blocks
    if (start >= to) return null
    const message = findMessageAt(further.messages, index)
    const blocks = message === undefined ? [] : toMessageBlocks(message)
    const found = blocks.findIndex((block, at) => start + at >= from && isThinkingBlock(block))
    if (found !== -1) return start + found < to ? start + found : null
  }
  return null
}

// Cache-break detection computes how many cached tokens of the previous API request the next one should have read. A
// changed cache key or an expired cache does not lower this number; both are reported as causes of the break.

type ReadRules = Pick<ProviderProfile, 'cache' | 'thinking' | 'spelling'>

/**
 * Returns how many tokens the next API request should read from the cache: everything that the previous request cached,
 * minus thinking that the provider strips when the turn ends.
 */
export function countExpectedReadTokens(
  chain: RequestChain,
  { blockIndex }: CacheableRequest,
  profile: ReadRules,
): number {
  const left = findLastCachedPrefix(chain)
  if (left === null) return 0
  const isTurnOver = blockIndex.end.blocksBeforePrompt > chain.blockIndex.end.blocksBeforePrompt
  const stripped =
    profile.thinking.stripsFinishedTurns && isTurnOver ? estimateThinkingTokens(chain.blockIndex) : 0
  const tokens = Math.max(0, left.tokens - stripped)
  return tokens - (tokens % profile.cache.stepTokens)
}

/**
 * Characters per token of thinking text. Slightly below the measured average, because overestimating stripped thinking
 * avoids false reports of cache breaks.
 */
const CHARACTERS_PER_TOKEN = 3
const CIPHER_CHARACTERS_PER_TOKEN = 4.9

/**
 * Estimates the tokens of all thinking in the current turn. If the thinking text is hidden, the length of the signature
 * is used, which grows with the thinking.
 */
function estimateThinkingTokens(counted: BlockIndex): number {
  let tokens = 0
  const { messages, end } = counted
  for (
    let index = findMessageIndexOfBlock(counted, end.blocksBeforePrompt + 1);
    index < countMessages(messages);
    index += 1
  ) {
    const message = findMessageAt(messages, index)
    for (const block of message === undefined ? [] : toMessageBlocks(message).filter(isThinkingBlock)) {
      const { texts, signatureLength } = splitBlockForEstimate(block, 'json')
      const characters = texts.reduce((sum, text) => sum + text.length, 0)
      tokens += Math.max(characters / CHARACTERS_PER_TOKEN, signatureLength / CIPHER_CHARACTERS_PER_TOKEN)
    }
  }
  return Math.ceil(tokens)
}

/**
 * Returns the size in tokens of the longest cached prefix that the API request can read. Only prefixes of known size
 * with at most `within` message blocks count. If `at` is given, prefixes that have expired by that time do not count.
 */
export function countReadableTokens(
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
  { within, at }: { readonly within: number; readonly at?: number },
): number {
  const found = chain.prefixes.findLast(
    (prefix) =>
      countPrefixMessageBlocks(prefix, chain) <= within &&
      (at === undefined || isPrefixLive(prefix, at)) &&
      findPrefixSize(chain.sizes, prefix.blocks) !== null &&
      canFindPrefix(prefix, chain, request, profile),
  )
  return found === undefined ? 0 : (findPrefixSize(chain.sizes, found.blocks) ?? 0)
}

/**
 * Checks whether a cache marker of the API request is close enough to find the last prefix that the previous requests
 * cached. True if no message prefix was cached.
 */
export function canReachLastPrefix(
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
): boolean {
  const left = findLastCachedPrefix(chain)
  return left === null || left.level !== 'messages' || canFindPrefix(left, chain, request, profile)
}

/**
 * Checks whether a cache marker of the API request is close enough to find the cached prefix. A changed number of tool
 * or system blocks is taken into account.
 */
function canFindPrefix(
  prefix: CachedPrefix,
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
): boolean {
  const shift = prefix.level === 'messages' ? request.front.length - chain.front.length : 0
  return canReachPrefix(request, prefix.blocks + shift, profile)
}

export function countPrefixMessageBlocks({ level, blocks }: CachedPrefix, { front }: RequestChain): number {
  return level === 'messages' ? blocks - front.length : 0
}

// Prefix sizes come from usage. The size of any other prefix is estimated by interpolating between known sizes.

const BYTES_PER_TOKEN = 4

/**
 * Returns a rough number of tokens, by the bytes of a block, which is cheaper than the estimator. It divides the tokens
 * between two known sizes; only beyond the last known size does it count as it is.
 */
function weighBlock(block: Block | JsonObject): number {
  return (countJsonBytes(block) ?? 0) / BYTES_PER_TOKEN
}

/** Returns the tokens of a prefix of so many blocks; null if no response has reported its size. */
export function findPrefixSize(sizes: AppendList<PrefixSize>, blocks: number): number | null {
  for (let index = sizes.length - 1; index >= 0; index -= 1) {
    const size = sizes.at(index)
    if (size?.blocks === blocks) return size.tokens
  }
  return null
}

/** Returns the tokens of a prefix: as reported, or else interpolated between the nearest reported sizes. */
export function estimatePrefixSize(
  request: CacheableRequest,
  sizes: AppendList<PrefixSize>,
  blocks: number,
): { readonly tokens: number; readonly isKnown: boolean } {
  const known = findPrefixSize(sizes, blocks)
  if (known !== null) return { tokens: known, isKnown: true }
  let below: PrefixSize = { blocks: 0, tokens: 0 }
  let above: PrefixSize | null = null
  for (const size of sizes) {
    if (size.blocks < blocks && size.blocks > below.blocks) below = size
    if (size.blocks > blocks && size.blocks < (above?.blocks ?? Number.POSITIVE_INFINITY)) above = size
  }
  const inside = weighBetween(request, below.blocks, blocks)
  if (above === null) return { tokens: below.tokens + Math.round(inside), isKnown: false }
  const all = inside + weighBetween(request, blocks, above.blocks)
  const share = all === 0 ? 0 : inside / all
  return { tokens: Math.round(below.tokens + share * (above.tokens - below.tokens)), isKnown: false }
}

/**
 * Sums the estimated tokens of the blocks after block number `from`, up to and including block number `to`. If the block
 * index has counted bytes, they are used, so the time does not grow with the number of messages.
 */
function weighBetween({ front, blockIndex }: CacheableRequest, from: number, to: number): number {
  const weight = front.slice(from, to).reduce((sum, block) => sum + weighBlock(block), 0)
  const start = Math.max(from - front.length, 0)
  const end = Math.min(to - front.length, blockIndex.end.blocks)
  if (end <= start) return weight
  const [before, through] = [start, end].map((blocks) => readTotalsOfFirstBlocks(blockIndex, blocks).bytes)
  return before != null && through != null
    ? weight + (through - before) / BYTES_PER_TOKEN
    : weight + weighMessageBlocks(blockIndex, start, end)
}

function weighMessageBlocks(counted: BlockIndex, from: number, to: number): number {
  let weight = 0
  for (let at = from; at < to; at += 1) {
    const index = findMessageIndexOfBlock(counted, at + 1)
    const message = findMessageAt(counted.messages, index)
    const block =
      message === undefined
        ? undefined
        : toMessageBlocks(message)[at - readTotalsBeforeMessage(counted, index).blocks]
    weight += block === undefined ? 0 : weighBlock(block)
  }
  return weight
}

// Tells whether the prompt cache is still warm (not expired) and how many cached tokens a rewrite of the conversation
// would lose. Clearing and the planner use it.

interface CacheTemperatureInput {
  readonly cacheModel: CacheModel
  /** The last API request that was sent; null before the first one. */
  readonly sent: AssembledRequest | null
  /** The messages that would be sent now. */
  readonly flat: MessagesWithCalls
  readonly profile: ProviderProfile
  readonly policy: ClearPolicy
  /** Name of the cache lifetime in force, such as `5m`; null if caching is off. */
  readonly ttl: string | null
  /** The current time, in milliseconds since 1970. */
  readonly now: number
  /** Tokens of the next API request. */
  readonly contextTokens: number
}

/** Tells whether the cache is warm now, and what changing a part of the messages would lose. */
export function measureCacheTemperature(question: CacheTemperatureInput): CacheTemperature {
  const { cacheModel, profile, ttl, now } = question
  const expiresAt = ttl === null ? null : findNewestPrefixExpiry(cacheModel)
  const seconds =
    profile.cache.ttls.find(({ name }) => name === ttl)?.seconds ??
    findCacheLifetimes(profile.cache).short.seconds
  return {
    isWarm: expiresAt !== null && now < expiresAt,
    expiresAt,
    ttlMs: seconds * 1000,
    expectedCalls: findExpectedCalls(question, seconds),
    countTokensToRewrite: (change) => countTokensBehind(question, change),
  }
}

function findExpectedCalls({ policy, profile }: CacheTemperatureInput, seconds: number): number {
  const { short } = findCacheLifetimes(profile.cache)
  return seconds > short.seconds ? policy.expectedCallsOneHour : policy.expectedCallsFiveMinutes
}

/**
 * Counts the cached tokens that must be written again if the given part of the messages changes. Content added since
 * the last API request is not counted, because it must be written in any case.
 */
function countTokensBehind(question: CacheTemperatureInput, change: FirstToolChange): number {
  const { contextTokens, sent, cacheModel } = question
  const [chain] = cacheModel.chains
  const found = sent === null ? null : findReadablePrefix(question, sent, change)
  if (found === null) return contextTokens
  const countTokensIn = (prefix: CachedPrefix | undefined): number | null =>
    chain === undefined || prefix === undefined
      ? null
      : (findPrefixSize(chain.sizes, prefix.blocks) ?? prefix.tokens)
  const kept = Math.min(contextTokens, countTokensIn(chain?.prefixes.at(-1)) ?? contextTokens)
  return Math.max(0, kept - (countTokensIn(found.prefix) ?? 0))
}

/**
 * Finds the longest unexpired cached prefix that ends before the changed part and that a marker with a fixed position
 * can find. A prefix that only a moving marker can find does not count. Returns null if the messages do not contain the
 * changed part.
 */
function findReadablePrefix(
  { cacheModel, flat, profile, now }: CacheTemperatureInput,
  sent: AssembledRequest,
  { toolUseId, part }: FirstToolChange,
): { readonly prefix: CachedPrefix | undefined } | null {
  const place = findResultPlace(flat, toolUseId)
  const index = part === 'call' ? flat.calls.get(toolUseId) : place?.index
  if (index === undefined) return null
  const staying = sent.markers.filter(({ kind }) => !MOVING_MARKER_KINDS.has(kind))
  const request = toCacheableRequest({ ...sent, markers: staying }, profile)
  const inside = part === 'call' ? 0 : (place?.block ?? 0)
  const before = request.front.length + readTotalsBeforeMessage(sent.blockIndex, index).blocks + inside
  const [chain] = cacheModel.chains
  const shared = chain === undefined ? null : findImplicitPrefix(chain, before, profile.cache)
  if (shared !== null && isPrefixLive(shared, now)) return { prefix: shared }
  const prefix = chain?.prefixes.findLast(
    (each) =>
      each.blocks <= before && isPrefixLive(each, now) && canReachPrefix(request, each.blocks, profile),
  )
  return { prefix }
}

/** The first tool call or tool result that a rewrite would change. */
export interface FirstToolChange {
  readonly toolUseId: string
  readonly part: 'call' | 'result'
}

/** State of the cache, for deciding whether a rewrite pays. */
export interface CacheTemperature {
  /** True if the prefix of the last API request has not expired from the cache. */
  readonly isWarm: boolean
  /**
   * When the cached prefix expires unless it is read again, in milliseconds since 1970; null if nothing is known to be
   * cached.
   */
  readonly expiresAt: number | null
  /** The cache lifetime in force, in milliseconds. */
  readonly ttlMs: number
  /** Number of model calls expected before the cache expires. */
  readonly expectedCalls: number
  /**
   * Returns how many cached tokens must be written again if the given tool call or result changes. These are all cached
   * tokens after the longest prefix that can still be read, including the text that is being cleared.
   */
  readonly countTokensToRewrite: (change: FirstToolChange) => number
}

// The number of calls before the cache expires starts as the policy's number and approaches the session's own
// average.

/** Model calls, and the pauses between them that the cache did not survive. */
export interface CacheLapseCounts {
  readonly calls: number
  /** Number of pauses between model calls that were longer than the cache lifetime. */
  readonly lapses: number
}

export const NO_CACHE_LAPSES: CacheLapseCounts = { calls: 0, lapses: 0 }

/** Counts one more model call. `gapMs`: time since the previous call; null for the first one. */
export function addCallToLapses(
  { calls, lapses }: CacheLapseCounts,
  gapMs: number | null,
  ttlMs: number,
): CacheLapseCounts {
  return { calls: calls + 1, lapses: lapses + (gapMs !== null && gapMs >= ttlMs ? 1 : 0) }
}

/**
 * Estimates how many calls are made before the cache expires. Returns the average number of calls between expiries in
 * this session, with the policy's number counted as one more observation.
 */
export function estimateCallsBeforeExpiry({ calls, lapses }: CacheLapseCounts, byPolicy: number): number {
  return (byPolicy + calls) / (1 + lapses)
}

/** Calls of a log and pauses between them that were longer than the cache lifetime, updated as the log grows. */
export interface CacheLapseTally {
  /** Cache entry lifetime in milliseconds. After a longer pause between calls the cache has expired. */
  readonly ttlMs: number
  /** The log records counted so far; null before the first count. */
  readonly records: SessionLog['records'] | null
  readonly runs: CacheLapseCounts
  readonly response: string | null
  /** Time of the newest response in milliseconds since 1970; null before the first. */
  readonly at: number | null
}

export const EMPTY_CACHE_LAPSE_TALLY: CacheLapseTally = {
  ttlMs: 0,
  records: null,
  runs: NO_CACHE_LAPSES,
  response: null,
  at: null,
}

/** Counts the responses appended since the last update. Counts all responses again if the cache lifetime changed. */
export function updateCacheLapseTally(
  tally: CacheLapseTally,
  { records }: SessionLog,
  ttlMs: number,
): CacheLapseTally {
  const follows = tally.records !== null && tally.ttlMs === ttlMs && records.extends(tally.records)
  let next = follows ? tally : { ...EMPTY_CACHE_LAPSE_TALLY, ttlMs }
  for (const record of records.toArray(next.records?.length ?? 0)) next = countResponse(next, record)
  return { ...next, records }
}

function countResponse(tally: CacheLapseTally, record: SessionRecord): CacheLapseTally {
  if (!isKnownRecord(record) || record.type !== 'assistant' || record.isSidechain === true) return tally
  const { id, model } = record.message
  const at = Date.parse(record.timestamp)
  if (id === tally.response || model === SYNTHETIC_MODEL || Number.isNaN(at)) return tally
  const gap = tally.at === null ? null : at - tally.at
  return { ...tally, runs: addCallToLapses(tally.runs, gap, tally.ttlMs), response: id, at }
}
