/**
 * Before each request: reduce the context as planned, cheapest first. Clearing costs no model call; a compaction does,
 * and if it fails the turn continues with the context as it is, up to the blocking threshold. Then images over the
 * provider's limits are dropped.
 */
import { deletedTokens, deletionMessage, dropDeletions } from '../clearing/cached-clearing.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import { compact } from '../compaction/compact.ts'
import type { Halt, TurnEvent } from '../engine/events.ts'
import { type Room, runCleanups } from '../engine/host.ts'
import { contextNow, measureNow } from '../engine/measure-context.ts'
import type { Failure } from '../engine/reply.ts'
import { type KnownSize, type SessionState, thinkersIn } from '../engine/session-state.ts'
import { append, linked, type TurnRun, trial, type Unlinked } from '../engine/session-writer.ts'
import { blocksOf, isThinking } from '../log/block.ts'
import type { MicrocompactMetadata } from '../log/record.ts'
import { type Plan, plan as planNext } from '../planner/plan.ts'
import type { Moment } from '../planner/plan-input.ts'
import { frontOf } from '../request/prefix.ts'
import {
  advanceMedia,
  bytesAround,
  isOverBudget,
  NO_MEDIA,
  proposeAll,
  proposeSize,
  type SizeProposal,
  withDropped,
} from '../request/request-size.ts'
import { scaleOf } from '../tokens/usage.ts'

/** Plans, then clears or compacts. A failure means that the turn cannot continue: aborted, or the context is full. */
export async function* makeRoom(turn: TurnRun, moment: Moment): AsyncGenerator<TurnEvent, Halt | null> {
  const { host } = turn
  const compaction = host.room
  if (compaction === undefined) return null
  let { context, state } = contextNow(turn.state, host, compaction, moment)
  turn.state = state
  const restored = dropDeletions(context.register, context.cache.isWarm)
  if (restored !== null) {
    // The provider's cache has expired, and with it the deletions made in it: that text is in the request again.
    const deleted = deletedTokens(context.register, { sinceResponse: false })
    const tokens = Math.round(scaleOf(context.calibration) * deleted)
    const failure = yield* append(turn, [{ type: 'system', isMeta: true, ...restored }])
    if (failure !== null) return failure
    yield { type: 'cache-edits-dropped', tokens }
    ;({ context, state } = contextNow(turn.state, host, compaction, moment))
  }
  const plan = planNext(context)
  turn.state = { ...state, native: plan.native }
  if (plan.act !== 'wait' || plan.refusal !== null) yield { type: 'planned', plan }
  const failure = yield* executePlan(turn, compaction, plan)
  if (failure !== null || plan.refusal === null) return failure
  return { ok: false, reason: 'full', message: plan.refusal }
}

async function* executePlan(
  turn: TurnRun,
  compaction: Room,
  plan: Plan,
): AsyncGenerator<TurnEvent, Halt | null> {
  if (plan.clear !== undefined) return yield* applyClearing(turn, compaction, plan.clear)
  if (plan.compact === undefined) return null
  const isBlocked = plan.scaled.known && plan.context.high >= plan.scaled.lines.blocking
  const end = yield* compact(turn, compaction, {
    trigger: 'auto',
    cause: plan.compact.cause,
    firedBy: plan.compact.hard ? 'threshold' : 'price',
    isForced: isBlocked,
  })
  if (end.ok) return null
  if (end.reason === 'aborted') return { ok: false, reason: 'aborted' }
  return isBlocked ? { ok: false, reason: 'full', message: end.message } : null
}

/** Clears as proposed: one record, plus the deletion message if results are deleted in the provider's cache. */
export async function* applyClearing(
  turn: TurnRun,
  compaction: Room,
  clearing: ClearProposal,
): AsyncGenerator<TurnEvent, Halt | null> {
  const { metadata, way } = clearing
  const failure = yield* append(turn, [
    clearingBoundary(metadata),
    ...(way === 'cached'
      ? [{ type: 'user' as const, isMeta: true, message: deletionMessage(metadata) }]
      : []),
  ])
  if (failure !== null) return failure
  const { preTokens, tokensSaved = 0 } = metadata
  yield {
    type: 'microcompact',
    id: newestBoundary(turn.state),
    way,
    clearing,
    tokensBefore: preTokens,
    tokensAfter: Math.max(0, preTokens - tokensSaved),
  }
  const rewritten = { kind: 'clear' as const, source: turn.host.source, ...clearing.released }
  yield { type: 'rewritten', rewritten, faults: runCleanups(compaction.cleanups ?? [], rewritten) }
  return null
}

/** The record of a clearing. Undoing it restores what it names. */
export function clearingBoundary(
  microcompactMetadata: MicrocompactMetadata,
  content = 'Context microcompacted',
): Unlinked {
  return {
    type: 'system',
    subtype: 'microcompact_boundary',
    content,
    level: 'info',
    isMeta: false,
    microcompactMetadata,
  }
}

function newestBoundary({ view: { entries } }: SessionState): string {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    if (record?.type === 'system' && record.subtype === 'microcompact_boundary') return record.uuid
  }
  return ''
}

// Media: dropping images is a clearing like any other. One record names them, so the requests after it stay the same,
// and undoing it brings them back.

