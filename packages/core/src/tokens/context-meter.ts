/**
 * Measures how full the context window is: the size that the provider last reported, plus an estimate of the entries
 * added since. The meter is updated entry by entry, so an update costs time only for new entries. After a compaction or
 * clearing, earlier reports no longer count.
 */
import { type ContextEntry, endsPreviousTurn } from '../context/context-entry.ts'
import type { ContextView, ValidUsageRange } from '../context/context-view.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { type AssistantRecord, isMicrocompactBoundary, SYNTHETIC_MODEL } from '../log/record.ts'
import type { TokenEstimatePolicy } from '../policy/window-policy.ts'
import type { Estimator } from './estimator.ts'
import {
  addGrowthObservation,
  type Calibration,
  type ContextTokens,
  calibrateGrowth,
  calibrateSize,
  computeCalibrationScale,
  convertCalibration,
  readReportedContextTokens,
  readReportedOutputTokens,
  startCalibration,
} from './usage.ts'

export type MeterInput = Pick<ContextView, 'entries' | 'rewrites' | 'rewrittenAt' | 'restored'>

export interface ContextMeter {
  readonly estimator: Estimator
  readonly entries: AppendList<ContextEntry>
  readonly rewrites: MeterInput['rewrites']
  readonly rewrittenAt: number
  readonly restored: MeterInput['restored']
  /**
   * Running sums of estimated tokens. Item i is the sum over all entries before entry i; `thinkingBefore` sums only
   * thinking.
   */
  readonly tokensBefore: AppendList<number>
  readonly thinkingBefore: AppendList<number>
  /** Index of the entry where the current turn began. */
  readonly turnStart: number
  /** The newest response whose records are being added; null before the first response. */
  readonly currentResponse: ResponseRun | null
  /**
   * The newest response whose usage reports the size of this context; null if there is none since the last compaction
   * or clearing.
   */
  readonly measuredResponse: MeasuredRun | null
  /** Output tokens of all earlier responses with such usage. */
  readonly earlierOutput: number
  /** Context size that the first such response reported, and the number of such responses (`calls`). */
  readonly firstContext: number | null
  /** Estimated tokens of the entries before the first such response; 0 if there is none. */
  readonly firstEntriesTokens: number
  readonly calls: number
  /**
   * True if the provider was asked to delete cached content since `measuredResponse`. The context then grows by fewer
   * tokens than were added, so the next growth is not used for calibration.
   */
  readonly hasDeletions: boolean
  /** The calibration learned from all responses with reported usage. It is kept across compactions and clearings. */
  readonly calibration: Calibration
}

/** The records read so far of one response. */
interface ResponseRun {
  readonly response: string
  /** Index of the first entry of the response. */
  readonly firstEntry: number
  /** Index of the entry where the turn that contains the response began. */
  readonly turnStart: number
  /**
   * True if the response began before the last compaction or clearing. Its usage then reports the size of a different
   * context.
   */
  readonly isOld: boolean
  /** The largest number of output tokens that a record of the response reports. */
  readonly output: number
  /** Estimated tokens of all records of the response read so far. */
  readonly ownTokens: number
}

interface MeasuredRun extends ResponseRun {
  readonly context: number
}

export function createContextMeter(
  estimator: Estimator,
  calibration: Calibration = startCalibration(estimator.weights.start),
): ContextMeter {
  return {
    estimator,
    entries: AppendList.of(),
    rewrites: [],
    rewrittenAt: Number.NEGATIVE_INFINITY,
    restored: null,
    tokensBefore: AppendList.of([0]),
    thinkingBefore: AppendList.of([0]),
    turnStart: 0,
    currentResponse: null,
    measuredResponse: null,
    earlierOutput: 0,
    firstContext: null,
    firstEntriesTokens: 0,
    calls: 0,
    hasDeletions: false,
    calibration,
  }
}

/**
 * Creates the meter of a session that is opened again. It has learned from the contexts that rewrites replaced, as the
 * meter of a session that stays open has.
 */
export function restoreCalibratedMeter(estimator: Estimator, rewrites: MeterInput['rewrites']): ContextMeter {
  let meter = createContextMeter(estimator)
  for (const [index, { replacedEntries: entries, measured }] of rewrites.entries())
    meter = updateContextMeter(meter, { entries, rewrites: rewrites.slice(0, index), ...measured })
  return createContextMeter(estimator, meter.calibration)
}

