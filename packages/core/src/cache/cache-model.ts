/**
 * The one model of what the provider has cached: the prefixes that this session's requests left there, each ending
 * where a cache marker stood, with its lifetime and, as far as usage has shown it, its size in tokens.
 *
 * A bounded value. `cache-forecast.ts` predicts reads from it and updates it from usage; break detection takes from
 * it what a request should have read.
 */

import { type Block, isThinking } from '../log/block.ts'
import { countJsonBytes, type JsonObject } from '../log/json.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import {
  type BlockIndex,
  blocksOfMessage,
  countSharedMessageBlocks,
  findMessageOfBlock,
  isSameJson,
  messageAt,
  messageCount,
  totalsAfterBlocks,
  totalsBeforeMessage,
} from '../request/block-index.ts'
import type { CacheLevel } from '../request/prefix.ts'
import { splitBlock } from '../tokens/estimator.ts'
import type { CacheableRequest } from './sent-request.ts'

/** A prefix that the provider holds. */
export interface CachedPrefix {
  /** Blocks in it: tools, system prompt, messages. */
  readonly blocks: number
  readonly level: CacheLevel
  /** An estimate; `RequestChain.sizes` has the exact figure where usage has shown it. */
  readonly tokens: number
  /** Its size is unknown and near the provider's minimum: it may not have been cached. */
  readonly isDoubtful: boolean
  readonly ttl: string
  readonly seconds: number
  /** When it was last written or read, in milliseconds since 1970. */
  readonly usedAt: number
}

/** Tokens of a prefix, as usage has shown them. */
export interface PrefixSize {
  readonly blocks: number
  readonly tokens: number
}

/** Requests that each extend the one before: the newest of them, and what they left in the cache. */
export interface RequestChain extends CacheableRequest {
  /** Shortest first. */
  readonly prefixes: readonly CachedPrefix[]
  /** In the order in which they were learnt. */
  readonly sizes: AppendList<PrefixSize>
}

/** Newest chain first. A rewrite starts another one; undoing it finds the older one again. */
export interface CacheModel {
  readonly chains: readonly RequestChain[]
}

export const EMPTY_CACHE_MODEL: CacheModel = { chains: [] }

const MAX_CHAINS = 8
const MAX_PREFIXES = 256

/** `follows`: the chain extends the newest one and replaces it. */
export function addRequest({ chains }: CacheModel, chain: RequestChain, follows: boolean): CacheModel {
  const prefixes = limitPrefixes(chain.prefixes)
  return { chains: [{ ...chain, prefixes }, ...(follows ? chains.slice(1) : chains)].slice(0, MAX_CHAINS) }
}

function limitPrefixes(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  if (prefixes.length <= MAX_PREFIXES) return prefixes
  const byLife = prefixes.toSorted((one, other) => prefixExpiry(other) - prefixExpiry(one))
  const kept = new Set(byLife.slice(0, MAX_PREFIXES))
  return prefixes.filter((prefix) => kept.has(prefix))
}

/** When the cache of the newest request expires unless it is used again; null if nothing is known to be cached. */
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

/** What the newest request of a chain left, up to its last marker; null if nothing was cached. */
export function findLastPrefix({ markedPrefixes, prefixes, sizes }: RequestChain): CachedPrefix | null {
  const blocks = markedPrefixes.at(-1)?.blocks
  const last = prefixes.findLast((prefix) => prefix.blocks === blocks)
  return last === undefined ? null : { ...last, tokens: findPrefixSize(sizes, last.blocks) ?? last.tokens }
}

// Which prefixes a request can find.

/** Positions are counted as the provider looks back: thinking that it strips from finished turns is none. */
function findLookBackPosition(
  { front, blockIndex }: CacheableRequest,
  blocks: number,
  strips: boolean,
): number {
  const inMessages = blocks - front.length
  if (inMessages <= 0) return blocks
  const stripped = strips
    ? totalsAfterBlocks(blockIndex, Math.min(inMessages, blockIndex.end.blocksBeforePrompt)).thinkingBlocks
    : 0
  return front.length + totalsAfterBlocks(blockIndex, inMessages).positions - stripped
}

/** A marker of the request stands at or behind the end of a prefix of so many blocks, and looks back that far. */
export function isWithinReach(
  request: CacheableRequest,
  blocks: number,
  { cache, thinking }: ReadRules,
): boolean {
  const toPosition = (at: number): number => findLookBackPosition(request, at, thinking.stripsFinishedTurns)
  return request.markedPrefixes.some(
    (mark) => mark.blocks >= blocks && toPosition(mark.blocks) - toPosition(blocks) < cache.lookBack,
  )
}

/** How many leading blocks of the two are the same: tools, system prompt, messages. */
export function countSharedRequestBlocks(one: CacheableRequest, other: CacheableRequest): number {
  const differs = one.front.findIndex((block, index) => !isSameJson(block, other.front[index]))
  if (differs !== -1) return differs
  return other.front.length > one.front.length
    ? one.front.length
    : one.front.length + countSharedMessageBlocks(one.blockIndex, other.blockIndex)
}

