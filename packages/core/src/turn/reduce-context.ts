/**
 * Reduces the context before each request, cheapest step first. Clearing needs no model call. A compaction needs a
 * model call; if it fails, the turn continues with the context as it is, up to the blocking threshold. Images above the
 * provider's limits are dropped last.
 */

import {
  chooseSwapCause,
  hasJustCompletedTodo,
  measureTurnGrowth,
  swapInPreparedSummary,
} from '../background/prepare-summary.ts'
import { countCacheDeletedTokens, createCacheDeletionMessage } from '../clearing/cached-clearing.ts'
import type { ClearProposal } from '../clearing/clear-candidates.ts'
import { compact, hasUsableNotes } from '../compaction/compact.ts'
import { mayFitWindow, selectSpan } from '../compaction/plan-compaction.ts'
import { findThinkingResponseIds } from '../context/context-entry.ts'
import type { RefusedRewrite, TurnEvent, TurnFailure } from '../engine/events.ts'
import {
  gatherContextPlanInput,
  isJustCompacted,
  measureContext,
  updatePlanningStateInSlices,
} from '../engine/measure-context.ts'
import type { ModelFailure } from '../engine/reply.ts'
import type { SessionState } from '../engine/session-state.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  linkRecords,
  previewAppend,
  reportRewrite,
  runSlicesToEnd,
  type TurnContext,
  type UnlinkedRecord,
} from '../engine/session-writer.ts'
import { isThinkingBlock, toBlocks } from '../log/block.ts'
import { CACHE_DELETIONS_END, isMicrocompactBoundary, type MicrocompactMetadata } from '../log/record.ts'
import { type ContextPlan, hasCacheExpired, makeContextPlan as planNext } from '../planner/context-plan.ts'
import type { PlanningMoment } from '../planner/plan-input.ts'
import {
  canExceedSizeLimits,
  type MediaDropProposal,
  proposeFullMediaDrop,
  proposeMediaDrop,
  updateRequestSize,
  withDroppedMedia,
} from '../request/request-size.ts'
import { computeCalibrationScale } from '../tokens/usage.ts'

/**
 * Plans how to reduce the context, then clears or compacts. Returns a failure if the turn was aborted, if records could
 * not be appended, or if the context is full and no request may be sent.
 */
export async function* reduceContext(
  turn: TurnContext,
  moment: PlanningMoment,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { host } = turn
  if (!(await updatePlanningStateInSlices(turn))) return { ok: false, reason: 'aborted' }
  const at = findMoment(turn, moment)
  let { context, state } = gatherContextPlanInput(turn.state, host, at)
  turn.state = state
  if (!context.cache.isWarm && context.register.deletions.length > 0) {
    // The provider's cache expired, so tool results that were deleted only in the cache are sent again, and count again.
    const deleted = countCacheDeletedTokens(context.register, { sinceResponse: false })
    const tokens = Math.round(computeCalibrationScale(context.calibration) * deleted)
    const failure = yield* appendUnlinkedRecords(turn, [
      { type: 'system', isMeta: true, ...CACHE_DELETIONS_END },
    ])
    if (failure !== null) return failure
    yield { type: 'cache-edits-dropped', tokens }
    ;({ context, state } = gatherContextPlanInput(turn.state, host, at))
  }
  const plan = planNext({ ...context, ...describePreparation(turn) })
  turn.state = { ...state, providerEdits: plan.native }
  if (plan.act !== 'wait' || plan.refusal !== null) yield { type: 'planned', plan }
  if (plan.advice !== null && at !== 'call') yield { type: 'compaction-advised', advice: plan.advice }
  const needsSummary = plan.prepare && !hasUsableNotes(turn.state, turn.host)
  // Once the cache has expired, a summary is prepared only after the next request, which writes the cache again.
  if (plan.act === 'wait' && needsSummary && !hasCacheExpired(context.cache)) turn.prepared?.prepare()
  const failure = yield* executePlan(turn, plan, at)
  if (failure !== null || plan.refusal === null) return failure
  const isWhole = isJustCompacted(turn.state) || !selectSpan(turn.state, {}, host).ok
  const reason = isWhole ? 'nothing-to-summarise' : (turn.state.context?.breaker.lastReason ?? '')
  return refuseFullContext(turn, plan.refusal, reason)
}