/**
 * Returns the meter for another estimator, as after a switch of model. What was learned from all responses of the
 * session is kept; the sizes that responses reported count only if both models have the same tokenizer.
 */
export function replaceEstimator(meter: ContextMeter, estimator: Estimator, view: MeterInput): ContextMeter {
  const { calibration } = updateContextMeter(meter, view)
  return {
    ...updateContextMeter(createContextMeter(estimator), view),
    calibration: convertCalibration(calibration, estimator.weights.start),
  }
}

/**
 * Returns the meter for the context `view`. Adds only its new entries; after a rewrite, measures all again with the same
 * calibration.
 */
export function updateContextMeter(meter: ContextMeter, view: MeterInput): ContextMeter {
  const { entries, rewrites, rewrittenAt, restored } = view
  const follows =
    entries.extends(meter.entries) && meter.rewrittenAt === rewrittenAt && meter.rewrites === rewrites
  const start = follows ? meter : createContextMeter(meter.estimator, meter.calibration)
  let next: ContextMeter = { ...start, rewrites, rewrittenAt, restored }
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry !== undefined) next = addEntry(next, entry, place)
  }
  return { ...next, entries }
}

function addEntry(meter: ContextMeter, entry: ContextEntry, place: number): ContextMeter {
  const { estimator, tokensBefore, thinkingBefore } = meter
  const { record } = entry
  const isDeletion = isMicrocompactBoundary(record) && record.microcompactMetadata.way === 'cached'
  const thinking = record.type === 'assistant' ? estimator.thinking(entry) : 0
  const added: ContextMeter = {
    ...meter,
    tokensBefore: tokensBefore.push((tokensBefore.last ?? 0) + estimator.entry(entry)),
    thinkingBefore: thinkingBefore.push((thinkingBefore.last ?? 0) + thinking),
    turnStart: endsPreviousTurn(entry) ? place : meter.turnStart,
    hasDeletions: meter.hasDeletions || isDeletion,
  }
  const response = toResponse(entry)
  return response === null
    ? added
    : addResponseRecord(added, { entry, record: response, place, turn: meter.turnStart })
}

/** A record of a response, the index of its context entry, and the index of the entry where its turn began. */
interface ResponseRecord {
  readonly entry: ContextEntry
  readonly record: AssistantRecord
  readonly place: number
  readonly turn: number
}

function addResponseRecord(meter: ContextMeter, answer: ResponseRecord): ContextMeter {
  const { usage } = answer.record
  const { id, model } = answer.record.message
  const isAnchor = meter.measuredResponse?.response === id
  const run = withRecord(
    meter.currentResponse?.response === id ? meter.currentResponse : startRun(meter, answer),
    meter,
    answer,
  )
  // Tokens of another tokenizer cannot be compared with those of the model in use, after a switch of model.
  const context = meter.estimator.hasTokenizerOf(model) ? readReportedContextTokens(usage) : 0
  if (context === 0 || run.isOld || !isMeasuredPart(meter, answer.place, answer.entry.index)) {
    // The output tokens of a record are ignored if the record does not report the size of this context.
    const anchor =
      meter.measuredResponse !== null && isAnchor
        ? { ...withRecord(meter.measuredResponse, meter, answer), output: meter.measuredResponse.output }
        : meter.measuredResponse
    return { ...meter, currentResponse: run, measuredResponse: anchor }
  }
  return {
    ...meter,
    currentResponse: run,
    measuredResponse: { ...run, context },
    earlierOutput: meter.earlierOutput + (isAnchor ? 0 : (meter.measuredResponse?.output ?? 0)),
    firstContext: meter.firstContext ?? context,
    firstEntriesTokens:
      meter.firstContext === null ? (meter.tokensBefore.at(run.firstEntry) ?? 0) : meter.firstEntriesTokens,
    calls: meter.calls + (isAnchor ? 0 : 1),
    hasDeletions: false,
    calibration: isAnchor ? meter.calibration : learnFromGrowth(meter, run, context),
  }
}

/**
 * Updates the calibration: compares the growth of the context that the provider reported between two responses with the
 * estimate for the entries added between them.
 */
