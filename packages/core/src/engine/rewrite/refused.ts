/** Why a rewrite was not made. Nothing has changed then: not the log, not the view, not a byte of the next request. */
import type { ChainStep } from '../../summarize/ask.ts'
import type { SpanRefusalReason } from '../../summarize/span.ts'

export type RewriteRefusal =
  | SpanRefusalReason
  /** Switched off; the message names the switch. */
  | 'off'
  | 'aborted'
  /** A hook vetoed it. */
  | 'blocked'
  | 'no-summary'
  /** The result would not be smaller than what it replaces. */
  | 'not-smaller'
  /** Even with everything shed it would be above the line that started it; `floor` says what fills it. */
  | 'floor'
  /** The conversation was rewritten by somebody else meanwhile. */
  | 'superseded'
  | 'locked'
  /** A provider would refuse what it would leave. */
  | 'invalid'
  | 'nothing-to-undo'
  | 'not-standing'
  | 'not-newest'
  /** The view that would come back does not fit; `force` takes it back all the same. */
  | 'too-large'
  | 'unknown-record'

export interface RewriteRefused {
  readonly ok: false
  readonly reason: RewriteRefusal
  /** What was expected and what to do. */
  readonly message: string
  /** `floor`: what is left when all that may go has gone, largest first. */
  readonly floor?: readonly FloorItem[]
  /** `not-newest`: the act to undo first. */
  readonly newest?: string
  /** `no-summary`: why the last call brought none, and all that was tried. */
  readonly fallbackReason?: string
  readonly steps?: readonly ChainStep[]
}

export interface FloorItem {
  readonly what: string
  readonly tokens: number
}

export function refused(
  reason: RewriteRefusal,
  message: string,
  more: Omit<RewriteRefused, 'ok' | 'reason' | 'message'> = {},
): RewriteRefused {
  return { ok: false, reason, message, ...more }
}

export const SUPERSEDED =
  'The conversation was rewritten by somebody else while the summary was made. Nothing was changed; compact again if it is still needed.'

export const ABORTED: RewriteRefused = refused('aborted', 'It was called off; nothing has changed.')
