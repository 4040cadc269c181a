/** One answered request against the one before it. */

import { factorOf, type Prices, type Rates, ratesFor, scaled } from '../cost/prices.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import { type Counted, countMessages } from '../request/block-index.ts'
import type { TokensByClass } from '../tokens/usage.ts'
import {
  type ActPaid,
  type BreakEvent,
  type CacheFigures,
  countText,
  type Difference,
  durationText,
  factOf,
  figuresOf,
  type OwnAct,
  type PricedAnnouncement,
  type ProviderWord,
  paidAnew,
  type Reason,
  zoneOf,
} from './cache-break.ts'
import { type CachedEntry, withEntry } from './cache-model.ts'
import {
  type Answered,
  type BreakRules,
  type CacheAnswer,
  type CacheOutcome,
  type CacheWatch,
  type Expectation,
  expectationOf,
  type Pending,
  parentKey,
  type ReadingRules,
  UNWATCHED,
  watchKey,
  withoutDeleted,
  withWatched,
} from './cache-monitor.ts'
import { actSentence, breakSentence, type Explanation, explain, lapseOf, redacted } from './explain-break.ts'
import { differencesOf, diffText, traitDifferences } from './request-diff.ts'
import { isBefore, type Place } from './sent-request.ts'

export interface Case {
  readonly pending: Pending
  readonly answer: CacheAnswer
  readonly usage: Usage
  readonly figures: CacheFigures
  /** The messages of what is pending. */
  readonly counted: Counted
  readonly rules: BreakRules
}

export interface Judged {
  readonly outcome: CacheOutcome
  readonly differences: readonly Difference[]
  readonly parting: Place | null
  /** The provider rewrote the request by itself, so that tokens no longer say where in it they end. */
  readonly isEdited: boolean
}

export function judge(given: Case): Judged {
  const { pending, answer, figures } = given
  const { against } = pending
  const isEdited = answer.isEdited === true || figures.isCompacted
  if (against === null) return { outcome: { kind: 'first' }, differences: [], parting: null, isEdited }
  const expectation = expectationOf({ ...given, against, rules: readingRules(given.rules) })
  const differences = allDifferences(given, against, expectation)
  const { parting } = expectation
  const isCleared = parting === null && pending.announced.some(({ kind }) => kind === 'clearing')
  const found = { differences, parting, isEdited: isEdited || isCleared }
  if (isEdited) return { outcome: { kind: 'not-judged', why: 'edited-by-provider' }, ...found }
  return { outcome: read({ ...given, against, expectation, differences }), ...found }
}

function readingRules({ profile }: BreakRules): ReadingRules {
  return {
    lookBack: profile.cache.lookBack,
    stripsFinishedTurns: profile.thinking.stripsFinishedTurns,
  }
}

/** How long a fork would have things kept is its own affair: no cache is kept under that, and it writes nothing. */
function allDifferences(
  { pending, counted }: Case,
  against: Answered,
  { change }: Expectation,
): readonly Difference[] {
  const { sent } = pending
  const isFork = parentKey(sent.source, sent.forkOf) !== null
  return [
    ...differencesOf(against.sent, sent).filter(({ kind }) => !isFork || kind !== 'marker-ttl-changed'),
    ...traitDifferences(against.counted, counted),
    ...(change === null ? [] : [change]),
  ]
}

interface ComparedJudge extends Case {
  readonly against: Answered
  readonly expectation: Expectation
  readonly differences: readonly Difference[]
}

function read(given: ComparedJudge): CacheOutcome {
  const { pending, figures, expectation, rules, usage } = given
  const expected = withoutDeleted(expectation.tokens, pending.announced, figures)
  if (expected === null) return { kind: 'not-judged', why: 'deletion-not-told' }
  const reading = { expected, tokens: figures.first }
  const rates = ratesOf(usage, figures.first, rules.prices)
  if (isBreak(reading, rules.policy)) return broke(given, reading, rates)
  const act = quietAct(pending.announced)
  const kept = act === null ? expected : keptBy(act, given, expected)
  if (act !== null && isLapsed(given)) return lapsed(given, { ...reading, expected: kept }, rates)
  const paid = act === null ? null : actPaid(given, { act, kept }, rates)
  if (paid !== null) return { kind: 'ours', act: paid }
  return { kind: 'read', expected, read: figures.first.cacheRead }
}

function isLapsed({ pending: { sent }, against }: ComparedJudge): boolean {
  return lapseOf({ sent, against }) !== null
}

/** The act came when all was lost already: what had to be processed again is no price of it. */
function lapsed(given: ComparedJudge, reading: Reading, rates: Rates | null): CacheOutcome {
  if (!isBreak(reading, given.rules.policy))
    return { kind: 'read', expected: reading.expected, read: reading.tokens.cacheRead }
  const differences = given.differences.filter(({ kind }) => !kind.startsWith('message-'))
  return broke({ ...given, differences }, reading, rates)
}

/** Of what was cached, as much as the act left in the request: only that can have been processed again. */
function keptBy(act: PricedAnnouncement, { against }: ComparedJudge, expected: number): number {
  return act.kind === 'cache-edits' ? expected : Math.max(0, against.cached - (act.freedTokens ?? 0))
}

