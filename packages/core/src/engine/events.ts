/** Events that a turn emits, the ways a turn can end, and the reasons for refusing a compaction, a clearing or an undo. */
import type { CacheBreak, OwnRewriteCost } from '../cache/cache-break-types.ts'
import type { CacheForecast } from '../cache/cache-forecast.ts'
import type { CacheCheckOutcome } from '../cache/cache-monitor.ts'
import type { ClearProposal } from '../clearing/clear-candidates.ts'
import type { UnansweredCall } from '../context/message-repair.ts'
import type { ReachedLimit } from '../cost/limits.ts'
import type { CostTotals, PricedCall } from '../cost/session-cost.ts'
import type { MessageContent, ToolResultBlock, ToolUseBlock } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type {
  ClearMode,
  CompactCause,
  CompactMetadata,
  CompactTrigger,
  PrefixSnapshot,
  SessionRecord,
} from '../log/record.ts'
import type { ReplyStop } from '../log/reply-report.ts'
import type { CompactionSavings, ContextPlan } from '../planner/context-plan.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { PrefixChange } from '../request/prefix-updates.ts'
import type { RequestSize } from '../request/request-size.ts'
import type { SkippedAttachment } from '../sources/context-source.ts'
import type { SummaryAttemptStep } from '../summary/attempt-types.ts'
import type { Receipt } from '../summary/receipt.ts'
import type { SpanRefusalReason } from '../summary/select-span.ts'
import type { Finding } from '../validate/findings.ts'
import type { HookResult } from './hooks.ts'
import type { CleanupFailure, CommittedRewrite } from './host.ts'
import type { AppendOutcome, NewRecord } from './ports.ts'
import type { ModelFailure, Reply, ReplyEvent, UpcomingRetry } from './reply.ts'
import type { CompactionSpacing, SessionState } from './session-state.ts'

export type TurnEvent =
  | RewriteEvent
  | NotesEvent
  | BackgroundEvent
  /** A batch of records was appended and is durable. */
  | { readonly type: 'appended'; readonly records: readonly SessionRecord[] }
  /** Tool calls without a result are about to get a result that says they were interrupted. */
  | { readonly type: 'calls-settled'; readonly calls: readonly UnansweredCall[] }
  /** The first prefix snapshot of the session is about to be appended. */
  | { readonly type: 'epoch-opened'; readonly epoch: PrefixSnapshot }
  /**
   * A change of system prompt or tools is about to be appended, as an update message or as a new prefix snapshot. If
   * `breaksCache` is set, the cache break is expected.
   */
  | { readonly type: 'prefix-changed'; readonly change: Exclude<PrefixChange, { kind: 'none' }> }
  /**
   * The server has dropped the beginning of a prompt that was too long, and answered all the same. `reported`,
   * `expected`: tokens of the prompt as the server counted them, and as estimated. `window`: the window assumed from
   * now on; null if it is too small for the policy, or if a client's requests are only observed.
   */
  | {
      readonly type: 'prompt-truncated'
      readonly reported: number
      readonly expected: number
      readonly window: number | null
      readonly message: string
    }
  /** Old images and documents are no longer sent, since the request exceeded limits. Pass `id` to `undo` to restore them. */
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
  /** The reply broke off. The part that arrived is not in the context. `response`: its message id. */
  | { readonly type: 'reply-dropped'; readonly response: string; readonly cause: ModelFailure }
  /** An API request failed or its reply broke off. It will be sent again after a delay. */
  | ({ readonly type: 'retrying' } & UpcomingRetry)
  /** The output limit ended the answer, and the model is asked to continue it. `part`: 1 for the first continuation. */
  | { readonly type: 'answer-continued'; readonly part: number }
  /** The complete reply was appended. `usage`: in the provider's own fields, unlike `reply.usage`; null if it reported none. */
  | {
      readonly type: 'answered'
      readonly reply: Reply
      readonly usage: JsonObject | null
      readonly forecast: CacheForecast
    }
  /** The cache read of a model call was as expected, or could not be checked. */
  | { readonly type: 'cache-judged'; readonly source: string; readonly outcome: UneventfulOutcome }
  /** Fewer tokens than expected were read from the cache. `diffProblem`: why the diff file could not be written. */
  | { readonly type: 'cache-break'; readonly event: CacheBreak; readonly diffProblem: string | null }
  /** A change by the engine, such as a compaction, caused an expected cache loss. This is not a cache break. */
  | { readonly type: 'act-paid'; readonly act: OwnRewriteCost }
  /** A model call and its usage were appended. `totals` are the costs of the session, including this call. */
  | { readonly type: 'priced'; readonly call: PricedCall; readonly totals: CostTotals }
  /** A side call (a model call outside the conversation) was sent. Its reply is not appended to the conversation. */
  | { readonly type: 'side-sent'; readonly source: string; readonly request: AssembledRequest }
  | { readonly type: 'side-reply'; readonly source: string; readonly event: ReplyEvent }
  | { readonly type: 'fork'; readonly fork: ForkCacheRead }
  | { readonly type: 'tool-started'; readonly call: ToolUseBlock }
  /** News from a tool that is still running. */
  | { readonly type: 'tool-progress'; readonly call: ToolUseBlock; readonly text: string }
  | { readonly type: 'tool-ended'; readonly call: ToolUseBlock; readonly result: ToolResultBlock }
  /** The turn ended. This event is emitted exactly once, as the last one. */
  | { readonly type: 'turn-ended'; readonly outcome: TurnOutcome }