/** Reasons of a refused compaction that mean: nothing is left but what every compaction keeps, such as unanswered prompts. */
const IRREDUCIBLE: ReadonlySet<string> = new Set<RefusedRewrite['reason']>([
  'empty-conversation',
  'nothing-to-summarise',
  'not-smaller',
  'floor',
])

/**
 * Returns the failure of a full context that was not reduced; null if the request is sent nevertheless, because it, or what a
 * compaction would leave of it, may still fit the window and nothing can be reduced. `reason`: why a compaction was refused.
 */
function refuseFullContext(turn: TurnContext, message: string, reason: string): TurnFailure | null {
  if (!IRREDUCIBLE.has(reason)) return { ok: false, reason: 'full', message }
  if (mayFitWindow(turn.state, turn.host, reason === 'floor')) return null
  return { ok: false, reason: 'full', message, isPromptTooLong: true }
}

/** Returns true if the next request will be planned with a clearing or a compaction. */
export function isRewritePlanned(turn: TurnContext): boolean {
  const { context } = gatherContextPlanInput(turn.state, turn.host, 'call')
  const { act, native } = planNext({ ...context, ...describePreparation(turn) })
  return act !== 'wait' || native?.price != null
}

/**
 * Carries out a plan: appends the clearing, swaps in a prepared summary, or compacts. A failed compaction is a failure only
 * if the context is at the blocking threshold, or the turn was aborted.
 */
async function* executePlan(
  turn: TurnContext,
  plan: ContextPlan,
  moment: PlanningMoment,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  if (plan.clear !== undefined) return yield* appendClearing(turn, plan.clear)
  const isBlocked = plan.scaled.known && plan.context.expected >= plan.scaled.lines.blocking
  if (yield* swapIfDue(turn, plan, moment, isBlocked)) return null
  if (isTurnAborted(turn)) return { ok: false, reason: 'aborted' }
  // While a summary is being written, the turn goes on, up to the blocking threshold.
  if (plan.compact === undefined || turn.prepared?.phase === 'preparing') return null
  // A compaction that only saves money uses what exists already: a prepared summary, or the notes.
  const notesOnly = !plan.compact.hard
  if (notesOnly && !hasUsableNotes(turn.state, turn.host)) return null
  const refusedAsTooLong = turn.host.client?.refusedAsTooLong
  const { cause, mostTokens } = plan.compact
  const isNeeded = isBlocked && mostTokens === undefined
  const end = yield* compact(turn, {
    trigger: 'auto',
    cause,
    firedBy: cause === 'price' ? 'price' : 'threshold',
    isForced: isNeeded || refusedAsTooLong !== undefined,
    notesOnly,
    ...(refusedAsTooLong === undefined ? {} : { refused: refusedAsTooLong }),
    ...(mostTokens === undefined ? {} : { mostTokens }),
  })
  if (end.ok) return null
  if (mostTokens !== undefined) turn.state = { ...turn.state, freeCompactionFrom: findNextTry(plan) }
  if (end.reason === 'aborted') return { ok: false, reason: 'aborted' }
  return isNeeded ? refuseFullContext(turn, end.message, end.reason) : null
}

/** Share of the rest of the window after which a compaction that would have cost money is tried again. */
const NEXT_TRY = 1 / 8

/** Returns the context size, in tokens, from which such a compaction is tried again. */
function findNextTry({ context, scaled }: ContextPlan): number {
  if (!scaled.known) return Number.POSITIVE_INFINITY
  return context.expected + NEXT_TRY * Math.max(0, scaled.lines.window - context.expected)
}

// A summary that is prepared beside the turn replaces the context without a wait.

/** Returns `todo-done` for a call that follows the completion of a todo item, while a summary waits for such a break. */
function findMoment({ prepared, state, host }: TurnContext, moment: PlanningMoment): PlanningMoment {
  if (moment !== 'call' || prepared?.phase !== 'ready') return moment
  return hasJustCompletedTodo(state, host.policy.rehydrate.todoTools) ? 'todo-done' : moment
}

/** Returns what the planner must know about work that may make a new summary unnecessary. */
function describePreparation(turn: TurnContext) {
  const phase = turn.prepared?.phase
  return {
    hasPreparedSummary: phase === 'ready',
    isPreparing: phase === 'preparing',
    hasNotes: hasUsableNotes(turn.state, turn.host),
  }
}

