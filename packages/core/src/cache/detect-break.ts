/** After a call: was the cache read as it should have been, and if not, was it our own doing, and what did it cost? */

import { findPriceFactor, findRates, type ModelPrices, scaleRates, type TokenRates } from '../cost/prices.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import { type BlockPosition, firstDifference, totalsBeforeMessage } from '../request/block-index.ts'
import type { TokensByClass } from '../tokens/usage.ts'
import {
  type CacheBreak,
  type CacheBreakReason,
  type CacheFigures,
  countUncachedTokens,
  type MessageDifference,
  type OwnRewrite,
  type OwnRewriteCost,
  type PricedAnnouncement,
  type RequestDifference,
  toCacheFigures,
} from './cache-break.ts'
import { countMessageBlocks, countReadableTokens, expectFullRead, findLastPrefix } from './cache-model.ts'
import {
  type AnsweredRequest,
  type BreakRules,
  type CacheCheckInput,
  type CacheCheckOutcome,
  type CacheMonitor,
  EMPTY_SOURCE_STATE,
  findParentKey,
  type PendingRequest,
  toMonitorKey,
  withSourceState,
} from './cache-monitor.ts'
import {
  describeBreak,
  describeOwnRewrite,
  explainMiss,
  findExpiry,
  findReasonZone,
  listEvidence,
} from './explain-break.ts'
import { diffRequests, findMessageDifference, formatRequestDiff } from './request-diff.ts'

export interface CacheCheckResult {
  readonly monitor: CacheMonitor
  readonly outcome: CacheCheckOutcome
}

export function checkCacheRead(
  watch: CacheMonitor,
  answer: CacheCheckInput,
  rules: BreakRules,
): CacheCheckResult {
  const key = toMonitorKey(answer.source)
  const own = watch.sources.get(key) ?? EMPTY_SOURCE_STATE
  const { pending } = own
  if (pending === null) return { monitor: watch, outcome: { kind: 'not-judged', why: 'not-watched' } }
  if (answer.usage === null) return { monitor: watch, outcome: { kind: 'not-judged', why: 'no-usage' } }
  const { sent, forecast, isOutdated } = pending
  const outcome = detectBreak(pending, answer, answer.usage, rules)
  const { blockIndex } = forecast.basis.request
  const answered: AnsweredRequest | null = isOutdated ? null : { sent, blockIndex }
  // A fork leaves nothing that later requests are compared with.
  const last = findParentKey(sent.source, sent.forkOf) === null ? answered : own.last
  return { monitor: withSourceState(watch, key, { ...own, last, pending: null }), outcome }
}

function detectBreak(
  pending: PendingRequest,
  answer: CacheCheckInput,
  usage: Usage,
  rules: BreakRules,
): CacheCheckOutcome {
  const { previous, announced } = pending
  if (previous === null) return { kind: 'first' }
  const figures = toCacheFigures(usage)
  if (answer.isEdited === true || figures.isCompacted)
    return { kind: 'not-judged', why: 'edited-by-provider' }
  const expectation = expectRead(pending, previous, rules)
  const expected = subtractDeleted(expectation.tokens, announced, figures)
  if (expected === null) return { kind: 'not-judged', why: 'deletion-not-told' }
  const rates = toCallRates(usage, figures.first, rules.prices)
  const input = { pending, against: previous, answer, rules, expectation, rates }
  const reading = { expected, tokens: figures.first }
  if (isCacheBreak(reading, rules.policy)) {
    const broke = reportBreak(input, reading)
    return isExplainedByStripping(pending, broke, rules)
      ? toReadOutcome({ ...reading, expected: pending.forecast.read })
      : broke
  }
  const act = announced.find(({ kind }) => kind === 'clearing' || kind === 'cache-edits')
  return act === undefined ? toReadOutcome(reading) : chargeRewrite(input, act, reading)
}

interface BreakInput {
  readonly pending: PendingRequest
  readonly against: AnsweredRequest
  readonly answer: CacheCheckInput
  readonly rules: BreakRules
  readonly expectation: ReadExpectation
  readonly rates: TokenRates | null
}

