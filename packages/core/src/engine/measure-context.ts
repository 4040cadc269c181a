/**
 * Measures how full the context window is, and gathers the input for planning a clearing or a compaction. Also creates the
 * notice that tells the model of an undo.
 */

import {
  EMPTY_CACHE_MODEL,
  estimateCallsBeforeExpiry,
  measureCacheTemperature,
  updateCacheLapseTally,
} from '../cache/cache-model.ts'
import type { ContextEntry } from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import { listUnansweredCalls } from '../context/flatten-context.ts'
import { sumSessionCost } from '../cost/session-cost.ts'
import { countStringCharacters, type JsonObject } from '../log/json.ts'
import { isCompactBoundary, isKnownRecord, isPrompt, isUndoRecord } from '../log/record.ts'
import { requireRecordAt } from '../log/session-log.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import { type CompactionSavings, makeContextPlan } from '../planner/context-plan.ts'
import { type ContextPlanInput, computeContextSize, type PlanningMoment } from '../planner/plan-input.ts'
import type { ThinkingMode } from '../policy/provider-profile.ts'
import type { ScaledLimits } from '../policy/scale-policy.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { chooseRequestTtl, findWritePriceClass } from '../request/cache-ttl.ts'
import { hasContextEditBetas } from '../request/prefix-snapshot.ts'
import { type ContextMeter, derivePrefixTokens } from '../tokens/context-meter.ts'
import { type ContextTokens, calibrateSize } from '../tokens/usage.ts'
import { withEngineBetas } from './announce-updates.ts'
import { type CompactionServices, findCurrentRates, type TurnHost } from './host.ts'
import { buildNextRequest, countPrefixTokens, listMessagesToSend } from './next-request.ts'
import {
  NO_COMPACTION_FAILURES,
  type PlanningState,
  type SessionState,
  updatePlanningState,
} from './session-state.ts'
import { runSlicesUnlessAborted, type TurnContext, type UnlinkedRecord } from './session-writer.ts'

/**
 * Returns the tokens of the next request as far as it is known now: expected size and upper bound, from the newest reported
 * usage and an estimate of what was added since.
 */
export function measureContext(state: SessionState, host: TurnHost): ContextTokens {
  const { context } = withPlanningState(state, host)
  const { policy, profile } = host
  const prefix = (): number => countPrefixTokens(state, host)
  return computeContextSize({ ...context, calibration: context.meter.calibration, policy, profile, prefix })
}

/** A session state with up-to-date planning data in its field `context`. */
interface MeasuredState extends SessionState {
  readonly context: PlanningState
}

/** Returns the state with its planning data brought up to date. Cheap if little was appended since the last time. */
export function withPlanningState(
  state: SessionState,
  { compaction }: Pick<TurnHost, 'compaction'>,
): MeasuredState {
  return { ...state, context: updatePlanningState(state.context, state.view, compaction) }
}

/** Fixed work for each entry, whatever its length, expressed as a number of characters to read. */
const ENTRY_WORK = 300

function countWork({ record }: ContextEntry): number {
  return ENTRY_WORK + countStringCharacters(record.type === 'system' ? null : record)
}

/** Work, in characters to read, after which the planning data are updated and one step ends. */
const STEP_WORK = 30_000

/** Updates planning data to `view` in steps. */
function* updateInSteps(
  from: PlanningState | null,
  view: ContextView,
  compaction: CompactionServices,
): WorkInSteps<PlanningState> {
  const { entries } = view
  let context = from
  // In a session that was opened again, the estimator first measures what rewrites replaced. It remembers these measurements.
  if (from === null)
    for (const { replacedEntries } of view.rewrites)
      for (const entry of replacedEntries.toArray()) {
        compaction.estimator.entry(entry)
        yield countWork(entry)
      }
  const known = from !== null && entries.extends(from.meter.entries) ? from.meter.entries.length : 0
  let work = 0
  for (const [place, entry] of entries.toArray(known).entries()) {
    work += countWork(entry)
    if (work < STEP_WORK) continue
    context = updatePlanningState(context, { ...view, entries: entries.take(known + place + 1) }, compaction)
    yield work
    work = 0
  }
  return updatePlanningState(context, view, compaction)
}

/**
 * Updates the planning data of the session in slices, so that the next step finds them ready and does not hold the event
 * loop. What was appended meanwhile is counted, too. Returns false if the turn was aborted. `runSteps`: runs the slices, and
 * decides for how long they go on after an abort. Default: they do not.
 */
