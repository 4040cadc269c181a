/**
 * Lists the requests of the main conversation, each with size, kinds of content, usage and price, and what each compaction cost.
 * While the context only grows, only new entries are estimated; after a rewrite, all are estimated again.
 */
import { type ContextEntry, isVisibleToModel } from '@tidemark/core/context/context-entry'
import { findTierRates } from '@tidemark/core/cost/prices'
import { COMPACTION_SOURCE } from '@tidemark/core/cost/session-cost'
import type { Block } from '@tidemark/core/log/block'
import type { AppendList } from '@tidemark/core/log/persistent-collections'
import { isCompactBoundary } from '@tidemark/core/log/record'
import { createBreakdownBuilder, toShownRecord } from '@tidemark/core/tokens/breakdown'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { createPriceFinder } from '@tidemark/wire/catalogue/catalogue'
import { READ_TOOL_NAMES, toTokensByClass } from './context-contents.ts'
import { type LoggedCall, toUsageTotals } from './logged-calls.ts'
import type { ReplayedRequest } from './logged-requests.ts'
import type { LoggedCompaction, LoggedRequest, RequestContent } from './report.ts'
import { type CallPricingOptions, priceLogCall, roundDollars } from './spending.ts'

/** A request with the estimated tokens of its messages, before these are scaled to the size that was billed. */
interface CountedRequest {
  readonly call: LoggedCall
  readonly line: number
  readonly tokens: number
  readonly messages: RequestContent
  /** True for the first request, and for the first after each compaction. */
  readonly isFresh: boolean
}

interface RequestLister {
  /** Takes the requests of the main conversation in order. */
  take(request: ReplayedRequest): void
  /** Returns the requests that the log has a size for: one for each point of the context curve. */
  list(): readonly LoggedRequest[]
}

/**
 * Creates the lister. `estimate`: returns the estimated tokens of a block for the main model. `take` is called for each
 * rebuilt request, in order; then `list` once.
 */
export function createRequestLister(
  estimate: (block: Block) => number,
  pricing: CallPricingOptions,
): RequestLister {
  const counter = createEntryCounter(estimate)
  const counted: CountedRequest[] = []
  return {
    take({ call, line, flat, recordsSincePrevious }) {
      const tokens = readReportedContextTokens(call.usage)
      const messages = counter.count(flat.entries)
      if (tokens === 0) return
      const isFresh =
        counted.length === 0 || recordsSincePrevious.some(({ record }) => isCompactBoundary(record))
      counted.push({ call, line, tokens, messages, isFresh })
    },
    list: () => toLoggedRequests(counted, pricing),
  }
}

/** Counts the messages of one request after the other by kind of content. */
function createEntryCounter(estimate: (block: Block) => number): {
  readonly count: (entries: AppendList<ContextEntry>) => RequestContent
} {
  const start = () => createBreakdownBuilder({ estimate, readTools: READ_TOOL_NAMES })
  let builder = start()
  let before: AppendList<ContextEntry> | null = null
  return {
    count(entries) {
      const isGrown = before !== null && entries.extends(before)
      if (!isGrown) builder = start()
      for (const entry of entries.toArray(isGrown ? before?.length : 0))
        if (isVisibleToModel(entry)) builder.add(toShownRecord(entry))
      before = entries
      const { total, ...classes } = toTokensByClass(builder.breakdown)
      return classes
    },
  }
}

function withoutEmptyClasses(content: RequestContent): RequestContent {
  return Object.fromEntries(Object.entries(content).filter(([, tokens]) => tokens > 0))
}

function toLoggedRequests(
  counted: readonly CountedRequest[],
  pricing: CallPricingOptions,
): readonly LoggedRequest[] {
  const findPrices = createPriceFinder(pricing.catalogue)
  const system = estimateSystemTokens(counted)
  return counted.map(({ call, line, tokens, messages }) => {
    const priced = priceLogCall(call, pricing, findPrices)
    const prices = findPrices(call.model, call.at)
    const rates = prices === null ? null : findTierRates(prices, tokens)
    const { input, writeShort, writeLong } = priced.money.byClass
    const unread = priced.tokens.input + priced.tokens.writeShort + priced.tokens.writeLong
    const isKnown = rates?.cacheRead != null && input !== null && writeShort !== null && writeLong !== null
    return {
      at: call.at,
      line,
      model: call.model,
      tokens,
      usage: toUsageTotals(call.usage),
      outputTokens: priced.tokens.output,
      costUsd: roundDollars(priced.money.total),
      uncachedUsd: isKnown
        ? roundDollars(input + writeShort + writeLong - (unread * (rates.cacheRead ?? 0)) / 1_000_000)
        : null,
      content: scaleContent(messages, tokens, system),
    }
  })
}

/**
 * Estimates the tokens of system prompt and tools: the smallest difference between the billed size and the messages, over
 * the first request and the first after each compaction. Later requests differ by more than the prefix, because an estimate
 * is further off the longer the text is.
 */
function estimateSystemTokens(counted: readonly CountedRequest[]): number {
  const differences = counted
    .filter(({ isFresh }) => isFresh)
    .map(({ tokens, messages }) => tokens - sumContent(messages))
  return differences.length === 0 ? 0 : Math.max(0, Math.min(...differences))
}

function sumContent(content: RequestContent): number {
  return Object.values(content).reduce((sum, tokens) => sum + tokens, 0)
}

/** Scales the estimates of the messages so that they and the system prompt add up to the size that was billed. */
function scaleContent(messages: RequestContent, tokens: number, system: number): RequestContent {
  const estimated = sumContent(messages)
  const front = estimated === 0 ? tokens : Math.min(system, tokens)
  const factor = estimated === 0 ? 0 : (tokens - front) / estimated
  const scaled: Record<string, number> = { system: front }
  const amountOf = (name: string): number => scaled[name] ?? 0
  let left = tokens - front
  for (const [name, amount] of Object.entries(messages)) {
    scaled[name] = Math.min(left, Math.round(amount * factor))
    left -= scaled[name]
  }
  const largest = Object.keys(scaled).reduce((most, name) => (amountOf(name) > amountOf(most) ? name : most))
  scaled[largest] = amountOf(largest) + left
  return withoutEmptyClasses(scaled)
}

/**
 * Returns the report with `costUsd` of each compaction set: the logged calls that wrote its summary, plus the tokens
 * that the next request could not read from the cache. Null if a price is unknown, or if no request followed.
 */
export function withCompactionCosts<
  Report extends {
    readonly requests: readonly LoggedRequest[]
    readonly compactions: readonly LoggedCompaction[]
  },
>(report: Report, calls: readonly LoggedCall[], pricing: CallPricingOptions): Report {
  const summaries = calls.filter(({ source, isCopy }) => source === COMPACTION_SOURCE && !isCopy)
  let from = ''
  const compactions = report.compactions.map((compaction) => {
    const { at, afterCall } = compaction
    const own = summaries.filter((call) => call.at > from && (at === null || call.at <= at))
    from = at ?? from
    const spent = own.reduce<number | null>((sum, call) => {
      const { total } = priceLogCall(call, pricing).money
      return sum === null || total === null ? null : sum + total
    }, 0)
    const next = report.requests[afterCall]?.uncachedUsd ?? null
    return { ...compaction, costUsd: spent === null || next === null ? null : roundDollars(spent + next) }
  })
  return { ...report, compactions }
}
