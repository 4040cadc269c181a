/** After a call: was the cache read as it should have been, and if not, was it our own doing, and what did it cost? */

import { factorOf, type Prices, type Rates, ratesFor, scaled } from '../cost/prices.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import { type BlockPosition, countBefore, firstDifference } from '../request/block-index.ts'
import type { TokensByClass } from '../tokens/usage.ts'
import {
  type ActPaid,
  type BreakEvent,
  type CacheFigures,
  type Difference,
  type MessageDifference,
  type OwnAct,
  type PricedAnnouncement,
  paidAnew,
  type Reason,
  toCacheFigures,
} from './cache-break.ts'
import { expectWholeRead, lastPrefix, messageBlocks, readableTokens } from './cache-model.ts'
import {
  type AnsweredRequest,
  type BreakRules,
  type CacheAnswer,
  type CacheOutcome,
  type CacheWatch,
  type PendingRequest,
  parentKey,
  UNWATCHED,
  watchKey,
  withWatched,
} from './cache-monitor.ts'
import {
  actSentence,
  breakSentence,
  explainMiss,
  findLapse,
  findZone,
  listEvidence,
} from './explain-break.ts'
import { diffText, messageDifference, requestDifferences } from './request-diff.ts'

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
  const { sent, forecast, isOutdated } = pending
  const outcome = detectBreak(pending, answer, answer.usage, rules)
  const { counted } = forecast.asked.request
  const answered: AnsweredRequest | null = isOutdated ? null : { sent, counted }
  // A fork leaves nothing that later requests are compared with.
  const last = parentKey(sent.source, sent.forkOf) === null ? answered : own.last
  return { watch: withWatched(watch, key, { ...own, last, pending: null }), outcome }
}

function detectBreak(
  pending: PendingRequest,
  answer: CacheAnswer,
  usage: Usage,
  rules: BreakRules,
): CacheOutcome {
  const { against, announced } = pending
  if (against === null) return { kind: 'first' }
  const figures = toCacheFigures(usage)
  if (answer.isEdited === true || figures.isCompacted)
    return { kind: 'not-judged', why: 'edited-by-provider' }
  const expectation = expectRead(pending, against, rules)
  const expected = withoutDeleted(expectation.tokens, announced, figures)
  if (expected === null) return { kind: 'not-judged', why: 'deletion-not-told' }
  const rates = ratesOf(usage, figures.first, rules.prices)
  const input = { pending, against, answer, rules, expectation, rates }
  const reading = { expected, tokens: figures.first }
  if (isBreak(reading, rules.policy)) {
    const broke = reportBreak(input, reading)
    return isStripped(pending, broke, rules)
      ? readAsExpected({ ...reading, expected: pending.forecast.read })
      : broke
  }
  const act = announced.find(({ kind }) => kind === 'clearing' || kind === 'cache-edits')
  return act === undefined ? readAsExpected(reading) : chargeAct(input, act, reading)
}

interface BreakInput {
  readonly pending: PendingRequest
  readonly against: AnsweredRequest
  readonly answer: CacheAnswer
  readonly rules: BreakRules
  readonly expectation: Expectation
  readonly rates: Rates | null
}

interface Expectation {
  readonly tokens: number
  /** Where the request stops repeating the last one within what was cached; null if it repeats all of that. */
  readonly position: BlockPosition | null
  /** What became of the messages there; null if they are unchanged, or were taken back by a rewind. */
  readonly change: MessageDifference | null
  /** Tokens before that position that can certainly still be read. */
  readonly floor: number
}

