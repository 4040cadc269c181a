/** Explains why a request read fewer tokens from the cache than an earlier request of its conversation had written. */
import type { Account, CacheKey } from '../prompt-cache/cache-key.ts'
import { countPrefixTokens, findCacheLevel, type Prompt } from '../prompt-cache/prompt.ts'
import {
  type CacheStore,
  countLookBackPositions,
  formatEntryKey,
  LOOK_BACK_POSITIONS,
} from '../prompt-cache/prompt-cache.ts'
import { isSameBlock, renderBlock } from '../prompt-cache/prompt-tree.ts'
import type { Block } from '../protocol/messages-request.ts'
import type { CacheLevel } from '../protocol/models.ts'
import type { CacheMiss, CacheMissCause, ComparableRequest, PromptDifference } from './request-log.ts'

interface CacheMissInput {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly scope: ComparableRequest['scope']
  /** Index of the last prompt block that was read from the cache; null if nothing was read. */
  readonly hit: number | null
  readonly earlier: readonly ComparableRequest[]
  readonly store: CacheStore
  readonly now: number
}

/** Returns null if there is no earlier request of the conversation, or if as much was read as that request wrote. */
export function explainCacheMiss(input: CacheMissInput): CacheMiss | null {
  const kin = findPreviousRequest(input.prompt, input.scope, input.earlier)
  const { cachedUpTo } = kin?.request ?? {}
  if (kin === null || cachedUpTo === null || cachedUpTo === undefined) return null
  const there = countPrefixTokens(kin.request.prompt, cachedUpTo)
  const tokens = there - (input.hit === null ? 0 : countPrefixTokens(input.prompt, input.hit))
  if (tokens <= 0) return null
  const found = findMissReason(input, kin, cachedUpTo)
  const divergence =
    found.reason === 'content-changed' ? findDivergence(input.prompt, kin.request.prompt, kin.common) : null
  return {
    ...found,
    tokens,
    comparedWith: kin.request.number,
    ...(divergence === null ? {} : { divergence }),
  }
}

interface MissExplanation {
  readonly reason: CacheMissCause
  readonly why: string
}

function findMissReason(input: CacheMissInput, kin: PreviousRequest, cachedUpTo: number): MissExplanation {
  const { prompt, key } = input
  if (prompt.breakpoints.length === 0)
    return { reason: 'no-breakpoint', why: 'the request has no cache_control, so nothing was looked for' }
  const changed = listChangedKeyParts(kin.request.key, key, prompt, cachedUpTo)
  const isContentChanged = kin.common <= cachedUpTo
  // A key invalidates the prompt from the start of its level on. Content that changed before that is the first cause.
  const keyStart = Math.min(...changed.map(({ level }) => findLevelStart(prompt, level)))
  if (changed.length > 0 && !(isContentChanged && kin.common < keyStart))
    return { reason: 'key-changed', why: changed.map(({ text }) => text).join('; ') }
  if (isContentChanged)
    return { reason: 'content-changed', why: `the prompt changed at ${describeChangePlace(prompt, kin)}` }
  return explainEntryMiss(input, kin, cachedUpTo)
}

function findLevelStart({ starts }: Prompt, level: CacheLevel): number {
  return level === 'tools' ? 0 : starts[level]
}

function describeChangePlace(prompt: Prompt, kin: PreviousRequest): string {
  return kin.common < prompt.positions.length
    ? prompt.formatPath(kin.common)
    : 'its end, which is no longer there'
}

/** Lists the settings of the cache key that changed. Only cache levels that the cached prefix includes are compared. */
function listChangedKeyParts(
  before: CacheKey,
  now: CacheKey,
  prompt: Prompt,
  upTo: number,
): readonly { readonly level: CacheLevel; readonly text: string }[] {
  const reached = { tools: 0, system: 1, messages: 2 }
  const level = reached[findCacheLevel(prompt, Math.min(upTo, prompt.positions.length - 1))]
  const names = new Set([...before.parts, ...now.parts].map((part) => part.name))
  return [...names].flatMap((name) => {
    const was = before.parts.find((part) => part.name === name)
    const is = now.parts.find((part) => part.name === name)
    const partLevel = (was ?? is)?.level ?? 'messages'
    if (was?.value === is?.value || reached[partLevel] > level) return []
    return [{ level: partLevel, text: `${name}: ${was?.value ?? '(default)'} → ${is?.value ?? '(default)'}` }]
  })
}

