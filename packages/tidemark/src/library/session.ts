/** The public `Session` object: one conversation. The files of the folder `session` implement its methods. */
import type { CompactionResult } from '@tidemark/core/compaction/commit-draft'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import type { CompactionPlan } from '@tidemark/core/compaction/plan-compaction'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import { type CostTotals, emptySessionCost, sumSessionCost } from '@tidemark/core/cost/session-cost'
import { withSessionCosts } from '@tidemark/core/engine/call-model'
import type { RefusedRewrite } from '@tidemark/core/engine/events'
import type { StoredNotes } from '@tidemark/core/engine/ports'
import { exportMarkdown } from '@tidemark/core/history/export-markdown'
import { type HistoryAnswer, runHistoryTool } from '@tidemark/core/history/history-tool'
import type { MessageContent } from '@tidemark/core/log/block'
import type { Damage } from '@tidemark/core/log/decode-log'
import { redact } from '@tidemark/core/text/redact'
import type { ClearingResult } from '@tidemark/core/turn/clear-chosen'
import type { UndoResult } from '@tidemark/core/turn/undo'
import { listOriginalMessages } from '../dropin/export-messages.ts'
import { type TakeOptions, type TakeOutcome, takeRequestBody } from '../dropin/take-request.ts'
import type { ModelChoice } from '../models/model-choice.ts'
import { checkOptionNames } from '../platform/argument-errors.ts'
import { appendMessages } from '../session/append.ts'
import {
  type AskOptions,
  type AskOutcome,
  askSession,
  copySession,
  type RewindOutcome,
  rewindSession,
  startNewConversation,
} from '../session/branches.ts'
import {
  type ContextBreakdown,
  type ContextRemaining,
  measureContextBreakdown,
  measureContextRemaining,
} from '../session/context-usage.ts'
import {
  type ConversationRecord,
  type CopiedCost,
  findLoggedCompaction,
  listSessionRecords,
  type RecordsOptions,
  type SessionCompaction,
  sumCopiedCost,
} from '../session/conversation-records.ts'
import type { EventOf, SessionEventType, SessionStatus } from '../session/events.ts'
import { withFormerPriceNames } from '../session/former-price-names.ts'
import type { MessageInput } from '../session/messages.ts'
import {
  type NextOptions,
  type NextOutcome,
  prepareNextBody,
  type RequestBody,
} from '../session/next-request.ts'
import { type OpenOptions, type OpenSession, readStatus } from '../session/open-session.ts'
import { checkOpenOptions } from '../session/options.ts'
import { type RefusalOutcome, recoverRefusedRequest } from '../session/refused-request.ts'
import {
  type BusyOutcome,
  type CompactOptions,
  clearSessionResults,
  commitSessionDraft,
  compactSession,
  type PinOutcome,
  pinSessionRecord,
  planSessionCompaction,
  prepareSessionDraft,
  type RewriteOptions,
  type UndoOptions,
  undoSessionRewrite,
} from '../session/rewrite.ts'
import { type Run, type RunOptions, startTurn } from '../session/run.ts'
import {
  type HookInputOf,
  type HookOutputOf,
  type HostHookPoint,
  runSessionHooks,
} from '../session/session-hooks.ts'
import { updateNotesAtClose } from '../session/session-notes.ts'
import { type SwitchOutcome, switchModel } from '../session/switch-model.ts'
import { findUndoPoints, type UndoPoints } from '../session/undo-points.ts'
import { checkSessionId } from '../storage/home-paths.ts'

export interface Session {
  readonly id: string
  /** The id of the current model. */
  readonly model: string
  /** Damage found in the log; empty if the log is intact. */
  readonly damage: readonly Damage[]

  /**
   * Appends messages to the log and returns the uuids of their records. The messages are durable when the promise resolves. Works
   * at any time, also during a run or a compaction; while a reply is streamed, it waits for the end of the reply.
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
   * Takes a whole Messages request as a client sends it with every call: appends what is new to the log, and returns the
   * request to send instead. Append its response. If the outcome is not ok, send the client's request unchanged.
   *
   * @example const request = await session.take(body); await client.messages.create(request.ok ? request.body : body)
   */
  take<Body = RequestBody>(body: object, options?: TakeOptions): Promise<TakeOutcome<Body>>

