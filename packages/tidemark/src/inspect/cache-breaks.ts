/** The breaks of a recorded session: those of its main conversation and of its agents', in order of time. */

import {
  announceAct,
  type BreakEvent,
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
  type Profile,
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
import type { CacheBreak, CacheReport, ClearingCost } from './report.ts'
import { dollars, plus } from './spending.ts'

/**
 * `calls`: those of the log and of its agents, each once. Those that an earlier file has too are told again, since
 * the next ones read what they left, and not reported.
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
    return breaksIn({ records, calls: own, catalogue, isForked: agent === null && isForked })
  })
  return {
    cacheBreaks: reports.flatMap(({ cacheBreaks }) => cacheBreaks).sort(earlier),
    clearingCosts: reports.flatMap(({ clearingCosts }) => clearingCosts).sort(earlier),
    hourWouldSave: hourSavesInAll(reports.map(({ hourWouldSave }) => hourWouldSave ?? undefined)),
  }
}

function earlier(one: { readonly at: string }, other: { readonly at: string }): number {
  return Date.parse(one.at) - Date.parse(other.at) || 0
}

// One conversation of a log, told again to the detector that watches live ones.

export interface Conversation {
  readonly records: readonly ReadRecord[]
  /** Of this conversation, those with usage or without. */
  readonly calls: readonly Call[]
  readonly catalogue: Catalogue
  /** It was forked off another session, whose history it may begin with. */
  readonly isForked?: boolean
}

/** A call that has been told, and how long what it wrote lives. */
interface Told {
  readonly moment: Moment
  readonly lifetime: Lifetime
  /** Its time is that of the writing. */
  readonly isUntimed: boolean
}

export function breaksIn({ records, calls, catalogue, isForked = false }: Conversation): CacheReport {
  const cacheBreaks: CacheBreak[] = []
  const clearingCosts: ClearingCost[] = []
  const saved: (number | null | undefined)[] = []
  const isUsuallyStreamed = isStreamed(records)
  const losses = lossesIn(records)
  let watch = emptyCacheWatch()
  let model = NO_LINEAGE
  let before: Told | null = null
  for (const now of momentsOf(records, calls)) {
    const rules = rulesFor(catalogue, now.call)
    const cache = rules.isDescribed ? rules.profile.cache : null
    const last: Moment | null = before?.moment ?? null
    const lives = lifetimeOf(now.call, cache, before?.lifetime ?? null)
    const told: Told = { moment: now, lifetime: lives, isUntimed: isOneTime(last, now) }
    if (isForked && last !== null && isForkPoint(records[0]?.record, last, now))
      watch = announceAct(watch, sourceOf(now.call), { kind: 'restart' })
    const sent = sentFromLog({ ...now, lifetime: lives })
    const forecast = forecastSent(model, sent, rules.profile)
    const usage = loggedUsage(now.call)
    const recorded = takeSnapshot(announced(watch, now, before), sent, forecast, rules.policy)
    const { outcome, watch: next } = compareAnswer(recorded, { source: sent.source, usage }, rules)
    watch = next
    if (usage !== null) model = learnFromResponse(model, forecast, usage)
    const cost = clearingCost(now, outcome)
    const loss = now.call.isCopy ? undefined : losses.get(now.call.key)
    if (loss?.loss.kind === 'act') clearingCosts.push(clearingTold(now.call, loss, cost))
    else if (loss !== undefined) cacheBreaks.push(breakTold(now.call, loss, priceIn(outcome)))
    else if (cost !== null) clearingCosts.push(cost)
    else if (outcome.kind === 'broke' && before !== null && !now.call.isCopy) {
      const { moment, ...known } = before
      const isUnstreamed = isUsuallyStreamed && isWhole(now.record)
      const cause = logCause({ event: outcome.event, now, before: moment, ...known, isUnstreamed })
      cacheBreaks.push(breakAt(now, outcome.event, cause))
    }
    saved.push(
      hourSaves({ now, before: last, lifetime: lives, cache: rules.profile.cache, prices: rules.prices }),
    )
    before = told
  }
  return {
    cacheBreaks: [...cacheBreaks, ...breaksBeside(calls, losses)],
    clearingCosts,
    hourWouldSave: hourSavesInAll(saved),
  }
}