function explainEntryMiss(
  { prompt, key, store, now }: CacheMissInput,
  kin: PreviousRequest,
  upTo: number,
): MissExplanation {
  if (!kin.request.hasBegun())
    return { reason: 'not-yet-written', why: 'the response that would have written it had not begun' }
  const entry = store.peek(formatEntryKey(prompt, key, upTo))
  if (entry === null) return { reason: 'unknown', why: 'no entry was written there' }
  if (now >= entry.expiresAt) {
    const late = Math.round((now - entry.expiresAt) / 1_000)
    return { reason: 'expired', why: `its lifetime (${entry.ttl}) was over ${late} s ago` }
  }
  const nearest = prompt.breakpoints.find(({ explicit, position }) => explicit && position >= upTo)
  if (nearest === undefined)
    return {
      reason: 'no-breakpoint',
      why: `the entry ends at ${prompt.formatPath(upTo)}, and the request has no cache_control there or after it`,
    }
  const distance = countLookBackPositions(prompt, nearest.position, upTo)
  if (distance < LOOK_BACK_POSITIONS)
    return { reason: 'unknown', why: 'the entry there was written with other deletions' }
  return {
    reason: 'beyond-look-back',
    why: `the entry is ${distance} positions before the nearest breakpoint; ${LOOK_BACK_POSITIONS} positions are looked at`,
  }
}

/**
 * The earlier request that this request continues. Of the requests that left cache entries, it is the one with the most
 * common message blocks, ignoring tools and system prompts; then the one with the longest common prefix; then the
 * newest.
 */
interface PreviousRequest {
  readonly request: ComparableRequest
  /** Number of blocks at the start of the prompt that both requests have in common. */
  readonly common: number
  /** Number of message blocks that both requests have in common, even if the prefix before them differs. */
  readonly messages: number
}

function findPreviousRequest(
  prompt: Prompt,
  scope: Account,
  earlier: readonly ComparableRequest[],
): PreviousRequest | null {
  let best: PreviousRequest | null = null
  for (const seen of earlier) {
    if (seen.scope.organization !== scope.organization || seen.cachedUpTo === null) continue
    if (!isSameConversation(prompt, seen)) continue
    const common = countCommonPositions(prompt, seen.prompt)
    const messages = countCommonMessageBlocks(prompt, seen.prompt, common)
    const isBetter =
      best === null || messages > best.messages || (messages === best.messages && common >= best.common)
    if (isBetter) best = { request: seen, common, messages }
  }
  return best
}

/**
 * Counts the message blocks that two prompts have in common at the start of their conversations. The first block may
 * differ, because clients put the date or a reminder there.
 */
function countCommonMessageBlocks(one: Prompt, other: Prompt, common: number): number {
  if (common > one.starts.messages) return common - one.starts.messages
  const length = Math.min(
    one.positions.length - one.starts.messages,
    other.positions.length - other.starts.messages,
  )
  let count = 1
  while (count < length && isSameMessageBlock(one, other, count)) count += 1
  return count
}

function isSameMessageBlock(one: Prompt, other: Prompt, index: number): boolean {
  const mine = one.positions[one.starts.messages + index]
  const theirs = other.positions[other.starts.messages + index]
  return mine !== undefined && theirs !== undefined && isSameBlock(mine.block, theirs.block)
}

/**
 * Checks whether two requests belong to one conversation: the first or second message block is equal, or, after a
 * compaction by the client, the earlier prompt or its response has the first tool call that was kept. Tools and system
 * prompt are ignored, because different conversations may share them.
 */
function isSameConversation(prompt: Prompt, earlier: ComparableRequest): boolean {
  if ([0, 1].some((index) => isSameMessageBlock(prompt, earlier.prompt, index))) return true
  const kept = prompt.positions.find(({ block, zone }) => isToolCall(block) && zone === 'assistant')?.block.id
  if (typeof kept !== 'string') return false
  return (
    earlier.calls.includes(kept) ||
    earlier.prompt.positions.findLast(({ block }) => isToolCall(block) && block.id === kept) !== undefined
  )
}

function isToolCall({ type }: Block): boolean {
  return type === 'tool_use'
}

/**
 * Counts the blocks that two prompts have in common at their start. Binary search works because the hash of a block
 * includes all blocks before it.
 */
function countCommonPositions({ positions }: Prompt, { positions: other }: Prompt): number {
  let low = 0
  let high = Math.min(positions.length, other.length)
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (positions[middle - 1]?.chain === other[middle - 1]?.chain) low = middle
    else high = middle - 1
  }
  return low
}

const EXCERPT_LENGTH = 60

/**
 * Finds the first byte at which two prompts differ. `at` is the index of the first different block. Returns null if
 * the newer prompt has no block there.
 */
function findDivergence(now: Prompt, before: Prompt, at: number): PromptDifference | null {
  const node = now.positions[at]
  if (node === undefined) return null
  const old = before.positions[at]
  const text = renderBlock(node.block)
  const was = old === undefined ? '' : renderBlock(old.block)
  const index = findFirstDifferentCharacter(was, text)
  const blockByte = Buffer.byteLength(text.slice(0, index))
  return {
    path: now.formatPath(at),
    blockByte,
    promptByte: (node.parent?.bytes ?? 0) + blockByte,
    was: cutExcerpt(was, index),
    now: cutExcerpt(text, index),
  }
}

function findFirstDifferentCharacter(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  let index = 0
  while (index < length && one.charCodeAt(index) === other.charCodeAt(index)) index += 1
  return index
}

function cutExcerpt(text: string, at: number): string {
  const start = Math.max(0, at - EXCERPT_LENGTH / 3)
  return text.slice(start, at + EXCERPT_LENGTH)
}
