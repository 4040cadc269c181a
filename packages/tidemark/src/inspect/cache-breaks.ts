/**
 * Cache breaks of a recorded session. Each conversation in the log is replayed, call by call, to the detector that
 * watches live ones; the cause of a break is then looked for in the log (`break-causes.ts`).
 */

import {
  addGap,
  announceRewrite,
  type BreakRules,
  type CacheCheckOutcome,
  type CacheLoss,
  type CacheMonitor,
  checkCacheRead,
  countContextTokens,
  createCacheMonitor,
  DEFAULT_POLICY,
  EMPTY_CACHE_MODEL,
  forecastSentRequest,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isObject,
  learnFromResponse,
  longTtlSavings,
  type ModelPrices,
  NO_GAPS,
  readLoggedCall,
  recordSentRequest,
  redact,
  type SessionRecord,
  strictProfile,
  toBlocks,
  type Usage,
} from '@tidemark/core'
import {
  type Catalogue,
  createProviderProfile,
  type LogRecord,
  lookUpModel,
  pricesAtDate,
} from '@tidemark/wire'
import type { LogContents } from '../logs/read-session.ts'
import { findLogCause, isForkPoint, isSameTime, toBreakCause } from './break-causes.ts'
import { type LoggedCall, responseKey } from './calls.ts'
import {
  type CacheTtl,
  cacheTtl,
  callSource,
  type ReplayedRequest,
  replayRequests,
  toSentRequest,
} from './logged-requests.ts'
import type { CacheReport, ClearingCost, ExplainedCause, LoggedCacheBreak } from './report.ts'
import { addAmounts, roundDollars } from './spending.ts'

/**
 * In order of time. `calls`: those of the log and of its agents, each once. Calls that an earlier file has too are
 * replayed, since later ones read what they left, but not reported.
 */