/** Of calls that are no part of the conversation nothing but what was told then is known. */
function breaksBeside(calls: readonly Call[], losses: ReadonlyMap<string, ToldLoss>): readonly CacheBreak[] {
  return calls.flatMap((call) => {
    const loss = losses.get(call.key)
    const isBreak = call.source !== null && !call.isCopy && loss?.loss.kind === 'break'
    return isBreak && loss !== undefined ? [breakTold(call, loss, null)] : []
  })
}

function priceIn(outcome: CacheOutcome): number | null {
  return outcome.kind === 'broke' ? dollars(outcome.event.moneyLost) : null
}

/** A log does not say all that a clearing did: whatever had to be processed again behind one is laid to it. */
function clearingCost({ call, since }: Moment, outcome: CacheOutcome): ClearingCost | null {
  const isBehind = since.some(({ record }) => isMicrocompactBoundary(record))
  if (!isBehind || call.isCopy) return null
  if (outcome.kind === 'ours') {
    const { tokensRewritten, moneySpent, breakEvenTurns } = outcome.act
    const costUsd = dollars(moneySpent)
    return { at: call.at, tokensRewritten, costUsd, breakEvenCalls: breakEvenTurns, model: call.model }
  }
  if (outcome.kind !== 'broke') return null
  const { tokensLost, moneyLost, ours } = outcome.event
  const breakEvenCalls = ours?.breakEvenTurns ?? null
  const costUsd = dollars(moneyLost)
  return { at: call.at, tokensRewritten: tokensLost, costUsd, breakEvenCalls, model: call.model }
}

/** What the log says was done to the conversation since the call before. */
function announced(watch: CacheWatch, now: Moment, before: Told | null): CacheWatch {
  const source = sourceOf(now.call)
  const acts = now.since.map(({ record }) => record)
  if (acts.some(isCompactBoundary)) return announceAct(watch, source, { kind: 'compaction' })
  const clearing = acts.find(isMicrocompactBoundary)
  if (clearing !== undefined) {
    const { tokensSaved, compactedToolIds } = clearing.microcompactMetadata ?? {}
    const act = `cleared ${compactedToolIds?.length ?? 0} results`
    return announceAct(watch, source, { kind: 'clearing', act, freedTokens: tokensSaved ?? 0 })
  }
  const isTakenBack = before !== null && before.moment.act !== now.act
  return isTakenBack ? announceAct(watch, source, { kind: 'undo' }) : watch
}

