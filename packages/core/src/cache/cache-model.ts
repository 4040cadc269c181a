/**
 * Model of what the provider has cached: prefixes of this session's API requests that ended at a cache marker, with
 * lifetime and, once usage has shown it, size in tokens. Immutable and bounded. `cache-forecast.ts` predicts cache
 * reads from it and updates it; break detection finds in it what an API request should have read.
 */

import { type Block, isThinkingBlock } from '../log/block.ts'
import { countJsonBytes, type JsonObject } from '../log/json.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import {
  type BlockIndex,
  countMessages,
  countSharedMessageBlocks,
  countTotalsOfBlocks,
  findMessageOfBlock,
  isSameJson,
  messageAt,
  readTotalsBeforeMessage,
  toMessageBlocks,
} from '../request/block-index.ts'
import type { CacheLevel } from '../request/prefix-snapshot.ts'
import { splitBlock } from '../tokens/estimator.ts'
import type { CacheableRequest } from './sent-request.ts'

/** A prefix of an API request that the provider has cached. */
export interface CachedPrefix {
  /** Number of blocks in the prefix, counting tools, system prompt blocks and message blocks. */
  readonly blocks: number
  readonly level: CacheLevel
  /** Estimated tokens of the prefix; `RequestChain.sizes` has the exact number if usage has shown it. */
  readonly tokens: number
  /** The prefix size is unknown and near the provider's minimum, so the prefix may not have been cached. */
  readonly isDoubtful: boolean
  readonly ttl: string
  readonly seconds: number
  /** When the prefix was last written or read, in milliseconds since 1970. */
  readonly usedAt: number
}

/** The tokens of a prefix with this many blocks, as usage has shown them. */
export interface PrefixSize {
  readonly blocks: number
  readonly tokens: number
}

/**
 * A series of API requests, each extending the previous one: the newest request and the prefixes that the series has
 * cached.
 */
export interface RequestChain extends CacheableRequest {
  /** Cached prefixes, shortest first. */
  readonly prefixes: readonly CachedPrefix[]
  /** Known prefix sizes, in the order in which usage showed them. */
  readonly sizes: AppendList<PrefixSize>
}

/**
 * Chains of API requests whose prefixes may be cached, newest first. A rewrite starts a new chain; after an undo the
 * older chain matches again.
 */
export interface CacheModel {
  readonly chains: readonly RequestChain[]
}

export const EMPTY_CACHE_MODEL: CacheModel = { chains: [] }

const MAX_CHAINS = 8
const MAX_PREFIXES = 256

/** Adds a chain as the newest one. `follows`: the chain extends the present newest chain and replaces it. */
export function addRequestChain({ chains }: CacheModel, chain: RequestChain, follows: boolean): CacheModel {
  const prefixes = limitPrefixes(chain.prefixes)
  return { chains: [{ ...chain, prefixes }, ...(follows ? chains.slice(1) : chains)].slice(0, MAX_CHAINS) }
}

function limitPrefixes(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  if (prefixes.length <= MAX_PREFIXES) return prefixes
  const byLife = prefixes.toSorted((one, other) => prefixExpiry(other) - prefixExpiry(one))
  const kept = new Set(byLife.slice(0, MAX_PREFIXES))
  return prefixes.filter((prefix) => kept.has(prefix))
}

/**
 * When the cached prefix of the newest API request expires unless it is used again; null if nothing is known to be
 * cached.
 */
export function cacheExpiry({ chains: [newest] }: CacheModel): number | null {
  const last = newest?.prefixes.at(-1)
  return last === undefined ? null : prefixExpiry(last)
}

export function prefixExpiry({ usedAt, seconds }: CachedPrefix): number {
  return usedAt + seconds * 1000
}

export function isPrefixLive(prefix: CachedPrefix, now: number): boolean {
  return now < prefixExpiry(prefix)
}

/**
 * Returns the cached prefix that ends at the last marker of the chain's newest API request; null if it was not cached.
 */
export function findLastCachedPrefix({ markedPrefixes, prefixes, sizes }: RequestChain): CachedPrefix | null {
  const blocks = markedPrefixes.at(-1)?.blocks
  const last = prefixes.findLast((prefix) => prefix.blocks === blocks)
  return last === undefined ? null : { ...last, tokens: findPrefixSize(sizes, last.blocks) ?? last.tokens }
}

