/** What a turn tells those who watch it, and how it ends. */
import type { ActPaid, BreakEvent } from '../cache/cache-break.ts'
import type { Forecast } from '../cache/cache-forecast.ts'
import type { CacheOutcome } from '../cache/cache-monitor.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import type { OpenCall } from '../context/tool-pairing.ts'
import type { MoneyTotals, PricedCall } from '../cost/session-cost.ts'
import type { ToolResultBlock, ToolUseBlock } from '../log/block.ts'
import type {
  ClearWay,
  CompactCause,
  CompactMetadata,
  CompactTrigger,
  Epoch,
  SessionRecord,
  Usage,
} from '../log/record.ts'
import type { Plan } from '../planner/plan.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PrefixChange } from '../request/prefix-updates.ts'
import type { RequestSize } from '../request/request-size.ts'
import type { NotCarried } from '../sources/context-source.ts'
import type { ChainStep } from '../summary/attempt.ts'
import type { Receipt } from '../summary/receipt.ts'
import type { SpanRefusalReason } from '../summary/select-span.ts'
import { countOf } from '../tokens/usage.ts'
import type { Finding } from '../validate/finding.ts'
import type { CleanupFault, Rewritten } from './host.ts'
import type { AppendOutcome, NewRecord } from './ports.ts'
import type { Failure, Reply, ReplyEvent } from './reply.ts'
import type { ChainLink, SessionState } from './session-state.ts'

export type TurnEvent =
  | RewriteEvent
  /** One batch, durable in the log. */
  | { readonly type: 'appended'; readonly records: readonly SessionRecord[] }
  /** Calls that never got an answer are about to get one that says so. */
  | { readonly type: 'calls-settled'; readonly calls: readonly OpenCall[] }
  | { readonly type: 'epoch-opened'; readonly epoch: Epoch }
  /** About to be appended; an `epoch` that `breaksCache` is a break of our own. */
  | { readonly type: 'prefix-changed'; readonly change: Exclude<PrefixChange, { kind: 'none' }> }
  /** The oldest images and documents are no longer sent: the request was over its limits. `id`: what `undo` takes. */
  | {
      readonly type: 'media-dropped'
      readonly id: string
      readonly items: number
      readonly before: RequestSize
      readonly after: RequestSize
      readonly limits: RequestSize
    }
  | { readonly type: 'request-sent'; readonly request: AssembledRequest; readonly forecast: Forecast }
  | { readonly type: 'reply'; readonly event: ReplyEvent }
  /** The whole reply is in the log. `usage` is null where the provider told none. */
  | {
      readonly type: 'answered'
      readonly reply: Reply
      readonly usage: Usage | null
      readonly forecast: Forecast
    }
  /** What the cache did with a call, where that is no news. */
  | { readonly type: 'cache-judged'; readonly source: string; readonly outcome: QuietOutcome }
  /** Less was read than should have been. `diffProblem`: why what changed could not be kept for people to see. */
  | { readonly type: 'cache-broke'; readonly event: BreakEvent; readonly diffProblem: string | null }
  /** An act of the engine's own was paid for, as announced: no break. */
  | { readonly type: 'act-paid'; readonly act: ActPaid }
  /** A call is in the log with its usage. `totals`: of the session so far, this call included. */
  | { readonly type: 'priced'; readonly call: PricedCall; readonly totals: MoneyTotals }
  /** A call beside the conversation: its reply is not appended. */
  | { readonly type: 'side-sent'; readonly source: string; readonly request: AssembledRequest }
  | { readonly type: 'side-reply'; readonly source: string; readonly event: ReplyEvent }
  | { readonly type: 'fork'; readonly fork: ForkRead }
  | { readonly type: 'tool-started'; readonly call: ToolUseBlock }
  | { readonly type: 'tool-ended'; readonly call: ToolUseBlock; readonly result: ToolResultBlock }
  /** Always the last event, and the only one of its kind. */
  | { readonly type: 'turn-ended'; readonly outcome: TurnOutcome }

type QuietOutcome = Exclude<CacheOutcome, { readonly kind: 'broke' | 'ours' }>

/** How well a fork read the cache of its parent. */
export interface ForkRead {
  readonly source: string
  /** Tokens that were there to be read, as foreseen, and those that were. */
  readonly expected: number
  readonly read: number
  /** Share of the whole prompt, 0 to 1; null where the provider told no usage. */
  readonly share: number | null
  /** Why it missed; null where it did not. */
  readonly missed: string | null
}

/** `state` is the session as the log now has it, however the turn ended: the next turn goes on from it. */
export type TurnOutcome = (TurnDone | Halt) & { readonly state: SessionState }

export interface TurnDone {
  readonly ok: true
  /** Why the model stopped, in the provider's words. */
  readonly stopReason: string | null
}

/** Why a turn stopped short. Everything appended before stands. */
export type Halt =
  /** `unsaved`: what could not be appended, in order. It is nowhere else. */
  | {
      readonly ok: false
      readonly reason: 'conflict' | 'locked'
      readonly refusal: AppendRefusal
      readonly unsaved: readonly NewRecord[]
    }
  /** The provider would have refused the request; it was not sent. */
  | { readonly ok: false; readonly reason: 'invalid'; readonly findings: readonly Finding[] }
  | { readonly ok: false; readonly reason: 'failed'; readonly failure: Failure }
  | { readonly ok: false; readonly reason: 'aborted' }
  /** The turn has made as many calls as the host allows. A turn without a prompt goes on where it halted. */
  | { readonly ok: false; readonly reason: 'call-limit'; readonly calls: number }
  /** The host could not give what stands in front of the conversation: the message names the section or the tool. */
  | { readonly ok: false; readonly reason: 'prefix'; readonly message: string }
  /** Nothing more fits, and nothing could be done about it: the message says what to do. */
  | { readonly ok: false; readonly reason: 'full'; readonly message: string }