  /**
   * Tells the engine that the provider refused the request of `next`, with the error of your client. The context is changed as
   * the refusal asks (compacted, or without refused media or thinking), so that `next` returns another request. A request that
   * was refused for good is never returned again; for a fault that may pass, the outcome says how long to wait.
   *
   * @example catch (error) { const outcome = await session.refused(error); if (!outcome.ok) throw error }
   */
  refused(error: unknown): Promise<RefusalOutcome>

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
   * Undoes a compaction, a clearing, a `rewind` or a `clear`, by default the newest, and restores the context from
   * before it. With the `id` of an earlier undo, takes that undo back.
   *
   * @example const undone = await session.undo(); if (undone.ok) await session.undo(undone.id)
   */
  undo(id?: string, options?: UndoOptions): Promise<UndoResult | BusyOutcome>
  /**
   * Returns what `undo` would take back and what it would do to the context, and which undo can be taken back again.
   *
   * @example const { undo } = session.undoPoints(); if (undo !== null) await session.undo(undo.id)
   */
  undoPoints(): UndoPoints
  /**
   * Goes back to before a message: it and what followed are no longer part of the conversation. The branch that is left
   * stays in the log: `undo` returns to it.
   *
   * @example const [prompt] = await session.append(user('Try Redis.')); await session.rewind(prompt)
   */
  rewind(uuid: string, options?: RewriteOptions): Promise<RewindOutcome>
  /** Begins a new, empty conversation in this session. The old one stays in the log: `undo` returns to it. */
  clear(options?: RewriteOptions): Promise<RewindOutcome>
  /**
   * Copies the conversation to a new session and opens it. Its first request reads the cache of this one. Default id: a new one.
   */
  fork(id?: string, options?: OpenOptions): Promise<Session>
  /**
   * Asks the model about the conversation, reading its cache. Neither question nor answer is added to the conversation,
   * and no tool runs. Works at any time, also during a run.
   *
   * @example const { text } = await session.ask('Which files did you change so far?')
   */
  ask(question: string, options?: AskOptions): Promise<AskOutcome>
  /** Returns what the session is doing. The event `status` tells of each change. */
  status(): SessionStatus
  /**
   * Clears results of tools, by the uuids of their records: the model sees a placeholder that says how to read them
   * again. `undo` restores them.
   *
   * @example const largest = session.breakdown().messages.toSorted((a, b) => b.tokens - a.tokens)[0]
   * if (largest) await session.clearResults([largest.uuid])
   */
  clearResults(uuids: readonly string[]): Promise<ClearingResult | BusyOutcome>
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
  /**
   * Returns what the copied part of a forked session has cost, which `money` does not count; null if the session is not a copy.
   */
  copiedCost(): CopiedCost | null
  /** Continues the session with another model. Compacts first if the context does not fit; refuses if it still does not. */
  switchModel(model: ModelChoice): Promise<SwitchOutcome>

  /**
   * Searches the conversation in the log, including records that are no longer in the context, as the model's history
   * tool does. Branches that `rewind` or `clear` left are not searched; `export` has them.
   *
   * @example const { content } = await session.history({ text: 'ECONNREFUSED' })
   */
  history(query: object): Promise<HistoryAnswer>
  /**
   * Returns the records of the conversation, the oldest first, also those that a compaction has replaced. The functions of
   * `tidemark/records` read them.
   *
   * @example const prompts = (await session.records()).filter(({ record }) => isPrompt(record))
   */
  records(options?: RecordsOptions): Promise<readonly ConversationRecord[]>
  /**
   * Returns a compaction by its id, as `undoPoints` and the event `compact` give it: its summary, and a receipt of what
   * left the context. Null if the log does not have it.
   */
  compaction(id: string): SessionCompaction | null
  /**
   * Returns the notes of the session as they were last written; null if there are none yet. They are brought up to date
   * beside the turns and at `close`.
   */
  notes(): Promise<StoredNotes | null>
  /** Returns the messages that the next API request would contain now. */
  messages(): readonly ApiMessage[]
  /**
   * Returns the whole conversation as Markdown, including summarized and cleared parts. Secrets are removed by default.
   * `as: 'messages'`: as JSON, the list of messages that a client would have, with nothing removed.
   */
  export(options?: {
    readonly title?: string
    readonly redacts?: boolean
    readonly as?: 'markdown' | 'messages'
  }): Promise<string>

  /**
   * Runs the hooks of a point that only you reach: a memory file was read, a subagent begins or has finished. Returns
   * what they answer; failures and messages are emitted as events. `close` ends those that are running.
   *
   * @example await session.runHooks('subagentStart', { agentId: 'a1', agentType: 'review' })
   */
  runHooks<Point extends HostHookPoint>(
    point: Point,
    input: HookInputOf<Point>,
  ): Promise<readonly HookOutputOf<Point>[]>

  /**
   * Calls the listener for events of one type, or for all events with `*`. Returns a function that removes the listener.
   *
   * @example const off = session.on('compact', ({ compaction }) => console.log(compaction.tokensAfter))
   */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
  /** Aborts all operations in progress, waits until they end, and releases the session for other processes. */
  close(): Promise<void>
}

