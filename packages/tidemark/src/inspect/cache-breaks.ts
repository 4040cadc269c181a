/**
 * Cache breaks of a recorded session. Each conversation in the log is replayed, call by call, to the detector that
 * watches live ones; the cause of a break is then looked for in the log (`break-causes.ts`).
 */

import {
  announceAct,
  type BreakRules,
  blocksOf,
  type CacheLoss,
  type CacheOutcome,
  type CacheWatch,
  compareAnswer,
  contextOf,
  DEFAULT_POLICY,
  emptyCacheWatch,
  forecastSent,
  isCompactBoundary,
  isKnown,
  isMicrocompactBoundary,
  isObject,
  learnFromResponse,
  loggedCall,
  longLifeSaves,
  NO_GAPS,
  NO_LINEAGE,
  type Prices,
  redact,
  type SessionRecord,
  strictProfile,
  takeSnapshot,
  tallyGap,
  type Usage,
} from '@tidemark/core'
import { type Catalogue, lookUpModel, pricesOn, profileFor, type ReadRecord } from '@tidemark/wire'
import type { ReadLog } from '../logs/read-session.ts'
import { causeNamed, isForkPoint, isOneTime, logCause } from './break-causes.ts'
import { type Call, keyOf } from './calls.ts'
import {
  type Lifetime,
  lifetimeOf,
  type Moment,
  momentsOf,
  sentFromLog,
  sourceOf,
} from './logged-requests.ts'
import type { CacheBreak, CacheReport, Cause, ClearingCost } from './report.ts'
import { dollars, plus } from './spending.ts'

/**
 * In order of time. `calls`: those of the log and of its agents, each once. Calls that an earlier file has too are
 * replayed, since later ones read what they left, but not reported.
 */
export function breaksOf(
  log: Pick<ReadLog, 'records' | 'agents'> & Partial<Pick<ReadLog, 'meta'>>,
  calls: readonly Call[],
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
  readonly moment: Moment
  /** How long what it wrote lives. */
  readonly lifetime: Lifetime
  /** Its time is that of logging. */
  readonly isUntimed: boolean
}

/** `isForked`: the session was forked off another, whose history it may begin with. */
function replayConversation(
  records: readonly ReadRecord[],
  calls: readonly Call[],
  catalogue: Catalogue,
  isForked: boolean,
): CacheReport {
  const cacheBreaks: CacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const saved: (number | null | undefined)[] = []
  const isUsuallyStreamed = isStreamed(records)
  const losses = readLosses(records)
  let watch = emptyCacheWatch()
  let model = NO_LINEAGE
  let before: ReplayedCall | null = null
  for (const now of momentsOf(records, calls)) {
    const rules = rulesFor(catalogue, now.call)
    const last: Moment | null = before?.moment ?? null
    const lifetime: Lifetime = lifetimeOf(
      now.call,
      rules.isDescribed ? rules.profile.cache : null,
      before?.lifetime ?? null,
    )
    const replayed: ReplayedCall = { moment: now, lifetime, isUntimed: isOneTime(last, now) }
    if (isForked && last !== null && isForkPoint(records[0]?.record, last, now))
      watch = announceAct(watch, sourceOf(now.call), { kind: 'restart' })
    const sent = sentFromLog({ ...now, lifetime })
    const forecast = forecastSent(model, sent, rules.profile)
    const usage = loggedUsage(now.call)
    const recorded = takeSnapshot(announceActs(watch, now, last), sent, forecast, rules.policy)
    const { outcome, watch: next } = compareAnswer(recorded, { source: sent.source, usage }, rules)
    watch = next
    if (usage !== null) model = learnFromResponse(model, forecast, usage)
    const cost = clearingCost(now, outcome)
    const loss = now.call.isCopy ? undefined : losses.get(now.call.key)
    if (loss?.loss.kind === 'act') clearingCosts.push(toRecordedClearing(now.call, loss, cost))
    else if (loss !== undefined) cacheBreaks.push(toRecordedBreak(now.call, loss, priceIn(outcome)))
    else if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, ...known } = before
      const isUnstreamed = isUsuallyStreamed && blockCount(now.record) > 1
      const cause = logCause({ event: outcome.event, now, before: moment, ...known, isUnstreamed })
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
  calls: readonly Call[],
  losses: ReadonlyMap<string, RecordedLoss>,
): readonly CacheBreak[] {
  return calls.flatMap((call) => {
    const loss = losses.get(call.key)
    const isBreak = call.source !== null && !call.isCopy && loss?.loss.kind === 'break'
    return isBreak && loss !== undefined ? [toRecordedBreak(call, loss, null)] : []
  })
}

