/**
 * Implements `session.switchModel`. The context is measured for the new model; if it does not fit, or holds a summary block that
 * the new model does not accept, the old model compacts it. If it still does not fit, the session keeps the old model.
 */
import { compact } from '@tidemark/core/compaction/compact'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type {
  CommittedCompaction,
  RefusedRewrite,
  TurnEvent,
  TurnFailure,
} from '@tidemark/core/engine/events'
import { measureContext, withPlanningState } from '@tidemark/core/engine/measure-context'
import { countPrefixTokens } from '@tidemark/core/engine/next-request'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { isCompactionBlock, toBlocks } from '@tidemark/core/log/block'
import { type ContextTokens, calibrateSize, computeSafetyFactor } from '@tidemark/core/tokens/usage'
import type { ModelChoice } from '../models/model-choice.ts'
import {
  checkSessionOpen,
  type OpenSession,
  refreshFromLog,
  reserveSession,
  runOperation,
} from './open-session.ts'
import { checkModel } from './options.ts'
import { type BusyOutcome, refuseIfBusy, refuseIfPending } from './rewrite.ts'
import { checkLimitsPriced } from './session-limits.ts'
import {
  createSessionModel,
  listModelNotices,
  type SessionModel,
  withSessionConnection,
  withTransferredParameters,
} from './session-model.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

export type SwitchOutcome =
  | {
      readonly ok: true
      readonly from: string
      readonly to: string
      /** Tokens of the context for the new model, as `contextRemaining` returns them after the switch. */
      readonly tokens: number
      /** The compaction that the old model made before the switch; null if the context already fitted the new model. */
      readonly compaction: CommittedCompaction | null
    }
  | BusyOutcome
  | SwitchRefusal

interface SwitchRefusal {
  readonly ok: false
  readonly reason: 'does-not-fit'
  /** Upper bound of the size of the context for the new model. */
  readonly tokens: number
  /** Size at which automatic compaction begins for the new model. */
  readonly most: number
  readonly message: string
  /** Why the compaction before the switch was refused; null if it succeeded but the context still does not fit. */
  readonly because: RefusedRewrite | null
}

export async function switchModel(session: OpenSession, choice: ModelChoice): Promise<SwitchOutcome> {
  checkSessionOpen(session)
  checkModel('switchModel', choice)
  checkLimitsPriced(session.options.limits, [choice], session.settings.clock.now())
  const busy = refuseIfBusy(session, 'switchModel')
  if (busy !== null) return busy
  const release = reserveSession(session, 'switchModel')
  try {
    await refreshFromLog(session, createTurnContext(session))
    const model = createSessionModel(choice, session.settings)
    return await fitAndSwitch(session, withTransferredParameters(model, session.model.parameterChanges))
  } finally {
    release()
  }
}

async function fitAndSwitch(session: OpenSession, next: SessionModel): Promise<SwitchOutcome> {
  const most = next.scaled.known ? next.scaled.lines.autoCompact : Number.POSITIVE_INFINITY
  let size = measureForModel(session, next)
  let compaction: CommittedCompaction | null = null
  if (size.high >= most || holdsRefusedSummary(session, next)) {
    const busy = refuseIfPending(session, 'switchModel')
    if (busy !== null) return busy
    const target = Number.isFinite(most) ? { target: findTarget(session, next, most) } : {}
    const run = createTurnContext(session, { signals: [] })
    const result = await runOperation(
      session,
      compact(run, { trigger: 'manual', cause: 'model-switch', ...target }),
    )
    if (!result.ok) return refuseSwitch(next, size.high, most, result)
    size = measureForModel(session, next)
    if (size.high >= most) return refuseSwitch(next, size.high, most, null)
    compaction = result.compaction
  }
  const [from, to] = [session.model.choice.id, next.choice.id]
  session.model = withSessionConnection(next, session.settings, session)
  session.state = { ...session.state, freeCompactionFrom: null }
  session.awaited.abandon()
  session.listeners.emit({ type: 'model-switched', from, to })
  for (const message of listModelNotices(next, session.settings))
    session.listeners.emit({ type: 'notice', message })
  return { ok: true, from, to, tokens: size.expected, compaction }
}