export async function updatePlanningStateInSlices(
  turn: TurnContext,
  runSteps: typeof runSlicesUnlessAborted = runSlicesUnlessAborted,
): Promise<boolean> {
  const { compaction } = turn.host
  for (;;) {
    const { context: from, view } = turn.state
    // A change of estimator converts what was learned at once: this needs the whole context and cannot be done in steps.
    if (from !== null && from.meter.estimator !== compaction.estimator) return true
    const context = await runSteps(turn, updateInSteps(from, view, compaction))
    if (context === null) return false
    const { state } = turn
    if (state.context !== from || state.view.rewrites !== view.rewrites) return true
    turn.state = { ...state, context }
    if (state.view === view) return true
  }
}

/** Creates a function that estimates the tokens of a text, corrected by the usage that the provider reported. */
export function createCalibratedTokenCounter(state: SessionState, host: TurnHost): (text: string) => number {
  const { compaction, policy } = host
  const { calibration } = withPlanningState(state, host).context.meter
  return (text) => calibrateSize(calibration, compaction.estimator.text(text), policy.estimate).expected
}

/** Gathers the input for planning a clearing or a compaction. Also returns the session state with updated planning data. */
export function gatherContextPlanInput(
  given: SessionState,
  host: TurnHost,
  moment: PlanningMoment,
): { readonly context: ContextPlanInput; readonly state: SessionState } {
  const { compaction } = host
  const { policy, profile, source, switches = NO_SWITCHES } = host
  const now = host.clock.now()
  const tracking = collectTracking(given, host)
  const { tools, parameters } = host.readOfferedPrefix()
  const { state: known, sent } = withCacheModel(withPlanningState(given, host), host)
  const { current } = known.prefix
  const { meter, register } = known.context
  const expectedResult = updateExpectedResult(known)
  const tokens = measureContext(known, host).expected
  const waitsUntilFull = host.client?.waitsUntilFull === true
  const reported = waitsUntilFull ? derivePrefixTokens(meter) : null
  const prefix = reported ?? countPrefixTokens(known, host)
  const ttl = findFeatureStates(policy, switches).caching.on
    ? chooseRequestTtl(current?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache }).name
    : null
  const write = findWritePriceClass(ttl, profile.cache)
  const cache = measureCacheTemperature({
    cacheModel: known.cacheModel ?? EMPTY_CACHE_MODEL,
    sent,
    flat: listMessagesToSend(known, host),
    profile,
    policy: policy.clear,
    ttl,
    now,
    contextTokens: tokens,
  })
  const tally = updateCacheLapseTally(known.context.tally, known.session, cache.ttlMs)
  const context: ContextPlanInput = {
    register,
    meter,
    pins: [...known.pins],
    policy,
    scaled: compaction.scaled,
    ...(host.switches === undefined ? {} : { switches }),
    profile,
    calibration: meter.calibration,
    prefixTokens: prefix,
    source,
    moment,
    cache: { ...cache, expectedCalls: estimateCallsBeforeExpiry(tally.runs, cache.expectedCalls) },
    rates: findCurrentRates(host, tokens),
    write,
    idleMs: measureIdleTime(given, now),
    retrieval: compaction.retrieval,
    tools: tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
    ...readThinking(parameters, profile),
    lastEdits: known.providerEdits,
    canEdit: canAddContextEdits(current?.parameters, host),
    tracking,
    ...(waitsUntilFull ? { clientLimit: findClientLimit(known, host) } : {}),
    ...(expectedResult === null ? {} : { expectedResult }),
  }
  return { context, state: { ...known, context: { ...known.context, tally, expectedResult } } }
}

/** Reads the caller's setting of thinking, or the provider's default. */
function readThinking(
  parameters: JsonObject,
  { thinking: { whenAbsent }, spelling }: TurnHost['profile'],
): Pick<ContextPlanInput, 'thinks' | 'thinkingMode'> {
  const mode = spelling.readSettings(parameters).thinkingMode
  if (mode === undefined) return { thinks: whenAbsent !== 'disabled', thinkingMode: null }
  return { thinks: mode !== 'disabled', thinkingMode: mode as ThinkingMode | null }
}

/**
 * Returns the sizes after the last compaction, with the size that the provider reported for the first request after it in
 * place of the estimate. Null before the first compaction.
 */