type UneventfulOutcome = Exclude<CacheCheckOutcome, { readonly kind: 'broke' | 'ours' }>

/** How many tokens a fork read from the conversation's prompt cache. */
export interface ForkCacheRead {
  readonly source: string
  /** Tokens that the forecast expected to be read from the cache; `read` has the tokens actually read. */
  readonly expected: number
  readonly read: number
  /** Share of the prompt that was read from the cache, 0 to 1; null if the provider reported no usage. */
  readonly share: number | null
  /** Why the fork read less from the cache than expected; null if it did not. */
  readonly missed: string | null
}

/** How a turn ended. `state` matches the log, whether the turn succeeded or failed; the next turn starts from it. */
export type TurnOutcome = (CompletedTurn | TurnFailure) & { readonly state: SessionState }

/** A turn that ended with an answer. `stop`: why the last reply ended, null if that is not known. */
export interface CompletedTurn {
  readonly ok: true
  readonly stop: ReplyStop | null
  /** The provider's own word for why the reply ended; null if it reported none. */
  readonly stopReason: string | null
}

/** Why a turn failed. Records appended before the failure stay in the log. */
export type TurnFailure =
  /** The records could not be appended. `unsaved` lists them in order; they are stored nowhere else. */
  | {
      readonly ok: false
      readonly reason: 'conflict' | 'locked'
      readonly refusal: FailedAppend
      readonly unsaved: readonly NewRecord[]
    }
  /** A port of the host failed: the journal could not write, or the clock threw. `unsaved`: as above. */
  | {
      readonly ok: false
      readonly reason: 'port'
      readonly message: string
      readonly unsaved: readonly NewRecord[]
    }
  /** The request violates rules of the provider and was not sent. */
  | { readonly ok: false; readonly reason: 'invalid'; readonly findings: readonly Finding[] }
  | ({ readonly ok: false; readonly reason: 'failed'; readonly failure: ModelFailure } & WithdrawnPrompts)
  | { readonly ok: false; readonly reason: 'aborted' }
  /** The turn reached the host's limit of model calls. To continue it, start a turn without a prompt. */
  | { readonly ok: false; readonly reason: 'call-limit'; readonly calls: number }
  /** A limit of the run or the session is reached, or cannot be counted. The next call was not made. */
  | ({ readonly ok: false; readonly reason: 'limit' } & ReachedLimit)
  /** The host failed to supply the system prompt or the tools; the message names the section or tool. */
  | { readonly ok: false; readonly reason: 'prefix'; readonly message: string }
  /**
   * The context is full and could not be reduced; the message tells the user what to do. `isPromptTooLong`: the prompt
   * alone is longer than any request may be.
   */
  | ({
      readonly ok: false
      readonly reason: 'full'
      readonly message: string
      readonly isPromptTooLong?: boolean
    } & WithdrawnPrompts)
  /** A hook blocked the prompt, which was then not appended, or ended the turn after a tool call. */
  | { readonly ok: false; readonly reason: 'blocked'; readonly message: string }

