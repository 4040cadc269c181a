/** How full the window is: what the provider last counted, and an estimate of all that has come since. */
import type { View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { entryEndsTurn } from '../context/message-parts.ts'
import type { Block } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { type AssistantRecord, SYNTHETIC_MODEL, type Usage } from '../log/record.ts'
import type { EstimatePolicy } from '../policy/policy.ts'
import type { CalibrationStart, Estimator } from './estimator.ts'

export interface ContextQuestion {
  readonly view: MeasuredView
  readonly estimator: Estimator
  readonly calibration: Calibration
  readonly policy: EstimatePolicy
  /** The provider leaves out the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimate of system prompt and tools; asked for only where nothing has been measured. */
  readonly prefix: () => number
  /** Gone from the provider's cache since the newest response, though the view still shows it. */
  readonly deleted?: readonly Block[]
}

export interface ContextTokens extends Estimate {
  readonly source: 'measured' | 'estimated' | 'both'
}

export function contextTokens(question: ContextQuestion): ContextTokens {
  const anchor = anchorOf(question.view)
  return anchor === null ? allEstimated(question) : sinceMeasured(question, anchor)
}

function allEstimated(question: ContextQuestion): ContextTokens {
  const { view, estimator, stripsThinking, prefix } = question
  const { entries } = view
  const stripped = stripsThinking ? thinkingIn(question, 0, turnStart(entries, entries.length)) : 0
  const tokens = prefix() + sum([...entries], estimator.entry) - stripped - deletedTokens(question)
  return { ...size(question, Math.max(0, tokens)), source: 'estimated' }
}

/** Logs often hold the output as it was when the stream began, so the larger of figure and estimate counts. */
function sinceMeasured(question: ContextQuestion, anchor: Anchor): ContextTokens {
  const { calibration, estimator, policy, view } = question
  const behind = view.entries.toArray(anchor.first)
  const said = size(
    question,
    sum(
      behind.filter((entry) => isOf(entry, anchor)),
      estimator.entry,
    ),
  )
  const output = said.expected > anchor.output ? said : exactly(anchor.output)
  const later = sum(
    behind.filter((entry) => !isOf(entry, anchor)),
    estimator.entry,
  )
  const added = growthOf(calibration, later, policy)
  const gone = size(question, strippedSince(question, anchor) + deletedTokens(question)).expected
  const isExact = output !== said && later === 0 && gone === 0
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: isExact ? 'measured' : 'both',
  }
}

/** Thinking that was in the measured context and leaves it with the prompt that has come since. */
function strippedSince(question: ContextQuestion, anchor: Anchor): number {
  const { entries } = question.view
  const start = question.stripsThinking ? turnStart(entries, entries.length) : 0
  return start <= anchor.first ? 0 : thinkingIn(question, turnStart(entries, anchor.first), start)
}

function thinkingIn({ view, estimator }: ContextQuestion, from: number, to: number): number {
  return sum(view.entries.toArray(from, to), estimator.thinking)
}

function deletedTokens({ deleted, estimator }: ContextQuestion): number {
  return sum(deleted ?? [], estimator.block)
}

function isOf({ record }: Entry, { response }: Anchor): boolean {
  return record.type === 'assistant' && record.message.id === response
}

function size({ calibration, policy }: ContextQuestion, tokens: number): Estimate {
  return sizeOf(calibration, tokens, policy)
}

function exactly(tokens: number): Estimate {
  return { expected: tokens, high: tokens }
}

function sum<T>(items: readonly T[], tokens: (item: T) => number): number {
  return items.reduce((total, item) => total + tokens(item), 0)
}

// The figures of a response's usage that tell how full the window was.

type Fields = { readonly [field: string]: unknown }

/** Tokens of the context that was sent, cached ones included: they fill the window too. 0 where nothing was measured. */
export function contextOf(usage: Usage | null | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = lastMessage(usage)
  return countOf(input_tokens) + countOf(cache_creation_input_tokens) + countOf(cache_read_input_tokens)
}

export function outputOf(usage: Usage | null | undefined): number {
  return countOf(lastMessage(usage).output_tokens)
}

/**
 * A call that the provider answered in several runs lists them; the last one that is a message saw the
 * context as it now stands. A list without any measured no context of ours.
 */
function lastMessage(usage: Usage | null | undefined): Fields {
  const listed = usage ? iterationsOf(usage) : []
  return listed.length === 0 ? (usage ?? {}) : (listed.findLast(({ type }) => type === 'message') ?? {})
}

// Where in a view the newest measurement stands, and where its turns begin.

export type MeasuredView = Pick<View, 'entries' | 'acts' | 'rewrittenAt'>

/** The newest response that was measured, and what the provider said of it. */
interface Anchor {
  readonly response: string
  /** Place of its first record: what lies between its records was not in the request. */
  readonly first: number
  readonly context: number
  /** The largest figure of its records: the earlier ones may be from the start of the stream. */
  readonly output: number
}

