/** A session: the face of one conversation. */
import {
  type ApiMessage,
  type Committed,
  type CompactionDraft,
  type CompactionPlan,
  type Content,
  type Damage,
  exportMarkdown,
  type HistoryAnswer,
  type MoneyTotals,
  messagesOf,
  moneyTotals,
  noMoney,
  type RewriteRefused,
  redact,
  runHistory,
  type Undone,
  withMoney,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import { appendSaid } from './append.ts'
import type { EventOf, SessionEventType } from './events.ts'
import type { Said } from './messages.ts'
import { type NextOptions, type NextOutcome, nextRequest, type RequestBody } from './next.ts'
import type { Desk } from './open-session.ts'
import {
  type ActOptions,
  type Busy,
  type CompactOptions,
  commitSession,
  compactSession,
  type PinOutcome,
  pinSession,
  planSession,
  prepareSession,
  type UndoOptions,
  undoSession,
} from './rewrite.ts'
import { type Run, type RunOptions, runSession } from './run.ts'
import { type Breakdown, breakdownOf, type ContextLeft, contextLeft } from './status.ts'
import { type SwitchOutcome, switchModel } from './switch-model.ts'

export interface Session {
  readonly id: string
  /** The model that is asked. */
  readonly model: string
  /** What of the log could not be read, line by line; empty where all could. */
  readonly damage: readonly Damage[]

  /**
   * Puts what was said into the log, durable when it returns, and gives back the uuids of the records. Works at any
   * time, also while a run or a compaction is under way; while a reply comes in, it waits for its end.
   *
   * @example const [prompt] = await session.append(user('Fix the login page.'))
   */
  append(...said: readonly (Said | object)[]): Promise<readonly string[]>

  /**
   * Makes room as the plan says, then gives the next request, ready to be sent by your own client. Append its
   * response before anything else is said.
   *
   * @example const request = await session.next({ tools }); if (request.ok) await client.messages.create(request.body)
   */
  next<Body = RequestBody>(options?: NextOptions): Promise<NextOutcome<Body>>

  /**
   * Runs a turn: the prompt, then the model and its tools until it calls no more. It begins at once. Null goes on
   * where a turn was cut short.
   *
   * @example const { outcome } = session.run('Fix the login page.', { tools })
   */
  run(prompt: string | readonly object[] | null, options?: RunOptions): Run

  /**
   * Replaces the conversation by a summary, what must stay, and what the carriers bring back. One act that is undone
   * as one.
   *
   * @example await session.compact({ instructions: 'Keep the names of all tables.' })
   */
  compact(options?: CompactOptions): Promise<Committed | Busy>
  /** The first of three steps: what a compaction would do and cost. Changes nothing. */
  planCompaction(options?: CompactOptions): Promise<CompactionPlan | RewriteRefused>
  /** The second: the summary and all that comes with it, to be looked at, edited or thrown away. Changes nothing. */
  prepare(
    plan: CompactionPlan,
    options?: { readonly signal?: AbortSignal },
  ): Promise<CompactionDraft | RewriteRefused>
  /** The third. What was said meanwhile stands behind it; where the conversation was rewritten meanwhile it refuses. */
  commit(draft: CompactionDraft, options?: ActOptions): Promise<Committed | Busy>

  /**
   * Takes a compaction or a clearing back, the newest unless its id is given: the conversation is what it was.
   *
   * @example await session.undo()
   */
  undo(id?: string, options?: UndoOptions): Promise<Undone | Busy>
  /** Every rewrite keeps the record word for word. */
  pin(uuid: string): Promise<PinOutcome>
  unpin(uuid: string): Promise<PinOutcome>

  contextRemaining(): ContextLeft
  /** What fills the window. */
  breakdown(): Breakdown
  /** What it has cost, what the cache saved, and what was lost to breaks of it. */
  money(): MoneyTotals
  /** Goes on with another model, where the conversation fits or can be made to. */
  switchModel(model: ModelChoice): Promise<SwitchOutcome>

  /**
   * Reads what was ever said here, as the model's history tool does.
   *
   * @example const { content } = await session.history({ text: 'ECONNREFUSED' })
   */
  history(query: object): Promise<HistoryAnswer>
  /** The messages of the next request, as they are now. */
  messages(): readonly ApiMessage[]
  /** All of it as Markdown, summarised and cleared parts included, without secrets. */
  export(options?: { readonly title?: string; readonly redacts?: boolean }): Promise<string>

  /**
   * Tells events of one type, or all with `*`; what it gives back ends it.
   *
   * @example const off = session.on('compact', ({ compaction }) => console.log(compaction.tokensAfter))
   */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
  /** Lets go of the session, so that another process can have it. What is under way is called off first. */
  close(): Promise<void>
}

export function sessionFace(desk: Desk, onClose: () => void): Session {
  return {
    id: desk.id,
    get model() {
      return desk.fitted.choice.id
    },
    get damage() {
      return desk.shared.state.damage
    },
    append: (...said) => appendSaid(desk, said),
    next: (options) => nextRequest(desk, options),
    run: (prompt, options) => runSession(desk, prompt as Content | null, options),
    compact: (options = {}) => compactSession(desk, options),
    planCompaction: (options = {}) => planSession(desk, options),
    prepare: (plan, options) => prepareSession(desk, plan, options?.signal),
    commit: (draft, options) => commitSession(desk, draft, options),
    undo: (id, options = {}) => undoSession(desk, id, options),
    pin: (uuid) => pinSession(desk, uuid, true),
    unpin: (uuid) => pinSession(desk, uuid, false),
    contextRemaining: () => contextLeft(desk),
    breakdown: () => breakdownOf(desk),
    money: () => moneyOf(desk),
    switchModel: (model) => switchModel(desk, model),
    history: (query) => historyOf(desk, query),
    messages: () => messagesOf(desk.shared.state.flat),
    export: (options = {}) => exported(desk, options),
    on: desk.listeners.on,
    close: () => closed(desk, onClose),
  }
}

function moneyOf(desk: Desk): MoneyTotals {
  const state = withMoney(desk.shared.state, desk.fitted.choice.pricesOf)
  desk.shared.state = state
  return moneyTotals(state.money ?? noMoney())
}

function historyOf({ shared, settings, fitted }: Desk, query: object): Promise<HistoryAnswer> {
  return runHistory(query, {
    session: shared.state.session,
    blobs: settings.blobs,
    policy: settings.policy.history,
    pageTokens: fitted.scaled.budgets.historyPage,
    measure: fitted.estimator.text,
  })
}

function exported(
  { shared, settings, id }: Desk,
  { title = `Conversation ${id}`, redacts = true }: { readonly title?: string; readonly redacts?: boolean },
): Promise<string> {
  const { blobs } = settings
  return exportMarkdown(shared.state.session, { title, blobs, ...(redacts ? { redact } : {}) })
}

function closed(desk: Desk, onClose: () => void): Promise<void> {
  desk.closing ??= letGo(desk, onClose)
  return desk.closing
}

/** What was begun before is over when the session is let go of: nothing takes it again. */
async function letGo(desk: Desk, onClose: () => void): Promise<void> {
  desk.stop.abort()
  await Promise.all(desk.works)
  try {
    await desk.shared.alone(async () => desk.settings.journal.release(desk.id))
  } finally {
    onClose()
  }
}