function priceIn(outcome: CacheOutcome): number | null {
  return outcome.kind === 'broke' ? dollars(outcome.event.moneyLost) : null
}

/** A log does not show all that a clearing did: whatever was processed again after one counts as its cost. */
function clearingCost({ call, since }: Moment, outcome: CacheOutcome): ClearingCost | null {
  const isBehind = since.some(({ record }) => isMicrocompactBoundary(record))
  if (!isBehind || call.isCopy) return null
  const { at, model } = call
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns } = outcome.act
    return { at, tokensRewritten, costUsd: dollars(moneySpent), breakEvenCalls: breakEvenTurns, model }
  }
  if (outcome.kind !== 'broke') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  return { at, tokensRewritten: tokensLost, costUsd: dollars(moneyLost), breakEvenCalls, model }
}

/** What the log says was done to the conversation since the call before. */
function announceActs(watch: CacheWatch, now: Moment, before: Moment | null): CacheWatch {
  const source = sourceOf(now.call)
  const acts = now.since.map(({ record }) => record)
  if (acts.some(isCompactBoundary)) return announceAct(watch, source, { kind: 'compaction' })
  const clearing = acts.find(isMicrocompactBoundary)
  if (clearing !== undefined) {
    const { tokensSaved, compactedToolIds } = clearing.microcompactMetadata ?? {}
    const act = `cleared ${compactedToolIds?.length ?? 0} results`
    return announceAct(watch, source, { kind: 'clearing', act, freedTokens: tokensSaved ?? 0 })
  }
  const isUndone = before !== null && before.act !== now.act
  return isUndone ? announceAct(watch, source, { kind: 'undo' }) : watch
}

