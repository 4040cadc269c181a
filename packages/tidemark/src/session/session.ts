/** The public `Session` object: one conversation. Other files of this folder implement its methods. */
import {
  type ApiMessage,
  type CompactionDraft,
  type CompactionPlan,
  type CompactionResult,
  type CostTotals,
  type Damage,
  emptySessionCost,
  exportMarkdown,
  type HistoryAnswer,
  type MessageContent,
  type RefusedRewrite,
  redact,
  runHistoryTool,
  sumSessionCost,
  toApiMessages,
  type UndoResult,
  withCosts,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import { checkOptionNames } from '../platform/argument-errors.ts'
import { appendMessages } from './append.ts'
import {
  type ContextBreakdown,
  type ContextRemaining,
  measureBreakdown,
  measureContextRemaining,
} from './context-usage.ts'
import type { EventOf, SessionEventType } from './events.ts'
import type { MessageInput } from './messages.ts'
import { type NextOptions, type NextOutcome, nextRequest, type RequestBody } from './next.ts'
import type { OpenSession } from './open-session.ts'
import { type RefusedOutcome, recordRefusal } from './refused.ts'
import {
  type BusyOutcome,
  type CompactOptions,
  commitSessionDraft,
  compactSession,
  type PinOutcome,
  pinSessionRecord,
  planSessionCompaction,
  prepareSessionDraft,
  type RewriteOptions,
  type UndoOptions,
  undoSessionRewrite,
} from './rewrite.ts'
import { type Run, type RunOptions, startTurn } from './run.ts'
import { type SwitchOutcome, switchModel } from './switch-model.ts'

export interface Session {
  readonly id: string
  /** The id of the current model. */
  readonly model: string
  /** Damage found in the log; empty if the log is intact. */
  readonly damage: readonly Damage[]

  /**
   * Appends messages to the log and returns the uuids of their records. The messages are durable when the promise
   * resolves. Works at any time, also during a run or a compaction; while a reply is streamed, it waits for the end of
   * the reply.
   *
   * @example const [prompt] = await session.append(user('Fix the login page.'))
   */
  append(...messages: readonly (MessageInput | object)[]): Promise<readonly string[]>

  /**
   * Reduces the context if needed, then returns the next API request for your own client. Append its response, or call
   * `refused` with the error.
   *
   * @example const request = await session.next({ tools }); if (request.ok) await client.messages.create(request.body)
   */
  next<Body = RequestBody>(options?: NextOptions): Promise<NextOutcome<Body>>

  /**
   * Tells the engine that the provider refused the request of `next`, with the error of your client. The context is
   * changed as the refusal asks (compacted, or without refused media or thinking), so that `next` returns another
   * request. A request that was refused for good is never returned again; for a fault that may pass, the outcome says
   * how long to wait.
   *
   * @example catch (error) { const outcome = await session.refused(error); if (!outcome.ok) throw error }
   */
  refused(error: unknown): Promise<RefusedOutcome>

  /**
   * Runs a turn: sends the prompt, then runs tools and calls the model until it makes no more tool calls. Starts at
   * once. With null as the prompt, it continues an interrupted turn.
   *
   * @example const { outcome } = session.run('Fix the login page.', { tools })
   */
  run(prompt: string | readonly object[] | null, options?: RunOptions): Run

  /**
   * Replaces the context with a summary, the messages that must stay, and the current state of the context sources.
   * `undo` reverts the whole compaction.
   *
   * @example await session.compact({ instructions: 'Keep the names of all tables.' })
   */
  compact(options?: CompactOptions): Promise<CompactionResult | BusyOutcome>
  /** Plans a compaction and returns what it would do and cost. First of three steps; changes nothing. */
  planCompaction(options?: CompactOptions): Promise<CompactionPlan | RefusedRewrite>
  /** Writes the summary and returns a draft to inspect, edit or discard. Second of three steps; changes nothing. */
  prepare(
    plan: CompactionPlan,
    options?: { readonly signal?: AbortSignal },
  ): Promise<CompactionDraft | RefusedRewrite>
  /**
   * Commits a draft. Last of three steps. Messages appended since the plan stay after the summary; refused if the
   * context was rewritten since then.
   */
  commit(draft: CompactionDraft, options?: RewriteOptions): Promise<CompactionResult | BusyOutcome>

  /**
   * Undoes a compaction or a clearing, by default the newest, and restores the context from before it.
   *
   * @example await session.undo()
   */
  undo(id?: string, options?: UndoOptions): Promise<UndoResult | BusyOutcome>
  /** Pins a record: every rewrite keeps it verbatim in the context. */
  pin(uuid: string): Promise<PinOutcome>
  /** Removes the pin from a record. */
  unpin(uuid: string): Promise<PinOutcome>

  /** Returns how full the context window is, and its thresholds. */
  contextRemaining(): ContextRemaining
  /** Returns what fills the context window. */
  breakdown(): ContextBreakdown
  /** Returns what the session has cost, what the prompt cache saved, and what cache breaks cost. */
  money(): CostTotals
  /** Continues the session with another model. Compacts first if the context does not fit; refuses if it still does not. */
  switchModel(model: ModelChoice): Promise<SwitchOutcome>

  /**
   * Searches the whole log, including records that are no longer in the context, as the model's history tool does.
   *
   * @example const { content } = await session.history({ text: 'ECONNREFUSED' })
   */
  history(query: object): Promise<HistoryAnswer>
  /** Returns the messages that the next API request would contain now. */
  messages(): readonly ApiMessage[]
  /** Returns the whole conversation as Markdown, including summarized and cleared parts. Secrets are removed by default. */
  export(options?: { readonly title?: string; readonly redacts?: boolean }): Promise<string>

  /**
   * Calls the listener for events of one type, or for all events with `*`. Returns a function that removes the
   * listener.
   *
   * @example const off = session.on('compact', ({ compaction }) => console.log(compaction.tokensAfter))
   */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
  /** Aborts all operations in progress, waits until they end, and releases the session for other processes. */
  close(): Promise<void>
}

export function createSession(session: OpenSession, onClose: () => void): Session {
  const { settings } = session
  return {
    id: session.id,
    get model() {
      return session.model.choice.id
    },
    get damage() {
      return session.state.damage
    },
    append: (...messages) => appendMessages(session, messages),
    next: (options) => nextRequest(session, options),
    refused: (error) => recordRefusal(session, error),
    run: (prompt, options) => startTurn(session, prompt as MessageContent | null, options),
    compact: (options = {}) => compactSession(session, options),
    planCompaction: (options = {}) => planSessionCompaction(session, options),
    prepare: (plan, options) => prepareSessionDraft(session, plan, options?.signal),
    commit: (draft, options) => commitSessionDraft(session, draft, options),
    undo: (id, options = {}) => undoSessionRewrite(session, id, options),
    pin: (uuid) => pinSessionRecord(session, uuid, true),
    unpin: (uuid) => pinSessionRecord(session, uuid, false),
    contextRemaining: () => measureContextRemaining(session),
    breakdown: () => measureBreakdown(session),
    money() {
      const state = withCosts(session.state, session.model.choice.priceList)
      session.state = state
      return sumSessionCost(state.costs ?? emptySessionCost())
    },
    switchModel: (model) => switchModel(session, model),
    history: (query) =>
      runHistoryTool(query, {
        session: session.state.session,
        blobs: settings.blobs,
        policy: settings.policy.history,
        pageTokens: session.model.scaled.budgets.historyPage,
        measure: session.model.estimator.text,
      }),
    messages: () => toApiMessages(session.state.flat),
    async export(options = {}) {
      checkOptionNames('export', options, ['title', 'redacts'])
      const { title = `Conversation ${session.id}`, redacts = true } = options
      const { blobs } = settings
      return exportMarkdown(session.state.session, { title, blobs, ...(redacts ? { redact } : {}) })
    },
    on: session.listeners.on,
    close() {
      session.closing ??= closeSession(session, onClose)
      return session.closing
    },
  }
}

/** Closes a session. The log is released only after all operations have ended, so that none of them locks it again. */
async function closeSession(session: OpenSession, onClose: () => void): Promise<void> {
  session.stop.abort()
  await Promise.all(session.pendingWork)
  try {
    await session.withLock(async () => session.settings.journal.release(session.id))
  } finally {
    onClose()
  }
}
