/**
 * Checks after each model call whether as much was read from the cache as expected. If not, finds out whether the
 * engine's own rewrite was the cause, and what the lost tokens cost.
 */

import {
  findPriceFactor,
  findTierRates,
  type ModelPrices,
  scaleRates,
  type TokenRates,
} from '../cost/prices.ts'
import { isToolUse } from '../log/block.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import type { CacheBreaksPolicy } from '../policy/cache-policy.ts'
import {
  type BlockPosition,
  countMessages,
  findFirstChangedBlock,
  findMessageAt,
  readTotalsBeforeMessage,
  toMessageBlocks,
} from '../request/block-index.ts'
import type { TokensByPriceClass } from '../tokens/usage.ts'
import {
  type CacheBreak,
  type CacheBreakReason,
  type CacheTokenCounts,
  type MessageDifference,
  type OwnRewrite,
  type OwnRewriteCost,
  type PricedAnnouncement,
  type RequestDifference,
  toCacheTokenCounts,
} from './cache-break-types.ts'
import {
  countExpectedReadTokens,
  countPrefixMessageBlocks,
  countReadableTokens,
  findLastCachedPrefix,
} from './cache-model.ts'
import {
  type AnsweredRequest,
  type CacheBreakRules,
  type CacheCheckInput,
  type CacheCheckOutcome,
  type CacheMonitor,
  type ContextEditsChange,
  EMPTY_CALLER_STATE,
  findForkParentKey,
  type NotJudgedReason,
  type PendingRequest,
  type ReportedContextEdits,
  toCallerKey,
  withCallerState,
} from './cache-monitor.ts'
import {
  describeBreak,
  describeOwnRewrite,
  explainCacheMiss,
  findExpiredCause,
  findReasonZone,
  formatBreakEvidence,
} from './explain-break.ts'
import { classifyMessageDifference, diffRequests, formatRequestDiff } from './request-diff.ts'

/**
 * Compares the cache read of a response with the forecast for its request. Returns the outcome, and the monitor, in which
 * a judged request is no longer pending. `isEdited`: the provider's edits differ from those of the request before.
 */
export function judgeCacheRead(
  watch: CacheMonitor,
  answer: CacheCheckInput,
  rules: CacheBreakRules,
): CacheCheckResult {
  const key = toCallerKey(answer.source)
  const own = watch.sources.get(key) ?? EMPTY_CALLER_STATE
  const { pending } = own
  const before = pending?.previous?.edits ?? null
  const edits = findEdits(before, answer)
  const change = compareEdits(before, edits)
  const isEdited = change !== 'same'
  const skip = (why: NotJudgedReason): CacheCheckResult => ({
    monitor: watch,
    outcome: { kind: 'not-judged', why },
    isEdited,
  })
  if (pending === null) return skip('not-watched')
  if (answer.usage === null) return skip('no-usage')
  const { sent, forecast, isOutdated } = pending
  const edited = withProviderClearing(pending, edits, change)
  const found = detectBreak(edited, answer, answer.usage, rules)
  const isOwnCache = rules.profile.cache.kind === 'prefix'
  const hasRead = watch.hasRead || (isOwnCache && toCacheTokenCounts(answer.usage).lastRead > 0)
  const isJudged = found.kind !== 'broke' || isPromised(found, hasRead, rules)
  const outcome: CacheCheckOutcome = isJudged ? found : { kind: 'not-judged', why: 'best-effort' }
  const { blockIndex } = forecast.basis.request
  const answered: AnsweredRequest | null = isOutdated ? null : { sent, blockIndex, edits }
  // A fork is never the API request that later requests are compared with.
  const last = findForkParentKey(sent.source, sent.forkOf) === null ? answered : own.last
  const monitor = withCallerState({ ...watch, hasRead }, key, { ...own, last, pending: null })
  return { monitor, outcome, isEdited }
}

/**
 * False for a cache break of a provider that caches by itself without a promise, if it has never reported a cache read, or
 * if nothing explains the break.
 */
function isPromised(
  { event }: BreakOutcome,
  hasRead: boolean,
  { profile, countsUnpromised = false }: CacheBreakRules,
): boolean {
  if (profile.cache.kind !== 'prefix') return true
  return hasRead && (countsUnpromised || event.reason.kind !== 'evicted')
}

interface CacheCheckResult {
  readonly monitor: CacheMonitor
  readonly outcome: CacheCheckOutcome
  /** The provider's edits changed, so sizes of message prefixes that earlier responses showed no longer apply. */
  readonly isEdited: boolean
}