function breakAt(
  { call, line }: Moment,
  event: BreakEvent,
  { cause, evidence }: ReturnType<typeof logCause>,
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

// Responses that came whole, where the others came as a stream. A stream is logged block by block. One that was
// logged whole was most likely asked for again, without a stream and with other settings, after the stream had
// failed; no log says so, and other settings would miss the cache.

/** Of those that have been seen, so many must be of one block for the others to tell anything. */
const SHARE = 0.9
const FEWEST = 10

export function isStreamed(records: readonly ReadRecord[]): boolean {
  const counts = records.map(({ record }) => blockCount(record)).filter((count) => count > 0)
  return counts.length >= FEWEST && counts.filter((count) => count === 1).length >= counts.length * SHARE
}

export function isWhole(record: SessionRecord): boolean {
  return blockCount(record) > 1
}

function blockCount(record: SessionRecord): number {
  if (!isKnown(record) || record.type !== 'assistant') return 0
  return blocksOf(record.message.content).length
}

// What a logged call is judged and priced by.

export interface CallRules extends BreakRules {
  /** The catalogue has the model: what the profile says is said of it. */
  readonly isDescribed: boolean
}

export function rulesFor(catalogue: Catalogue, call: Call): CallRules {
  const found = lookUpModel(catalogue, call.model)
  const entry = found.found ? found.model : null
  const prices = entry === null ? null : pricesOn(entry, call.at)
  return {
    isDescribed: entry !== null,
    policy: DEFAULT_POLICY.cache.breaks,
    profile: entry === null ? strictProfile : profileFor(entry),
    prices: prices === null || !isWrittenUntold(call) ? prices : writtenAsInput(prices),
  }
}

/**
 * Some providers cache by themselves all that is sent, and tell only what was read. What they do not tell is then
 * as good as written, at the price of input.
 */
export function loggedUsage(call: Call): Usage | null {
  const { usage } = call
  if (usage === null || !isWrittenUntold(call)) return usage
  return { ...usage, input_tokens: 0, cache_creation_input_tokens: usage.input_tokens }
}

function isWrittenUntold({ usage }: Call): boolean {
  return typeof usage?.cache_read_input_tokens === 'number' && usage.cache_creation_input_tokens === undefined
}

function writtenAsInput(prices: Prices): Prices {
  const tiers = prices.tiers?.map((tier) => ({ ...tier, write5m: tier.input }))
  return { ...prices, write5m: prices.input, ...(tiers === undefined ? {} : { tiers }) }
}

// Whether an hour's cache would have paid where five minutes' was in force: by the gaps between the requests, the
// same arithmetic by which a live session chooses.

export interface LifeQuestion {
  readonly now: Moment
  readonly before: Moment | null
  /** In force at this call. */
  readonly lifetime: Lifetime
  readonly cache: Profile['cache']
  readonly prices: Prices | null
}

/** What one call says to it, in dollars; undefined where five minutes were not what was asked for. */
export function hourSaves({ now, before, lifetime, cache, prices }: LifeQuestion): number | null | undefined {
  const isShort = lifetime.ttl === '5m' && cache.ttls.some(({ name }) => name === '1h')
  if (!isShort || now.call.isCopy) return undefined
  if (prices === null) return null
  const prompt = contextOf(now.call.usage)
  const isAnew = before === null || now.since.some(({ record }) => isCompactBoundary(record))
  const prefix = isAnew ? 0 : Math.min(prompt, contextOf(before.call.usage))
  const gapMs = before === null || before.at === 0 ? null : now.at - before.at
  const saved = longLifeSaves(tallyGap(NO_GAPS, { gapMs, prefix, added: prompt - prefix }, cache), prices)
  return saved === null ? null : saved / 1_000_000
}

/** Null where no call says anything, or one cannot be priced. */
export function hourSavesInAll(each: readonly (number | null | undefined)[]): number | null {
  const told = each.filter((saved) => saved !== undefined)
  return told.length === 0 ? null : dollars(told.reduce<number | null>(plus, 0))
}

// Losses as the engine judged and told them when they happened. Our own logs keep them right behind the call they
// belong to, and what was seen then says more than can be read off a log later.

export interface ToldLoss {
  readonly loss: CacheLoss
  /** Of the call. */
  readonly line: number
}

/** By the key of the call. */
export function lossesIn(records: readonly ReadRecord[]): ReadonlyMap<string, ToldLoss> {
  const losses = new Map<string, ToldLoss>()
  let call = { key: '', line: 0 }
  for (const { record, line } of records) {
    const key = callKey(record)
    if (key !== null && key !== call.key) call = { key, line }
    const loss = lossOf(record)
    if (loss !== null) losses.set(call.key, { loss, line: call.line })
  }
  return losses
}

function callKey(record: SessionRecord): string | null {
  const beside = loggedCall(record)
  return beside === null ? keyOf(record) : `${beside.id}\n`
}

function lossOf(record: SessionRecord): CacheLoss | null {
  const told: unknown = isKnown(record) && record.type === 'system' ? record.cacheLoss : undefined
  if (!isObject(told) || typeof told.tokens !== 'number') return null
  const { kind, source, reason, tokens, usd, sentence } = told
  if ((kind !== 'break' && kind !== 'act') || typeof reason !== 'string' || typeof sentence !== 'string')
    return null
  const price = typeof usd === 'number' ? usd : null
  return { kind, source: String(source), reason, tokens, usd: price, sentence }
}

/** `costUsd`: what it came to by the prices of today, where none were known then. */
export function breakTold(call: Call, { loss, line }: ToldLoss, costUsd: number | null): CacheBreak {
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

/** `found`: what the log told again says of it. */
export function clearingTold(call: Call, { loss }: ToldLoss, found: ClearingCost | null): ClearingCost {
  return {
    at: call.at,
    tokensRewritten: loss.tokens,
    costUsd: dollars(loss.usd) ?? found?.costUsd ?? null,
    breakEvenCalls: found?.breakEvenCalls ?? null,
    model: call.model,
  }
}