type AppendRefusal = Exclude<AppendOutcome, { readonly ok: true }>

// What is told of acts that make room: what was planned, done, refused, and what it cost.

/** What a person may be shown while they wait. */
type RewritePhase =
  | 'running PreCompact hooks'
  | 'compacting'
  | 'bringing back context'
  | 'running SessionStart hooks'
  | 'running PostCompact hooks'
  | 'done'

export type RewriteEvent =
  /** What would be done before the next request, and why: told where it is more than to wait. */
  | { readonly type: 'planned'; readonly plan: Plan }
  | {
      readonly type: 'microcompact'
      readonly id: string
      readonly way: ClearWay
      readonly clearing: ClearProposal
      readonly tokensBefore: number
      readonly tokensAfter: number
    }
  /** The provider's cache has lapsed and with it what was deleted there: that text is in the request again. */
  | { readonly type: 'cache-edits-dropped'; readonly tokens: number }
  | { readonly type: 'phase'; readonly phase: RewritePhase }
  /** Nothing is wrong, it only takes long. `characters`: of the summary, so far. */
  | { readonly type: 'summary-progress'; readonly characters: number; readonly rung: number }
  /** Nothing has come for a while, and the summary is still waited for. `waitedMs`: since it was asked for. */
  | { readonly type: 'keep-alive'; readonly waitedMs: number }
  | { readonly type: 'hook-said'; readonly hook: string; readonly message: string }
  | { readonly type: 'hook-failed'; readonly hook: string; readonly message: string }
  /** A hook vetoed a compaction that could not wait: said, and not obeyed. */
  | { readonly type: 'veto-overruled'; readonly hook: string; readonly reason: string }
  | {
      readonly type: 'restored'
      readonly keys: readonly string[]
      readonly skipped: readonly NotCarried[]
      readonly shed: readonly string[]
    }
  | { readonly type: 'restore-failed'; readonly carrier: string; readonly why: string }
  | { readonly type: 'compact'; readonly compaction: Compacted }
  | {
      readonly type: 'compact-failed'
      readonly trigger: CompactTrigger
      readonly cause: CompactCause
      readonly refused: RewriteRefused
    }
  /** This many failed in a row: nothing is compacted by itself until something changes. */
  | { readonly type: 'breaker-open'; readonly failures: number; readonly reason: string }
  /** The provider refused the request as too long; it is made smaller and sent again. */
  | { readonly type: 'reactive-compact'; readonly message: string }
  /** A large result was put aside on arrival: the record shows its head and tail and says how to read the rest. */
  | { readonly type: 'spilled'; readonly toolUseId: string; readonly blobs: readonly string[] }
  /** It would have been put aside and stayed whole. */
  | { readonly type: 'spill-failed'; readonly toolUseId: string; readonly why: string }
  /** The provider does not know the thinking of so many responses: it is no longer sent back. */
  | { readonly type: 'thinking-dropped'; readonly responses: number }
  | { readonly type: 'undone'; readonly of: string; readonly kind: 'compact' | 'clear' }
  | { readonly type: 'rewritten'; readonly rewritten: Rewritten; readonly faults: readonly CleanupFault[] }

/** A compaction that was committed. */
export interface Compacted {
  /** Of its boundary: what `undo` takes. */
  readonly id: string
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly tokensBefore: number
  /** Estimate of the new view, not what the summary call reported. */
  readonly tokensAfter: number
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  readonly fallbackReason: string | null
  readonly recordsCoveredLocally: number
  readonly durationMs: number
  readonly receipt: Receipt
  /** Sentences for the person: a cut that was moved, pins that found no room. */
  readonly notes: readonly string[]
  readonly steps: readonly ChainStep[]
  /** What the calls for the summary took. */
  readonly usage: SummaryUsage
  /** What made it start by itself: the auto-compact line, or that it pays; null where something else did. */
  readonly firedBy: 'threshold' | 'price' | null
  readonly link: ChainLink
  /** Even so much is left that the next turn compacts again. */
  readonly willRetrigger: boolean
}

// Why a rewrite was not made. Nothing has changed then: not the log, not the view, not a byte of the next request.

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

// What the calls for a summary took, added up over all of them: those that failed were paid for too.

export interface SummaryUsage {
  readonly calls: number
  /** Tokens: neither read from the cache nor written to it. */
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

/** `usage` once `event` of a reply has come. */
export function withReply(usage: SummaryUsage, event: ReplyEvent): SummaryUsage {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') return usage
  const { calls } = usage
  return { ...added(usage, event.reply?.message.usage), calls: calls + 1 }
}

function added(usage: SummaryUsage, told: Usage | undefined): SummaryUsage {
  if (told === undefined) return usage
  return {
    calls: usage.calls,
    input: usage.input + countOf(told.input_tokens),
    output: usage.output + countOf(told.output_tokens),
    cacheRead: usage.cacheRead + countOf(told.cache_read_input_tokens),
    cacheWritten: usage.cacheWritten + countOf(told.cache_creation_input_tokens),
  }
}

// However a rewrite ends, those who show its phases are told that it is over.

/** Who stops listening is told nothing more. */
export async function* untilDone<End>(
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