// The following functions find the cached prefixes that an API request can read.

/**
 * Returns the position of a block as the provider counts it when it looks back from a marker. Thinking that is stripped
 * from finished turns has no position.
 */
function findLookBackPosition(
  { front, blockIndex }: CacheableRequest,
  blocks: number,
  strips: boolean,
): number {
  const inMessages = blocks - front.length
  if (inMessages <= 0) return blocks
  const stripped = strips
    ? countTotalsOfBlocks(blockIndex, Math.min(inMessages, blockIndex.end.blocksBeforePrompt)).thinkingBlocks
    : 0
  return front.length + countTotalsOfBlocks(blockIndex, inMessages).positions - stripped
}

/**
 * Checks whether a cache marker of the API request is at or after the end of a prefix with `blocks` blocks, and close
 * enough for the provider to look back to it.
 */
export function canReachPrefix(
  request: CacheableRequest,
  blocks: number,
  { cache, thinking }: ReadRules,
): boolean {
  const toPosition = (at: number): number => findLookBackPosition(request, at, thinking.stripsFinishedTurns)
  return request.markedPrefixes.some(
    (mark) => mark.blocks >= blocks && toPosition(mark.blocks) - toPosition(blocks) < cache.lookBack,
  )
}

/** Counts the leading blocks that two API requests have in common: tools, system prompt, then messages. */
export function countSharedRequestBlocks(one: CacheableRequest, other: CacheableRequest): number {
  const differs = one.front.findIndex((block, index) => !isSameJson(block, other.front[index]))
  if (differs !== -1) return differs
  return other.front.length > one.front.length
    ? one.front.length
    : one.front.length + countSharedMessageBlocks(one.blockIndex, other.blockIndex)
}

/**
 * Some models strip the thinking of finished turns, so a new prompt changes the prefix although no byte of the API
 * request changes. Returns the number of message blocks before the first thinking that is stripped; null if none is.
 */
export function findFirstStrippedThinking(one: BlockIndex, other: BlockIndex): number | null {
  const [further, nearer] =
    one.end.blocksBeforePrompt > other.end.blocksBeforePrompt ? [one, other] : [other, one]
  const [from, to] = [nearer.end.blocksBeforePrompt, further.end.blocksBeforePrompt]
  if (from === to) return null
  for (
    let index = findMessageOfBlock(further, from + 1);
    index < countMessages(further.messages);
    index += 1
  ) {
    const start = readTotalsBeforeMessage(further, index).blocks
    if (start >= to) return null
    const message = messageAt(further.messages, index)
    const blocks = message === undefined ? [] : toMessageBlocks(message)
    const found = blocks.findIndex((block, at) => start + at >= from && isThinkingBlock(block))
    if (found !== -1) return start + found < to ? start + found : null
  }
  return null
}

// Break detection computes how many cached tokens of the previous API request the next one should have read.
// The expectation of break detection ignores changed cache keys and expiry; both are reported as causes of a break.

type ReadRules = Pick<ProviderProfile, 'cache' | 'thinking'>

/**
 * Returns the tokens that the chain's newest API request cached, minus the thinking that the provider strips when the
 * turn ends.
 */
export function countExpectedRead(
  chain: RequestChain,
  { blockIndex }: CacheableRequest,
  profile: ReadRules,
): number {
  const left = findLastCachedPrefix(chain)
  if (left === null) return 0
  const isTurnOver = blockIndex.end.blocksBeforePrompt > chain.blockIndex.end.blocksBeforePrompt
  const stripped =
    profile.thinking.stripsFinishedTurns && isTurnOver ? estimateThinkingTokens(chain.blockIndex) : 0
  return Math.max(0, left.tokens - stripped)
}

/**
 * Characters per token in real sessions, chosen a little low: overestimating stripped thinking avoids false break
 * reports.
 */
const CHARACTERS_PER_TOKEN = 3
const CIPHER_CHARACTERS_PER_TOKEN = 4.9

/**
 * Estimates the tokens of the thinking in the current turn. Signatures count as well, since their length grows with all
 * thinking, even if its text is hidden.
 */