/** What the last request left in the cache, as far as this one repeats it. */
function expectRead(
  { sent, forecast, chain, announced }: PendingRequest,
  against: AnsweredRequest,
  { profile }: BreakRules,
): Expectation {
  if (chain === null) return { tokens: 0, position: null, change: null, floor: 0 }
  const isClearing = announced.some(({ kind }) => kind === 'clearing')
  const { request } = forecast.asked
  const whole = expectWholeRead(chain, request, profile)
  const left = lastPrefix(chain)
  const position = firstDifference(against.sent.messages, sent.messages)
  const shared =
    position === null ? null : countBefore(against.counted, position.message).blocks + position.block
  if (position === null || shared === null || left === null || messageBlocks(left, chain) <= shared) {
    // A clearing that the messages do not show is done by the provider, at a place that is not known.
    return { tokens: isClearing ? 0 : whole, position: null, change: null, floor: 0 }
  }
  const floor = readableTokens(chain, request, profile, { within: shared, at: sent.at })
  const change = messageDifference(against.sent, sent, position)
  return { tokens: change === null || isClearing ? floor : whole, position, change, floor }
}

/** Less what the provider was asked to delete and reports as deleted; null if it does not report it. */
function withoutDeleted(
  expected: number,
  announced: readonly PricedAnnouncement[],
  { deleted }: CacheFigures,
): number | null {
  const edits = announced.find((announcement) => announcement.kind === 'cache-edits')
  if (edits === undefined) return expected
  return deleted === null ? null : Math.max(0, expected - Math.max(0, deleted - edits.deletedBefore))
}

/**
 * A model that strips the thinking of finished turns rewrites its prompt by itself. If the forecast knew that, and
 * nothing else is seen, what was read is all that could be.
 */
function isStripped(
  { forecast }: PendingRequest,
  { event }: Broke,
  { profile, policy }: BreakRules,
): boolean {
  return (
    profile.thinking.stripsFinishedTurns &&
    forecast.asked.knowsMarkers &&
    forecast.why === 'rewritten' &&
    event.reason.kind === 'evicted' &&
    event.read >= forecast.read - policy.tokens
  )
}

type Broke = Extract<CacheOutcome, { readonly kind: 'broke' }>

function readAsExpected({ expected, tokens }: Reading): CacheOutcome {
  return { kind: 'read', expected, read: tokens.cacheRead }
}

/** An announced clearing or deletion: what it made necessary to process again is its price, and no break. */
function chargeAct(input: BreakInput, act: PricedAnnouncement, reading: Reading): CacheOutcome {
  const { pending, rates, rules } = input
  const left = pending.chain === null ? null : lastPrefix(pending.chain)
  // Of what was cached, only what the act left in the request can have been processed again.
  const kept =
    act.kind === 'cache-edits' ? reading.expected : Math.max(0, (left?.tokens ?? 0) - (act.freedTokens ?? 0))
  if (findLapse(pending) !== null) {
    // The cache had expired before the act: the loss is not its price.
    const lapsed = { ...reading, expected: kept }
    return isBreak(lapsed, rules.policy) ? reportBreak(input, lapsed, false) : readAsExpected(lapsed)
  }
  const tokensRewritten = tokensLost({ expected: kept, tokens: reading.tokens })
  if (tokensRewritten === 0) return readAsExpected(reading)
  const moneySpent = moneyLost(tokensRewritten, reading.tokens, rates)
  const own = toOwnAct(act, moneySpent, rates)
  const sentence = actSentence(own, { tokens: tokensRewritten, dollars: moneySpent })
  const { at, source } = pending.sent
  const paid: ActPaid = { ...own, at, source, tokensRewritten, moneySpent, sentence }
  return { kind: 'ours', act: paid }
}

/** `blamesMessages`: a change of messages may be the cause. */
function reportBreak(input: BreakInput, reading: Reading, blamesMessages = true): Broke {
  const { pending, against, answer, expectation, rates } = input
  const { at, source, parameters } = pending.sent
  const { expected, tokens } = reading
  const read = tokens.cacheRead
  const all = listDifferences(pending, against, expectation.change)
  const differences = blamesMessages ? all : all.filter(({ kind }) => !kind.startsWith('message-'))
  const provider = answer.word ?? null
  const explanation = explainMiss({ ...input, differences, read, word: provider })
  const { reason } = explanation
  const lost = tokensLost(reading)
  const dollars = moneyLost(lost, tokens, rates)
  const act = findActBehind(pending.announced, reason)
  const ours = act === null ? null : toOwnAct(act, dollars, rates)
  const usedAt = pending.chain === null ? null : lastPrefix(pending.chain)?.usedAt
  const gapMs = at - (usedAt ?? against.sent.at)
  const event: BreakEvent = {
    at,
    source,
    model: parameters.model,
    ...explanation,
    expected,
    read,
    tokensLost: lost,
    moneyLost: dollars,
    evidence: listEvidence(explanation, { expected, read, gapMs }, provider),
    provider,
    ours,
    sentence: breakSentence(reason, { tokens: lost, dollars }, ours),
  }
  const question = { before: against.sent, after: pending.sent, differences, position: expectation.position }
  return { kind: 'broke', event, diff: (redact) => diffText(question, redact) }
}

