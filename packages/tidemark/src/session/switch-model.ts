/**
 * Implements `session.switchModel`. The context is measured for the new model; if it does not fit, or holds a summary
 * block that the new model does not accept, the old model compacts it. If it still does not fit, the session keeps the
 * old model.
 */
import {
  type CommittedCompaction,
  calibrateSize,
  compact,
  countPrefixTokens,
  isCompactionBlock,
  measureContext,
  type RefusedRewrite,
  startCalibration,
  type TurnContext,
  type TurnEvent,
  type TurnFailure,
  toApiMessages,
  toBlocks,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import {
  checkSessionOpen,
  createTurnContext,
  createTurnHost,
  type OpenSession,
  refreshFromLog,
  reserveSession,
  runOperation,
} from './open-session.ts'
import { checkModel } from './options.ts'
import { type BusyOutcome, refuseIfBusy, refuseIfPending } from './rewrite.ts'
import {
  createSessionModel,
  type SessionModel,
  withGivenParameters,
  withRetryEvents,
} from './session-model.ts'

export type SwitchOutcome =
  | {
      readonly ok: true
      readonly from: string
      readonly to: string
      /** Tokens of the context, estimated for the new model. */
      readonly tokens: number
      /** The compaction that the old model made before the switch; null if the context already fitted the new model. */
      readonly compaction: CommittedCompaction | null
    }
  | BusyOutcome
  | SwitchRefusal

export interface SwitchRefusal {
  readonly ok: false
  readonly reason: 'does-not-fit'
  /**
   * `tokens`: size of the context, estimated for the new model. `most`: size at which automatic compaction begins for
   * the new model.
   */
  readonly tokens: number
  readonly most: number
  readonly message: string
  /** Why the compaction before the switch was refused; null if it succeeded but the context still does not fit. */
  readonly because: RefusedRewrite | null
}

export async function switchModel(session: OpenSession, choice: ModelChoice): Promise<SwitchOutcome> {
  checkSessionOpen(session)
  checkModel('switchModel', choice)
  const busy = refuseIfBusy(session, 'switchModel')
  if (busy !== null) return busy
  const release = reserveSession(session, 'switchModel')
  try {
    await refreshFromLog(session, createTurnContext(session))
    const model = createSessionModel(choice, session.settings)
    return await fitAndSwitch(session, withGivenParameters(model, session.model.parameterChanges))
  } finally {
    release()
  }
}

async function fitAndSwitch(session: OpenSession, next: SessionModel): Promise<SwitchOutcome> {
  const most = next.scaled.known ? next.scaled.lines.autoCompact : Number.POSITIVE_INFINITY
  let tokens = estimateContext(session, next)
  let compaction: CommittedCompaction | null = null
  if (tokens >= most || holdsRefusedSummary(session, next)) {
    const busy = refuseIfPending(session, 'switchModel')
    if (busy !== null) return busy
    // The compaction is judged by the expected size for the old model, and the switch by the upper bound for the new
    // one, so the limit of the new model is converted.
    const host = createTurnHost(session)
    const { expected } = measureContext(session.state, host, host.compaction)
    const ratio = expected / Math.max(1, tokens)
    const run = createTurnContext(session, { signals: [] })
    const result = await runOperation(
      session,
      compact(run, host.compaction, {
        trigger: 'manual',
        cause: 'model-switch',
        ...(Number.isFinite(most) ? { target: Math.floor(most * Math.min(1, ratio)) } : {}),
      }),
    )
    if (!result.ok) return refuseSwitch(next, tokens, most, result)
    tokens = estimateContext(session, next)
    if (tokens >= most) return refuseSwitch(next, tokens, most, null)
    compaction = result.compaction
  }
  const [from, to] = [session.model.choice.id, next.choice.id]
  session.model = withRetryEvents(next, session.settings, session.listeners)
  session.pendingRequest = null
  session.listeners.emit({ type: 'model-switched', from, to })
  return { ok: true, from, to, tokens, compaction }
}

/** True if the context has a summary block written by a provider, and the new model does not accept such blocks. */
function holdsRefusedSummary({ state }: OpenSession, { choice }: SessionModel): boolean {
  if (choice.profile.compaction.blocks) return false
  return toApiMessages(state.flat).some(({ content }) => toBlocks(content).some(isCompactionBlock))
}

/**
 * Compacts the context of a session that was opened with another model than before, if it holds a summary block that
 * this model does not accept. Returns a failure if that is not possible, because every request would be refused.
 */
export async function* replaceRefusedSummary(
  session: OpenSession,
  run: TurnContext,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  if (!holdsRefusedSummary(session, session.model)) return null
  const { compaction } = createTurnHost(session)
  const end = yield* compact(run, compaction, { trigger: 'manual', cause: 'model-switch' })
  if (end.ok) return null
  if (end.reason === 'aborted') return { ok: false, reason: 'aborted' }
  const message = `The context begins with a summary that ${session.model.choice.id} does not accept, and it could not be replaced: ${end.message}`
  return { ok: false, reason: 'full', message }
}

/**
 * Estimates the tokens of the current context for a model. Token counts of the provider are not used, because they
 * apply only to the model that was called.
 */
function estimateContext(session: OpenSession, { estimator }: SessionModel): number {
  const { state } = session
  const { estimate } = session.settings.policy
  const entries = [...state.view.entries].reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const prefix = countPrefixTokens(state, createTurnHost(session), estimator)
  return calibrateSize(startCalibration(estimator.weights.start), entries + prefix, estimate).high
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