/**
 * Swaps in the prepared summary if it is due, and returns true if that replaced the context. At the blocking threshold
 * (`isBlocked`), waits for a summary that is being prepared.
 */
async function* swapIfDue(
  turn: TurnContext,
  plan: ContextPlan,
  moment: PlanningMoment,
  isBlocked = false,
): AsyncGenerator<TurnEvent, boolean> {
  if (turn.prepared === undefined || turn.prepared.phase === 'none') return false
  // The growth matters at natural breaks only, and measuring it reads the whole turn.
  const growth = moment === 'call' ? 0 : measureTurnGrowth(turn.state)
  const cause = chooseSwapCause(plan, moment, growth)
  return cause !== null && (yield* swapInPreparedSummary(turn, cause, { waits: isBlocked }))
}

/**
 * At the end of a turn nobody waits for the model: swaps in a prepared summary that the next turn would need. If a user
 * may go on, begins to prepare one; otherwise the session may end here, and the summary would be paid for nothing.
 */
export async function* swapInOrPrepareSummary(turn: TurnContext): AsyncGenerator<TurnEvent, void> {
  const { host, prepared } = turn
  if (prepared === undefined || prepared.phase === 'preparing') return
  const { context, state } = gatherContextPlanInput(turn.state, host, 'turn-end')
  turn.state = state
  const plan = planNext({ ...context, ...describePreparation(turn) })
  const needsSummary = plan.prepare && !hasUsableNotes(turn.state, turn.host)
  if (prepared.phase === 'none' && needsSummary && host.isInteractive) prepared.prepare()
  else yield* swapIfDue(turn, plan, 'turn-end')
}

/** Appends the clearing as one record and, to delete results in the provider's cache, the message that deletes them. */
export async function* appendClearing(
  turn: TurnContext,
  clearing: ClearProposal,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { metadata, way } = clearing
  const failure = yield* appendUnlinkedRecords(turn, [
    createClearingBoundary(metadata),
    ...(way === 'cached'
      ? [
          {
            type: 'user' as const,
            isMeta: true,
            message: createCacheDeletionMessage(metadata, turn.host.profile),
          },
        ]
      : []),
  ])
  if (failure !== null) return failure
  const { preTokens, tokensSaved = 0 } = metadata
  yield {
    type: 'microcompact',
    id: findNewestBoundary(turn.state),
    way,
    clearing,
    tokensBefore: preTokens,
    tokensAfter: Math.max(0, preTokens - tokensSaved),
  }
  yield reportRewrite(turn, 'clear', clearing.released)
  return null
}

/** Creates the boundary record of a clearing. Undoing the clearing restores everything the record names. */
export function createClearingBoundary(
  microcompactMetadata: MicrocompactMetadata,
  content = 'Context microcompacted',
): UnlinkedRecord {
  return {
    type: 'system',
    subtype: 'microcompact_boundary',
    content,
    level: 'info',
    isMeta: false,
    microcompactMetadata,
  }
}

function findNewestBoundary({ view: { entries } }: SessionState): string {
  return entries.findLast(({ record }) => isMicrocompactBoundary(record))?.record.uuid ?? ''
}

// Dropping images is a clearing, too: one record lists the dropped images. Later requests leave out the same images,
// and an undo restores them.

/**
 * Drops the oldest images and documents that may be dropped, if the request has more bytes or images than the provider
 * accepts. Returns a failure only if the record of it could not be appended.
 */
export async function* dropExcessMedia(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { sized, size, rules } = await sizeRequest(turn)
  if (!canExceedSizeLimits(sized, size.tally, rules)) return null
  const dropped = yield* appendMediaDrop(turn, proposeMediaDrop(sized, size.tally, rules))
  return typeof dropped === 'object' ? dropped : null
}

/**
 * Drops images that the provider refused: those of the message that it named, or all. If the request had too many
 * bytes, only images that the model has responded to are dropped. Returns true if any were dropped.
 */