interface WithdrawnPrompts {
  /**
   * Prompts that were too long for the provider and are no longer part of the conversation, oldest first, as they were
   * given. The next prompt is sent without them.
   */
  readonly withdrawn?: readonly MessageContent[]
}

type FailedAppend = Exclude<AppendOutcome, { readonly ok: true }>

/** Current step of a compaction, as text for a user interface. */
type RewritePhase =
  | 'waiting for the notes'
  | 'running PreCompact hooks'
  | 'compacting'
  | 'bringing back context'
  | 'running SessionStart hooks'
  | 'running PostCompact hooks'
  | 'done'

export type RewriteEvent =
  /** The plan for reducing the context before the next request. Not emitted if there is nothing to do. */
  | { readonly type: 'planned'; readonly plan: ContextPlan }
  /** Compacting now would cost less than continuing without. Only advice, emitted with each prompt while it holds. */
  | { readonly type: 'compaction-advised'; readonly advice: CompactionSavings }
  /** Tool results, tool inputs or thinking were cleared. Pass `id` to `undo` to restore them. */
  | {
      readonly type: 'microcompact'
      readonly id: string
      readonly way: ClearMode
      readonly clearing: ClearProposal
      readonly tokensBefore: number
      readonly tokensAfter: number
    }
  /** The provider's cache expired, so tool results that were deleted only in the cache are sent again. */
  | { readonly type: 'cache-edits-dropped'; readonly tokens: number }
  | { readonly type: 'phase'; readonly phase: RewritePhase }
  /** Number of summary characters received so far. `rung`: kind of attempt, from 0 (compaction block) to 4 (without a model). */
  | { readonly type: 'summary-progress'; readonly characters: number; readonly rung: number }
  /** The summary has not arrived yet. `waitedMs`: milliseconds since the wait for it began. */
  | { readonly type: 'keep-alive'; readonly waitedMs: number }
  | { readonly type: 'hook-said'; readonly hook: string; readonly message: string }
  | { readonly type: 'hook-failed'; readonly hook: string; readonly message: string }
  /** A hook tried to block a compaction without which the session cannot continue. The compaction runs anyway. */
  | { readonly type: 'veto-overruled'; readonly hook: string; readonly reason: string }
  /** Context sources were read again for a compaction. `keys`: those attached; `shed`: keys left out to reach the target. */
  | {
      readonly type: 'context-restored'
      readonly keys: readonly string[]
      readonly skipped: readonly SkippedAttachment[]
      readonly shed: readonly string[]
    }
  /** A context source failed or took too long. `carrier`: its name. */
  | { readonly type: 'restore-failed'; readonly carrier: string; readonly why: string }
  | { readonly type: 'compact'; readonly compaction: CommittedCompaction }
  /** The tokens of the context could not be counted by kind of content. The compaction has no `metrics`. */
  | { readonly type: 'accounting-failed'; readonly why: string }
  | {
      readonly type: 'compact-failed'
      readonly trigger: CompactTrigger
      readonly cause: CompactCause
      readonly refused: RefusedRewrite
    }
  /** Automatic compaction is paused after `failures` failed compactions in a row, until a new prompt or a success. */
  | { readonly type: 'breaker-open'; readonly failures: number; readonly reason: string }
  /** The provider refused the request as too long. The context is compacted, and the request is sent again. */
  | { readonly type: 'reactive-compact'; readonly message: string }
  /** A large tool result was stored as blobs. Its record shows the beginning, the end, and how to read the rest. */
  | { readonly type: 'spilled'; readonly toolUseId: string; readonly blobs: readonly string[] }
  /** A large tool result could not be stored as a blob, so its record has the whole text. */
  | { readonly type: 'spill-failed'; readonly toolUseId: string; readonly why: string }
  /** The provider refused the thinking of `responses` responses. It is no longer sent. */
  | { readonly type: 'thinking-dropped'; readonly responses: number }
  | { readonly type: 'undone'; readonly of: string; readonly kind: 'compact' | 'clear' }
  /**
   * The conversation moved to another branch of the log. `left`: the last record of the branch that it left. `before`:
   * the first record that a rewind took out of the conversation; null for a new conversation and for an undo.
   */
  | {
      readonly type: 'branch-switched'
      readonly id: string
      readonly left: string | null
      readonly before: string | null
    }
  /** A rewrite or a move is in the log, and the host's cleanups have run. `faults`: those that threw. */
  | {
      readonly type: 'rewritten'
      readonly rewritten: CommittedRewrite
      readonly faults: readonly CleanupFailure[]
    }

