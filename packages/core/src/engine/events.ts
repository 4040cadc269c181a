/** Everything a turn emits, how it can end, and why a rewrite can be refused. */
import type { CacheBreak, OwnRewriteCost } from '../cache/cache-break.ts'
import type { CacheForecast } from '../cache/cache-forecast.ts'
import type { CacheCheckOutcome } from '../cache/cache-monitor.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import type { UnansweredCall } from '../context/tool-pairing.ts'
import type { CostTotals, PricedCall } from '../cost/session-cost.ts'
import type { ToolResultBlock, ToolUseBlock } from '../log/block.ts'
import type {
  ClearMode,
  CompactCause,
  CompactMetadata,
  CompactTrigger,
  PrefixSnapshot,
  SessionRecord,
  Usage,
} from '../log/record.ts'
import type { ContextPlan } from '../planner/plan.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PrefixChange } from '../request/prefix-updates.ts'
import type { RequestSize } from '../request/request-size.ts'
import type { SkippedAttachment } from '../sources/context-source.ts'
import type { AttemptStep } from '../summary/attempt.ts'
import type { Receipt } from '../summary/receipt.ts'
import type { SpanRefusalReason } from '../summary/select-span.ts'
import { toCount } from '../tokens/usage.ts'
import type { Finding } from '../validate/finding.ts'
import type { CleanupFailure, CommittedRewrite } from './host.ts'
import type { AppendOutcome, NewRecord } from './ports.ts'
import type { ModelFailure, Reply, ReplyEvent } from './reply.ts'
import type { CompactionSpacing, SessionState } from './session-state.ts'

export type TurnEvent =
  | RewriteEvent
  /** One batch, durable in the log. */
  | { readonly type: 'appended'; readonly records: readonly SessionRecord[] }
  /** Tool calls that never got a result are about to get one that says so. */
  | { readonly type: 'calls-settled'; readonly calls: readonly UnansweredCall[] }
  | { readonly type: 'epoch-opened'; readonly epoch: PrefixSnapshot }
  /** About to be appended. An `epoch` that `breaksCache` is an announced cache break. */
  | { readonly type: 'prefix-changed'; readonly change: Exclude<PrefixChange, { kind: 'none' }> }
  /** The oldest images and documents are no longer sent: the request was over its limits. `id`: for `undo`. */
  | {
      readonly type: 'media-dropped'
      readonly id: string
      readonly items: number
      readonly before: RequestSize
      readonly after: RequestSize
      readonly limits: RequestSize
    }
  | { readonly type: 'request-sent'; readonly request: AssembledRequest; readonly forecast: CacheForecast }
  | { readonly type: 'reply'; readonly event: ReplyEvent }
  /** The whole reply is in the log. `usage` is null if the provider reported none. */
  | {
      readonly type: 'answered'
      readonly reply: Reply
      readonly usage: Usage | null
      readonly forecast: CacheForecast
    }
  /** The cache behaved as expected, or could not be judged. */
  | { readonly type: 'cache-judged'; readonly source: string; readonly outcome: UneventfulOutcome }
  /** Less was read from the cache than expected. `diffProblem`: why the diff file could not be written. */
  | { readonly type: 'cache-break'; readonly event: CacheBreak; readonly diffProblem: string | null }
  /** The cache loss that a rewrite of the engine caused, as announced: no break. */
  | { readonly type: 'act-paid'; readonly act: OwnRewriteCost }
  /** A call is in the log with its usage. `totals`: of the session so far, with this call. */
  | { readonly type: 'priced'; readonly call: PricedCall; readonly totals: CostTotals }
  /** A side call: its reply is not appended to the conversation. */
  | { readonly type: 'side-sent'; readonly source: string; readonly request: AssembledRequest }
  | { readonly type: 'side-reply'; readonly source: string; readonly event: ReplyEvent }
  | { readonly type: 'fork'; readonly fork: ForkCacheRead }
  | { readonly type: 'tool-started'; readonly call: ToolUseBlock }
  | { readonly type: 'tool-ended'; readonly call: ToolUseBlock; readonly result: ToolResultBlock }
  /** Always the last event, and the only one of its kind. */
  | { readonly type: 'turn-ended'; readonly outcome: TurnOutcome }

type UneventfulOutcome = Exclude<CacheCheckOutcome, { readonly kind: 'broke' | 'ours' }>

