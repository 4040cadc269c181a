/**
 * How full the window is, kept up entry by entry: the same figure as `contextTokens`, at the cost of what the
 * turn added. It begins anew where the view was rewritten, so that no figure from before drives a decision.
 */

import type { Entry } from '../context/entry.ts'
import { entryEndsTurn } from '../context/message-parts.ts'
import { List } from '../log/persistent-collections.ts'
import { type AssistantRecord, isMicrocompactBoundary, SYNTHETIC_MODEL } from '../log/record.ts'
import type { EstimatePolicy } from '../policy/policy.ts'
import type { Estimator } from './estimator.ts'
import {
  type Calibration,
  type ContextTokens,
  contextOf,
  growthOf,
  type MeasuredView,
  observe,
  outputOf,
  sizeOf,
  startCalibration,
} from './usage.ts'

export interface Meter {
  readonly estimator: Estimator
  readonly entries: List<Entry>
  readonly acts: MeasuredView['acts']
  readonly rewrittenAt: number
  /** Tokens, as estimated, of all entries before each place; and of the thinking among them. */
  readonly before: List<number>
  readonly thinkingBefore: List<number>
  /** Where the turn began that is going on. */
  readonly turn: number
  /** The response whose records come in. */
  readonly run: Run | null
  /** The newest response that measured this view. */
  readonly anchor: Measured | null
  /** The first that did, and how many have. */
  readonly firstContext: number | null
  readonly calls: number
  /** The provider was told since then to delete from what it has: the next growth is less than what has come. */
  readonly isDeleted: boolean
  /** What the responses measured so far have taught, in this view and in those before it. */
  readonly calibration: Calibration
}

/** A response, as far as its records have come. */
interface Run {
  readonly response: string
  readonly first: number
  /** Where the turn began that it is part of. */
  readonly turnStart: number
  /** It had begun before the view was rewritten, so that it measured something else. */
  readonly isOld: boolean
  /** The largest figure of its records. */
  readonly output: number
  /** Tokens of its records, as estimated. */
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
  let next: Meter = {
    ...(follows ? meter : emptyMeter(meter.estimator, meter.calibration)),
    acts,
    rewrittenAt,
  }
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry !== undefined) next = taken(next, entry, place)
  }
  return { ...next, entries }
}

function taken(meter: Meter, entry: Entry, place: number): Meter {
  const { estimator, before, thinkingBefore } = meter
  const added: Meter = {
    ...meter,
    before: before.push((before.last ?? 0) + estimator.entry(entry)),
    thinkingBefore: thinkingBefore.push((thinkingBefore.last ?? 0) + thinkingIn(estimator, entry)),
    turn: entryEndsTurn(entry) ? place : meter.turn,
    isDeleted: meter.isDeleted || isDeletion(entry),
  }
  const record = responseOf(entry)
  return record === null ? added : measured(added, { entry, record, place, turn: meter.turn })
}

function thinkingIn(estimator: Estimator, entry: Entry): number {
  return entry.record.type === 'assistant' ? estimator.thinking(entry) : 0
}

function isDeletion({ record }: Entry): boolean {
  return (
    record.type === 'system' && isMicrocompactBoundary(record) && record.microcompactMetadata.way === 'cached'
  )
}

function responseOf({ record }: Entry): AssistantRecord | null {
  return record.type === 'assistant' && record.message.model !== SYNTHETIC_MODEL ? record : null
}

interface Answer {
  readonly entry: Entry
  readonly record: AssistantRecord
  readonly place: number
  /** Before it. */
  readonly turn: number
}

