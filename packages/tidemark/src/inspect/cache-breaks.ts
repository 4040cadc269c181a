/**
 * Finds the cache breaks of a logged session. The logged calls are replayed in order through the cache monitor of live
 * sessions, which detects lost cache reads. `break-causes.ts` then finds the most likely cause of each break.
 */
import type { RewriteAnnouncement } from '@tidemark/core/cache/cache-break-types'
import { forecastLoggedCacheRead, updateCacheModelFromResponse } from '@tidemark/core/cache/cache-forecast'
import { EMPTY_CACHE_MODEL } from '@tidemark/core/cache/cache-model'
import {
  type CacheBreakRules,
  type CacheCheckOutcome,
  type CacheMonitor,
  createCacheMonitor,
  withAnnouncedRewrite,
  withSentRequest,
} from '@tidemark/core/cache/cache-monitor'
import { judgeCacheRead } from '@tidemark/core/cache/detect-break'
import { readReportedEdits } from '@tidemark/core/clearing/provider-clearing'
import type { ModelPrices } from '@tidemark/core/cost/prices'
import { readModelCallRecord } from '@tidemark/core/cost/session-cost'
import { toBlocks } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import {
  type CacheLoss,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isUndoRecord,
  type MicrocompactBoundary,
  type SessionRecord,
} from '@tidemark/core/log/record'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { addCallGap, computeLongTtlSavings, EMPTY_GAP_TALLY } from '@tidemark/core/request/cache-ttl'
import { redact } from '@tidemark/core/text/redact'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { type Catalogue, lookUpModel, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'
import { createProviderProfile, strictProfile } from '@tidemark/wire/profiles/provider-profile'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import type { LogContents } from '../logs/read-log.ts'
import { findBreakCause, isFirstCallAfterCopy, toBreakCause } from './break-causes.ts'
import { findClearingActor } from './context-curve.ts'
import { type LoggedCall, toResponseKey } from './logged-calls.ts'
import {
  type CacheTtl,
  lacksCallTimes,
  nameCallSource,
  type ReplayedRequest,
  type ReplayedSession,
  readCacheTtl,
  replayRequests,
  toSentRequest,
} from './logged-requests.ts'
import type { CacheReport, ClearingActor, ClearingCost, ExplainedCause, LoggedCacheBreak } from './report.ts'
import { addDollars, roundDollars } from './spending.ts'

/**
 * Returns cache breaks and clearing costs in order of time. `calls`: all API calls of the main conversation and of
 * subagents. Calls that were copied from an earlier log file are replayed, because later calls read their cache
 * entries, but they are not reported. `watcher` sees the main conversation while it is replayed.
 */
export function createCacheReport(
  log: Pick<LogContents, 'records' | 'agents'> & Partial<Pick<LogContents, 'meta'>>,
  calls: readonly LoggedCall[],
  catalogue: Catalogue,
  watcher: ReplayWatcher = {},
): CacheReport {
  const conversations = [{ agent: null, records: log.records }, ...log.agents]
  const isForked = (log.meta?.forkedFrom ?? null) !== null
  const findRules = createRulesFinder(catalogue)
  const reports = conversations.map(({ agent, records }) => {
    const own = calls.filter((call) => call.agent === agent)
    const isMain = agent === null
    return replayConversation(records, own, findRules, {
      isForked: isMain && isForked,
      ...(isMain ? watcher : {}),
    })
  })
  return {
    cacheBreaks: reports.flatMap(({ cacheBreaks }) => cacheBreaks).sort(byTime),
    clearingCosts: reports.flatMap(({ clearingCosts }) => clearingCosts).sort(byTime),
    hourWouldSave: addSavings(reports.map(({ hourWouldSave }) => hourWouldSave ?? undefined)),
  }
}

function byTime(one: { readonly at: string }, other: { readonly at: string }): number {
  return Date.parse(one.at) - Date.parse(other.at) || 0
}

/** Sees the requests of the main conversation as they are rebuilt, and the session that they lead to. */
interface ReplayWatcher {
  readonly onRequest?: (request: ReplayedRequest) => void
  readonly onEnd?: (replayed: ReplayedSession) => void
}

/** A logged API call after it was replayed through the cache monitor. */
interface ReplayedCall {
  readonly moment: ReplayedRequest
  /** The TTL of the cache entries that the call wrote. */
  readonly lifetime: CacheTtl
  /** True if the time of the call is the time at which it was logged, not the time of the API call. */
  readonly isUntimed: boolean
}

interface ReplayOptions extends ReplayWatcher {
  /** True if the session may begin with a copy of another session's history. */
  readonly isForked: boolean
}

/** Finds the cache breaks and clearing costs of one conversation. */
function replayConversation(
  records: readonly RecordWithLine[],
  calls: readonly LoggedCall[],
  findRules: RulesFinder,
  { isForked, onRequest, onEnd }: ReplayOptions,
): CacheReport {
  const cacheBreaks: LoggedCacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const saved: (number | null | undefined)[] = []
  const isUsuallyStreamed = hasStreamedResponses(records)
  const losses = readLosses(records)
  let watch = createCacheMonitor()
  let model = EMPTY_CACHE_MODEL
  let before: ReplayedCall | null = null
  for (const now of replayRequests(records, calls, onEnd)) {
    onRequest?.(now)
    const rules = findRules(now.call)
    const last: ReplayedRequest | null = before?.moment ?? null
    const lifetime: CacheTtl = readCacheTtl(
      now.call,
      rules.isDescribed ? rules.profile.cache : null,
      before?.lifetime ?? null,
    )
    const replayed: ReplayedCall = { moment: now, lifetime, isUntimed: lacksCallTimes(last, now) }
    if (isForked && last !== null && isFirstCallAfterCopy(records[0]?.record, last, now))
      watch = withAnnouncedRewrite(watch, nameCallSource(now.call), { kind: 'restart' })
    const sent = toSentRequest({ ...now, lifetime }, rules.profile)
    const forecast = forecastLoggedCacheRead(model, sent, rules.profile)
    const usage = usageWithWrites(now.call)
    const recorded = withSentRequest(announceActs(watch, now, last), sent, forecast, rules.policy)
    const edits = readReportedEdits({ context_management: now.call.contextManagement }, rules.profile)
    const answer = { source: sent.source, usage, edits }
    const { outcome, monitor, isEdited } = judgeCacheRead(recorded, answer, rules)
    watch = monitor
    if (usage !== null) model = updateCacheModelFromResponse(model, forecast, usage, isEdited)
    const cost = measureClearingCost(now, outcome)
    const loss = now.call.isCopy ? undefined : losses.get(now.call.key)
    if (loss?.loss.kind === 'act')
      clearingCosts.push(toRecordedClearing(now.call, loss, findActor(now), cost))
    else if (loss !== undefined) cacheBreaks.push(toRecordedBreak(now.call, loss, breakCost(outcome)))
    else if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, ...known } = before
      const isUnstreamed = isUsuallyStreamed && countBlocks(now.record) > 1
      const cause = findBreakCause({ event: outcome.event, now, before: moment, ...known, isUnstreamed })
      cacheBreaks.push(toBreak(now, outcome, cause))
    }
    saved.push(oneHourSaves(now, last, lifetime, rules))
    before = replayed
  }
  // The log does not contain enough to replay calls outside the conversation, such as summaries.
  for (const call of calls) {
    const loss = call.source === null || call.isCopy ? undefined : losses.get(call.key)
    if (loss?.loss.kind === 'act') clearingCosts.push(toRecordedClearing(call, loss, 'tidemark', null))
    else if (loss !== undefined) cacheBreaks.push(toRecordedBreak(call, loss, null))
  }
  return { cacheBreaks, clearingCosts, hourWouldSave: addSavings(saved) }
}

