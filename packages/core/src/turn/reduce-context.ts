/**
 * Before each request: what is due is done, cheapest first. Clearing costs no call; a compaction does, and where it
 * fails the turn goes on with what it has, up to the line where nothing more fits.
 */
import { deletedTokens, deletionMessage, dropDeletions } from '../clearing/cached-clearing.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import { compact } from '../compaction/compact.ts'
import type { CompactAsked } from '../compaction/plan-compaction.ts'
import type { Halt, TurnEvent } from '../engine/events.ts'
import { type Room, runCleanups } from '../engine/host.ts'
import { contextNow, planNow } from '../engine/measure-context.ts'
import { append, type TurnRun, type Unlinked } from '../engine/session-writer.ts'
import type { Plan } from '../planner/plan.ts'
import type { Moment } from '../planner/plan-input.ts'
import { scaleOf } from '../tokens/usage.ts'

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
  const deleted = deletedTokens(context.register, { sinceResponse: false })
  const tokens = Math.round(scaleOf(context.calibration) * deleted)
  const halt = yield* append(run, [{ type: 'system', isMeta: true, ...notice }])
  if (halt === null) yield { type: 'cache-edits-dropped', tokens }
  return halt
}

// Clears as proposed: one record, and for deletions in the provider's cache the word to it beside.

export async function* applyClearing(
  run: TurnRun,
  room: Room,
  clearing: ClearProposal,
): AsyncGenerator<TurnEvent, Halt | null> {
  const halt = yield* append(run, recordsFor(clearing))
  if (halt !== null) return halt
  const { preTokens, tokensSaved = 0 } = clearing.metadata
  yield {
    type: 'microcompact',
    id: boundaryUuid(run),
    way: clearing.way,
    clearing,
    tokensBefore: preTokens,
    tokensAfter: Math.max(0, preTokens - tokensSaved),
  }
  const rewritten = { kind: 'clear' as const, source: run.host.source, ...clearing.released }
  yield { type: 'rewritten', rewritten, faults: runCleanups(room.cleanups ?? [], rewritten) }
  return null
}

function recordsFor({ metadata, way }: ClearProposal): readonly Unlinked[] {
  const boundary: Unlinked = {
    type: 'system',
    subtype: 'microcompact_boundary',
    content: 'Context microcompacted',
    level: 'info',
    isMeta: false,
    microcompactMetadata: metadata,
  }
  if (way !== 'cached') return [boundary]
  return [boundary, { type: 'user', isMeta: true, message: deletionMessage(metadata) }]
}

function boundaryUuid({ state }: TurnRun): string {
  for (let place = state.view.entries.length - 1; place >= 0; place -= 1) {
    const record = state.view.entries.at(place)?.record
    if (record?.type === 'system' && record.subtype === 'microcompact_boundary') return record.uuid
  }
  return ''
}