function updateExpectedResult({ context, view }: MeasuredState): PlanningState['expectedResult'] {
  const { expectedResult, meter } = context
  if (view.rewrites.at(-1)?.kind !== 'compact' || meter.firstContext === null) return expectedResult
  return { summary: 0, reattached: 0, ...expectedResult, after: meter.firstContext }
}

/** True if the engine may ask for context edits. Those that the caller asks for itself are not replaced. */
function canAddContextEdits(current: JsonObject | undefined, host: TurnHost): boolean {
  const { parameters } = host.readOfferedPrefix()
  return (
    parameters[host.profile.spelling.editsParameter] == null &&
    hasContextEditBetas(current ?? withEngineBetas(parameters, host), host.profile)
  )
}

/** Returns the largest prompt that the provider takes and answers: an answer of the usual size must fit the window. */
function findClientLimit(
  { view, context, costs, freeCompactionFrom: freeFrom }: MeasuredState,
  host: TurnHost,
): NonNullable<ContextPlanInput['clientLimit']> {
  const { scaled } = host.compaction
  const usual = host.profile.capabilities.countsMaxTokens
    ? 0
    : Math.min(readMaxTokens(host) ?? Number.POSITIVE_INFINITY, measureUsualOutput(context.meter))
  const tokens = Math.max(0, findInputLimit(host, scaled) - usual)
  if (host.client?.refusedAsTooLong !== undefined) return { tokens: 0, isPassed: true }
  const spent = costs === null ? 0 : sumSessionCost(costs).spent.priced
  return {
    tokens,
    // A prompt that may fit is sent. After a rewrite, or if the server drops the beginning of prompts, only one that surely fits.
    isPassed: view.rewrites.length > 0 || host.profile.capabilities.tooLong === 'dropped',
    spent,
    ...(freeFrom === null ? {} : { freeFrom }),
  }
}

/** Returns the average number of output tokens of the responses that have reported usage; 0 if there is none. */
function measureUsualOutput({ measuredResponse, earlierOutput, calls }: ContextMeter): number {
  return measuredResponse === null ? 0 : Math.ceil((earlierOutput + measuredResponse.output) / calls)
}

/** Returns the largest answer that the request asks for; null if only the window limits it. */
function readMaxTokens({ readOfferedPrefix, profile }: TurnHost): number | null {
  return profile.spelling.readSettings(readOfferedPrefix().parameters).maxOutput
}

/**
 * Returns the largest prompt, in tokens, that the provider takes; infinite if the window is unknown. Some providers
 * refuse a request whose answer could go beyond the context window. Others end the response there.
 */
export function findInputLimit(host: TurnHost, scaled: ScaledLimits): number {
  if (!scaled.known) return Number.POSITIVE_INFINITY
  const answer = host.profile.capabilities.countsMaxTokens ? (readMaxTokens(host) ?? 0) : 0
  return Math.max(0, scaled.lines.window - answer)
}

function collectTracking(state: SessionState, { policy }: TurnHost): ContextPlanInput['tracking'] {
  const { context, view, flat, lastResponseIndex } = state
  const breaker = context?.breaker ?? NO_COMPACTION_FAILURES
  const most = policy.turn.auto.breakerFailures
  // A new prompt allows one more compaction attempt, however many failed before.
  const mayRetry = breaker.failures >= most && hasPromptSince(view, breaker.at)
  return {
    failures: mayRetry ? most - 1 : breaker.failures,
    waitsForPrompt: findUnannouncedUndos(view).length > 0,
    justUndone: hasUnansweredUndo(view, lastResponseIndex),
    justCompacted: isJustCompacted(state),
    priceCompactedAt: findPriceCompaction(state),
    openCalls: listUnansweredCalls(flat).length,
  }
}

/** Returns the context size before the newest compaction in effect that was made to save money; null if there is none. */
function findPriceCompaction({ view, session }: SessionState): number | null {
  for (const { position } of view.rewrites.toReversed()) {
    const record = requireRecordAt(session, view.branch.at(position) ?? 0)
    const metadata = isKnownRecord(record) && isCompactBoundary(record) ? record.compactMetadata : undefined
    if (metadata?.cause === 'price') return metadata.preTokens
  }
  return null
}

/**
 * Returns what compacting now would save and drop, by the planner's rules; null if it would not pay. Also returns the
 * session state with updated planning data.
 */