function breakCost(outcome: CacheCheckOutcome): number | null {
  return outcome.kind === 'broke' ? roundDollars(outcome.event.moneyLost) : null
}

/**
 * Returns the cost of re-caching after a clearing that was logged before this call, or that the provider made for it; null if
 * there was none. A log does not show everything that a clearing removed, so all tokens that were cached again count as its cost.
 */
function measureClearingCost(now: ReplayedRequest, outcome: CacheCheckOutcome): ClearingCost | null {
  const { call } = now
  if (call.isCopy || (outcome.kind !== 'ours' && outcome.kind !== 'broke')) return null
  const { at, model } = call
  const by = findActor(now)
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns: breakEvenCalls } = outcome.act
    return { at, tokensRewritten, costUsd: roundDollars(moneySpent), breakEvenCalls, by, model }
  }
  if (by === 'provider') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  return { at, tokensRewritten: tokensLost, costUsd: roundDollars(moneyLost), breakEvenCalls, by, model }
}

/**
 * Returns who made the clearing that a call paid for. A clearing that changed the messages was logged before the call;
 * without one, the provider cleared for the call itself.
 */
function findActor({ recordsSincePrevious: since }: ReplayedRequest): ClearingActor {
  const clearing = since.map(({ record }) => record).findLast(isOwnClearing)
  return clearing === undefined ? 'provider' : findClearingActor(clearing)
}

/**
 * Informs the cache monitor of all compactions, clearings and undos since the previous call. The monitor then expects
 * the loss of cached tokens and does not report a cache break.
 */