export function findCacheBreaks(
  log: Pick<LogContents, 'records' | 'agents'> & Partial<Pick<LogContents, 'meta'>>,
  calls: readonly LoggedCall[],
  catalogue: Catalogue,
): CacheReport {
  const conversations = [{ agent: null, records: log.records }, ...log.agents]
  const isForked = (log.meta?.forkedFrom ?? null) !== null
  const reports = conversations.map(({ agent, records }) => {
    const own = calls.filter((call) => call.agent === agent)
    return replayConversation(records, own, catalogue, agent === null && isForked)
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

/** A call that has been replayed. */
interface ReplayedCall {
  readonly moment: ReplayedRequest
  /** How long what it wrote lives. */
  readonly lifetime: CacheTtl
  /** Its time is that of logging. */
  readonly isUntimed: boolean
}

/** `isForked`: the session was forked off another, whose history it may begin with. */
function replayConversation(
  records: readonly LogRecord[],
  calls: readonly LoggedCall[],
  catalogue: Catalogue,
  isForked: boolean,
): CacheReport {
  const cacheBreaks: LoggedCacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const saved: (number | null | undefined)[] = []
  const isUsuallyStreamed = hasStreamedResponses(records)
  const losses = readLosses(records)
  let watch = createCacheMonitor()
  let model = EMPTY_CACHE_MODEL
  let before: ReplayedCall | null = null
  for (const now of replayRequests(records, calls)) {
    const rules = findCallRules(catalogue, now.call)
    const last: ReplayedRequest | null = before?.moment ?? null
    const lifetime: CacheTtl = cacheTtl(
      now.call,
      rules.isDescribed ? rules.profile.cache : null,
      before?.lifetime ?? null,
    )
    const replayed: ReplayedCall = { moment: now, lifetime, isUntimed: isSameTime(last, now) }
    if (isForked && last !== null && isForkPoint(records[0]?.record, last, now))
      watch = announceRewrite(watch, callSource(now.call), { kind: 'restart' })
    const sent = toSentRequest({ ...now, lifetime })
    const forecast = forecastSentRequest(model, sent, rules.profile)
    const usage = usageWithWrites(now.call)
    const recorded = recordSentRequest(announceActs(watch, now, last), sent, forecast, rules.policy)
    const { outcome, monitor } = checkCacheRead(recorded, { source: sent.source, usage }, rules)
    watch = monitor
    if (usage !== null) model = learnFromResponse(model, forecast, usage)
    const cost = measureClearingCost(now, outcome)
    const loss = now.call.isCopy ? undefined : losses.get(now.call.key)
    if (loss?.loss.kind === 'act') clearingCosts.push(toRecordedClearing(now.call, loss, cost))
    else if (loss !== undefined) cacheBreaks.push(toRecordedBreak(now.call, loss, breakCost(outcome)))
    else if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, ...known } = before
      const isUnstreamed = isUsuallyStreamed && countBlocks(now.record) > 1
      const cause = findLogCause({ event: outcome.event, now, before: moment, ...known, isUnstreamed })
      cacheBreaks.push(toBreak(now, outcome, cause))
    }
    saved.push(oneHourSaves(now, last, lifetime, rules))
    before = replayed
  }
  return {
    cacheBreaks: [...cacheBreaks, ...sideCallBreaks(calls, losses)],
    clearingCosts,
    hourWouldSave: addSavings(saved),
  }
}

/** Calls beside the conversation cannot be replayed: only what was recorded at the time is known. */
function sideCallBreaks(
  calls: readonly LoggedCall[],
  losses: ReadonlyMap<string, RecordedLoss>,
): readonly LoggedCacheBreak[] {
  return calls.flatMap((call) => {
    const loss = losses.get(call.key)
    const isBreak = call.source !== null && !call.isCopy && loss?.loss.kind === 'break'
    return isBreak && loss !== undefined ? [toRecordedBreak(call, loss, null)] : []
  })
}

function breakCost(outcome: CacheCheckOutcome): number | null {
  return outcome.kind === 'broke' ? roundDollars(outcome.event.moneyLost) : null
}

/** A log does not show all that a clearing did: whatever was processed again after one counts as its cost. */
function measureClearingCost(
  { call, recordsSincePrevious: since }: ReplayedRequest,
  outcome: CacheCheckOutcome,
): ClearingCost | null {
  const isBehind = since.some(({ record }) => isMicrocompactBoundary(record))
  if (!isBehind || call.isCopy) return null
  const { at, model } = call
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns } = outcome.act
    return { at, tokensRewritten, costUsd: roundDollars(moneySpent), breakEvenCalls: breakEvenTurns, model }
  }
  if (outcome.kind !== 'broke') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  return { at, tokensRewritten: tokensLost, costUsd: roundDollars(moneyLost), breakEvenCalls, model }
}