// Context edits that the provider makes by itself: whether a response reports more than the previous one, and which part
// of the API request a new clearing leaves readable in the cache.

function compareEdits(
  before: ReportedContextEdits | null,
  now: ReportedContextEdits | null,
): ContextEditsChange {
  const results = (now?.results ?? 0) - (before?.results ?? 0)
  const turns = (now?.thinkingTurns ?? 0) - (before?.thinkingTurns ?? 0)
  if (results < 0 || turns < 0) return 'fewer'
  if (results > 0 || turns > 0) return 'more'
  const isKnown = now !== null && now.results + now.thinkingTurns > 0
  return isKnown || now?.text === before?.text ? 'same' : 'unknown'
}

/** Returns the edits that a response reports or, if it broke off before that, those that its API request asked for. */
function findEdits(
  before: ReportedContextEdits | null,
  { edits = null, requestedClearing }: Pick<CacheCheckInput, 'edits' | 'requestedClearing'>,
): ReportedContextEdits | null {
  if (requestedClearing === undefined) return edits
  const { results, tokens, firstCleared } = requestedClearing
  if (results === 0) return before
  return {
    results: (before?.results ?? 0) + results,
    thinkingTurns: before?.thinkingTurns ?? 0,
    tokens: (before?.tokens ?? 0) + tokens,
    text: before?.text ?? '',
    ...(firstCleared === undefined ? {} : { firstCleared }),
  }
}

/** A pending API request with what its response says about the provider's edits. */
interface RequestWithReportedEdits extends PendingRequest {
  readonly change: ContextEditsChange
  /** Message blocks before the first one that the provider newly cleared; null if it cleared nothing more. */
  readonly blocksBeforeClearing: number | null
}

/**
 * Adds a clearing that the provider made for this API request to the announced rewrites, so that its cost is counted as
 * the rewrite's. A fork should make the provider clear no more than its parent did, so a further loss is a cache break.
 */
function withProviderClearing(
  pending: PendingRequest,
  edits: ReportedContextEdits | null,
  change: ContextEditsChange,
): RequestWithReportedEdits {
  const before = pending.previous?.edits ?? null
  const { source, forkOf } = pending.sent
  const isFork = findForkParentKey(source, forkOf) !== null
  if (edits === null || change !== 'more' || pending.previous === null || isFork)
    return { ...pending, change, blocksBeforeClearing: null }
  const results = edits.results - (before?.results ?? 0)
  const turns = edits.thinkingTurns - (before?.thinkingTurns ?? 0)
  const clearing: PricedAnnouncement = {
    kind: 'clearing',
    act: describeProviderClearing(results, turns),
    freedTokens: Math.max(0, edits.tokens - (before?.tokens ?? 0)),
  }
  return {
    ...pending,
    announced: [...pending.announced, clearing],
    change,
    // Thinking is cleared from the first message on.
    blocksBeforeClearing: turns > 0 ? 0 : countBlocksBeforeCall(pending, edits.firstCleared),
  }
}

function describeProviderClearing(results: number, turns: number): string {
  const count = (number: number, noun: string): readonly string[] =>
    number === 0 ? [] : [`${number} ${noun}${number === 1 ? '' : 's'}`]
  const what = [...count(results, 'result'), ...count(turns, 'turn')].join(' and the thinking of ')
  return `the provider cleared ${results === 0 ? 'the thinking of ' : ''}${what}`
}

/** Counts the message blocks before a tool call; 0 if the API request does not show the call. */
function countBlocksBeforeCall({ sent, forecast }: PendingRequest, id: string | undefined): number {
  const { messages } = sent
  for (let index = 0; id !== undefined && index < countMessages(messages); index += 1) {
    const message = findMessageAt(messages, index)
    const blocks = message?.message.role === 'assistant' ? toMessageBlocks(message) : []
    const place = blocks.findIndex((block) => isToolUse(block) && block.id === id)
    if (place !== -1) return readTotalsBeforeMessage(forecast.basis.request.blockIndex, index).blocks + place
  }
  return 0
}

/**
 * Returns the most tokens that a fork behind its parent can read; infinity for any other request. A fork that runs
 * beside the turn has its markers where the conversation was cached when the fork was built. If a request of the parent
 * is answered before the fork is sent, the fork cannot reach what that request cached.
 */
function findForkLimit({ sent, forecast }: PendingRequest): number {
  const isFork = findForkParentKey(sent.source, sent.forkOf) !== null
  const isBehind = isFork && forecast.why === 'out-of-reach' && forecast.isCertain
  return isBehind ? forecast.read : Number.POSITIVE_INFINITY
}