/**
 * Only a response to a request of the present view measured it: one that had begun before the last rewrite,
 * kept across it or not, tells of another context, and so do those of its records that came after.
 */
export function anchorOf(view: MeasuredView): Anchor | null {
  for (let place = view.entries.length - 1; place >= 0; place -= 1) {
    const entry = view.entries.at(place)
    const record = entry === undefined || entry.index <= view.rewrittenAt ? null : responseOf(entry)
    if (record === null || contextOf(record.message.usage) === 0) continue
    const anchor = anchorAt(view.entries, place, record)
    if (!hadBegun(view, anchor)) return anchor
  }
  return null
}

function anchorAt(entries: View['entries'], newest: number, record: AssistantRecord): Anchor {
  const { id, usage } = record.message
  let anchor = { response: id, first: newest, context: contextOf(usage), output: outputOf(usage) }
  for (let place = newest - 1; place >= 0; place -= 1) {
    const earlier = responseOf(entries.at(place))
    if (earlier === null) continue
    if (earlier.message.id !== id) break
    anchor = { ...anchor, first: place, output: Math.max(anchor.output, outputOf(earlier.message.usage)) }
  }
  return anchor
}

/** Whether a response began before the view was rewritten. A compaction may have taken its first records away. */
function hadBegun({ entries, acts, rewrittenAt }: MeasuredView, { first, response }: Anchor): boolean {
  const isOld = (entries.at(first)?.index ?? rewrittenAt) <= rewrittenAt
  return isOld || acts.some(({ before }) => lastResponse(before) === response)
}

function lastResponse(entries: View['entries']): string | null {
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

/** Where the turn begins that is going on in front of `end`: at what ended the one before it. */
function turnStart(entries: View['entries'], end: number): number {
  for (let place = end - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry !== undefined && entryEndsTurn(entry)) return place
  }
  return 0
}

// A figure of a usage as it is counted: a log may hold anything where a number belongs.

/** 0 for what no counter could show: neither endless figures nor sums of them may end in a price. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// The tokens a call is billed for, by class. Totals of a response leave out what a compaction on the server
// cost, so where the provider lists iterations the bill is their sum, and the totals are not looked at.

export const PRICE_CLASSES = ['input', 'cacheRead', 'write5m', 'write1h', 'output'] as const
export type PriceClass = (typeof PRICE_CLASSES)[number]
export type TokensByClass = { readonly [Class in PriceClass]: number }

/** One run of a model within a call. */
export interface BilledPart {
  readonly tokens: TokensByClass
  /** The model that answered it, where the provider names one. */
  readonly model: string | null
  /** Answered by an adviser or a fallback, and not by the model that was asked. */
  readonly isForeign: boolean
  readonly assumed: readonly string[]
}

const WRITES_AS_5M = 'cache writes without a lifetime are counted as 5-minute writes'

type FieldsBilled = { readonly [field: string]: unknown }

export function billedParts(usage: Usage): readonly BilledPart[] {
  const iterations = iterationsOf(usage)
  return iterations.length === 0 ? [partOf(usage)] : iterations.map(partOf)
}

/** The runs that the provider lists; none where it lists nothing that could be one. */
export function iterationsOf(usage: Usage): readonly FieldsBilled[] {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  return listed.filter(isObject)
}

function partOf(fields: FieldsBilled): BilledPart {
  const { write5m, write1h, assumed } = writesOf(fields)
  const model = typeof fields.model === 'string' ? fields.model : null
  const tokens = {
    input: countOf(fields.input_tokens),
    cacheRead: countOf(fields.cache_read_input_tokens),
    write5m,
    write1h,
    output: countOf(fields.output_tokens),
  }
  return { tokens, model, isForeign: isForeign(fields.type), assumed }
}

function writesOf(fields: FieldsBilled): { write5m: number; write1h: number; assumed: readonly string[] } {
  const split = isObject(fields.cache_creation) ? fields.cache_creation : {}
  const write5m = countOf(split.ephemeral_5m_input_tokens)
  const write1h = countOf(split.ephemeral_1h_input_tokens)
  const rest = Math.max(0, countOf(fields.cache_creation_input_tokens) - write5m - write1h)
  return { write5m: write5m + rest, write1h, assumed: rest === 0 ? [] : [WRITES_AS_5M] }
}

function isForeign(type: unknown): boolean {
  return typeof type === 'string' && type !== 'message' && type !== 'compaction'
}

// What a session teaches about its own estimates: one scale, one offset, and how far wrong they still are.
// Every response tells how much the context grew since the call before; that against what was estimated is an
// observation. Learning more than these two from one session was tried and made it worse.

/** `expected` is for the meter and reports, `high` for decisions. Both are whole. */
export interface Estimate {
  readonly expected: number
  readonly high: number
}