/** How much of its parent's cache a fork read. */
export interface ForkCacheRead {
  readonly source: string
  /** Tokens expected to be read from the cache, and those that were. */
  readonly expected: number
  readonly read: number
  /** Share of the whole prompt, 0 to 1; null if the provider reported no usage. */
  readonly share: number | null
  /** Why it missed; null if it did not. */
  readonly missed: string | null
}

/** `state` is the session as the log has it, however the turn ended: the next turn continues from it. */
export type TurnOutcome = (CompletedTurn | TurnFailure) & { readonly state: SessionState }

export interface CompletedTurn {
  readonly ok: true
  /** The provider's `stop_reason`. */
  readonly stopReason: string | null
}

/** Why a turn failed. Everything appended before stays in the log. */
export type TurnFailure =
  /** `unsaved`: records that could not be appended, in order. They are stored nowhere else. */
  | {
      readonly ok: false
      readonly reason: 'conflict' | 'locked'
      readonly refusal: FailedAppend
      readonly unsaved: readonly NewRecord[]
    }
  /** The request breaks rules of the provider; it was not sent. */
  | { readonly ok: false; readonly reason: 'invalid'; readonly findings: readonly Finding[] }
  | { readonly ok: false; readonly reason: 'failed'; readonly failure: ModelFailure }
  | { readonly ok: false; readonly reason: 'aborted' }
  /** The turn has made as many calls as the host allows. A turn without a prompt continues it. */
  | { readonly ok: false; readonly reason: 'call-limit'; readonly calls: number }
  /** The host could not supply the system prompt or tools; the message names the section or tool. */
  | { readonly ok: false; readonly reason: 'prefix'; readonly message: string }
  /** The context is full and could not be reduced; the message says what to do. */
  | { readonly ok: false; readonly reason: 'full'; readonly message: string }

type FailedAppend = Exclude<AppendOutcome, { readonly ok: true }>

/** Status text for a user interface. */
type RewritePhase =
  | 'running PreCompact hooks'
  | 'compacting'
  | 'bringing back context'
  | 'running SessionStart hooks'
  | 'running PostCompact hooks'
  | 'done'

export type RewriteEvent =
  /** What is done before the next request, and why. Not emitted for plans that only wait. */
  | { readonly type: 'planned'; readonly plan: ContextPlan }
  | {
      readonly type: 'microcompact'
      readonly id: string
      readonly way: ClearMode
      readonly clearing: ClearProposal
      readonly tokensBefore: number
      readonly tokensAfter: number
    }
  /** The provider's cache has expired, and with it the deletions made there: that text is in the request again. */
  | { readonly type: 'cache-edits-dropped'; readonly tokens: number }
  | { readonly type: 'phase'; readonly phase: RewritePhase }
  /** `characters`: length of the summary so far. `rung`: number of the attempt's kind. */
  | { readonly type: 'summary-progress'; readonly characters: number; readonly rung: number }
  /** Still waiting for the summary. `waitedMs`: since the request. */
  | { readonly type: 'keep-alive'; readonly waitedMs: number }
  | { readonly type: 'hook-said'; readonly hook: string; readonly message: string }
  | { readonly type: 'hook-failed'; readonly hook: string; readonly message: string }
  /** A hook blocked a compaction that could not wait: reported, and not obeyed. */
  | { readonly type: 'veto-overruled'; readonly hook: string; readonly reason: string }
  | {
      readonly type: 'context-restored'
      readonly keys: readonly string[]
      readonly skipped: readonly SkippedAttachment[]
      readonly shed: readonly string[]
    }
  | { readonly type: 'restore-failed'; readonly carrier: string; readonly why: string }
  | { readonly type: 'compact'; readonly compaction: CommittedCompaction }
  | {
      readonly type: 'compact-failed'
      readonly trigger: CompactTrigger
      readonly cause: CompactCause
      readonly refused: RefusedRewrite
    }
  /** Automatic compaction stops after this many failures in a row, until a new prompt or a success. */
  | { readonly type: 'breaker-open'; readonly failures: number; readonly reason: string }
  /** The provider refused the request as too long; the context is compacted and the request sent again. */
  | { readonly type: 'reactive-compact'; readonly message: string }
  /** A large tool result was spilled: its record shows head and tail and how to read the rest. */
  | { readonly type: 'spilled'; readonly toolUseId: string; readonly blobs: readonly string[] }
  /** A large tool result could not be spilled and stays whole. */
  | { readonly type: 'spill-failed'; readonly toolUseId: string; readonly why: string }
  /** The provider refused the thinking of this many responses: it is no longer sent. */
  | { readonly type: 'thinking-dropped'; readonly responses: number }
  | { readonly type: 'undone'; readonly of: string; readonly kind: 'compact' | 'clear' }
  | {
      readonly type: 'rewritten'
      readonly rewritten: CommittedRewrite
      readonly faults: readonly CleanupFailure[]
    }

