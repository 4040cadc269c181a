/** What a turn tells those who watch it, and how it ends. */
import type { ActPaid, BreakEvent } from '../breaks/break-event.ts'
import type { CacheOutcome } from '../breaks/outcome.ts'
import type { ToolResultBlock, ToolUseBlock } from '../conversation/block.ts'
import type { Epoch, SessionRecord, Usage } from '../conversation/record.ts'
import type { PricedCall } from '../measure/call-price.ts'
import type { MoneyTotals } from '../measure/money-totals.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import type { RequestSize } from '../prompt/budget.ts'
import type { PrefixChange } from '../prompt/changes.ts'
import type { Forecast } from '../prompt/forecast.ts'
import type { OpenCall } from '../view/settle.ts'
import type { Finding } from '../view/validate/finding.ts'
import type { Failure } from './failure.ts'
import type { AppendOutcome, NewRecord } from './ports.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { RewriteEvent } from './rewrite/rewrite-event.ts'
import type { SessionState } from './session-state.ts'

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

export type QuietOutcome = Exclude<CacheOutcome, { readonly kind: 'broke' | 'ours' }>

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

export type AppendRefusal = Exclude<AppendOutcome, { readonly ok: true }>
