/**
 * Context edits that the provider makes by itself, as break detection sees them: whether a response reports more than
 * the previous one, and which part of the API request a new clearing leaves readable in the cache.
 */

import { isToolUse } from '../log/block.ts'
import { countMessages, messageAt, readTotalsBeforeMessage, toMessageBlocks } from '../request/block-index.ts'
import type { PricedAnnouncement } from './cache-break.ts'
import type { PendingRequest, ReportedEdits } from './cache-monitor.ts'

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

/** A pending API request with what its response says about the provider's edits. */
export interface EditedRequest extends PendingRequest {
  readonly change: EditsChange
  /** Message blocks before the first one that the provider newly cleared; null if it cleared nothing more. */
  readonly blocksBeforeClearing: number | null
}

/** Adds a clearing that the provider made for this API request to the announced rewrites, so that it is charged for. */
export function withProviderClearing(
  pending: PendingRequest,
  edits: ReportedEdits | null,
  change: EditsChange,
): EditedRequest {
  const before = pending.previous?.edits ?? null
  if (edits === null || change !== 'more' || pending.previous === null)
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
