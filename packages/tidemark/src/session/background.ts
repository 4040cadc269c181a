/**
 * Starts the background work of a session. Prepares the next summary beside the turns, one at a time, and commits it
 * when the engine asks for it. The preparation does not reserve the session, so turns and appends continue meanwhile.
 */
import {
  canPrepareSummary,
  captureEndedPreparation,
  commitPreparedDraft,
  type EndedPreparation,
  findSummaryDropReason,
  PREPARED_COMPACTION_OPTIONS,
} from '@tidemark/core/background/prepare-summary'
import { countCompactionFailure } from '@tidemark/core/compaction/compact'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import { type CompactionPlan, planCompaction } from '@tidemark/core/compaction/plan-compaction'
import { prepareDraftForReview } from '@tidemark/core/compaction/prepare-draft'
import type { RefusedRewrite, SummaryDropReason, TurnEvent } from '@tidemark/core/engine/events'
import type { PreparedSummarySlot, TurnContext } from '@tidemark/core/engine/session-writer'
import { describeThrown } from '@tidemark/core/errors'
import type { CompactCause } from '@tidemark/core/log/record'
import { drainEvents, type EventOf } from './events.ts'
import { keepIdleCacheAlive } from './idle-cache.ts'
import {
  emitSessionEvent,
  emitStatus,
  type OpenSession,
  runOperation,
  traceOperation,
  trackWork,
} from './open-session.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

type Preparation =
  | { readonly phase: 'none' }
  | (RunningPreparation & { readonly phase: 'preparing' })
  | (FinishedPreparation & { readonly phase: 'ready' })

interface RunningPreparation {
  readonly plan: CompactionPlan
  /** Id of the model when the summary was planned. */
  readonly model: string
  readonly stop: AbortController
  /** Why the summary is dropped; null while it is still needed. */
  dropped: SummaryDropReason | null
  /** Dollars spent so far; null if a price is unknown. */
  spent: number | null
  /** True while a model call runs. If it is aborted, the provider charges for it, but reports no usage. */
  isCalling: boolean
}

interface FinishedPreparation {
  readonly draft: CompactionDraft
  readonly model: string
  readonly spent: number | null
}

const NO_PREPARATION: Preparation = { phase: 'none' }

/**
 * Events of a preparation that are not emitted: progress that only a waiting caller needs, and attachments, which are
 * read again when the summary is committed.
 */
const FOREGROUND_EVENTS: ReadonlySet<TurnEvent['type']> = new Set([
  'phase',
  'summary-progress',
  'keep-alive',
  'context-restored',
  'restore-failed',
])

/** Holds the prepared summary of a session, how the last preparation ended, and a promise for the running one. */
interface PreparationSlot {
  current: Preparation
  /** The last preparation that was dropped; null if the last one was committed. */
  ended: EndedPreparation | null
  settled: Promise<void>
}

/**
 * Starts what the policy allows beside the turns of a session: prepared summaries and cache refreshes. Closing the session
 * ends it.
 */
export function startBackgroundWork(session: OpenSession): void {
  if (session.settings.policy.compact.background) session.prepared = createBackgroundSummary(session)
  keepIdleCacheAlive(session)
}

function createBackgroundSummary(session: OpenSession): PreparedSummarySlot {
  const slot: PreparationSlot = { current: NO_PREPARATION, ended: null, settled: Promise.resolve() }
  for (const type of ['appended', 'rewritten', 'branch-switched', 'caught-up', 'model-switched'] as const)
    session.listeners.on(type, () => dropIfOvertaken(session, slot))
  return {
    get phase() {
      return slot.current.phase
    },
    prepare: () => startPreparation(session, slot),
    settle: () => slot.settled,
    swapIn: (turn, cause) => swapIn(session, slot, turn, cause),
  }
}

function changeSlot(session: OpenSession, slot: PreparationSlot, next: Preparation): void {
  slot.current = next
  emitStatus(session)
}

/** Empties the slot, emits the new status, and returns the event that tells the reason; the caller emits it. */
function dropPreparation(
  session: OpenSession,
  slot: PreparationSlot,
  dropped: Omit<EventOf<'summary-dropped'>, 'type'>,
): EventOf<'summary-dropped'> {
  slot.ended = captureEndedPreparation(session.state)
  changeSlot(session, slot, NO_PREPARATION)
  return { type: 'summary-dropped', ...dropped }
}

function findOvertaken({ state, model }: OpenSession, plan: CompactionPlan, planned: string) {
  return findSummaryDropReason(plan, state, { planned, current: model.choice.id })
}

function dropIfOvertaken(session: OpenSession, slot: PreparationSlot): void {
  const { current } = slot
  if (current.phase === 'none') return
  const why = findOvertaken(
    session,
    current.phase === 'ready' ? current.draft.plan : current.plan,
    current.model,
  )
  if (why === null) return
  if (current.phase === 'ready') {
    const dropped = { why, message: DROP_MESSAGES[why], price: current.spent }
    emitSessionEvent(session, dropPreparation(session, slot, dropped))
  } else {
    current.dropped ??= why
    current.stop.abort()
  }
}