function learnFromGrowth(meter: ContextMeter, run: ResponseRun, context: number): Calibration {
  const { measuredResponse, tokensBefore, thinkingBefore, calibration, hasDeletions, restored } = meter
  if (measuredResponse === null || hasDeletions) return calibration
  // The calibration learned from the restored entries already, before the rewrite that was undone.
  if (restored !== null && run.firstEntry < restored.entries) return calibration
  const between = (sums: AppendList<number>): number =>
    (sums.at(run.firstEntry) ?? 0) - (sums.at(measuredResponse.firstEntry) ?? 0)
  // If a turn with thinking ended between the two responses, the provider may have dropped that thinking. The reported
  // growth is then too low and not used.
  if (run.turnStart !== measuredResponse.turnStart && between(thinkingBefore) > 0) return calibration
  return addGrowthObservation(calibration, {
    estimated: between(tokensBefore),
    reported: context - measuredResponse.context,
  })
}

function withRecord<R extends ResponseRun>(
  run: R,
  { estimator }: ContextMeter,
  { entry, record }: ResponseRecord,
): R {
  const output = Math.max(run.output, readReportedOutputTokens(record.usage))
  return { ...run, output, ownTokens: run.ownTokens + estimator.entry(entry) }
}

function startRun(meter: ContextMeter, { entry, record, place, turn }: ResponseRecord): ResponseRun {
  const { id } = record.message
  const isOld = isFromBeforeRewrite(meter, place, entry.index, id)
  return { response: id, firstEntry: place, turnStart: turn, isOld, output: 0, ownTokens: 0 }
}

// The functions below find the newest response whose usage reports the size of the current context.

/** The newest response whose usage reports the size of the context, with the token counts that the provider reported. */
export interface MeasuredResponse {
  readonly response: string
  /**
   * Index of the first entry of the response. The API request contained only entries before it, not tool results logged
   * between the records of the response.
   */
  readonly firstEntry: number
  readonly context: number
  /**
   * The largest number of output tokens among the records of the response. Its earlier records may hold a lower number,
   * from the start of the stream.
   */
  readonly output: number
}

/**
 * Finds the newest response whose usage reports the size of this context; null if there is none. A response that began
 * before the last compaction or clearing is skipped, even if some of its records were logged afterwards.
 */
export function findMeasuredResponse(view: MeterInput): MeasuredResponse | null {
  for (let place = view.entries.length - 1; place >= 0; place -= 1) {
    const entry = view.entries.at(place)
    const record = entry !== undefined && isMeasuredPart(view, place, entry.index) ? toResponse(entry) : null
    if (record === null || readReportedContextTokens(record.usage) === 0) continue
    const found = withEarlierRecords(view.entries, place, record)
    const index = view.entries.at(found.firstEntry)?.index ?? view.rewrittenAt
    if (!isFromBeforeRewrite(view, found.firstEntry, index, found.response)) return found
  }
  return null
}

/** Checks whether usage in the record at `index`, at entry number `place`, was reported for the present context. */
function isMeasuredPart({ rewrittenAt, restored }: ValidUsageRange, place: number, index: number): boolean {
  if (index > rewrittenAt) return true
  return restored !== null && place < restored.entries && isMeasuredPart(restored, place, index)
}

function withEarlierRecords(
  entries: ContextView['entries'],
  newest: number,
  record: AssistantRecord,
): MeasuredResponse {
  const { usage } = record
  const { id } = record.message
  let found: MeasuredResponse = {
    response: id,
    firstEntry: newest,
    context: readReportedContextTokens(usage),
    output: readReportedOutputTokens(usage),
  }
  for (let place = newest - 1; place >= 0; place -= 1) {
    const earlier = toResponse(entries.at(place))
    if (earlier === null) continue
    if (earlier.message.id !== id) break
    found = {
      ...found,
      firstEntry: place,
      output: Math.max(found.output, readReportedOutputTokens(earlier.usage)),
    }
  }
  return found
}

/**
 * True if the response began before a compaction or clearing. `index` is the index of its first remaining record, at
 * entry number `place`; a compaction may have removed earlier records.
 */