export async function* dropRefusedMedia(
  turn: TurnContext,
  { kind, path }: ModelFailure,
): AsyncGenerator<TurnEvent, boolean | TurnFailure> {
  const { sized, size, rules } = await sizeRequest(turn)
  const all = proposeFullMediaDrop(sized, size.tally, { ...rules, unanswered: kind === 'media' })
  // The path `messages.3.content.0` is in the fourth message.
  const index = kind === 'media' ? /^messages\.(\d+)(?:\.|$)/.exec(path ?? '')?.[1] : undefined
  const named = index === undefined ? [] : all.drop.filter((item) => item.index === Number(index))
  return yield* appendMediaDrop(turn, named.length === 0 ? all : withDroppedMedia(all, named))
}

/** Measures bytes and images of the messages. Remembers them in the state, so that only new messages are measured next time. */
async function sizeRequest(turn: TurnContext) {
  const { host, state } = turn
  const { maxMarkers } = host.profile.cache
  const size = await runSlicesToEnd(turn, updateRequestSize(state.requestSize, { ...state, maxMarkers }))
  turn.state = { ...turn.state, requestSize: size }
  const rules = { profile: host.profile, policy: host.policy.request, pins: state.pins }
  return { size, rules, sized: { messages: state.flat, around: size.prefixBytes } }
}

/**
 * Appends a record that drops the proposed images and returns true. Returns false if nothing is dropped: none are
 * proposed, or the drop would remove thinking that the provider requires at the start of the running turn. At the next
 * prompt the images can be dropped.
 */
async function* appendMediaDrop(
  turn: TurnContext,
  { drop, before, after, limits }: MediaDropProposal,
): AsyncGenerator<TurnEvent, boolean | TurnFailure> {
  if (drop.length === 0) return false
  const { thinking } = turn.host.profile
  const clearedThinking = thinking.binding === 'prefix' ? findThinkingAfter(turn.state, drop) : []
  if (clearedThinking.length > 0 && thinking.firstInModes.length > 0 && isMidTurn(turn.state)) return false
  const metadata: MicrocompactMetadata = {
    trigger: 'auto',
    way: 'size',
    preTokens: 0,
    tokensSaved: 0,
    compactedToolIds: [],
    clearedAttachmentUUIDs: [],
    clearedMedia: drop.map(({ origin, toolUseId, nth }) =>
      toolUseId === null ? { uuid: origin, nth } : { uuid: origin, toolUseId, nth },
    ),
    ...(clearedThinking.length === 0 ? {} : { clearedThinking }),
  }
  const failure = yield* appendUnlinkedRecords(turn, [
    createMediaBoundary({ ...metadata, ...measureDrop(turn, metadata) }),
  ])
  if (failure !== null) return failure
  const id = turn.state.view.rewrites.at(-1)?.uuid ?? ''
  yield { type: 'media-dropped', id, items: drop.length, before, after, limits }
  return true
}

function createMediaBoundary(metadata: MicrocompactMetadata): UnlinkedRecord {
  return createClearingBoundary(metadata, 'Old images left out to keep the request within its size')
}

/** Returns the ids of the responses with thinking, from the first record that loses an image on. */
function findThinkingAfter({ view }: SessionState, drop: MediaDropProposal['drop']): readonly string[] {
  const origins = new Set(drop.map(({ origin }) => origin))
  const entries = view.entries.toArray()
  return findThinkingResponseIds(entries.slice(entries.findIndex(({ record }) => origins.has(record.uuid))))
}

/** Returns true in the middle of a turn: the newest messages are a response with thinking and the results of its tool calls. */
function isMidTurn({ flat }: SessionState): boolean {
  const { message } = flat.tail.at(-1) ?? {}
  const hasResultsOnly = toBlocks(message?.content ?? '').every(({ type }) => type === 'tool_result')
  const response = flat.tail.at(-2)?.message
  return hasResultsOnly && response !== undefined && toBlocks(response.content).some(isThinkingBlock)
}

/** Estimates the tokens before the drop, and the tokens that it saves. */
function measureDrop(
  turn: TurnContext,
  metadata: MicrocompactMetadata,
): Pick<MicrocompactMetadata, 'preTokens' | 'tokensSaved'> {
  const { state, host } = turn
  const preTokens = measureContext(state, host).expected
  const next = previewAppend(state, linkRecords(turn, [createMediaBoundary(metadata)]))
  return { preTokens, tokensSaved: Math.max(0, preTokens - measureContext(next, host).expected) }
}