/**
 * Where a model strips the thinking of finished turns, a new prompt changes the prefix from the first thinking of the
 * turn that it ends, though no byte of the request does. Message blocks before that thinking; null if there is none.
 */
export function findFirstStrippedThinking(one: BlockIndex, other: BlockIndex): number | null {
  const [further, nearer] =
    one.end.blocksBeforePrompt > other.end.blocksBeforePrompt ? [one, other] : [other, one]
  const [from, to] = [nearer.end.blocksBeforePrompt, further.end.blocksBeforePrompt]
  if (from === to) return null
  for (
    let index = findMessageOfBlock(further, from + 1);
    index < messageCount(further.messages);
    index += 1
  ) {
    const start = totalsBeforeMessage(further, index).blocks
    if (start >= to) return null
    const message = messageAt(further.messages, index)
    const blocks = message === undefined ? [] : blocksOfMessage(message)
    const found = blocks.findIndex((block, at) => start + at >= from && isThinking(block))
    if (found !== -1) return start + found < to ? start + found : null
  }
  return null
}

// What a request should read of what an earlier one left: the basis of break detection. Unlike a forecast it leaves a
// changed key, and an expired entry, to be reported as the cause of a loss.

type ReadRules = Pick<ProviderProfile, 'cache' | 'thinking'>

/** Tokens: all that the chain's newest request left, less the thinking that the provider strips from a finished turn. */
export function expectFullRead(
  chain: RequestChain,
  { blockIndex }: CacheableRequest,
  profile: ReadRules,
): number {
  const left = findLastPrefix(chain)
  if (left === null) return 0
  const isTurnOver = blockIndex.end.blocksBeforePrompt > chain.blockIndex.end.blocksBeforePrompt
  const stripped =
    profile.thinking.stripsFinishedTurns && isTurnOver ? estimateThinkingTokens(chain.blockIndex) : 0
  return Math.max(0, left.tokens - stripped)
}

/** Observed in real sessions, a little high: better to expect too little than to report a break that is none. */
const CHARACTERS_PER_TOKEN = 3
const CIPHER_CHARACTERS_PER_TOKEN = 4.9

/** The thinking of the turn that was under way. A signature grows with all that was thought, shown or not. */
function estimateThinkingTokens(counted: BlockIndex): number {
  let tokens = 0
  const { messages, end } = counted
  for (
    let index = findMessageOfBlock(counted, end.blocksBeforePrompt + 1);
    index < messageCount(messages);
    index += 1
  ) {
    const message = messageAt(messages, index)
    for (const block of message === undefined ? [] : blocksOfMessage(message).filter(isThinking)) {
      const { texts, signatureLength } = splitBlock(block, 'json')
      const characters = texts.reduce((sum, text) => sum + text.length, 0)
      tokens += Math.max(characters / CHARACTERS_PER_TOKEN, signatureLength / CIPHER_CHARACTERS_PER_TOKEN)
    }
  }
  return Math.ceil(tokens)
}

/** Tokens that are certain to be found: `within` so many message blocks, and still live `at` a time. */
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

/** A marker of the request looks back to what the chain's newest request left in the messages. */
export function canReachLastPrefix(
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
): boolean {
  const left = findLastPrefix(chain)
  return left === null || left.level !== 'messages' || canFindPrefix(left, chain, request, profile)
}

/** Tools and system prompt of the request may have another number of blocks than those of the chain. */
function canFindPrefix(
  prefix: CachedPrefix,
  chain: RequestChain,
  request: CacheableRequest,
  profile: ReadRules,
): boolean {
  const shift = prefix.level === 'messages' ? request.front.length - chain.front.length : 0
  return isWithinReach(request, prefix.blocks + shift, profile)
}

export function countMessageBlocks({ level, blocks }: CachedPrefix, { front }: RequestChain): number {
  return level === 'messages' ? blocks - front.length : 0
}

// Sizes: as usage has shown them, else interpolated between known ones by the weight of the blocks between.

/** About how many tokens a block is. */
export type BlockWeigher = (block: Block | JsonObject) => number

const BYTES_PER_TOKEN = 4
const weighBytes: BlockWeigher = (block) => (countJsonBytes(block) ?? 0) / BYTES_PER_TOKEN

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
  weigh: BlockWeigher = weighBytes,
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

/** Of the blocks after the first `from`, up to and including number `to`. */
function weighBetween(
  { front, blockIndex }: CacheableRequest,
  from: number,
  to: number,
  weigh: BlockWeigher,
): number {
  let weight = front.slice(from, to).reduce((sum, block) => sum + weigh(block), 0)
  const end = Math.min(to - front.length, blockIndex.end.blocks)
  for (let at = Math.max(from - front.length, 0); at < end; at += 1) {
    const index = findMessageOfBlock(blockIndex, at + 1)
    const message = messageAt(blockIndex.messages, index)
    const block =
      message === undefined
        ? undefined
        : blocksOfMessage(message)[at - totalsBeforeMessage(blockIndex, index).blocks]
    weight += block === undefined ? 0 : weigh(block)
  }
  return weight
}