/**
 * Returns the answered request that a pending one is compared with; null if none is known. A fork whose parent is not
 * known, as after an undo, is compared with itself: it should read what the cache model forecasts.
 */
function findComparedRequest({ sent, forecast, previous }: PendingRequest): AnsweredRequest | null {
  const isFork = findForkParentKey(sent.source, sent.forkOf) !== null
  if (previous !== null || !isFork || forecast.read === 0) return previous
  return { sent, blockIndex: forecast.basis.request.blockIndex, edits: null }
}

/** Compares the read with the expectation: a break, the cost of an announced rewrite, or an ordinary read. */
function detectBreak(
  pending: RequestWithReportedEdits,
  answer: CacheCheckInput,
  usage: TokenUsage,
  rules: CacheBreakRules,
): CacheCheckOutcome {
  const { announced } = pending
  const against = findComparedRequest(pending)
  if (against === null) return { kind: 'first' }
  const figures = toCacheTokenCounts(usage)
  if (pending.change === 'unknown' || figures.isCompacted)
    return { kind: 'not-judged', why: 'edited-by-provider' }
  const expectation = expectRead(pending, against, rules)
  const expected = subtractDeleted(expectation.tokens, announced, figures)
  if (expected === null) return { kind: 'not-judged', why: 'deletion-not-told' }
  const reading = { expected, tokens: figures.first }
  const toInput = (): BreakInput => {
    const rates = findCallRates(usage, figures.first, rules.prices)
    return { pending, against, answer, rules, expectation, rates }
  }
  if (isCacheBreak(reading, rules.policy)) {
    const broke = reportBreak(toInput(), reading)
    return isExplainedByStripping(pending, broke, rules)
      ? toReadOutcome({ ...reading, expected: pending.forecast.read })
      : broke
  }
  const act = announced.find(({ kind }) => kind === 'clearing' || kind === 'cache-edits')
  return act === undefined ? toReadOutcome(reading) : chargeRewrite(toInput(), act, reading)
}

interface BreakInput {
  readonly pending: RequestWithReportedEdits
  readonly against: AnsweredRequest
  readonly answer: CacheCheckInput
  readonly rules: CacheBreakRules
  readonly expectation: ReadExpectation
  readonly rates: TokenRates | null
}

interface ReadExpectation {
  readonly tokens: number
  /**
   * First position where the API request differs from the cached messages of the previous request; null if it repeats
   * all cached messages.
   */
  readonly position: BlockPosition | null
  /** How the messages changed at `position`; null if they are unchanged, or if the user rewound the conversation. */
  readonly change: MessageDifference | null
  /** Tokens before `position` that can certainly still be read from the cache. */
  readonly floor: number
}

/**
 * Computes how many tokens the API request should read from the cache: what the previous request cached, less what an
 * announced clearing or a rewind removed.
 */
function expectRead(
  pending: RequestWithReportedEdits,
  against: AnsweredRequest,
  { profile }: CacheBreakRules,
): ReadExpectation {
  const { sent, forecast, previous, chain, announced, blocksBeforeClearing } = pending
  const known = previous === null ? forecast.read : 0
  if (chain === null) return { tokens: known, position: null, change: null, floor: 0 }
  const isClearing = announced.some(({ kind }) => kind === 'clearing')
  const { request } = forecast.basis
  const whole = Math.min(countExpectedReadTokens(chain, request, profile), findForkLimit(pending))
  const left = findLastCachedPrefix(chain)
  const position = findFirstChangedBlock(against.sent.messages, sent.messages)
  const shared =
    position === null
      ? null
      : readTotalsBeforeMessage(against.blockIndex, position.message).blocks + position.block
  if (
    position === null ||
    shared === null ||
    left === null ||
    countPrefixMessageBlocks(left, chain) <= shared
  ) {
    if (!isClearing) return { tokens: whole, position: null, change: null, floor: 0 }
    // The messages do not show the clearing, so the provider made it.
    const within = blocksBeforeClearing ?? 0
    const tokens = countReadableTokens(chain, request, profile, { within, at: sent.at })
    return { tokens, position: null, change: null, floor: 0 }
  }
  const within = Math.min(shared, blocksBeforeClearing ?? shared)
  const floor = countReadableTokens(chain, request, profile, { within, at: sent.at })
  const change = classifyMessageDifference(against.sent, sent, position)
  return { tokens: change === null || isClearing ? floor : whole, position, change, floor }
}

/**
 * Subtracts the tokens that the provider deleted from its cache at our request. Returns null if the provider does not
 * report their number.
 */