/** True if the context has a summary block written by a provider, and the new model does not accept such blocks. */
function holdsRefusedSummary({ state }: OpenSession, { choice }: SessionModel): boolean {
  if (choice.profile.compaction.blocks) return false
  return toApiMessages(state.flat).some(({ content }) => toBlocks(content).some(isCompactionBlock))
}

/** The model and rewrites of each session at the last check that found no refused summary block. */
const acceptedContexts = new WeakMap<
  OpenSession,
  { readonly model: SessionModel; readonly rewrites: OpenSession['state']['view']['rewrites'] }
>()

/**
 * Compacts the context of a session that was opened with another model, if it has a summary block that this model does
 * not accept. Returns a failure if that is not possible, because every request would be refused.
 */
export async function* replaceRefusedSummary(
  session: OpenSession,
  run: TurnContext,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { model, state } = session
  const checked = acceptedContexts.get(session)
  // Only a rewrite or another model can add such a block, so the context is not searched again before that.
  if (checked?.model === model && checked.rewrites === state.view.rewrites) return null
  if (!holdsRefusedSummary(session, model)) {
    acceptedContexts.set(session, { model, rewrites: state.view.rewrites })
    return null
  }
  const end = yield* compact(run, { trigger: 'manual', cause: 'model-switch' })
  if (end.ok) return null
  if (end.reason === 'aborted') return { ok: false, reason: 'aborted' }
  const message = `The context begins with a summary that ${session.model.choice.id} does not accept, and it could not be replaced: ${end.message}`
  return { ok: false, reason: 'full', message }
}

/**
 * Measures the context for a model, as `contextRemaining` will after the switch. Reported usage is used if both models
 * have the same tokenizer; the correction of estimates by earlier responses is always used. Content that only the old
 * model's provider clears on its side is added.
 */
function measureForModel(session: OpenSession, model: SessionModel): ContextTokens {
  const host = createTurnHost({ ...session, model })
  const size = measureContext(session.state, host)
  const { contextEdits, capabilities } = session.model.choice.profile
  const isCleared = contextEdits.clearToolUses !== model.choice.profile.contextEdits.clearToolUses
  if (!isCleared && !capabilities.cacheEdits) return size
  const { state, settings } = session
  const { estimator } = model
  const entries = [...state.view.entries].reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const { calibration } = withPlanningState(state, host).context.meter
  const whole = calibrateSize(calibration, entries + countPrefixTokens(state, host), settings.policy.estimate)
  return whole.expected > size.expected ? { ...whole, source: 'estimated' } : size
}

/**
 * Returns a target with which the new model does not compact again at once. A compaction is judged by the expected size
 * for the old model, but the new model compacts by its upper bound, so the limit is converted.
 */
function findTarget(session: OpenSession, next: SessionModel, most: number): number {
  const host = createTurnHost({ ...session, model: next })
  const { calibration } = withPlanningState(session.state, host).context.meter
  const before = measureForModel(session, session.model).expected
  const ratio = Math.max(1, measureForModel(session, next).expected / Math.max(1, before))
  return Math.floor((most - 1) / (ratio * computeSafetyFactor(calibration, session.settings.policy.estimate)))
}

function refuseSwitch(
  { choice }: SessionModel,
  tokens: number,
  most: number,
  because: RefusedRewrite | null,
): SwitchRefusal {
  const why = because === null ? 'Compacting was not enough.' : `Compacting failed: ${because.message}`
  const message = `The context has about ${tokens} tokens for ${choice.id}, which takes ${most} before it would compact at once. ${why}`
  return { ok: false, reason: 'does-not-fit', tokens, most, because, message }
}
