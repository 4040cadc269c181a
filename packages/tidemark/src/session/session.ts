/** The public `Session` object: one conversation. Each method is implemented in a file of its own. */
import {
  type ApiMessage,
  type CommitResult,
  type CompactionDraft,
  type CompactionPlan,
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
import { appendMessages } from './append.ts'
import type { EventOf, SessionEventType } from './events.ts'
import type { MessageInput } from './messages.ts'
import { type NextOptions, type NextOutcome, nextRequest, type RequestBody } from './next.ts'
import type { OpenSession } from './open-session.ts'
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
import { type Run, type RunOptions, runSession } from './run.ts'
import {
  type ContextBreakdown,
  type ContextRemaining,
  measureBreakdown,
  measureContextRemaining,
} from './status.ts'
import { type SwitchOutcome, switchModel } from './switch-model.ts'

export interface Session {
  readonly id: string
  /** Id of the current model. */
  readonly model: string
  /** Lines of the log that could not be read; empty if the log is intact. */
  readonly damage: readonly Damage[]

  /**
   * Appends messages to the log, durable when it returns, and returns the uuids of the records. Works at any time, also
   * during a run or a compaction; while a reply arrives, it waits for its end.
   *
   * @example const [prompt] = await session.append(user('Fix the login page.'))
   */
  append(...messages: readonly (MessageInput | object)[]): Promise<readonly string[]>

  /**
   * Reduces the context if needed, then returns the next request, ready to be sent by your own client. Append its
   * response before any other message.
   *
   * @example const request = await session.next({ tools }); if (request.ok) await client.messages.create(request.body)
   */
  next<Body = RequestBody>(options?: NextOptions): Promise<NextOutcome<Body>>

  /**
   * Runs a turn: the prompt, then the model and its tools until it makes no more tool calls. Starts at once. Null
   * continues a turn that was interrupted.
   *
   * @example const { outcome } = session.run('Fix the login page.', { tools })
   */
  run(prompt: string | readonly object[] | null, options?: RunOptions): Run

  /**
   * Replaces the context with a summary, the messages that must stay, and the current state of the context sources. Can be
   * undone as a whole.
   *
   * @example await session.compact({ instructions: 'Keep the names of all tables.' })
   */
  compact(options?: CompactOptions): Promise<CommitResult | BusyOutcome>
  /** Step one of three: what a compaction would do and cost. Changes nothing. */
  planCompaction(options?: CompactOptions): Promise<CompactionPlan | RefusedRewrite>
  /** Step two: the summary and everything with it, to be inspected, edited or discarded. Changes nothing. */
  prepare(
    plan: CompactionPlan,
    options?: { readonly signal?: AbortSignal },
  ): Promise<CompactionDraft | RefusedRewrite>
  /** Step three. Messages appended meanwhile stay after the summary. Refused if the context was rewritten meanwhile. */
  commit(draft: CompactionDraft, options?: RewriteOptions): Promise<CommitResult | BusyOutcome>

  /**
   * Undoes a compaction or a clearing, by default the newest: the context is what it was before.
   *
   * @example await session.undo()
   */
  undo(id?: string, options?: UndoOptions): Promise<UndoResult | BusyOutcome>
  /** Keeps the record unchanged in every rewrite. */
  pin(uuid: string): Promise<PinOutcome>
  /** Undoes `pin`. */
  unpin(uuid: string): Promise<PinOutcome>

  /** How full the context window is, and its thresholds. */
  contextRemaining(): ContextRemaining
  /** What fills the context window. */
  breakdown(): ContextBreakdown
  /** What the session has cost, what the cache saved, and what cache breaks cost. */
  money(): CostTotals
  /** Continues with another model if the context fits it or can be compacted to fit. */
  switchModel(model: ModelChoice): Promise<SwitchOutcome>

  /**
   * Searches the whole log, also what left the context, as the model's history tool does.
   *
   * @example const { content } = await session.history({ text: 'ECONNREFUSED' })
   */
  history(query: object): Promise<HistoryAnswer>
  /** The messages of the next request, as of now. */
  messages(): readonly ApiMessage[]
  /** The whole conversation as Markdown, with summarized and cleared parts, without secrets. */
  export(options?: { readonly title?: string; readonly redacts?: boolean }): Promise<string>

  /**
   * Calls the listener for events of one type, or for all with `*`. Returns a function that removes it.
   *
   * @example const off = session.on('compact', ({ compaction }) => console.log(compaction.tokensAfter))
   */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
  /** Aborts what is under way, waits for its end, and releases the session for other processes. */
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
    run: (prompt, options) => runSession(session, prompt as MessageContent | null, options),
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
    export({ title = `Conversation ${session.id}`, redacts = true } = {}) {
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

/** Releases the log only after everything under way has ended, so that nothing locks it again. */
async function closeSession(session: OpenSession, onClose: () => void): Promise<void> {
  session.stop.abort()
  await Promise.all(session.pendingWork)
  try {
    await session.withLock(async () => session.settings.journal.release(session.id))
  } finally {
    onClose()
  }
}