/** A committed compaction. */
export interface CommittedCompaction {
  /** uuid of its boundary, for `undo`. */
  readonly id: string
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly tokensBefore: number
  /** Estimate of the new context, not the usage of the summary call. */
  readonly tokensAfter: number
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  readonly fallbackReason: string | null
  readonly recordsCoveredLocally: number
  readonly durationMs: number
  readonly receipt: Receipt
  /** Sentences for the user: a cut that was moved, pins over the budget. */
  readonly notes: readonly string[]
  readonly steps: readonly AttemptStep[]
  /** Usage of the calls for the summary. */
  readonly usage: SummaryUsage
  /** Why an automatic one started: the auto-compact threshold, or that it saves money; null for other causes. */
  readonly firedBy: 'threshold' | 'price' | null
  readonly link: CompactionSpacing
  /** The context is still above the auto-compact threshold: the next turn compacts again. */
  readonly willRetrigger: boolean
}

/** Why a rewrite was refused. Nothing has changed then: neither the log nor the next request. */
export type RefusalReason =
  | SpanRefusalReason
  /** Switched off; the message names the switch. */
  | 'off'
  | 'aborted'
  /** Blocked by a hook. */
  | 'blocked'
  | 'no-summary'
  /** The result would not be smaller than what it replaces. */
  | 'not-smaller'
  /** Even without optional sources it would be above the limit; `floor` lists what fills the context. */
  | 'floor'
  /** The context was rewritten by another writer meanwhile. */
  | 'superseded'
  | 'locked'
  /** A provider would refuse the resulting request. */
  | 'invalid'
  | 'nothing-to-undo'
  | 'not-standing'
  | 'not-newest'
  /** The restored context would not fit; `force` undoes all the same. */
  | 'too-large'
  | 'unknown-record'

export interface RefusedRewrite {
  readonly ok: false
  readonly reason: RefusalReason
  /** What was expected and what to do. */
  readonly message: string
  /** For `floor`: what is left without everything optional, largest first. */
  readonly floor?: readonly ContextPart[]
  /** For `not-newest`: the rewrite to undo first. */
  readonly newest?: string
  /** For `no-summary`: why the last attempt failed, and every attempt made. */
  readonly fallbackReason?: string
  readonly steps?: readonly AttemptStep[]
}

export interface ContextPart {
  readonly what: string
  readonly tokens: number
}

export function refuseRewrite(
  reason: RefusalReason,
  message: string,
  more: Omit<RefusedRewrite, 'ok' | 'reason' | 'message'> = {},
): RefusedRewrite {
  return { ok: false, reason, message, ...more }
}

export const SUPERSEDED_MESSAGE =
  'The conversation was rewritten by somebody else while the summary was made. Nothing was changed; compact again if it is still needed.'

export const ABORTED_REWRITE: RefusedRewrite = refuseRewrite(
  'aborted',
  'It was called off; nothing has changed.',
)

/** Usage of all calls for a summary, failed ones included: they were paid for too. */
export interface SummaryUsage {
  readonly calls: number
  /** Input tokens neither read from the cache nor written to it. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWritten: number
}

export const NO_SUMMARY_USAGE: SummaryUsage = {
  calls: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWritten: 0,
}

/** `usage` with that of a reply that `event` ends; unchanged for other events. */
export function addReplyUsage(usage: SummaryUsage, event: ReplyEvent): SummaryUsage {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') return usage
  const calls = usage.calls + 1
  const reported = event.reply?.message.usage
  if (reported === undefined) return { ...usage, calls }
  return {
    calls,
    input: usage.input + toCount(reported.input_tokens),
    output: usage.output + toCount(reported.output_tokens),
    cacheRead: usage.cacheRead + toCount(reported.cache_read_input_tokens),
    cacheWritten: usage.cacheWritten + toCount(reported.cache_creation_input_tokens),
  }
}

/** Emits the phase `done` however the rewrite ends; not if the caller stops reading. */
export async function* emitDonePhase<End>(
  events: AsyncGenerator<TurnEvent, End>,
): AsyncGenerator<TurnEvent, End> {
  let end: End
  try {
    end = yield* events
  } catch (thrown) {
    yield { type: 'phase', phase: 'done' }
    throw thrown
  }
  yield { type: 'phase', phase: 'done' }
  return end
}