function subtractDeleted(
  expected: number,
  announced: readonly PricedAnnouncement[],
  { deleted }: CacheTokenCounts,
): number | null {
  const edits = announced.find((announcement) => announcement.kind === 'cache-edits')
  if (edits === undefined) return expected
  return deleted === null ? null : Math.max(0, expected - Math.max(0, deleted - edits.deletedBefore))
}

/**
 * Checks whether a small cache read is only due to thinking that the provider strips from finished turns. True if the
 * forecast predicted this, as much was read as forecast, and no other cause was found.
 */
function isExplainedByStripping(
  { forecast }: PendingRequest,
  { event }: BreakOutcome,
  { profile, policy }: CacheBreakRules,
): boolean {
  return (
    profile.thinking.stripsFinishedTurns &&
    forecast.basis.knowsMarkers &&
    forecast.why === 'rewritten' &&
    event.reason.kind === 'thinking-dropped' &&
    event.read >= forecast.read - policy.tokens
  )
}

type BreakOutcome = Extract<CacheCheckOutcome, { readonly kind: 'broke' }>

function toReadOutcome({ expected, tokens }: CacheReading): CacheCheckOutcome {
  return { kind: 'read', expected, read: tokens.cacheRead }
}

/** Reports the lost tokens as the cost of an announced clearing or deletion instead of a cache break. */
function chargeRewrite(input: BreakInput, act: PricedAnnouncement, reading: CacheReading): CacheCheckOutcome {
  const { pending, rates, rules } = input
  const left = pending.chain === null ? null : findLastCachedPrefix(pending.chain)
  // Cached tokens that are still in the API request after the rewrite. No other tokens can have been lost.
  const kept =
    act.kind === 'cache-edits' ? reading.expected : Math.max(0, (left?.tokens ?? 0) - (act.freedTokens ?? 0))
  if (findExpiredCause(pending, rules.profile.cache) !== null) {
    // The cache had expired before the rewrite, so the rewrite did not cause the loss.
    const lapsed = { ...reading, expected: kept }
    return isCacheBreak(lapsed, rules.policy) ? reportBreak(input, lapsed, false) : toReadOutcome(lapsed)
  }
  const tokensRewritten = countLostCacheTokens({ expected: kept, tokens: reading.tokens })
  if (tokensRewritten === 0) return toReadOutcome(reading)
  const moneySpent = priceLostCacheTokens(tokensRewritten, reading.tokens, rates)
  const own = toOwnRewrite(act, moneySpent, rates)
  const sentence = describeOwnRewrite(own, { tokens: tokensRewritten, dollars: moneySpent })
  const { at, source } = pending.sent
  const paid: OwnRewriteCost = { ...own, at, source, tokensRewritten, moneySpent, sentence }
  return { kind: 'ours', act: paid }
}

/** Builds the cache-break event. `blamesMessages`: true if a changed message may be reported as the cause. */
function reportBreak(input: BreakInput, reading: CacheReading, blamesMessages = true): BreakOutcome {
  const { pending, against, answer, expectation, rates, rules } = input
  const { at, source, parameters } = pending.sent
  const { expected, tokens } = reading
  const read = tokens.cacheRead
  const all = listDifferences(pending, against, expectation.change, rules.profile.spelling)
  const differences = blamesMessages ? all : all.filter(({ kind }) => !kind.startsWith('message-'))
  const provider = answer.word ?? null
  const explanation = explainCacheMiss({ ...input, differences, read, word: provider })
  const { reason } = explanation
  const lost = countLostCacheTokens(reading)
  const dollars = priceLostCacheTokens(lost, tokens, rates)
  const act = findResponsibleRewrite(pending.announced, reason)
  const ours = act === null ? null : toOwnRewrite(act, dollars, rates)
  const usedAt = pending.chain === null ? null : findLastCachedPrefix(pending.chain)?.usedAt
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
    evidence: formatBreakEvidence(explanation, { expected, read, gapMs }, provider),
    provider,
    ours,
    sentence: describeBreak(reason, { tokens: lost, dollars }, ours, rules.profile.cache),
  }
  const question = { before: against.sent, after: pending.sent, differences, position: expectation.position }
  return { kind: 'broke', event, diff: (redact) => formatRequestDiff(question, redact) }
}

/**
 * Lists the differences from the previous API request. For a fork, a changed cache lifetime is left out, because a fork
 * caches nothing of its own.
 */
