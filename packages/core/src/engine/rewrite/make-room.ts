/**
 * Before each request: what is due is done, cheapest first. Clearing costs no call; a compaction does, and where it
 * fails the turn goes on with what it has, up to the line where nothing more fits.
 */
import { allDeletedTokens, dropDeletions } from '../../clear/cached.ts'
import { scaleOf } from '../../measure/calibration.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Moment } from '../../plan/plan-context.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import { append, type TurnRun } from '../turn-run.ts'
import { applyClearing } from './apply-clearing.ts'
import { compact } from './compact.ts'
import type { CompactAsked } from './compaction-plan.ts'
import { contextNow, planNow } from './plan-now.ts'
import type { Room } from './room.ts'

export async function* makeRoom(run: TurnRun, moment: Moment): AsyncGenerator<TurnEvent, Halt | null> {
  const { room } = run.host
  if (room === undefined) return null
  const dropped = yield* dropLapsed(run, room, moment)
  if (dropped !== null) return dropped
  const { plan, state } = planNow(run.state, run.host, room, moment)
  run.state = { ...state, native: plan.native }
  if (plan.act !== 'wait' || plan.refusal !== null) yield { type: 'planned', plan }
  const halt = yield* doPlanned(run, room, plan)
  if (halt !== null || plan.refusal === null) return halt
  return { ok: false, reason: 'full', message: plan.refusal }
}

async function* doPlanned(run: TurnRun, room: Room, plan: Plan): AsyncGenerator<TurnEvent, Halt | null> {
  if (plan.clear !== undefined) return yield* applyClearing(run, room, plan.clear)
  if (plan.compact === undefined) return null
  const blocking = plan.scaled.known ? plan.scaled.lines.blocking : Number.POSITIVE_INFINITY
  const asked: CompactAsked = {
    trigger: 'auto',
    cause: plan.compact.cause,
    firedBy: plan.compact.hard ? 'threshold' : 'price',
    isForced: plan.context.high >= blocking,
  }
  const end = yield* compact(run, room, asked)
  if (end.ok) return null
  if (end.reason === 'aborted') return { ok: false, reason: 'aborted' }
  return plan.context.high >= blocking ? { ok: false, reason: 'full', message: end.message } : null
}

/** The cache that text was deleted from has lapsed: the text is in the request again, and is counted so. */
async function* dropLapsed(run: TurnRun, room: Room, moment: Moment): AsyncGenerator<TurnEvent, Halt | null> {
  const { context, state } = contextNow(run.state, run.host, room, moment)
  run.state = state
  const notice = dropDeletions(context.register, context.cache.isWarm)
  if (notice === null) return null
  const tokens = Math.round(scaleOf(context.calibration) * allDeletedTokens(context.register))
  const halt = yield* append(run, [{ type: 'system', isMeta: true, ...notice }])
  if (halt === null) yield { type: 'cache-edits-dropped', tokens }
  return halt
}
