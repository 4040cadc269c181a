/**
 * Another model for a conversation under way. It is measured by the new one first; where it does not fit, the old
 * model compacts it, which still can, and where that does not help nothing is switched.
 */
import {
  type Compacted,
  compact,
  prefixTokens,
  type RewriteRefused,
  sizeOf,
  startCalibration,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import { drain } from './events.ts'
import { actRun, checkOpen, claim, type Desk, deskRun, hostOf, takeIn, told } from './open-session.ts'
import { checkModel } from './options.ts'
import type { Busy } from './rewrite.ts'
import { type FittedModel, fitModel, heardModel } from './session-model.ts'

export type SwitchOutcome =
  | {
      readonly ok: true
      readonly from: string
      readonly to: string
      /** Tokens as the new model would count them, about. */
      readonly tokens: number
      /** What had to be done first, by the old model; null where it fitted. */
      readonly compaction: Compacted | null
    }
  | Busy
  | SwitchRefused

export interface SwitchRefused {
  readonly ok: false
  readonly reason: 'does-not-fit'
  /** Tokens as the new model would count them, and the most it could take. */
  readonly tokens: number
  readonly most: number
  readonly message: string
  /** Why compacting did not help; null where it did and was not enough. */
  readonly because: RewriteRefused | null
}

export async function switchModel(desk: Desk, choice: ModelChoice): Promise<SwitchOutcome> {
  checkOpen(desk)
  checkModel('switchModel', choice)
  const { busyWith } = desk
  if (busyWith !== null) {
    const message = `switchModel: the session ${desk.id} is busy with ${busyWith}. Try again when that has ended.`
    return { ok: false, reason: 'busy', message }
  }
  const release = claim(desk, 'switchModel')
  try {
    await takeIn(desk, deskRun(desk))
    return await switched(desk, fitModel(choice, desk.settings))
  } finally {
    release()
  }
}

async function switched(desk: Desk, next: FittedModel): Promise<SwitchOutcome> {
  const most = next.scaled.known ? next.scaled.lines.autoCompact : Number.POSITIVE_INFINITY
  const tokens = tokensFor(desk, next)
  if (tokens < most) return done(desk, next, { tokens, compaction: null })
  const share = tokensFor(desk, desk.fitted) / Math.max(1, tokens)
  const end = await drain({
    events: compact(actRun(desk), hostOf(desk).room, {
      trigger: 'manual',
      cause: 'model-switch',
      target: Math.floor(most * Math.min(1, share)),
    }),
    onEvent: (event) => told(desk, event),
  })
  if (!end.ok) return refused(next, { tokens, most, because: end })
  const after = tokensFor(desk, next)
  return after < most
    ? done(desk, next, { tokens: after, compaction: end.compaction })
    : refused(next, { tokens: after, most, because: null })
}

/** By the estimator of `fitted` alone: what one model counted says little about another. */
function tokensFor(desk: Desk, { estimator }: FittedModel): number {
  const { state } = desk.shared
  const { policy } = desk.settings
  const said = [...state.view.entries].reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const prefix = prefixTokens(state, hostOf(desk), estimator)
  return sizeOf(startCalibration(estimator.weights.start), said + prefix, policy.estimate).high
}

function done(
  desk: Desk,
  next: FittedModel,
  { tokens, compaction }: { readonly tokens: number; readonly compaction: Compacted | null },
): SwitchOutcome {
  const [from, to] = [desk.fitted.choice.id, next.choice.id]
  desk.fitted = heardModel(next, desk.settings, desk.listeners)
  desk.pending = null
  desk.listeners.emit({ type: 'model-switched', from, to })
  return { ok: true, from, to, tokens, compaction }
}

interface Refusal {
  readonly tokens: number
  readonly most: number
  readonly because: RewriteRefused | null
}

function refused({ choice }: FittedModel, { tokens, most, because }: Refusal): SwitchRefused {
  const why = because === null ? 'Compacting was not enough.' : `Compacting did not help: ${because.message}`
  const message = `The conversation has about ${tokens} tokens for ${choice.id}, which takes ${most} before it would compact at once. ${why}`
  return { ok: false, reason: 'does-not-fit', tokens, most, because, message }
}