function estimateThinkingTokens(counted: BlockIndex): number {
  let tokens = 0
  const { messages, end } = counted
  for (
    let index = findMessageOfBlock(counted, end.blocksBeforePrompt + 1);
    index < countMessages(messages);
    index += 1
  ) {
    const message = messageAt(messages, index)
    for (const block of message === undefined ? [] : toMessageBlocks(message).filter(isThinkingBlock)) {
      const { texts, signatureLength } = splitBlock(block, 'json')
      const characters = texts.reduce((sum, text) => sum + text.length, 0)
      tokens += Math.max(characters / CHARACTERS_PER_TOKEN, signatureLength / CIPHER_CHARACTERS_PER_TOKEN)
    }
  }
  return Math.ceil(tokens)
}

/**
 * Returns the tokens of the longest cached prefix of known size that the API request can read: with at most `within`
 * message blocks and, if `at` is given, not expired then.
 */
export function countReadableTokens(
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
  { within, at }: { readonly within: number; readonly at?: number },
): number {
  const found = chain.prefixes.findLast(
    (prefix) =>
      countMessageBlocks(prefix, chain) <= within &&
      (at === undefined || isPrefixLive(prefix, at)) &&
      findPrefixSize(chain.sizes, prefix.blocks) !== null &&
      canFindPrefix(prefix, chain, request, profile),
  )
  return found === undefined ? 0 : (findPrefixSize(chain.sizes, found.blocks) ?? 0)
}

/**
 * Checks whether a cache marker of the API request looks back to the last prefix that the chain cached in the messages.
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
 * Checks whether the API request can read a cached prefix of the chain, even if the number of tool and system blocks
 * differs.
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

export function countMessageBlocks({ level, blocks }: CachedPrefix, { front }: RequestChain): number {
  return level === 'messages' ? blocks - front.length : 0
}

// Prefix sizes come from usage; unknown ones are interpolated between known sizes by the weight of the blocks.

/** Estimates the tokens of one block. */
export type EstimateBlock = (block: Block | JsonObject) => number

const BYTES_PER_TOKEN = 4
const weighBytes: EstimateBlock = (block) => (countJsonBytes(block) ?? 0) / BYTES_PER_TOKEN

export function findPrefixSize(sizes: AppendList<PrefixSize>, blocks: number): number | null {
  for (let index = sizes.length - 1; index >= 0; index -= 1) {
    const size = sizes.at(index)
    if (size?.blocks === blocks) return size.tokens
  }
  return null
}

export function estimatePrefixSize(
  request: CacheableRequest,
  sizes: AppendList<PrefixSize>,
  blocks: number,
  weigh: EstimateBlock = weighBytes,
): { readonly tokens: number; readonly isKnown: boolean } {
  const known = findPrefixSize(sizes, blocks)
  if (known !== null) return { tokens: known, isKnown: true }
  let below: PrefixSize = { blocks: 0, tokens: 0 }
  let above: PrefixSize | null = null
  for (const size of sizes) {
    if (size.blocks < blocks && size.blocks > below.blocks) below = size
    if (size.blocks > blocks && size.blocks < (above?.blocks ?? Number.POSITIVE_INFINITY)) above = size
  }
  const inside = weighBetween(request, below.blocks, blocks, weigh)
  if (above === null) return { tokens: below.tokens + Math.round(inside), isKnown: false }
  const all = inside + weighBetween(request, blocks, above.blocks, weigh)
  const share = all === 0 ? 0 : inside / all
  return { tokens: Math.round(below.tokens + share * (above.tokens - below.tokens)), isKnown: false }
}

/** Sums the weights of the blocks after block number `from`, up to and including block number `to`. */
function weighBetween(
  { front, blockIndex }: CacheableRequest,
  from: number,
  to: number,
  weigh: EstimateBlock,
): number {
  let weight = front.slice(from, to).reduce((sum, block) => sum + weigh(block), 0)
  const end = Math.min(to - front.length, blockIndex.end.blocks)
  for (let at = Math.max(from - front.length, 0); at < end; at += 1) {
    const index = findMessageOfBlock(blockIndex, at + 1)
    const message = messageAt(blockIndex.messages, index)
    const block =
      message === undefined
        ? undefined
        : toMessageBlocks(message)[at - readTotalsBeforeMessage(blockIndex, index).blocks]
    weight += block === undefined ? 0 : weigh(block)
  }
  return weight
}
