/**
 * How full the window is: what the provider last reported for this context, plus an estimate of everything since.
 * Updated entry by entry, so a turn costs what it added. A rewrite of the context starts a new measurement.
 */
import type { View } from '../context/context-view.ts'
import { type Entry, entryEndsTurn } from '../context/entry.ts'
import { List } from '../log/persistent-collections.ts'
import { type AssistantRecord, isMicrocompactBoundary, SYNTHETIC_MODEL } from '../log/record.ts'
import type { EstimatePolicy } from '../policy/policy.ts'
import type { Estimator } from './estimator.ts'
import {
  type Calibration,
  type ContextTokens,
  contextOf,
  growthOf,
  observe,
  outputOf,
  sizeOf,
  startCalibration,
} from './usage.ts'

export type MeasuredView = Pick<View, 'entries' | 'acts' | 'rewrittenAt'>

export interface Meter {
  readonly estimator: Estimator
  readonly entries: List<Entry>
  readonly acts: MeasuredView['acts']
  readonly rewrittenAt: number
  /** Estimated tokens of all entries before each index, and of the thinking among them. */
  readonly before: List<number>
  readonly thinkingBefore: List<number>
  /** Index of the entry where the current turn began. */
  readonly turn: number
  /** The response whose records are being read. */
  readonly run: Run | null
  /** The newest response that measured this context. */
  readonly anchor: Measured | null
  /** Context size of the first response that measured it, and how many responses have. */
  readonly firstContext: number | null
  readonly calls: number
  /** The provider has been told to delete content since: the next growth is smaller than what was added. */
  readonly isDeleted: boolean
  /** Learned from all measured responses, across rewrites. */
  readonly calibration: Calibration
}

/** A response, as far as its records have been read. */
interface Run {
  readonly response: string
  /** Index of its first entry. */
  readonly first: number
  /** Index of the entry where its turn began. */
  readonly turnStart: number
  /** It began before the context was rewritten, so it measured something else. */
  readonly isOld: boolean
  /** The largest output figure of its records. */
  readonly output: number
  /** Estimated tokens of its records. */
  readonly own: number
}

interface Measured extends Run {
  readonly context: number
}

export function emptyMeter(
  estimator: Estimator,
  calibration: Calibration = startCalibration(estimator.weights.start),
): Meter {
  return {
    estimator,
    entries: List.of(),
    acts: [],
    rewrittenAt: Number.NEGATIVE_INFINITY,
    before: List.of([0]),
    thinkingBefore: List.of([0]),
    turn: 0,
    run: null,
    anchor: null,
    firstContext: null,
    calls: 0,
    isDeleted: false,
    calibration,
  }
}

export function advanceMeter(meter: Meter, view: MeasuredView): Meter {
  const { entries, acts, rewrittenAt } = view
  const follows = entries.extends(meter.entries) && meter.rewrittenAt === rewrittenAt && meter.acts === acts
  const start = follows ? meter : emptyMeter(meter.estimator, meter.calibration)
  let next: Meter = { ...start, acts, rewrittenAt }
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry !== undefined) next = taken(next, entry, place)
  }
  return { ...next, entries }
}

function taken(meter: Meter, entry: Entry, place: number): Meter {
  const { estimator, before, thinkingBefore } = meter
  const { record } = entry
  const isDeletion = isMicrocompactBoundary(record) && record.microcompactMetadata.way === 'cached'
  const thinking = record.type === 'assistant' ? estimator.thinking(entry) : 0
  const added: Meter = {
    ...meter,
    before: before.push((before.last ?? 0) + estimator.entry(entry)),
    thinkingBefore: thinkingBefore.push((thinkingBefore.last ?? 0) + thinking),
    turn: entryEndsTurn(entry) ? place : meter.turn,
    isDeleted: meter.isDeleted || isDeletion,
  }
  const response = responseOf(entry)
  return response === null ? added : measured(added, { entry, record: response, place, turn: meter.turn })
}

/** A record of a response, its index, and where the turn before it began. */
interface Answer {
  readonly entry: Entry
  readonly record: AssistantRecord
  readonly place: number
  readonly turn: number
}

function measured(meter: Meter, answer: Answer): Meter {
  const { id, usage } = answer.record.message
  const isAnchor = meter.anchor?.response === id
  const run = withRecord(meter.run?.response === id ? meter.run : begun(meter, answer), meter, answer)
  const context = contextOf(usage)
  if (context === 0 || run.isOld || answer.entry.index <= meter.rewrittenAt) {
    // A record without a measurement does not change the output figure either.
    const anchor =
      meter.anchor !== null && isAnchor
        ? { ...withRecord(meter.anchor, meter, answer), output: meter.anchor.output }
        : meter.anchor
    return { ...meter, run, anchor }
  }
  return {
    ...meter,
    run,
    anchor: { ...run, context },
    firstContext: meter.firstContext ?? context,
    calls: meter.calls + (isAnchor ? 0 : 1),
    isDeleted: false,
    calibration: isAnchor ? meter.calibration : taught(meter, run, context),
  }
}

/** Learns from how much the context grew since the last response, compared with the estimate of what was added. */
function taught(meter: Meter, run: Run, context: number): Calibration {
  const { anchor, before, thinkingBefore, calibration, isDeleted } = meter
  if (anchor === null || isDeleted) return calibration
  const between = (sums: List<number>): number => (sums.at(run.first) ?? 0) - (sums.at(anchor.first) ?? 0)
  // Thinking of a turn that ended in between may have been dropped: such growth teaches nothing.
  if (run.turnStart !== anchor.turnStart && between(thinkingBefore) > 0) return calibration
  return observe(calibration, { estimated: between(before), reported: context - anchor.context })
}