interface ReadExpectation {
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
): ReadExpectation {
  if (chain === null) return { tokens: 0, position: null, change: null, floor: 0 }
  const isClearing = announced.some(({ kind }) => kind === 'clearing')
  const { request } = forecast.basis
  const whole = expectFullRead(chain, request, profile)
  const left = findLastPrefix(chain)
  const position = firstDifference(against.sent.messages, sent.messages)
  const shared =
    position === null
      ? null
      : totalsBeforeMessage(against.blockIndex, position.message).blocks + position.block
  if (position === null || shared === null || left === null || countMessageBlocks(left, chain) <= shared) {
    // A clearing that the messages do not show is done by the provider, at a place that is not known.
    return { tokens: isClearing ? 0 : whole, position: null, change: null, floor: 0 }
  }
  const floor = countReadableTokens(chain, request, profile, { within: shared, at: sent.at })
  const change = findMessageDifference(against.sent, sent, position)
  return { tokens: change === null || isClearing ? floor : whole, position, change, floor }
}

/** Less what the provider was asked to delete and reports as deleted; null if it does not report it. */
function subtractDeleted(
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
function isExplainedByStripping(
  { forecast }: PendingRequest,
  { event }: BreakOutcome,
  { profile, policy }: BreakRules,
): boolean {
  return (
    profile.thinking.stripsFinishedTurns &&
    forecast.basis.knowsMarkers &&
    forecast.why === 'rewritten' &&
    event.reason.kind === 'evicted' &&
    event.read >= forecast.read - policy.tokens
  )
}

type BreakOutcome = Extract<CacheCheckOutcome, { readonly kind: 'broke' }>

function toReadOutcome({ expected, tokens }: CacheReading): CacheCheckOutcome {
  return { kind: 'read', expected, read: tokens.cacheRead }
}

/** An announced clearing or deletion: what it made necessary to process again is its price, and no break. */
function chargeRewrite(input: BreakInput, act: PricedAnnouncement, reading: CacheReading): CacheCheckOutcome {
  const { pending, rates, rules } = input
  const left = pending.chain === null ? null : findLastPrefix(pending.chain)
  // Of what was cached, only what the act left in the request can have been processed again.
  const kept =
    act.kind === 'cache-edits' ? reading.expected : Math.max(0, (left?.tokens ?? 0) - (act.freedTokens ?? 0))
  if (findExpiry(pending) !== null) {
    // The cache had expired before the act: the loss is not its price.
    const lapsed = { ...reading, expected: kept }
    return isCacheBreak(lapsed, rules.policy) ? reportBreak(input, lapsed, false) : toReadOutcome(lapsed)
  }
  const tokensRewritten = countTokensLost({ expected: kept, tokens: reading.tokens })
  if (tokensRewritten === 0) return toReadOutcome(reading)
  const moneySpent = priceTokensLost(tokensRewritten, reading.tokens, rates)
  const own = toOwnRewrite(act, moneySpent, rates)
  const sentence = describeOwnRewrite(own, { tokens: tokensRewritten, dollars: moneySpent })
  const { at, source } = pending.sent
  const paid: OwnRewriteCost = { ...own, at, source, tokensRewritten, moneySpent, sentence }
  return { kind: 'ours', act: paid }
}

/** `blamesMessages`: a change of messages may be the cause. */
function reportBreak(input: BreakInput, reading: CacheReading, blamesMessages = true): BreakOutcome {
  const { pending, against, answer, expectation, rates } = input
  const { at, source, parameters } = pending.sent
  const { expected, tokens } = reading
  const read = tokens.cacheRead
  const all = listDifferences(pending, against, expectation.change)
  const differences = blamesMessages ? all : all.filter(({ kind }) => !kind.startsWith('message-'))
  const provider = answer.word ?? null
  const explanation = explainMiss({ ...input, differences, read, word: provider })
  const { reason } = explanation
  const lost = countTokensLost(reading)
  const dollars = priceTokensLost(lost, tokens, rates)
  const act = findResponsibleRewrite(pending.announced, reason)
  const ours = act === null ? null : toOwnRewrite(act, dollars, rates)
  const usedAt = pending.chain === null ? null : findLastPrefix(pending.chain)?.usedAt
  const gapMs = at - (usedAt ?? against.sent.at)
  const event: CacheBreak = {
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
    sentence: describeBreak(reason, { tokens: lost, dollars }, ours),
  }
  const question = { before: against.sent, after: pending.sent, differences, position: expectation.position }
  return { kind: 'broke', event, diff: (redact) => formatRequestDiff(question, redact) }
}

/** A fork's own lifetime does not count: it writes nothing that is kept for it. */
function listDifferences(
  { sent, forecast }: PendingRequest,
  against: AnsweredRequest,
  change: MessageDifference | null,
): readonly RequestDifference[] {
  const isFork = findParentKey(sent.source, sent.forkOf) !== null
  const found = diffRequests(against.sent, sent, [against.blockIndex, forecast.basis.request.blockIndex])
  const own = found.filter(({ kind }) => !isFork || kind !== 'marker-ttl-changed')
  return change === null ? own : [...own, change]
}

// Which announced act a loss belongs to, and when that act will have paid for itself.

/** A rewrite of the zone in which the reason lies, or a clearing if messages changed. */
function findResponsibleRewrite(
  announced: readonly PricedAnnouncement[],
  reason: CacheBreakReason,
): PricedAnnouncement | null {
  const zone = findReasonZone(reason)
  const found = announced.find((announcement) =>
    announcement.kind === 'rewrite' ? announcement.zone === zone : zone === 'messages',
  )
  return found ?? null
}

/**
 * `cost`: what it really came to, above the price of a read; null if unknown. Each later call no longer reads the
 * freed tokens: with L tokens written again at w and E freed, (w / r − 1) · L / E calls.
 */
function toOwnRewrite(
  announcement: PricedAnnouncement,
  cost: number | null,
  rates: TokenRates | null,
): OwnRewrite {
  const { act, freedTokens = 0, breakEvenTurns = null } = announcement
  const saved = (freedTokens * (rates?.cacheRead ?? 0)) / 1_000_000
  const breakEven = cost === null || saved <= 0 ? null : Math.max(0, Math.ceil(cost / saved))
  return { act, breakEvenTurns: breakEven ?? breakEvenTurns }
}

// When a read is too small, by how much, and what that cost.

export interface CacheReading {
  /** Tokens that should have been read. */
  readonly expected: number
  /** What the call was billed for. */
  readonly tokens: TokensByClass
}

/**
 * Tokens that had to be processed again: at most what was paid for. What is missing from the read and was not paid
 * for either is no longer in the request.
 */
export function countTokensLost({ expected, tokens }: CacheReading): number {
  return Math.max(0, Math.min(expected - tokens.cacheRead, countUncachedTokens(tokens)))
}

/** More than so many per cent and more than so many tokens below what was expected. */
export function isCacheBreak(
  reading: CacheReading,
  { percent, tokens }: Pick<BreaksPolicy, 'percent' | 'tokens'>,
): boolean {
  const lost = countTokensLost(reading)
  return lost > tokens && lost * 100 > reading.expected * percent
}

/** The rates in force for a call of that usage; null if the model has no prices. */
export function toCallRates(
  usage: Usage,
  tokens: TokensByClass,
  prices: ModelPrices | null,
): TokenRates | null {
  if (prices === null) return null
  return scaleRates(
    findRates(prices, countUncachedTokens(tokens) + tokens.cacheRead),
    findPriceFactor(usage, prices).factor,
  )
}

/** Dollars paid above the price of a read; null if a price that counts is unknown. */
export function priceTokensLost(
  lost: number,
  tokens: TokensByClass,
  rates: TokenRates | null,
): number | null {
  if (lost === 0) return 0
  const paid = rates === null ? null : sumPricePaid(lost, tokens, rates)
  if (rates === null || paid === null || rates.cacheRead === null) return null
  return (paid - lost * rates.cacheRead) / 1_000_000
}

/** What is written comes first, since a marker stands at its end; lifetimes share what is written. */
function sumPricePaid(lost: number, { write5m, write1h }: TokensByClass, rates: TokenRates): number | null {
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