/** Drops the oldest images while the request has more bytes or images than the provider accepts. */
export async function* keepSize(turn: TurnRun): AsyncGenerator<TurnEvent, Halt | null> {
  const { sized, size, rules } = sizeRequest(turn)
  if (!isOverBudget(sized, size.tally, rules)) return null
  const dropped = yield* applyDrop(turn, proposeSize(sized, size.tally, rules))
  return typeof dropped === 'object' ? dropped : null
}

/**
 * Drops images that the provider refused: those of the message it named, else all that were sent; if the request only
 * had too many bytes, those already responded to. True if any were dropped.
 */
export async function* dropMedia(
  turn: TurnRun,
  { kind, path }: Failure,
): AsyncGenerator<TurnEvent, boolean | Halt> {
  const { sized, size, rules } = sizeRequest(turn)
  const all = proposeAll(sized, size.tally, { ...rules, unanswered: kind === 'media' })
  // `messages.3.content.0` names the fourth message.
  const index = kind === 'media' ? /^messages\.(\d+)(?:\.|$)/.exec(path ?? '')?.[1] : undefined
  const named = index === undefined ? [] : all.drop.filter((item) => item.index === Number(index))
  return yield* applyDrop(turn, named.length === 0 ? all : withDropped(all, named))
}

function sizeRequest(turn: TurnRun) {
  const { host, state } = turn
  const size = advanceSize(state)
  turn.state = { ...state, size }
  const rules = { profile: host.profile, policy: host.policy.request, pins: state.pins }
  return { size, rules, sized: { messages: state.flat, around: size.around } }
}

/** Costs what was appended since, unless the prefix changed. */
function advanceSize({ size, flat, told, sent }: SessionState): KnownSize {
  const tally = advanceMedia(size?.tally ?? NO_MEDIA, flat)
  const front = told.standing === null ? null : frontOf(told.standing, { previous: sent?.front })
  const isSamePrefix =
    size?.front?.standing.epoch === front?.standing.epoch && size?.front?.parameters === front?.parameters
  if (size !== null && isSamePrefix) return { ...size, tally }
  return { tally, front, around: front === null ? 0 : bytesAround(front) }
}

/**
 * True if something was dropped. Nothing is if that would invalidate thinking that the turn under way must begin with;
 * the next prompt is early enough then.
 */
async function* applyDrop(
  turn: TurnRun,
  { drop, before, after, limits }: SizeProposal,
): AsyncGenerator<TurnEvent, boolean | Halt> {
  if (drop.length === 0) return false
  const { thinking } = turn.host.profile
  const clearedThinking = thinking.binding === 'prefix' ? thinkingAfter(turn.state, drop) : []
  if (clearedThinking.length > 0 && thinking.firstInModes.length > 0 && isMidTurn(turn.state)) return false
  const metadata: MicrocompactMetadata = {
    trigger: 'auto',
    way: 'size',
    preTokens: 0,
    tokensSaved: 0,
    compactedToolIds: [],
    clearedAttachmentUUIDs: [],
    clearedMedia: drop.map(({ origin: uuid, toolUseId, nth }) =>
      toolUseId === null ? { uuid, nth } : { uuid, toolUseId, nth },
    ),
    ...(clearedThinking.length === 0 ? {} : { clearedThinking }),
  }
  const failure = yield* append(turn, [mediaBoundary({ ...metadata, ...measureDrop(turn, metadata) })])
  if (failure !== null) return failure
  const id = turn.state.view.acts.at(-1)?.uuid ?? ''
  yield { type: 'media-dropped', id, items: drop.length, before, after, limits }
  return true
}

function mediaBoundary(metadata: MicrocompactMetadata): Unlinked {
  return clearingBoundary(metadata, 'Old images left out to keep the request within its size')
}

/** Responses with thinking, from the first record that changes on. */
function thinkingAfter({ view }: SessionState, drop: SizeProposal['drop']): readonly string[] {
  const origins = new Set(drop.map(({ origin }) => origin))
  const entries = view.entries.toArray()
  return thinkersIn(entries.slice(entries.findIndex(({ record }) => origins.has(record.uuid))))
}

/** The newest messages are a response with thinking and the results of its tool calls. */
function isMidTurn({ flat }: SessionState): boolean {
  const { message } = flat.tail.at(-1) ?? {}
  const hasResultsOnly = blocksOf(message?.content ?? '').every(({ type }) => type === 'tool_result')
  const response = flat.tail.at(-2)?.message
  return hasResultsOnly && response !== undefined && blocksOf(response.content).some(isThinking)
}

/** Zero if the host supplies no estimator. */
function measureDrop(
  turn: TurnRun,
  metadata: MicrocompactMetadata,
): Pick<MicrocompactMetadata, 'preTokens' | 'tokensSaved'> {
  const { state, host } = turn
  const compaction = host.room
  if (compaction === undefined) return { preTokens: 0, tokensSaved: 0 }
  const preTokens = measureNow(state, host, compaction).expected
  const next = trial(state, linked(turn, [mediaBoundary(metadata)]))
  return { preTokens, tokensSaved: Math.max(0, preTokens - measureNow(next, host, compaction).expected) }
}