/** What the log says was done to the conversation since the call before. */
function announceActs(
  watch: CacheMonitor,
  now: ReplayedRequest,
  before: ReplayedRequest | null,
): CacheMonitor {
  const source = callSource(now.call)
  const acts = now.recordsSincePrevious.map(({ record }) => record)
  if (acts.some(isCompactBoundary)) return announceRewrite(watch, source, { kind: 'compaction' })
  const clearing = acts.find(isMicrocompactBoundary)
  if (clearing !== undefined) {
    const { tokensSaved, compactedToolIds } = clearing.microcompactMetadata ?? {}
    const act = `cleared ${compactedToolIds?.length ?? 0} results`
    return announceRewrite(watch, source, { kind: 'clearing', act, freedTokens: tokensSaved ?? 0 })
  }
  const isUndone = before !== null && before.lastRewriteId !== now.lastRewriteId
  return isUndone ? announceRewrite(watch, source, { kind: 'undo' }) : watch
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

// A stream is logged block by block. A response that was logged whole among streamed ones was most likely requested
// again without a stream, and with other settings, after the stream had failed; other settings would miss the cache.

const STREAMED_SHARE = 0.9
const FEWEST_RESPONSES = 10

function hasStreamedResponses(records: readonly LogRecord[]): boolean {
  const counts = records.map(({ record }) => countBlocks(record)).filter((count) => count > 0)
  const single = counts.filter((count) => count === 1).length
  return counts.length >= FEWEST_RESPONSES && single >= counts.length * STREAMED_SHARE
}

function countBlocks(record: SessionRecord): number {
  return isKnownRecord(record) && record.type === 'assistant' ? toBlocks(record.message.content).length : 0
}

// What a logged call is judged and priced by.

interface LoggedCallRules extends BreakRules {
  /** The catalogue has the model, so the profile describes it. */
  readonly isDescribed: boolean
}

function findCallRules(catalogue: Catalogue, call: LoggedCall): LoggedCallRules {
  const found = lookUpModel(catalogue, call.model)
  const entry = found.found ? found.model : null
  const prices = entry === null ? null : pricesAtDate(entry, call.at)
  return {
    isDescribed: entry !== null,
    policy: DEFAULT_POLICY.cache.breaks,
    profile: entry === null ? strictProfile : createProviderProfile(entry),
    prices: prices === null || reportsWrites(call) ? prices : withWritesAsInput(prices),
  }
}

/**
 * Some providers cache everything by themselves and report only what was read. The rest then counts as written, at the
 * price of input.
 */
function usageWithWrites(call: LoggedCall): Usage | null {
  const { usage } = call
  if (usage === null || reportsWrites(call)) return usage
  return { ...usage, input_tokens: 0, cache_creation_input_tokens: usage.input_tokens }
}

function reportsWrites({ usage }: LoggedCall): boolean {
  return typeof usage?.cache_read_input_tokens !== 'number' || usage.cache_creation_input_tokens !== undefined
}

function withWritesAsInput(prices: ModelPrices): ModelPrices {
  const tiers = prices.tiers?.map((tier) => ({ ...tier, write5m: tier.input }))
  return { ...prices, write5m: prices.input, ...(tiers === undefined ? {} : { tiers }) }
}

// Whether a one-hour cache would have paid where five minutes were in force: the gaps between the requests, by the same
// arithmetic with which a live session chooses.

/** Dollars, for one call; undefined if five minutes were not in force, null if it has no price. */
function oneHourSaves(
  now: ReplayedRequest,
  before: ReplayedRequest | null,
  { ttl }: CacheTtl,
  { profile: { cache }, prices }: LoggedCallRules,
): number | null | undefined {
  const isShort = ttl === '5m' && cache.ttls.some(({ name }) => name === '1h')
  if (!isShort || now.call.isCopy) return undefined
  if (prices === null) return null
  const prompt = countContextTokens(now.call.usage)
  const isAnew = before === null || now.recordsSincePrevious.some(({ record }) => isCompactBoundary(record))
  const prefix = isAnew ? 0 : Math.min(prompt, countContextTokens(before.call.usage))
  const gapMs = before === null || before.at === 0 ? null : now.at - before.at
  const saved = longTtlSavings(addGap(NO_GAPS, { gapMs, prefix, added: prompt - prefix }, cache), prices)
  return saved === null ? null : saved / 1_000_000
}

/** Null if there is nothing to add, or one cannot be priced. */
function addSavings(each: readonly (number | null | undefined)[]): number | null {
  const known = each.filter((saved) => saved !== undefined)
  return known.length === 0 ? null : roundDollars(known.reduce<number | null>(addAmounts, 0))
}

// Losses that the engine recorded when they happened, right after the call they belong to. They are more reliable than
// what can be read off a log later.

interface RecordedLoss {
  readonly loss: CacheLoss
  /** Of the call. */
  readonly line: number
}

/** By the key of the call. */
function readLosses(records: readonly LogRecord[]): ReadonlyMap<string, RecordedLoss> {
  const losses = new Map<string, RecordedLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const beside = readLoggedCall(record)
    const key = beside === null ? responseKey(record) : `${beside.id}\n`
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

/** `costUsd`: by today's prices, if none were known at the time. */
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

/** `found`: the same clearing as the replay sees it. */
function toRecordedClearing(
  call: LoggedCall,
  { loss }: RecordedLoss,
  found: ClearingCost | null,
): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: roundDollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    model: call.model,
  }
}