/** An act, and the tokens that were cached and that it left. */
interface QuietAct {
  readonly act: PricedAnnouncement
  readonly kept: number
}

/** What an announced act made necessary to process again; null where that was nothing. */
function actPaid(
  { pending, figures }: ComparedJudge,
  { act, kept }: QuietAct,
  rates: Rates | null,
): ActPaid | null {
  const tokensRewritten = tokensLost({ expected: kept, tokens: figures.first })
  if (tokensRewritten === 0) return null
  const moneySpent = moneyLost(tokensRewritten, figures.first, rates)
  const own = ownAct(act, moneySpent, rates)
  const sentence = actSentence(own, { tokens: tokensRewritten, dollars: moneySpent })
  const { at, source } = pending.sent
  return { ...own, at, source, tokensRewritten, moneySpent, sentence }
}

function broke(given: ComparedJudge, reading: Reading, rates: Rates | null): CacheOutcome {
  const { pending, against, expectation, differences } = given
  const event = eventOf(given, reading, rates)
  const question = { before: against.sent, after: pending.sent, differences, parting: expectation.parting }
  return { kind: 'broke', event, diff: (redact) => diffText(question, redact) }
}

function explained(given: ComparedJudge, read: number): Explanation {
  const { pending, answer, rules } = given
  const explanation = explain({
    ...given,
    sent: pending.sent,
    read,
    word: answer.word ?? null,
    lookBack: rules.profile.cache.lookBack,
    toleranceTokens: rules.policy.tokens,
  })
  return rules.redact === undefined ? explanation : redacted(explanation, rules.redact)
}

function eventOf(given: ComparedJudge, reading: Reading, rates: Rates | null): BreakEvent {
  const { at, source, parameters } = given.pending.sent
  const { expected, tokens } = reading
  const read = tokens.cacheRead
  const word = given.answer.word ?? null
  const explanation = explained(given, read)
  const lost = tokensLost(reading)
  const dollars = moneyLost(lost, tokens, rates)
  const act = actBehind(given.pending.announced, explanation.reason)
  const ours = act === null ? null : ownAct(act, dollars, rates)
  return {
    at,
    source,
    model: parameters.model,
    ...explanation,
    expected,
    read,
    tokensLost: lost,
    moneyLost: dollars,
    evidence: evidenceOf({ expected, read, word, explanation, gapMs: at - given.against.usedAt }),
    provider: word,
    ours,
    sentence: breakSentence(explanation.reason, { tokens: lost, dollars }, ours),
  }
}

// Which announced act a loss belongs to, and when that act will have paid for itself.

/** A rewrite of the zone the reason lies in, or a clearing where messages changed. */
export function actBehind(
  announced: readonly PricedAnnouncement[],
  reason: Reason,
): PricedAnnouncement | null {
  const zone = zoneOf(reason)
  const found = announced.find((announcement) =>
    announcement.kind === 'rewrite' ? announcement.zone === zone : zone === 'messages',
  )
  return found ?? null
}

/** An act that has to be paid for without being a break. */
export function quietAct(announced: readonly PricedAnnouncement[]): PricedAnnouncement | null {
  return announced.find(({ kind }) => kind === 'clearing' || kind === 'cache-edits') ?? null
}

/** `cost`: what it really came to, above the price of a read; null where that is not known. */
export function ownAct(announcement: PricedAnnouncement, cost: number | null, rates: Rates | null): OwnAct {
  const planned = announcement.breakEvenTurns ?? null
  return { act: announcement.act, breakEvenTurns: breakEven(announcement, cost, rates) ?? planned }
}

/** Each call no longer reads what was freed: (w / r − 1) · L / E calls, with L written again at w and E freed. */
function breakEven(
  { freedTokens = 0 }: PricedAnnouncement,
  cost: number | null,
  rates: Rates | null,
): number | null {
  const saved = (freedTokens * (rates?.cacheRead ?? 0)) / 1_000_000
  return cost === null || saved <= 0 ? null : Math.max(0, Math.ceil(cost / saved))
}

// After a call: was the cache read as it should have been, and if not, why, and what did it cost?

export interface Compared {
  readonly watch: CacheWatch
  readonly outcome: CacheOutcome
}

export function compareAnswer(watch: CacheWatch, answer: CacheAnswer, rules: BreakRules): Compared {
  const key = watchKey(answer.source)
  const own = watch.sources.get(key) ?? UNWATCHED
  const { pending } = own
  if (pending === null) return { watch, outcome: { kind: 'not-judged', why: 'not-watched' } }
  if (answer.usage === null) return { watch, outcome: { kind: 'not-judged', why: 'no-usage' } }
  const figures = figuresOf(answer.usage)
  const { sent, against } = pending
  const counted = countMessages(sent.messages, rules.profile.cache.collapsesToolRuns, against?.counted)
  const judged = judge({ pending, answer, usage: answer.usage, figures, counted, rules })
  const { outcome } = judged
  const parent = parentKey(sent.source, sent.forkOf)
  if (parent !== null) {
    const settled = withWatched(watch, key, { ...own, pending: null })
    return { watch: outcome.kind === 'read' ? refreshed(settled, parent, pending) : settled, outcome }
  }
  const last = pending.isOutdated ? null : answered(pending, { ...judged, ...figures, counted })
  return { watch: withWatched(watch, key, { ...own, last, pending: null }), outcome }
}