function toBreak(
  { call, line }: Moment,
  { event }: Extract<CacheOutcome, { readonly kind: 'broke' }>,
  { cause, evidence }: Cause,
): CacheBreak {
  return {
    at: call.at,
    tokensRewritten: event.tokensLost,
    costUsd: dollars(event.moneyLost),
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

function isStreamed(records: readonly ReadRecord[]): boolean {
  const counts = records.map(({ record }) => blockCount(record)).filter((count) => count > 0)
  const single = counts.filter((count) => count === 1).length
  return counts.length >= FEWEST_RESPONSES && single >= counts.length * STREAMED_SHARE
}

function blockCount(record: SessionRecord): number {
  return isKnown(record) && record.type === 'assistant' ? blocksOf(record.message.content).length : 0
}

// What a logged call is judged and priced by.

interface CallRules extends BreakRules {
  /** The catalogue has the model, so the profile describes it. */
  readonly isDescribed: boolean
}

function rulesFor(catalogue: Catalogue, call: Call): CallRules {
  const found = lookUpModel(catalogue, call.model)
  const entry = found.found ? found.model : null
  const prices = entry === null ? null : pricesOn(entry, call.at)
  return {
    isDescribed: entry !== null,
    policy: DEFAULT_POLICY.cache.breaks,
    profile: entry === null ? strictProfile : profileFor(entry),
    prices: prices === null || reportsWrites(call) ? prices : withWritesAsInput(prices),
  }
}

/**
 * Some providers cache everything by themselves and report only what was read. The rest then counts as written, at the
 * price of input.
 */
function loggedUsage(call: Call): Usage | null {
  const { usage } = call
  if (usage === null || reportsWrites(call)) return usage
  return { ...usage, input_tokens: 0, cache_creation_input_tokens: usage.input_tokens }
}

function reportsWrites({ usage }: Call): boolean {
  return typeof usage?.cache_read_input_tokens !== 'number' || usage.cache_creation_input_tokens !== undefined
}

function withWritesAsInput(prices: Prices): Prices {
  const tiers = prices.tiers?.map((tier) => ({ ...tier, write5m: tier.input }))
  return { ...prices, write5m: prices.input, ...(tiers === undefined ? {} : { tiers }) }
}

// Whether a one-hour cache would have paid where five minutes were in force: the gaps between the requests, by the same
// arithmetic with which a live session chooses.

/** Dollars, for one call; undefined if five minutes were not in force, null if it has no price. */
function oneHourSaves(
  now: Moment,
  before: Moment | null,
  { ttl }: Lifetime,
  { profile: { cache }, prices }: CallRules,
): number | null | undefined {
  const isShort = ttl === '5m' && cache.ttls.some(({ name }) => name === '1h')
  if (!isShort || now.call.isCopy) return undefined
  if (prices === null) return null
  const prompt = contextOf(now.call.usage)
  const isAnew = before === null || now.since.some(({ record }) => isCompactBoundary(record))
  const prefix = isAnew ? 0 : Math.min(prompt, contextOf(before.call.usage))
  const gapMs = before === null || before.at === 0 ? null : now.at - before.at
  const saved = longLifeSaves(tallyGap(NO_GAPS, { gapMs, prefix, added: prompt - prefix }, cache), prices)
  return saved === null ? null : saved / 1_000_000
}

/** Null if there is nothing to add, or one cannot be priced. */
function addSavings(each: readonly (number | null | undefined)[]): number | null {
  const known = each.filter((saved) => saved !== undefined)
  return known.length === 0 ? null : dollars(known.reduce<number | null>(plus, 0))
}

// Losses that the engine recorded when they happened, right after the call they belong to. They are more reliable than
// what can be read off a log later.

interface RecordedLoss {
  readonly loss: CacheLoss
  /** Of the call. */
  readonly line: number
}

/** By the key of the call. */
function readLosses(records: readonly ReadRecord[]): ReadonlyMap<string, RecordedLoss> {
  const losses = new Map<string, RecordedLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const beside = loggedCall(record)
    const key = beside === null ? keyOf(record) : `${beside.id}\n`
    if (key !== null && key !== call.key) call = { key, line }
    const loss = readLoss(record)
    if (loss !== null) losses.set(call.key, { loss, line: call.line })
  }
  return losses
}

function readLoss(record: SessionRecord): CacheLoss | null {
  const value: unknown = isKnown(record) && record.type === 'system' ? record.cacheLoss : undefined
  if (!isObject(value) || typeof value.tokens !== 'number') return null
  const { kind, source, reason, tokens, usd, sentence } = value
  if ((kind !== 'break' && kind !== 'act') || typeof reason !== 'string' || typeof sentence !== 'string')
    return null
  const price = typeof usd === 'number' ? usd : null
  return { kind, source: String(source), reason, tokens, usd: price, sentence }
}

/** `costUsd`: by today's prices, if none were known at the time. */
function toRecordedBreak(call: Call, { loss, line }: RecordedLoss, costUsd: number | null): CacheBreak {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: dollars(loss.usd) ?? costUsd,
    cause: causeNamed(loss.reason),
    evidence: redact(`told when it happened: ${loss.sentence}`),
    line,
    model: call.model,
    ...(call.agent === null ? {} : { agent: call.agent }),
    ...(call.source === null ? {} : { source: call.source }),
  }
}

/** `found`: the same clearing as the replay sees it. */
function toRecordedClearing(call: Call, { loss }: RecordedLoss, found: ClearingCost | null): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: dollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    model: call.model,
  }
}