function announceActs(
  watch: CacheMonitor,
  now: ReplayedRequest,
  before: ReplayedRequest | null,
): CacheMonitor {
  const source = nameCallSource(now.call)
  const records = now.recordsSincePrevious.map(({ record }) => record)
  const announcements = joinClearings(records.flatMap((record) => toAnnouncement(record) ?? []))
  // Going back to an earlier message also takes a rewrite out of the context.
  if (announcements.length === 0 && before !== null && before.lastRewriteId !== now.lastRewriteId)
    return withAnnouncedRewrite(watch, source, { kind: 'undo' })
  return announcements.reduce((next, each) => withAnnouncedRewrite(next, source, each), watch)
}

/** Joins successive clearings before one call to one announcement, because the call pays for all of them together. */
function joinClearings(given: readonly RewriteAnnouncement[]): readonly RewriteAnnouncement[] {
  const joined: RewriteAnnouncement[] = []
  for (const each of given) {
    const last = joined.at(-1)
    if (last?.kind !== 'clearing' || each.kind !== 'clearing') joined.push(each)
    else joined.splice(-1, 1, { ...each, freedTokens: (last.freedTokens ?? 0) + (each.freedTokens ?? 0) })
  }
  return joined
}

function toAnnouncement(record: SessionRecord): RewriteAnnouncement | null {
  if (record.type !== 'system') return null
  if (isCompactBoundary(record)) return { kind: 'compaction' }
  if (isOwnClearing(record)) {
    const { tokensSaved, compactedToolIds } = record.microcompactMetadata ?? {}
    const count = compactedToolIds?.length ?? 0
    const act = `cleared ${count} ${count === 1 ? 'result' : 'results'}`
    return { kind: 'clearing', act, freedTokens: tokensSaved ?? 0 }
  }
  return isUndoRecord(record) ? { kind: 'undo' } : null
}

/** Checks for a clearing that changed the messages. The provider's own clearings are in its responses. */
function isOwnClearing(record: SessionRecord): record is MicrocompactBoundary {
  return isMicrocompactBoundary(record) && record.microcompactMetadata?.way !== 'native'
}

function toBreak(
  { call, line }: ReplayedRequest,
  { event }: Extract<CacheCheckOutcome, { readonly kind: 'broke' }>,
  { cause, evidence }: ExplainedCause,
): LoggedCacheBreak {
  return {
    at: call.at,
    tokensRewritten: event.tokensLost,
    costUsd: roundDollars(event.moneyLost),
    cause,
    evidence: redact(evidence),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
  }
}

// The policy, provider profile and prices that apply to a logged call.

interface LoggedCallRules extends CacheBreakRules {
  readonly profile: ProviderProfile
  /** True if the catalogue has the model. Otherwise `profile` contains strict default rules. */
  readonly isDescribed: boolean
}

type RulesFinder = (call: LoggedCall) => LoggedCallRules

/** Creates a function that returns the rules for a call. Each model is looked up once, because that takes time. */
function createRulesFinder(catalogue: Catalogue): RulesFinder {
  const models = new Map<string, { readonly entry: ModelEntry | null; readonly profile: ProviderProfile }>()
  return (call) => {
    let model = models.get(call.model)
    if (model === undefined) {
      const found = lookUpModel(catalogue, call.model)
      const entry = found.found ? found.model : null
      model = { entry, profile: entry === null ? strictProfile : createProviderProfile(entry) }
      models.set(call.model, model)
    }
    const { entry, profile } = model
    const prices = entry === null ? null : pricesAtDate(entry, call.at)
    return {
      isDescribed: entry !== null,
      policy: DEFAULT_POLICY.cache.breaks,
      countsUnpromised: true,
      profile,
      prices: prices === null || reportsWrites(call) ? prices : withWritesAsInput(prices),
    }
  }
}

/**
 * Returns the usage of a call with cache writes. Some providers cache automatically and report only cache reads. For
 * these providers, all other input tokens count as cache writes at the input price.
 */
function usageWithWrites(call: LoggedCall): TokenUsage | null {
  const { usage } = call
  if (usage === null || reportsWrites(call)) return usage
  return { ...usage, input: 0, writes: { short: usage.input, long: 0 } }
}

function reportsWrites({ usage }: LoggedCall): boolean {
  return usage?.areWritesUnknown !== true
}

function withWritesAsInput(prices: ModelPrices): ModelPrices {
  const tiers = prices.tiers?.map((tier) => ({ ...tier, writeShort: tier.input }))
  return { ...prices, writeShort: prices.input, ...(tiers === undefined ? {} : { tiers }) }
}