/** A fork leaves nothing behind for its parent, but what it read lives longer. */
function refreshed(watch: CacheWatch, parent: string, { sent, against }: Pending): CacheWatch {
  const watched = watch.sources.get(parent)
  if (watched?.last == null || watched.last !== against) return watch
  const usedAt = Math.max(watched.last.usedAt, sent.at)
  return { sources: new Map(watch.sources).set(parent, { ...watched, last: { ...watched.last, usedAt } }) }
}

interface Learnt extends Judged, CacheFigures {
  readonly counted: Counted
}

function answered({ sent, against }: Pending, learnt: Learnt): Answered {
  const { cached, counted } = learnt
  const entries = withEntry(entriesKept(against, learnt), sent, cached)
  return { sent, cached, usedAt: sent.at, entries, counted }
}

/** Entries that are still a beginning of the conversation, in the same cache and counted alike. */
function entriesKept(
  against: Answered | null,
  { parting, differences, isEdited }: Judged,
): readonly CachedEntry[] {
  if (against === null || isEdited || differences.some(isElsewhere)) return []
  if (parting === null) return against.entries
  return against.entries.filter(({ place }) => isBefore(place, parting))
}

function isElsewhere(difference: Judged['differences'][number]): boolean {
  const zone = zoneOf(difference)
  return zone !== null && zone !== 'messages'
}

// When a read is too small, by how much, and what that cost.

export interface Reading {
  /** What should have been read: what the last call left behind, as far as this one repeats it. */
  readonly expected: number
  /** What the call was billed for. */
  readonly tokens: TokensByClass
}

/**
 * What had to be processed again. More cannot have been than was paid for: what is missing from the read and
 * was not paid for either is no longer in the request.
 */
export function tokensLost({ expected, tokens }: Reading): number {
  return Math.max(0, Math.min(expected - tokens.cacheRead, paidAnew(tokens)))
}

export type BreakLimits = Pick<BreaksPolicy, 'percent' | 'tokens'>

/** More than so many per cent and more than so many tokens below what was expected. */
export function isBreak(reading: Reading, { percent, tokens }: BreakLimits): boolean {
  const lost = tokensLost(reading)
  return lost > tokens && lost * 100 > reading.expected * percent
}

/** The rates in force for a call of that usage; null where the model has no prices. */
export function ratesOf(usage: Usage, tokens: TokensByClass, prices: Prices | null): Rates | null {
  if (prices === null) return null
  return scaled(ratesFor(prices, paidAnew(tokens) + tokens.cacheRead), factorOf(usage, prices).factor)
}

/** Dollars paid above the price of a read; null where a price that counts is not known. */
export function moneyLost(lost: number, tokens: TokensByClass, rates: Rates | null): number | null {
  if (lost === 0) return 0
  const paid = rates === null ? null : paidFor(lost, tokens, rates)
  if (rates === null || paid === null || rates.cacheRead === null) return null
  return (paid - lost * rates.cacheRead) / 1_000_000
}

/** What is written comes before what is not: a marker stands at its end. Within what is written the lifetimes share. */
function paidFor(lost: number, { write5m, write1h }: TokensByClass, rates: Rates): number | null {
  const written = Math.min(lost, write5m + write1h)
  const share = written === 0 ? 0 : written / (write5m + write1h)
  const parts = [
    { tokens: write5m * share, rate: rates.write5m },
    { tokens: write1h * share, rate: rates.write1h },
    { tokens: lost - written, rate: rates.input },
  ]
  return parts.reduce<number | null>((sum, { tokens, rate }) => {
    if (tokens === 0 || sum === null) return sum
    return rate === null ? null : sum + tokens * rate
  }, 0)
}

// The facts a reason rests on, in words: figures first, then what backs or limits the reason.

export interface Facts {
  readonly expected: number
  readonly read: number
  readonly gapMs: number
  readonly explanation: Explanation
  readonly word: ProviderWord | null
}

export function evidenceOf({ expected, read, gapMs, explanation, word }: Facts): string {
  const { reason, also } = explanation
  const others = also.map(factOf)
  return [
    `${countText(read)} of ${countText(expected)} expected tokens were read, ${durationText(gapMs)} after the request before`,
    ...(others.length === 0 ? [] : [`also: ${others.join('; ')}`]),
    ...(word === null ? [] : [wordText(word, word.zone === zoneOf(reason))]),
  ].join('. ')
}

function wordText({ said, missedTokens, isVague }: ProviderWord, agrees: boolean): string {
  const size = missedTokens === null ? '' : ` (${countText(missedTokens)} tokens)`
  if (isVague === true) return `the provider ${agrees ? 'may agree' : 'cannot tell'}: ${said}${size}`
  return `the provider ${agrees ? 'agrees' : 'says otherwise'}: ${said}${size}`
}