/**
 * Creates the public object of an open session. `onClose`: called when it has been closed. `openFork` opens the copy
 * that `fork` has made.
 */
export function createPublicSession(
  session: OpenSession,
  onClose: () => void,
  openFork: (id: string, options?: OpenOptions) => Promise<Session>,
): Session {
  const { settings } = session
  const created: Session = {
    id: session.id,
    get model() {
      return session.model.choice.id
    },
    get damage() {
      return session.state.damage
    },
    append: (...messages) => appendMessages(session, messages),
    next: (options) => prepareNextBody(session, options),
    take: (body, options) => takeRequestBody(session, body, options),
    refused: (error) => recoverRefusedRequest(session, error),
    run: (prompt, options) => startTurn(session, prompt as MessageContent | null, options),
    compact: (options = {}) => compactSession(session, options),
    planCompaction: (options = {}) => planSessionCompaction(session, options),
    prepare: (plan, options) => prepareSessionDraft(session, plan, options?.signal),
    commit: (draft, options) => commitSessionDraft(session, draft, options),
    undo: (id, options = {}) => undoSessionRewrite(session, id, options),
    rewind: (uuid, options) => rewindSession(session, uuid, options),
    async clear(options) {
      const outcome = await startNewConversation(session, options)
      if (outcome.ok) await runSessionHooks(session, 'sessionEnd', { reason: 'clear' })
      return outcome
    },
    async fork(id = settings.ids.next('session'), options = {}) {
      checkSessionId(id)
      checkOpenOptions(options)
      await copySession(session, id)
      return openFork(id, options)
    },
    ask: (question, options) => askSession(session, question, options),
    clearResults: (uuids) => clearSessionResults(session, uuids),
    pin: (uuid) => pinSessionRecord(session, uuid, true),
    unpin: (uuid) => pinSessionRecord(session, uuid, false),
    switchModel: (model) => switchModel(session, model),
    runHooks: (point, input) => runSessionHooks(session, point, input, session.stop.signal),
    ...createReadMethods(session),
    on: session.listeners.on,
    close() {
      session.closing ??= closeSession(session, onClose)
      return session.closing
    },
  }
  openSessions.set(created, session)
  return created
}

const openSessions = new WeakMap<Session, OpenSession>()

/** Returns the state of a session by its public object; null for an object that `open` did not return. */
export function findOpenSession(session: Session): OpenSession | null {
  return openSessions.get(session) ?? null
}

type ReadMethods = Pick<
  Session,
  | 'contextRemaining'
  | 'breakdown'
  | 'money'
  | 'copiedCost'
  | 'undoPoints'
  | 'status'
  | 'history'
  | 'records'
  | 'compaction'
  | 'notes'
  | 'messages'
  | 'export'
>

/** Creates the methods that only read the session. */
function createReadMethods(session: OpenSession): ReadMethods {
  const { settings } = session
  return {
    contextRemaining: () => measureContextRemaining(session),
    breakdown: () => measureContextBreakdown(session),
    money() {
      const state = withSessionCosts(session.state, session.model.choice.priceList)
      session.state = state
      return withFormerPriceNames(sumSessionCost(state.costs ?? emptySessionCost()))
    },
    copiedCost: () => sumCopiedCost(session),
    undoPoints: () => findUndoPoints(session),
    status: () => readStatus(session),
    history: (query) =>
      runHistoryTool(query, {
        session: session.state.session,
        blobs: settings.blobs,
        policy: settings.policy.history,
        pageTokens: session.model.scaled.budgets.historyPage,
        measure: session.model.estimator.text,
      }),
    records: (options) => listSessionRecords(session, options),
    compaction: (id) => findLoggedCompaction(session, id),
    notes: () => settings.notes.read(session.id),
    messages: () => toApiMessages(session.state.flat),
    async export(options = {}) {
      checkOptionNames('export', options, ['title', 'redacts', 'as'])
      if (options.as === 'messages') return JSON.stringify(await listOriginalMessages(session))
      const { title = `Conversation ${session.id}`, redacts = true } = options
      const { blobs } = settings
      return exportMarkdown(session.state.session, { title, blobs, ...(redacts ? { redact } : {}) })
    },
  }
}

/** Closes a session. The log is released only after all operations have ended, so that none of them locks it again. */
async function closeSession(session: OpenSession, onClose: () => void): Promise<void> {
  session.stop.abort()
  await Promise.all([...session.pendingWork, ...session.backgroundWork])
  await updateNotesAtClose(session)
  await runSessionHooks(session, 'sessionEnd', { reason: 'close' })
  try {
    await session.withLock(async () => session.settings.journal.release(session.id))
  } finally {
    onClose()
  }
}