/** A compaction that was appended to the log. */
export interface CommittedCompaction {
  /** uuid of the compaction's boundary record. Pass it to `undo` to undo the compaction. */
  readonly id: string
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly tokensBefore: number
  /** Estimated size of the context after the compaction, not the usage of the summary request. */
  readonly tokensAfter: number
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  /** `no_summary`, `api_error` or `prompt_too_long`, a colon and a sentence, if the first summary was not used; else null. */
  readonly fallbackReason: string | null
  /** Number of records that did not fit the summarizer's window, and are summarized without a model. */
  readonly recordsCoveredLocally: number
  readonly durationMs: number
  readonly receipt: Receipt
  /** Sentences for the user, for example that the cut between summarized and kept messages was moved. */
  readonly notes: readonly string[]
  /** All attempts at the summary in order, made or skipped, each with its outcome and reason. */
  readonly steps: readonly SummaryAttemptStep[]
  /** Usage of all summary requests of this compaction. */
  readonly usage: SideCallUsage
  /**
   * Estimated tokens of the context before the compaction by kind of content, such as `human_message_tokens` or
   * `tool_result_Read_tokens`; empty if they could not be counted.
   */
  readonly metrics: Readonly<Record<string, number>>
  /**
   * Why an automatic compaction started: the context reached the auto-compact threshold, or the compaction saves money;
   * null for all other compactions.
   */
  readonly firedBy: 'threshold' | 'price' | null
  readonly link: CompactionSpacing
  /** Label of the conversation that was compacted, such as `sdk` or `agent:review`. */
  readonly source: string
  /** The auto-compact threshold in force, in tokens; null if the context window is unknown. */
  readonly threshold: number | null
  /** True if the context is still above the auto-compact threshold, so that the next turn compacts again. */
  readonly willRetrigger: boolean
}

/** Why a compaction, a clearing or an undo was refused. A refusal changes neither the log nor the next request. */
export type RewriteRefusalReason =
  | SpanRefusalReason
  /** Compaction is switched off; the message names the setting. */
  | 'off'
  | 'aborted'
  /** A hook blocked the compaction. */
  | 'blocked'
  | 'no-summary'
  /** The new context would not be smaller than the old one. */
  | 'not-smaller'
  /** The compacted context would exceed its limit even without optional attachments; `floor` lists its largest parts. */
  | 'floor'
  /** Another writer changed the context in the meantime. */
  | 'superseded'
  | 'locked'
  /** A port of the host failed, such as a journal on a full disk. */
  | 'port'
  /** The next request after the compaction would violate the provider's rules. */
  | 'invalid'
  | 'nothing-to-undo'
  | 'not-standing'
  | 'not-newest'
  /** The restored context would exceed the blocking threshold; the option `force` undoes anyway. */
  | 'too-large'
  | 'unknown-record'

/** A compaction, clearing, undo, pin or move that was not made. Nothing has changed. */
export interface RefusedRewrite {
  readonly ok: false
  readonly reason: RewriteRefusalReason
  /** A message for the user: what went wrong and what to do. */
  readonly message: string
  /** For reason `floor`: the parts of the context that cannot be removed, largest first. */
  readonly floor?: readonly IrreduciblePart[]
  /** For reason `floor`: the tokens that the compacted context would have. */
  readonly tokens?: number
  /** For reason `not-newest`: id of the newer rewrite that must be undone first. */
  readonly newest?: string
  /** For reason `no-summary`: why the last attempt failed; `steps` lists all attempts. */
  readonly fallbackReason?: string
  readonly steps?: readonly SummaryAttemptStep[]
}

/** A part of the context that no compaction can remove. `what`: what it is, as text for the user. */
export interface IrreduciblePart {
  readonly what: string
  readonly tokens: number
}

export function refuseRewrite(
  reason: RewriteRefusalReason,
  message: string,
  more: Omit<RefusedRewrite, 'ok' | 'reason' | 'message'> = {},
): RefusedRewrite {
  return { ok: false, reason, message, ...more }
}