function isFromBeforeRewrite(
  { rewrites, ...measured }: Omit<MeterInput, 'entries'>,
  place: number,
  index: number,
  response: string,
): boolean {
  return (
    !isMeasuredPart(measured, place, index) ||
    rewrites.some(({ replacedEntries }) => findLastResponse(replacedEntries) === response)
  )
}

function findLastResponse(entries: AppendList<ContextEntry>): string | null {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = toResponse(entries.at(place))
    if (record !== null) return record.message.id
  }
  return null
}

function toResponse(entry: ContextEntry | undefined): AssistantRecord | null {
  if (entry?.record.type !== 'assistant' || entry.record.message.model === SYNTHETIC_MODEL) return null
  return entry.record
}

// Computes from the meter how large the context is now, how fast it grows, and how long answers usually are.

export interface MeasureContextOptions {
  readonly calibration: Calibration
  readonly policy: TokenEstimatePolicy
  /** True if the provider drops the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimates the tokens of system prompt and tools. Called only if no response has reported the size of the context. */
  readonly prefix: () => number
  /**
   * Estimated tokens of content that is still in the context but that the provider was asked to delete from its cache
   * since the newest response.
   */
  readonly deleted: number
}

/**
 * Returns the size of the context: what the newest response reported plus an estimate of what came since; without one, an
 * estimate.
 */
export function measureContextTokens(meter: ContextMeter, reading: MeasureContextOptions): ContextTokens {
  return meter.measuredResponse === null
    ? estimateAll(meter, reading)
    : estimateSinceMeasured(meter, meter.measuredResponse, reading)
}

function estimateAll(meter: ContextMeter, reading: MeasureContextOptions): ContextTokens {
  const { calibration, policy, stripsThinking, prefix, deleted } = reading
  const stripped = stripsThinking ? (meter.thinkingBefore.at(meter.turnStart) ?? 0) : 0
  const tokens = Math.max(0, prefix() + (meter.tokensBefore.last ?? 0) - stripped - deleted)
  return { ...calibrateSize(calibration, tokens, policy), source: 'estimated' }
}

/**
 * Estimates the context size: the size that the response reported, plus its output and the entries after it. The logged
 * output tokens are often too low (from the start of the stream), so the estimate is used for the output if it is
 * larger.
 */
function estimateSinceMeasured(
  meter: ContextMeter,
  anchor: MeasuredRun,
  reading: MeasureContextOptions,
): ContextTokens {
  const { calibration, policy, deleted } = reading
  const estimated = calibrateSize(calibration, anchor.ownTokens, policy)
  const isLonger = estimated.expected > anchor.output
  const output = isLonger ? estimated : { expected: anchor.output, high: anchor.output }
  const later =
    (meter.tokensBefore.last ?? 0) - (meter.tokensBefore.at(anchor.firstEntry) ?? 0) - anchor.ownTokens
  const added = calibrateGrowth(calibration, later, policy)
  const gone = calibrateSize(calibration, estimateStripped(meter, anchor, reading) + deleted, policy).expected
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: !isLonger && later === 0 && gone === 0 ? 'measured' : 'both',
  }
}

/**
 * Estimates the tokens of thinking that were in the reported context but that the provider has dropped since, because a
 * later prompt ended the turn.
 */
function estimateStripped(
  meter: ContextMeter,
  anchor: MeasuredRun,
  { stripsThinking }: MeasureContextOptions,
): number {
  const start = stripsThinking ? meter.turnStart : 0
  if (start <= anchor.firstEntry) return 0
  return (meter.thinkingBefore.at(start) ?? 0) - (meter.thinkingBefore.at(anchor.turnStart) ?? 0)
}

/**
 * Returns the average number of tokens by which the context grows per model call; null until two responses have
 * reported usage.
 */
export function measureGrowthPerCall({ measuredResponse, firstContext, calls }: ContextMeter): number | null {
  if (measuredResponse === null || firstContext === null || calls < 2) return null
  return Math.max(0, (measuredResponse.context - firstContext) / (calls - 1))
}

/** Returns the tokens of system prompt and tools, from the first report since the last rewrite; null if there is none. */
export function derivePrefixTokens({
  firstContext,
  firstEntriesTokens,
  calibration,
}: ContextMeter): number | null {
  if (firstContext === null) return null
  return Math.max(0, Math.round(firstContext - computeCalibrationScale(calibration) * firstEntriesTokens))
}
