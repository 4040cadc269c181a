/** What a turn tells those who watch it, and how it ends. */
import type { ToolResultBlock, ToolUseBlock } from '../conversation/block.ts'
import type { Epoch, SessionRecord, Usage } from '../conversation/record.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import type { PrefixChange } from '../prompt/changes.ts'
import type { Forecast } from '../prompt/forecast.ts'
import type { OpenCall } from '../view/settle.ts'
import type { Finding } from '../view/validate/finding.ts'
import type { Failure } from './failure.ts'
import type { AppendOutcome } from './ports.ts'
import type { Reply, ReplyEvent } from './reply.ts'
import type { SessionState } from './session-state.ts'

export type TurnEvent =
  /** One batch, durable in the log. */
  | { readonly type: 'appended'; readonly records: readonly SessionRecord[] }
  /** Calls that never got an answer are about to get one that says so. */
  | { readonly type: 'calls-settled'; readonly calls: readonly OpenCall[] }
  | { readonly type: 'epoch-opened'; readonly epoch: Epoch }
  /** About to be appended; an `epoch` that `breaksCache` is a break of our own. */
  | { readonly type: 'prefix-changed'; readonly change: Exclude<PrefixChange, { kind: 'none' }> }
  | { readonly type: 'request-sent'; readonly request: AssembledRequest; readonly forecast: Forecast }
  | { readonly type: 'reply'; readonly event: ReplyEvent }
  /** The whole reply is in the log. `usage` is null where the provider told none. */
  | {
      readonly type: 'answered'
      readonly reply: Reply
      readonly usage: Usage | null
      readonly forecast: Forecast
    }
  | { readonly type: 'tool-started'; readonly call: ToolUseBlock }
  | { readonly type: 'tool-ended'; readonly call: ToolUseBlock; readonly result: ToolResultBlock }
  /** Always the last event, and the only one of its kind. */
  | { readonly type: 'turn-ended'; readonly outcome: TurnOutcome }

/** `state` is the session as the log now has it, however the turn ended: the next turn goes on from it. */
export type TurnOutcome = (TurnDone | Halt) & { readonly state: SessionState }

export interface TurnDone {
  readonly ok: true
  /** Why the model stopped, in the provider's words. */
  readonly stopReason: string | null
}

/** Why a turn stopped short. Everything appended before stands. */
export type Halt =
  | { readonly ok: false; readonly reason: 'conflict' | 'locked'; readonly refusal: AppendRefusal }
  /** The provider would have refused the request; it was not sent. */
  | { readonly ok: false; readonly reason: 'invalid'; readonly findings: readonly Finding[] }
  | { readonly ok: false; readonly reason: 'failed'; readonly failure: Failure }
  | { readonly ok: false; readonly reason: 'aborted' }

export type AppendRefusal = Exclude<AppendOutcome, { readonly ok: true }>
