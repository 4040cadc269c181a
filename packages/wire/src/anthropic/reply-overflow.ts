/** Replies that came back well although the window was too small: told by their stop reason, or by their usage alone. */
import { type AssistantMessage, contextOf, outputOf, type TokenGap } from '@tidemark/core'
import { findSilentOverflow } from '../failure/overflow.ts'

const STOPPED_BY_LENGTH: ReadonlySet<unknown> = new Set(['max_tokens', 'model_context_window_exceeded'])

/** How far `message` and what it answers overran `window`; null where they fit, or where nothing was measured. */
export function overflowOfReply({ stop_reason, usage }: AssistantMessage, window: number): TokenGap | null {
  const [inputTokens, outputTokens] = [contextOf(usage), outputOf(usage)]
  const silent = findSilentOverflow(
    { inputTokens, outputTokens, stoppedByLength: STOPPED_BY_LENGTH.has(stop_reason) },
    window,
  )
  if (silent !== null || stop_reason !== 'model_context_window_exceeded') return silent
  const actual = inputTokens + outputTokens
  return actual === 0 ? { limit: window } : { actual, limit: window, over: Math.max(0, actual - window) }
}