export interface Calibration {
  readonly start: CalibrationStart
  readonly observations: number
  /** Tokens estimated, and tokens that they came to; the start counts as `start.weight` of them. */
  readonly estimated: number
  readonly reported: number
  readonly offset: number
  /** Sums over the observations: how far off each one was, and how large. */
  readonly missed: number
  readonly seen: number
}

/** What one call was estimated to add to the context, uncalibrated, and what the provider says it added. */
export interface Observation {
  readonly estimated: number
  readonly reported: number
}

export function startCalibration(start: CalibrationStart): Calibration {
  const { scale, offset, weight } = start
  return {
    start,
    observations: 0,
    estimated: weight,
    reported: weight * scale,
    offset,
    missed: 0,
    seen: 0,
  }
}

/** An error beyond this, in tokens or as a share of the estimate, is mostly what the log does not show. */
const CREDIBLE_ERROR = { tokens: 1_000, share: 0.5 }
/**
 * Of an error, the scale takes no more than this share of the estimate, so that no call counts for more than
 * twice what it was estimated at: a small one that is far out has something beside it, and says nothing of text. Nor does a session leave its start by more than
 * these factors.
 */
const SCALE = { share: 1, least: 0.5, most: 2 }
/**
 * The offset is learnt from small calls alone: what large ones are out by is the scale's. Calls that its start
 * weighs as much as, the most calls it remembers, and the largest error that one call is taken to show.
 */
const OFFSET = { upTo: 1_000, weight: 20, memory: 50, error: 30 }

/** Growth that is none teaches nothing: something left the context as well. */
export function observe(calibration: Calibration, { estimated, reported }: Observation): Calibration {
  if (!isCount(estimated) || !isCount(reported)) return calibration
  const { offset, observations } = calibration
  const scaled = scaleOf(calibration) * estimated
  const error = reported - scaled - offset
  const credible = Math.max(CREDIBLE_ERROR.tokens, CREDIBLE_ERROR.share * estimated)
  return {
    ...calibration,
    ...scaleLearnt(calibration, estimated, scaled + within(error, SCALE.share * estimated)),
    observations: observations + 1,
    offset: estimated > OFFSET.upTo ? offset : offset + offsetStep(calibration, error),
    missed: calibration.missed + Math.abs(within(error, credible)),
    seen: calibration.seen + reported,
  }
}

/** The sums of the scale with one call more, held to what a scale may be. */
function scaleLearnt(
  calibration: Calibration,
  tokens: number,
  came: number,
): Pick<Calibration, 'estimated' | 'reported'> {
  const estimated = calibration.estimated + tokens
  const asStarted = calibration.start.scale * estimated
  const reported = Math.max(SCALE.least * asStarted, calibration.reported + came)
  return { estimated, reported: Math.min(SCALE.most * asStarted, reported) }
}

function isCount(value: number): boolean {
  return value > 0 && Number.isFinite(value)
}

function offsetStep({ observations }: Calibration, error: number): number {
  return within(error, OFFSET.error) / Math.min(OFFSET.weight + observations + 1, OFFSET.memory)
}

export function scaleOf({ estimated, reported }: Calibration): number {
  return reported / estimated
}

/** How large a thing is that was estimated at `tokens`. */
export function sizeOf(calibration: Calibration, tokens: number, policy: EstimatePolicy): Estimate {
  return estimateOf(scaleOf(calibration) * tokens, highFactor(calibration, policy))
}

/** What a call adds to the context whose blocks were estimated at `tokens` together. */
export function growthOf(calibration: Calibration, tokens: number, policy: EstimatePolicy): Estimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = scaleOf(calibration) * tokens + calibration.offset
  return estimateOf(Math.max(1, grown), highFactor(calibration, policy))
}

/** Weight of the starting margin, in tokens, and how many mean errors a learnt margin holds. */
const MARGIN = { weight: 20_000, errors: 3 }

/** `policy.highFactor` until the errors seen have earned a narrower one. */
export function highFactor(calibration: Calibration, policy: EstimatePolicy): number {
  if (!policy.calibrate) return policy.highFactor
  const { missed, seen } = calibration
  const margin = (MARGIN.weight * (policy.highFactor - 1) + MARGIN.errors * missed) / (MARGIN.weight + seen)
  const narrowest = Math.min(policy.narrowestHighFactor, policy.highFactor)
  return Math.min(policy.highFactor, Math.max(narrowest, 1 + margin))
}

function estimateOf(tokens: number, factor: number): Estimate {
  const expected = Math.max(0, Math.round(tokens))
  return { expected, high: Math.max(expected, Math.ceil(expected * factor - ROUNDING)) }
}

/** So that 3 × 4/3 is 4 whatever the last bit of the product says. */
const ROUNDING = 1e-6

function within(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value))
}
