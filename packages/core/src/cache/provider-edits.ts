/**
 * Context edits that the provider makes by itself, as the cache sees them: whether a response reports more than the
 * previous one, which part of the API request a new clearing leaves readable in the cache, and with which edits a fork
 * reads the prefix that its parent cached.
 */

import { listTracedMessages } from '../context/flatten.ts'
import { isThinkingBlock, isToolUse } from '../log/block.ts'
import { isJsonObject, type Json, type JsonObject } from '../log/json.ts'
import type { ContextEditRules } from '../policy/provider-profile.ts'
import {
  countMessages,
  type MessageList,
  messageAt,
  readTotalsBeforeMessage,
  toMessageBlocks,
} from '../request/block-index.ts'
import type { PricedAnnouncement } from './cache-break.ts'
import {
  type CacheCheckInput,
  findForkParent,
  type PendingRequest,
  type ReportedEdits,
} from './cache-monitor.ts'

/**
 * How the provider's edits differ from those of the previous API request. `more`: it cleared more. `fewer`: it cleared
 * less, so that cleared content is back. `unknown`: edits of an unknown kind changed.
 */
export type EditsChange = 'same' | 'more' | 'fewer' | 'unknown'

export function compareEdits(before: ReportedEdits | null, now: ReportedEdits | null): EditsChange {
  const results = (now?.results ?? 0) - (before?.results ?? 0)
  const turns = (now?.thinkingTurns ?? 0) - (before?.thinkingTurns ?? 0)
  if (results < 0 || turns < 0) return 'fewer'
  if (results > 0 || turns > 0) return 'more'
  const isKnown = now !== null && now.results + now.thinkingTurns > 0
  return isKnown || now?.text === before?.text ? 'same' : 'unknown'
}

/** Returns the edits that a response reports or, if it broke off before that, those that its API request asked for. */
export function findEdits(
  before: ReportedEdits | null,
  { edits = null, requestedClearing }: Pick<CacheCheckInput, 'edits' | 'requestedClearing'>,
): ReportedEdits | null {
  if (requestedClearing === undefined) return edits
  const { results, tokens, firstCleared } = requestedClearing
  if (results === 0) return before
  return {
    results: (before?.results ?? 0) + results,
    thinkingTurns: before?.thinkingTurns ?? 0,
    tokens: (before?.tokens ?? 0) + tokens,
    text: before?.text ?? '',
    ...(firstCleared === undefined ? {} : { firstCleared }),
  }
}

/** A pending API request with what its response says about the provider's edits. */
export interface EditedRequest extends PendingRequest {
  readonly change: EditsChange
  /** Message blocks before the first one that the provider newly cleared; null if it cleared nothing more. */
  readonly blocksBeforeClearing: number | null
}

/**
 * Adds a clearing that the provider made for this API request to the announced rewrites, so that it is charged for. A
 * fork should make the provider clear nothing more than its parent did, so what it loses by that is a cache break.
 */
export function withProviderClearing(
  pending: PendingRequest,
  edits: ReportedEdits | null,
  change: EditsChange,
): EditedRequest {
  const before = pending.previous?.edits ?? null
  const { source, forkOf } = pending.sent
  const isFork = findForkParent(source, forkOf) !== null
  if (edits === null || change !== 'more' || pending.previous === null || isFork)
    return { ...pending, change, blocksBeforeClearing: null }
  const results = edits.results - (before?.results ?? 0)
  const turns = edits.thinkingTurns - (before?.thinkingTurns ?? 0)
  const clearing: PricedAnnouncement = {
    kind: 'clearing',
    act: describeProviderClearing(results, turns),
    freedTokens: Math.max(0, edits.tokens - (before?.tokens ?? 0)),
  }
  return {
    ...pending,
    announced: [...pending.announced, clearing],
    change,
    // Thinking is cleared from the first message on.
    blocksBeforeClearing: turns > 0 ? 0 : countBlocksBeforeCall(pending, edits.firstCleared),
  }
}

function describeProviderClearing(results: number, turns: number): string {
  const count = (number: number, noun: string): readonly string[] =>
    number === 0 ? [] : [`${number} ${noun}${number === 1 ? '' : 's'}`]
  const what = [...count(results, 'result'), ...count(turns, 'turn')].join(' and the thinking of ')
  return `the provider cleared ${results === 0 ? 'the thinking of ' : ''}${what}`
}

/** Counts the message blocks before a tool call; 0 if the API request does not show the call. */
function countBlocksBeforeCall({ sent, forecast }: PendingRequest, id: string | undefined): number {
  const { messages } = sent
  for (let index = 0; id !== undefined && index < countMessages(messages); index += 1) {
    const message = messageAt(messages, index)
    const blocks = message?.message.role === 'assistant' ? toMessageBlocks(message) : []
    const place = blocks.findIndex((block) => isToolUse(block) && block.id === id)
    if (place !== -1) return readTotalsBeforeMessage(forecast.basis.request.blockIndex, index).blocks + place
  }
  return 0
}

/** The messages of a fork and of the parent whose cached prefix it reads, and what the provider cleared from the parent. */
interface ForkEditsInput {
  readonly names: ContextEditRules
  readonly parent: MessageList
  readonly fork: MessageList
  /** True if the provider cleared tool results, or thinking, from the parent's request. */
  readonly isCleared: { readonly results: boolean; readonly thinking: boolean }
}

/**
 * Returns the field `context_management` of a fork, with which the provider clears exactly what it cleared from the
 * parent's request: what the fork adds is kept as well, and if nothing was cleared, everything is kept. With the numbers
 * of the parent, the provider would clear more: the fork would miss the cache and not see the cleared results.
 */
export function createForkEdits(management: JsonObject, input: ForkEditsInput): JsonObject {
  const { names, parent, fork, isCleared } = input
  if (!Array.isArray(management.edits)) return management
  const keepMore = (edit: JsonObject, isUsed: boolean, count: (messages: MessageList) => number): Json => {
    const { keep } = edit
    if (!isJsonObject(keep) || typeof keep.value !== 'number') return edit
    const value = isUsed ? keep.value + count(fork) - count(parent) : count(fork)
    return { ...edit, keep: { ...keep, value: Math.max(1, value) } }
  }
  const edits = management.edits.map((edit: Json): Json => {
    if (!isJsonObject(edit)) return edit
    if (edit.type === names.clearToolUses) return keepMore(edit, isCleared.results, countToolCalls)
    return edit.type === names.clearThinking ? keepMore(edit, isCleared.thinking, countThinkingTurns) : edit
  })
  return { ...management, edits }
}

function countToolCalls(messages: MessageList): number {
  return listTracedMessages(messages).reduce(
    (sum, message) => sum + toMessageBlocks(message).filter(isToolUse).length,
    0,
  )
}

function countThinkingTurns(messages: MessageList): number {
  return listTracedMessages(messages).filter((message) => toMessageBlocks(message).some(isThinkingBlock))
    .length
}