/** A fork's own lifetime does not count: it writes nothing that is kept for it. */
function listDifferences(
  { sent, forecast }: PendingRequest,
  against: AnsweredRequest,
  change: MessageDifference | null,
): readonly Difference[] {
  const isFork = parentKey(sent.source, sent.forkOf) !== null
  const found = requestDifferences(against.sent, sent, [against.counted, forecast.asked.request.counted])
  const own = found.filter(({ kind }) => !isFork || kind !== 'marker-ttl-changed')
  return change === null ? own : [...own, change]
}

// Which announced act a loss belongs to, and when that act will have paid for itself.

/** A rewrite of the zone in which the reason lies, or a clearing if messages changed. */
function findActBehind(announced: readonly PricedAnnouncement[], reason: Reason): PricedAnnouncement | null {
  const zone = findZone(reason)
  const found = announced.find((announcement) =>
    announcement.kind === 'rewrite' ? announcement.zone === zone : zone === 'messages',
  )
  return found ?? null
}

/**
 * `cost`: what it really came to, above the price of a read; null if unknown. Each later call no longer reads the
 * freed tokens: with L tokens written again at w and E freed, (w / r − 1) · L / E calls.
 */
function toOwnAct(announcement: PricedAnnouncement, cost: number | null, rates: Rates | null): OwnAct {
  const { act, freedTokens = 0, breakEvenTurns: planned = null } = announcement
  const saved = (freedTokens * (rates?.cacheRead ?? 0)) / 1_000_000
  const breakEven = cost === null || saved <= 0 ? null : Math.max(0, Math.ceil(cost / saved))
  return { act, breakEvenTurns: breakEven ?? planned }
}

// When a read is too small, by how much, and what that cost.

export interface Reading {
  /** Tokens that should have been read. */
  readonly expected: number
  /** What the call was billed for. */
  readonly tokens: TokensByClass
}

/**
 * Tokens that had to be processed again: at most what was paid for. What is missing from the read and was not paid
 * for either is no longer in the request.
 */
export function tokensLost({ expected, tokens }: Reading): number {
  return Math.max(0, Math.min(expected - tokens.cacheRead, paidAnew(tokens)))
}

/** More than so many per cent and more than so many tokens below what was expected. */
export function isBreak(
  reading: Reading,
  { percent, tokens }: Pick<BreaksPolicy, 'percent' | 'tokens'>,
): boolean {
  const lost = tokensLost(reading)
  return lost > tokens && lost * 100 > reading.expected * percent
}

/** The rates in force for a call of that usage; null if the model has no prices. */
export function ratesOf(usage: Usage, tokens: TokensByClass, prices: Prices | null): Rates | null {
  if (prices === null) return null
  return scaled(ratesFor(prices, paidAnew(tokens) + tokens.cacheRead), factorOf(usage, prices).factor)
}

/** Dollars paid above the price of a read; null if a price that counts is unknown. */
export function moneyLost(lost: number, tokens: TokensByClass, rates: Rates | null): number | null {
  if (lost === 0) return 0
  const paid = rates === null ? null : pricePaid(lost, tokens, rates)
  if (rates === null || paid === null || rates.cacheRead === null) return null
  return (paid - lost * rates.cacheRead) / 1_000_000
}

/** What is written comes first, since a marker stands at its end; lifetimes share what is written. */
function pricePaid(lost: number, { write5m, write1h }: TokensByClass, rates: Rates): number | null {
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