function withRecord<R extends Run>(run: R, { estimator }: Meter, { entry, record }: Answer): R {
  const output = Math.max(run.output, outputOf(record.message.usage))
  return { ...run, output, own: run.own + estimator.entry(entry) }
}

function begun(meter: Meter, { entry, record, place, turn }: Answer): Run {
  const { id } = record.message
  const isOld = isFromBefore(meter, entry.index, id)
  return { response: id, first: place, turnStart: turn, isOld, output: 0, own: 0 }
}

// Which response measured the context.

/** The newest response that measured a context, and what the provider reported. */
export interface MeasuredResponse {
  readonly response: string
  /** Index of its first entry: tool results between its records were not in the request. */
  readonly first: number
  readonly context: number
  /** The largest figure of its records: earlier ones may be from the start of the stream. */
  readonly output: number
}

/**
 * The newest response to a request of this context. A response that began before the last rewrite measured another
 * context, whether it was kept or not, and so did those of its records that came after the rewrite.
 */
export function findMeasuredResponse(view: MeasuredView): MeasuredResponse | null {
  for (let place = view.entries.length - 1; place >= 0; place -= 1) {
    const entry = view.entries.at(place)
    const record = entry === undefined || entry.index <= view.rewrittenAt ? null : responseOf(entry)
    if (record === null || contextOf(record.message.usage) === 0) continue
    const found = withEarlierRecords(view.entries, place, record)
    const index = view.entries.at(found.first)?.index ?? view.rewrittenAt
    if (!isFromBefore(view, index, found.response)) return found
  }
  return null
}

function withEarlierRecords(
  entries: View['entries'],
  newest: number,
  record: AssistantRecord,
): MeasuredResponse {
  const { id, usage } = record.message
  let found: MeasuredResponse = {
    response: id,
    first: newest,
    context: contextOf(usage),
    output: outputOf(usage),
  }
  for (let place = newest - 1; place >= 0; place -= 1) {
    const earlier = responseOf(entries.at(place))
    if (earlier === null) continue
    if (earlier.message.id !== id) break
    found = { ...found, first: place, output: Math.max(found.output, outputOf(earlier.message.usage)) }
  }
  return found
}

/** The response began before a rewrite. `index`: of its first record; a compaction may have removed earlier ones. */
function isFromBefore(
  { acts, rewrittenAt }: Pick<View, 'acts' | 'rewrittenAt'>,
  index: number,
  response: string,
): boolean {
  return index <= rewrittenAt || acts.some(({ before }) => lastResponse(before) === response)
}

function lastResponse(entries: List<Entry>): string | null {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = responseOf(entries.at(place))
    if (record !== null) return record.message.id
  }
  return null
}

function responseOf(entry: Entry | undefined): AssistantRecord | null {
  if (entry?.record.type !== 'assistant' || entry.record.message.model === SYNTHETIC_MODEL) return null
  return entry.record
}

// Reading.

export interface MeterReading {
  readonly calibration: Calibration
  readonly policy: EstimatePolicy
  /** The provider drops the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimate of system prompt and tools; called only if nothing has been measured. */
  readonly prefix: () => number
  /** Estimated tokens that the provider has deleted since the newest response and the context still shows. */
  readonly deleted: number
}

export function readMeter(meter: Meter, reading: MeterReading): ContextTokens {
  return meter.anchor === null ? allEstimated(meter, reading) : sinceMeasured(meter, meter.anchor, reading)
}

function allEstimated(meter: Meter, reading: MeterReading): ContextTokens {
  const { calibration, policy, stripsThinking, prefix, deleted } = reading
  const stripped = stripsThinking ? (meter.thinkingBefore.at(meter.turn) ?? 0) : 0
  const tokens = Math.max(0, prefix() + (meter.before.last ?? 0) - stripped - deleted)
  return { ...sizeOf(calibration, tokens, policy), source: 'estimated' }
}

/** Logs often hold the output figure from the start of the stream, so the larger of figure and estimate counts. */
function sinceMeasured(meter: Meter, anchor: Measured, reading: MeterReading): ContextTokens {
  const { calibration, policy, deleted } = reading
  const estimated = sizeOf(calibration, anchor.own, policy)
  const isLonger = estimated.expected > anchor.output
  const output = isLonger ? estimated : { expected: anchor.output, high: anchor.output }
  const later = (meter.before.last ?? 0) - (meter.before.at(anchor.first) ?? 0) - anchor.own
  const added = growthOf(calibration, later, policy)
  const gone = sizeOf(calibration, strippedSince(meter, anchor, reading) + deleted, policy).expected
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: !isLonger && later === 0 && gone === 0 ? 'measured' : 'both',
  }
}

/** Thinking in the measured context that the prompt after it removes. */
function strippedSince(meter: Meter, anchor: Measured, { stripsThinking }: MeterReading): number {
  const start = stripsThinking ? meter.turn : 0
  if (start <= anchor.first) return 0
  return (meter.thinkingBefore.at(start) ?? 0) - (meter.thinkingBefore.at(anchor.turnStart) ?? 0)
}

/** Tokens by which the context grows per call; null before two calls have been measured. */
export function growthPerCall({ anchor, firstContext, calls }: Meter): number | null {
  if (anchor === null || firstContext === null || calls < 2) return null
  return Math.max(0, (anchor.context - firstContext) / (calls - 1))
}