function startPreparation(session: OpenSession, slot: PreparationSlot): boolean {
  const { state, closing, model } = session
  if (slot.current.phase !== 'none' || closing !== null || !canPrepareSummary(state, slot.ended)) return false
  const host = createTurnHost(session)
  const plan = planCompaction(state, PREPARED_COMPACTION_OPTIONS, host)
  if (!plan.ok) {
    slot.ended = captureEndedPreparation(state)
    return false
  }
  const running: RunningPreparation = {
    plan,
    model: model.choice.id,
    stop: new AbortController(),
    dropped: null,
    spent: 0,
    isCalling: false,
  }
  changeSlot(session, slot, { phase: 'preparing', ...running })
  const price = plan.price?.cost ?? null
  emitSessionEvent(session, { type: 'summary-preparing', tokens: plan.before.expected, price })
  slot.settled = trackWork(session, () => runPreparation(session, slot)).catch((thrown: unknown) => {
    const dropped = { why: 'failed', message: describeThrown(thrown), price: null } as const
    emitSessionEvent(session, dropPreparation(session, slot, dropped))
  })
  return true
}

async function runPreparation(session: OpenSession, slot: PreparationSlot): Promise<void> {
  const running = slot.current
  if (running.phase !== 'preparing') return
  const { plan, model, stop } = running
  const run = createTurnContext(session, { signals: [stop.signal] })
  const end = await writeDraft(session, run, running)
  const why = running.dropped ?? (end.ok ? findOvertaken(session, plan, model) : toDropReason(end))
  if (!end.ok && running.dropped === null && why !== 'closed')
    await runOperation(session, iterate(countCompactionFailure(run, end)))
  if (!end.ok || why !== null || isFallback(end)) {
    const reason = why ?? 'no-summary'
    const message = end.ok || running.dropped !== null ? DROP_MESSAGES[reason] : end.message
    const isUnknown = !end.ok && end.reason === 'aborted' && running.isCalling
    const price = isUnknown ? null : running.spent
    return emitSessionEvent(session, dropPreparation(session, slot, { why: reason, message, price }))
  }
  changeSlot(session, slot, { phase: 'ready', draft: end, model, spent: running.spent })
  emitSessionEvent(session, {
    type: 'summary-prepared',
    tokensBefore: plan.before.expected,
    tokensAfter: end.after.expected,
    durationMs: end.durationMs,
    price: running.spent,
  })
}

async function* swapIn(
  session: OpenSession,
  slot: PreparationSlot,
  turn: TurnContext,
  cause: CompactCause,
): AsyncGenerator<TurnEvent, boolean> {
  const ready = slot.current
  if (ready.phase !== 'ready') return false
  const { compactionUuid: compaction } = captureEndedPreparation(session.state)
  const isCommitted = (): boolean => captureEndedPreparation(session.state).compactionUuid !== compaction
  // The commit's own rewrite of the context must not be taken for one that makes the summary stale.
  slot.current = NO_PREPARATION
  let next: Preparation = ready
  try {
    const end = yield* commitPreparedDraft(turn, ready.draft, cause)
    if (end.ok) slot.ended = null
    else if (end.reason !== 'aborted') {
      next = NO_PREPARATION
      yield dropPreparation(session, slot, { why: 'failed', message: end.message, price: ready.spent })
    }
    return end.ok
  } catch (thrown) {
    next = NO_PREPARATION
    const dropped = { why: 'failed', message: describeThrown(thrown), price: ready.spent } as const
    if (!isCommitted()) emitSessionEvent(session, dropPreparation(session, slot, dropped))
    throw thrown
  } finally {
    changeSlot(session, slot, isCommitted() ? NO_PREPARATION : next)
    dropIfOvertaken(session, slot)
  }
}

/** Writes the summary and passes its events on. Stores in `running` what was spent. */
async function writeDraft(
  session: OpenSession,
  run: TurnContext,
  running: RunningPreparation,
): Promise<CompactionDraft | RefusedRewrite> {
  return drainEvents({
    events: traceOperation(session, 'prepare', prepareDraftForReview(run, running.plan)),
    onEvent(event) {
      if (event.type === 'priced' && running.spent !== null) {
        const { total } = event.call.money
        running.spent = total === null ? null : running.spent + total
      }
      if (event.type === 'side-sent') running.isCalling = true
      else if (event.type === 'priced') running.isCalling = false
      if (!FOREGROUND_EVENTS.has(event.type)) emitSessionEvent(session, event)
    },
  })
}

/** True if the summary was made without a model only because no model wrote one. That can be done later, when it is needed. */
function isFallback({ summary }: CompactionDraft): boolean {
  return summary.summarizer === 'local' && summary.fallbackReason !== null
}

function toDropReason({ reason }: RefusedRewrite): SummaryDropReason {
  if (reason === 'aborted') return 'closed'
  return reason === 'blocked' ? 'blocked' : reason === 'superseded' ? 'rewritten' : 'failed'
}

const DROP_MESSAGES: Readonly<Record<SummaryDropReason, string>> = {
  rewritten: 'The context was rewritten since the summary was planned.',
  pinned: 'A message that the summary replaces was pinned.',
  'model-switched': 'The session has another model now.',
  blocked: 'A hook blocked it.',
  'no-summary': 'The model wrote no summary. It is asked again when the context is full.',
  failed: 'It failed.',
  closed: 'The session was closed.',
}

async function* iterate<Event>(events: Iterable<Event>): AsyncGenerator<Event, void> {
  yield* events
}