// Estimates whether a cache TTL of one hour would have cost less than five minutes, given the gaps between the
// requests. Live sessions choose the TTL with the same calculation.

/**
 * Returns the dollars that a cache TTL of one hour would have saved for one call. Undefined if the call did not use a
 * TTL of five minutes; null if its price is unknown.
 */
function oneHourSaves(
  now: ReplayedRequest,
  before: ReplayedRequest | null,
  { ttl }: CacheTtl,
  { profile: { cache }, prices }: LoggedCallRules,
): number | null | undefined {
  const isShort = ttl === '5m' && cache.ttls.some(({ name }) => name === '1h')
  if (!isShort || now.call.isCopy) return undefined
  if (prices === null) return null
  const prompt = readReportedContextTokens(now.call.usage)
  const isAnew = before === null || now.recordsSincePrevious.some(({ record }) => isCompactBoundary(record))
  const prefix = isAnew ? 0 : Math.min(prompt, readReportedContextTokens(before.call.usage))
  const gapMs = before === null || before.at === 0 ? null : now.at - before.at
  const saved = computeLongTtlSavings(
    addCallGap(EMPTY_GAP_TALLY, { gapMs, prefix, added: prompt - prefix, tail: 0, isFirst: isAnew }, cache),
    prices,
  )
  return saved === null ? null : saved / 1_000_000
}

/** Adds savings in dollars. Returns null if the list is empty or one of the savings is unknown. */
function addSavings(each: readonly (number | null | undefined)[]): number | null {
  const known = each.filter((saved) => saved !== undefined)
  return known.length === 0 ? null : roundDollars(known.reduce<number | null>(addDollars, 0))
}

// Reads the losses of cached tokens that the engine recorded in the log right after the call in which they happened.
// These records are more reliable than an analysis of the log.

interface RecordedLoss {
  readonly loss: CacheLoss
  /** The line in the log of the call that lost its cached prefix. */
  readonly line: number
}

/** Returns the losses of cached tokens that the engine recorded, keyed by the call in which they happened. */
function readLosses(records: readonly RecordWithLine[]): ReadonlyMap<string, RecordedLoss> {
  const losses = new Map<string, RecordedLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const beside = readModelCallRecord(record)
    const key = beside === null ? toResponseKey(record) : `${beside.id}\n`
    if (key !== null && key !== call.key) call = { key, line }
    const loss = readLoss(record)
    if (loss !== null) losses.set(call.key, { loss, line: call.line })
  }
  return losses
}

function readLoss(record: SessionRecord): CacheLoss | null {
  const value: unknown = isKnownRecord(record) && record.type === 'system' ? record.cacheLoss : undefined
  if (!isObject(value) || typeof value.tokens !== 'number') return null
  const { kind, source, reason, tokens, usd, sentence } = value
  if ((kind !== 'break' && kind !== 'act') || typeof reason !== 'string' || typeof sentence !== 'string')
    return null
  const price = typeof usd === 'number' ? usd : null
  return { kind, source: String(source), reason, tokens, usd: price, sentence }
}

/**
 * Converts a cache break that the engine recorded in the log. `costUsd`: its cost as calculated from the log, used if
 * the record has no price.
 */
function toRecordedBreak(
  call: LoggedCall,
  { loss, line }: RecordedLoss,
  costUsd: number | null,
): LoggedCacheBreak {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: roundDollars(loss.usd) ?? costUsd,
    cause: toBreakCause(loss.reason),
    evidence: redact(`told when it happened: ${loss.sentence}`),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
    ...(call.source === null ? {} : { source: call.source }),
  }
}

/**
 * Converts a clearing that the engine recorded in the log. `found`: cost of the same clearing as calculated from the
 * log; null if the calculation did not find it.
 */
function toRecordedClearing(
  call: LoggedCall,
  { loss }: RecordedLoss,
  by: ClearingActor,
  found: ClearingCost | null,
): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: roundDollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    by,
    model: call.model,
  }
}

// Claude Code logs one record per block of a streamed response. If a response was logged as one record, the stream had most
// likely failed and the request was sent again without streaming. That request has other settings and misses the cached prefix.

const STREAMED_SHARE = 0.9
const FEWEST_RESPONSES = 10

function hasStreamedResponses(records: readonly RecordWithLine[]): boolean {
  const counts = records.map(({ record }) => countBlocks(record)).filter((count) => count > 0)
  const single = counts.filter((count) => count === 1).length
  return counts.length >= FEWEST_RESPONSES && single >= counts.length * STREAMED_SHARE
}

function countBlocks(record: SessionRecord): number {
  return isKnownRecord(record) && record.type === 'assistant' ? toBlocks(record.message.content).length : 0
}