export function findCompactionSavings(
  given: SessionState,
  host: TurnHost,
): { readonly advice: CompactionSavings | null; readonly state: SessionState } {
  const { context, state } = gatherContextPlanInput(given, host, 'call')
  return { advice: makeContextPlan(context).advice, state }
}

/** Returns the milliseconds since the newest response; null if there is none. */
export function measureIdleTime({ session, lastResponseIndex }: SessionState, now: number): number | null {
  if (lastResponseIndex < 0) return null
  const at = Date.parse(requireRecordAt(session, lastResponseIndex).timestamp ?? '')
  return Number.isNaN(at) ? null : Math.max(0, now - at)
}

/**
 * Rebuilds the expected content of the provider's cache from the log of a reopened session. Without this, a valid cache
 * would count as expired, and tool results deleted in the cache would be sent again. `sent`: the last request. If this
 * process has sent none yet, it is the next request, whose cache markers are at the same places.
 */
function withCacheModel<State extends SessionState>(
  state: State,
  host: TurnHost,
): { readonly state: State; readonly sent: AssembledRequest | null } {
  const { current } = state.prefix
  const isRestored = state.cacheModel !== null
  if (current === null || (isRestored && state.lastRequest !== null))
    return { state, sent: state.lastRequest }
  const next = buildNextRequest(state, current, host)
  const { clearingEdge, cacheModel, checkedMessages } = next.state
  const restored = isRestored ? {} : { clearingEdge, cacheModel }
  return { state: { ...state, checkedMessages, ...restored }, sent: state.lastRequest ?? next.request }
}

/**
 * Returns true if the newest rewrite is a compaction and no message follows it, so that compacting again would change nothing.
 */
export function isJustCompacted({ view, lastResponseIndex }: SessionState): boolean {
  const { entries, rewrittenAt, rewrites } = view
  const act = rewrites.at(-1)
  if (act?.kind !== 'compact' || lastResponseIndex > rewrittenAt) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= rewrittenAt) return true
    const { record } = entry
    const isOwn = act.batchId !== null && record.batch?.id === act.batchId
    if (!isOwn && (record.type === 'user' || record.type === 'assistant')) return false
  }
  return true
}

/** Returns true if a user prompt follows the record at `index`. */
export function hasPromptSince({ entries }: ContextView, index: number): boolean {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= index) return false
    if (isPrompt(entry.record)) return true
  }
  return false
}

// After an undo, automatic clearing and compaction wait for the next prompt, and a notice tells the model once.

export const UNDO_NOTICE_TYPE = 'undo_notice'

/** Creates a notice that the context was restored, to append with the next prompt; empty if nothing was undone. */
export function createUndoNotice({ state }: Pick<TurnContext, 'state'>): readonly UnlinkedRecord[] {
  const found = findUnannouncedUndos(state.view)
  if (found.length === 0) return []
  return [
    {
      type: 'attachment',
      isMeta: true,
      attachment: { type: UNDO_NOTICE_TYPE, content: describeUndo(found) },
    },
  ]
}

/**
 * Returns the undo records that the model was not told about: those after the newest prompt and the newest undo notice.
 * Scans nothing if nothing was ever undone, because a turn may have many entries.
 */
export function findUnannouncedUndos({
  entries,
  undoneRewrites,
  rewrittenAt,
}: ContextView): readonly ContextEntry[] {
  const found: ContextEntry[] = []
  if (undoneRewrites.length === 0) return found
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || isPrompt(entry.record) || entry.index < rewrittenAt) break
    if (entry.record.type === 'attachment' && entry.record.attachment.type === UNDO_NOTICE_TYPE) break
    if (isUndoRecord(entry.record)) found.unshift(entry)
  }
  return found
}

/** Returns true if a compaction or clearing was undone and no response followed. `answered`: log index of the newest response. */
export function hasUnansweredUndo(
  { entries, undoneRewrites, rewrittenAt }: ContextView,
  answered: number,
): boolean {
  if (undoneRewrites.length === 0) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= answered || entry.index < rewrittenAt) return false
    if (isUndoRecord(entry.record)) return true
  }
  return false
}

export function describeUndo(undos: readonly ContextEntry[]): string {
  const isCompaction = undos.some(
    ({ record }) => record.type === 'system' && record.subtype === 'compact_undone',
  )
  return isCompaction
    ? 'The compaction of this conversation was undone: the messages above are the original ones again.'
    : 'The clearing of old tool results was undone: the results above are the original ones again.'
}