function measured(meter: Meter, answer: Answer): Meter {
  const { id, usage } = answer.record.message
  const run = withRecord(meter.run?.response === id ? meter.run : begun(meter, answer), meter, answer)
  const anchor = meter.anchor?.response === id ? withRecord(meter.anchor, meter, answer) : meter.anchor
  const context = contextOf(usage)
  const isOther = context === 0 || run.isOld || answer.entry.index <= meter.rewrittenAt
  if (isOther) return { ...meter, run, anchor: withOutput(anchor, meter.anchor) }
  return {
    ...meter,
    run,
    anchor: { ...run, context },
    firstContext: meter.firstContext ?? context,
    calls: meter.calls + (meter.anchor?.response === id ? 0 : 1),
    isDeleted: false,
    calibration: meter.anchor?.response === id ? meter.calibration : taught(meter, run, context),
  }
}

/** By how much the context grew since the last response, against what was estimated to have come in between. */
function taught(meter: Meter, run: Run, context: number): Calibration {
  const { anchor, before, thinkingBefore, calibration, isDeleted } = meter
  if (anchor === null || isDeleted) return calibration
  const between = (sums: List<number>): number => (sums.at(run.first) ?? 0) - (sums.at(anchor.first) ?? 0)
  // Thinking of a turn that was finished meanwhile may have left: such growth teaches nothing.
  if (run.turnStart !== anchor.turnStart && between(thinkingBefore) > 0) return calibration
  return observe(calibration, { estimated: between(before), reported: context - anchor.context })
}

function withRecord<R extends Run>(run: R, { estimator }: Meter, { entry, record }: Answer): R {
  const output = Math.max(run.output, outputOf(record.message.usage))
  return { ...run, output, own: run.own + estimator.entry(entry) }
}

/** A record that measured nothing says nothing of the output either. */
function withOutput(anchor: Measured | null, before: Measured | null): Measured | null {
  return anchor === null || before === null ? anchor : { ...anchor, output: before.output }
}

function begun({ acts, rewrittenAt }: Meter, { entry, record, place, turn }: Answer): Run {
  const { id } = record.message
  const isOld = entry.index <= rewrittenAt || acts.some(({ before }) => lastResponse(before) === id)
  return { response: id, first: place, turnStart: turn, isOld, output: 0, own: 0 }
}

function lastResponse(entries: List<Entry>): string | null {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    const record = entry === undefined ? null : responseOf(entry)
    if (record !== null) return record.message.id
  }
  return null
}

interface MeterReading {
  readonly calibration: Calibration
  readonly policy: EstimatePolicy
  /** The provider leaves out the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimate of system prompt and tools; asked for only where nothing has been measured. */
  readonly prefix: () => number
  /** Tokens, as estimated, that the provider has deleted since the newest response and the view still shows. */
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

/** Logs often hold the output as it was when the stream began, so the larger of figure and estimate counts. */
function sinceMeasured(meter: Meter, anchor: Measured, reading: MeterReading): ContextTokens {
  const { calibration, policy, deleted } = reading
  const said = sizeOf(calibration, anchor.own, policy)
  const isLonger = said.expected > anchor.output
  const output = isLonger ? said : { expected: anchor.output, high: anchor.output }
  const later = (meter.before.last ?? 0) - (meter.before.at(anchor.first) ?? 0) - anchor.own
  const added = growthOf(calibration, later, policy)
  const gone = sizeOf(calibration, strippedSince(meter, anchor, reading) + deleted, policy).expected
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: !isLonger && later === 0 && gone === 0 ? 'measured' : 'both',
  }
}

/** Thinking that was in the measured context and leaves it with the prompt that has come since. */
function strippedSince(meter: Meter, anchor: Measured, { stripsThinking }: MeterReading): number {
  const start = stripsThinking ? meter.turn : 0
  if (start <= anchor.first) return 0
  return (meter.thinkingBefore.at(start) ?? 0) - (meter.thinkingBefore.at(anchor.turnStart) ?? 0)
}

/** Tokens by which the context grows from call to call; null before two calls have been measured. */
export function growthPerCall({ anchor, firstContext, calls }: Meter): number | null {
  if (anchor === null || firstContext === null || calls < 2) return null
  return Math.max(0, (anchor.context - firstContext) / (calls - 1))
}