function listDifferences(
  { sent, forecast, change: edited }: RequestWithReportedEdits,
  against: AnsweredRequest,
  change: MessageDifference | null,
  spelling: CacheBreakRules['profile']['spelling'],
): readonly RequestDifference[] {
  const isFork = findForkParentKey(sent.source, sent.forkOf) !== null
  const found = diffRequests(against.sent, sent, [against.blockIndex, forecast.basis.request.blockIndex])
  // The figures of context edits change with every tool call. They matter only if cleared content came back.
  const isKnownEdit = (each: RequestDifference): boolean =>
    each.kind === 'parameter-changed' &&
    each.name === spelling.editsParameter &&
    edited !== 'fewer' &&
    listTypes(each.before) === listTypes(each.after)
  const own = found.filter((each) => !isKnownEdit(each) && (!isFork || each.kind !== 'marker-ttl-changed'))
  return change === null ? own : [...own, change]
}

/** Returns all values of `type` in a JSON text, in order. */
function listTypes(json: string | null): string {
  return (json?.match(/"type":"[^"]*"/g) ?? []).join()
}

// The announced rewrite that caused a loss of cached tokens, and after how many calls it has paid for itself.

/**
 * Finds the announced rewrite that caused the cache break: a rewrite of the part of the request where the cause lies,
 * or a clearing if messages changed. Returns null if no rewrite was announced for it.
 */
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
 * Computes after how many calls a rewrite has paid for itself. `cost`: dollars that the rewrite cost above the
 * cache-read price; null if unknown. Each later call saves the cache-read price of the freed tokens.
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

// The following functions decide whether too little was read from the cache, how many tokens were lost, and what
// they cost.

interface CacheReading {
  /** Tokens that should have been read from the cache. */
  readonly expected: number
  /** Tokens that the call was billed for, by price class. */
  readonly tokens: TokensByPriceClass
}

/**
 * Counts the tokens that were expected from the cache but had to be processed again. The count never exceeds the
 * uncached tokens that were billed, because tokens that were not billed are no longer in the API request.
 */
export function countLostCacheTokens({ expected, tokens }: CacheReading): number {
  return Math.max(0, Math.min(expected - tokens.cacheRead, countUncachedTokens(tokens)))
}

/** Counts the input tokens that were billed but not read from the cache. */
function countUncachedTokens({ input, writeShort, writeLong }: TokensByPriceClass): number {
  return input + writeShort + writeLong
}

/**
 * Checks whether so many cached tokens were lost that it counts as a cache break. The loss must exceed both limits of
 * the policy: a number of tokens and a percentage of the expected read.
 */
export function isCacheBreak(
  reading: CacheReading,
  { percent, tokens }: Pick<CacheBreaksPolicy, 'percent' | 'tokens'>,
): boolean {
  const lost = countLostCacheTokens(reading)
  return lost > tokens && lost * 100 > reading.expected * percent
}

/** Returns the token rates that applied to a call with this usage; null if the model has no prices. */
export function findCallRates(
  usage: TokenUsage,
  tokens: TokensByPriceClass,
  prices: ModelPrices | null,
): TokenRates | null {
  if (prices === null) return null
  return scaleRates(
    findTierRates(prices, countUncachedTokens(tokens) + tokens.cacheRead),
    findPriceFactor(usage, prices).factor,
  )
}

/** Returns the dollars that the lost tokens cost above the cache-read price; null if a needed price is unknown. */
export function priceLostCacheTokens(
  lost: number,
  tokens: TokensByPriceClass,
  rates: TokenRates | null,
): number | null {
  if (lost === 0) return 0
  const paid = rates === null ? null : sumPricePaid(lost, tokens, rates)
  if (rates === null || paid === null || rates.cacheRead === null) return null
  return (paid - lost * rates.cacheRead) / 1_000_000
}

/**
 * Sums what was paid for the lost tokens. They are priced as cache writes up to the number of tokens written, and the
 * rest as uncached input.
 */
function sumPricePaid(
  lost: number,
  { writeShort, writeLong }: TokensByPriceClass,
  rates: TokenRates,
): number | null {
  const written = Math.min(lost, writeShort + writeLong)
  const share = written === 0 ? 0 : written / (writeShort + writeLong)
  const parts = [
    { tokens: writeShort * share, rate: rates.writeShort },
    { tokens: writeLong * share, rate: rates.writeLong },
    { tokens: lost - written, rate: rates.input },
  ]
  return parts.reduce<number | null>((sum, { tokens, rate }) => {
    if (tokens === 0 || sum === null) return sum
    return rate === null ? null : sum + tokens * rate
  }, 0)
}