export const STALE_DRAFT_MESSAGE =
  'The conversation was rewritten elsewhere while the summary was being written. Nothing was changed; compact again if it is still needed.'

export const ABORTED_REWRITE: RefusedRewrite = refuseRewrite(
  'aborted',
  'It was aborted; nothing has changed.',
)

/**
 * Passes all events on and then emits the phase `done`, even after an exception. Does not emit it if the caller stops reading.
 */
export async function* withDonePhase<End>(
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

/** Tokens of all model calls that wrote one summary, or updated the notes once, including failed calls, which cost money too. */
export interface SideCallUsage {
  readonly calls: number
  /** Input tokens that were neither read from the cache nor written to it. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWritten: number
}

export const NO_SIDE_CALL_USAGE: SideCallUsage = {
  calls: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWritten: 0,
}

/** If `event` ends a reply, returns `usage` plus the usage of that reply; otherwise returns `usage` unchanged. */
export function addReplyUsage(usage: SideCallUsage, event: ReplyEvent): SideCallUsage {
  if (event.type !== 'reply-ended' && event.type !== 'reply-failed') return usage
  const calls = usage.calls + 1
  const reported = event.reply?.usage
  if (reported === undefined) return { ...usage, calls }
  return {
    calls,
    input: usage.input + reported.input,
    output: usage.output + reported.output,
    cacheRead: usage.cacheRead + reported.read,
    cacheWritten: usage.cacheWritten + reported.writes.short + reported.writes.long,
  }
}

// Events of work beside the turns: summaries that are prepared in advance, and the prompt cache of an idle session.

type BackgroundEvent =
  /**
   * A summary of the conversation is being prepared beside the turn. `tokens`: size of the context; `price`: dollars
   * that the summary is expected to cost, null if unknown.
   */
  | { readonly type: 'summary-preparing'; readonly tokens: number; readonly price: number | null }
  /**
   * The summary is ready and is swapped in when the context needs it. `tokensAfter`: size of the context with it;
   * `price`: dollars that it cost, null if unknown.
   */
  | {
      readonly type: 'summary-prepared'
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly durationMs: number
      readonly price: number | null
    }
  /** A prepared summary will not be used. `price`: dollars that were spent on it, null if unknown. */
  | {
      readonly type: 'summary-dropped'
      readonly why: SummaryDropReason
      readonly message: string
      readonly price: number | null
    }
  /** A request was sent on an idle session to keep its prompt cache from expiring. */
  | ({ readonly type: 'cache-kept-warm' } & CacheRenewal)
  /** The prompt cache has expired since the last response, so that the next request costs more. Not sent yet. */
  | ({ readonly type: 'resume-cost' } & ResumeCost)

/** Why a prepared summary is not used. */
export type SummaryDropReason =
  /** The context was compacted, cleared, undone or rewound after the summary was planned. */
  | 'rewritten'
  /** A record that the summary replaces was pinned. */
  | 'pinned'
  | 'model-switched'
  /** A PreCompact hook blocked it. */
  | 'blocked'
  /** The model wrote no summary. A local one is only made when the session cannot go on without. */
  | 'no-summary'
  /** The summary could not be prepared, or could not be committed. */
  | 'failed'
  | 'closed'

export interface CacheRenewal {
  /** Tokens that the request read from the cache. */
  readonly tokensRead: number
  /** True if the cached conversation was read, which renews its lifetime. False if it was lost already. */
  readonly isRead: boolean
  /** Number of requests since the last response that kept the cache alive, including this one. */
  readonly count: number
  /** When the cache expires now, in milliseconds since 1970; null if it was lost. */
  readonly expiresAt: number | null
  /** Dollars that the request cost; null if unknown. */
  readonly price: number | null
  /**
   * Extra dollars of the next request if the cache expires, since the request then writes it again; null if unknown.
   * All renewals during one pause together save this amount once.
   */
  readonly rewritePrice: number | null
}

export interface ResumeCost {
  /** Milliseconds since the last response. */
  readonly idleMs: number
  /** Tokens of the whole request. */
  readonly tokens: number
  /** Tokens of the request that are still expected in the cache. */
  readonly cachedTokens: number
  /** Dollars that the prompt of the request will cost; null if unknown. */
  readonly price: number | null
  /** Dollars that it would have cost before the cache expired; null if unknown. */
  readonly warmPrice: number | null
  /** These figures as one line for the user. */
  readonly sentence: string
}

// Events of a session's notes: their updates, and compactions with them. In telemetry a hyphen is an underscore:
// `sm_compact`, `sm_compact_threshold_exceeded`, and `sm_compact_` with the reason for `sm-compact-refused`.

type NotesEvent =
  /** The notes were updated. `tokens`: their size. `cost`: that of the model calls; none if kept from the log. */
  | {
      readonly type: 'notes-updated'
      readonly by: 'model' | 'local'
      readonly coveredUuid: string | null
      readonly tokens: number
      readonly cost: NotesCost
    }
  /** An update of the notes failed. The old notes stay as they were. */
  | {
      readonly type: 'notes-failed'
      readonly by: 'model' | 'local'
      readonly reason: NotesFailureReason
      readonly message: string
      readonly cost: NotesCost
      /** Set after several failures in a row: the model is not asked again before the next compaction or a new session. */
      readonly isPaused?: true
    }
  /** The model that updates the notes called a tool for something else. The call was refused. */
  | { readonly type: 'notes-tool-refused'; readonly call: ToolUseBlock; readonly message: string }
  /** The context was compacted with the notes, without a model call. Follows `compact`. */
  | {
      readonly type: 'sm-compact'
      /** uuid of the compaction's boundary record, as in `compact`. */
      readonly id: string
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly by: 'model' | 'local'
      /** Why notes from the log were used in place of the model's notes; null if they were not. */
      readonly fallbackReason: NotesFallbackReason | null
      /** Entries and tokens kept verbatim after the notes. */
      readonly kept: { readonly entries: number; readonly tokens: number }
      /** Headings of the sections that were cut at their limit. */
      readonly cut: readonly string[]
    }
  /** With the notes, the context would reach the auto-compact threshold again. A summary is written instead. */
  | {
      readonly type: 'sm-compact-threshold-exceeded'
      readonly tokens: number
      readonly threshold: number
    }
  /** The context cannot be compacted with the notes. A summary is written instead, unless a hook blocked the compaction. */
  | { readonly type: 'sm-compact-refused'; readonly reason: NotesRefusalReason; readonly message: string }

/** What the model calls of an update of the notes cost; `dollars` is null if a price is unknown. */
export interface NotesCost {
  readonly usage: SideCallUsage
  readonly dollars: number | null
}

export type NotesFailureReason =
  | 'aborted'
  /** Nothing was sent yet, or the conversation was rewritten since: there is nothing to continue from. */
  | 'nothing-to-fork'
  | 'model-failed'
  /** The output limit ended the answer. */
  | 'cut-off'
  /** The answer changed nothing. */
  | 'no-change'
  /** The result lacks sections, is empty or too long. */
  | 'bad-notes'
  /** The notes could not be read or stored. */
  | 'store'

/** Why notes from the log replace the model's. `threshold`: with those, the context would reach the auto-compact threshold. */
export type NotesFallbackReason = NotesRefusalReason | 'threshold'

export type NotesRefusalReason =
  | 'no-notes'
  | 'empty-notes'
  /** The notes could not be read. */
  | 'store'
  /** It is not known which record the notes cover last. */
  | 'unknown-coverage'
  /** The last covered record is no longer in the context. */
  | 'not-in-context'
  /** A hook blocked the compaction. No summary is written either. */
  | 'blocked'
  /** The compaction itself was refused; the message says why. */
  | 'refused'
  /** Something threw an error. */
  | 'error'

/** The cost of notes that are kept from the log: no model is called. */
export const NO_NOTES_COST: NotesCost = { usage: NO_SIDE_CALL_USAGE, dollars: 0 }

/** Returns the events about a hook that has run: that it failed, or its message for the user. */
export function listHookEvents(
  end: HookResult<{ readonly userDisplayMessage?: string } | null>,
): readonly TurnEvent[] {
  const message = end.ok ? end.output?.userDisplayMessage : end.message
  const type = end.ok ? 'hook-said' : 'hook-failed'
  return message === undefined ? [] : [{ type, hook: end.name, message }]
}
