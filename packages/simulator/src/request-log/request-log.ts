/** The request log: records of answered requests with cache analysis and cost, and their format as one line of text. */

import { type Cost, type ModelPrices, priceUsage, priceUsageUncached } from '@tidemark/core/cost/prices'
import { readAnthropicUsage } from '@tidemark/wire/providers/message-usage'
import type { AppliedEdit } from '../context/context-edits.ts'
import type { ThinkingTransformation } from '../context/thinking-binding.ts'
import type { Account, CacheKey } from '../prompt-cache/cache-key.ts'
import type { Prompt } from '../prompt-cache/prompt.ts'
import type { BreakpointFate } from '../prompt-cache/prompt-cache.ts'
import type { CacheTtl } from '../protocol/cache-markers.ts'
import type { JsonObject } from '../protocol/messages-request.ts'

/** The record of one API request, as in `simulator.requests` and `GET /_simulator/requests`. */
export interface RequestRecord {
  /** Number of the request; 1 for the first. */
  readonly number: number
  readonly requestId: string
  readonly messageId: string | null
  /** Start of the request as an ISO time on the simulator's clock. */
  readonly at: string
  readonly durationMs: number
  readonly endpoint: string
  readonly organization: string | null
  readonly workspace: string | null
  readonly model: string | null
  readonly stream: boolean
  readonly messages: number
  readonly bodyBytes: number
  readonly status: number
  readonly error: { readonly type: string; readonly message: string } | null
  readonly fault: string | null
  /** Note about a fault that could not be applied exactly as requested; otherwise null. */
  readonly faultNote: string | null
  readonly stopReason: string | null
  /** All billed tokens, including those of summaries that the provider made before the answer. */
  readonly usage: TokenUsage | null
  readonly cost: RequestCost | null
  /** Result of a `count_tokens` request; null for other requests. */
  readonly counted: number | null
  readonly cache: CacheAnalysis | null
  readonly appliedEdits: readonly AppliedEdit[]
  readonly transformations: readonly ThinkingTransformation[]
  /**
   * Tokens of each summary that the provider made before the answer, because the prompt had reached the compaction
   * threshold.
   */
  readonly compactions: readonly TokenUsage[]
}

/** Tokens by price class. On OpenAI's APIs, writes for 30 minutes count as `write5m` and writes for 12 hours as `write1h`. */
export interface TokenUsage {
  readonly input: number
  readonly cacheRead: number
  readonly write5m: number
  readonly write1h: number
  readonly output: number
}

interface RequestCost {
  /** Cost in dollars; null if a price is not known. */
  readonly total: number | null
  /** Dollars saved: the cost of the prompt without a cache, minus its actual cost. Null if a price is not known. */
  readonly saved: number | null
}

export interface CacheAnalysis {
  readonly hit: { readonly path: string; readonly tokens: number; readonly from: string } | null
  readonly breakpoints: readonly {
    readonly path: string
    /** Lifetime of the entry: `5m` or `1h`, on OpenAI's APIs `30m` or `12h`. */
    readonly ttl: CacheTtl | '30m' | '12h'
    readonly tokens: number
    readonly fate: BreakpointFate
  }[]
  /** The model's minimum number of tokens for a cached prefix. */
  readonly minimum: number
  readonly miss: CacheMiss | null
}

/** Explains why a request read fewer tokens than an earlier request of its conversation had written to the cache. */
export interface CacheMiss {
  readonly reason: CacheMissCause
  /** Explanation of the cache miss for a reader. */
  readonly why: string
  /** Tokens that could have been read from the cache but were not. */
  readonly tokens: number
  /** Number of the earlier request with which this request was compared. */
  readonly comparedWith: number
  readonly divergence?: PromptDifference
}

export type CacheMissCause =
  | 'key-changed'
  | 'content-changed'
  | 'expired'
  | 'not-yet-written'
  | 'beyond-look-back'
  | 'no-breakpoint'
  | 'unknown'

/** The first difference between a prompt and an earlier one. `was` and `now`: excerpts of both, from shortly before it. */
export interface PromptDifference {
  readonly path: string
  /**
   * Byte offset of the difference: `blockByte` within the rendered block, `promptByte` within the whole rendered
   * prompt.
   */
  readonly blockByte: number
  readonly promptByte: number
  readonly was: string
  readonly now: string
}

/** Data of a request that is kept to explain cache misses of later requests. */
export interface ComparableRequest {
  readonly number: number
  readonly scope: Account
  readonly prompt: Prompt
  readonly key: CacheKey
  /** Ids of the tool calls in the response, by which a later request of the conversation can be recognized. */
  readonly calls: readonly string[]
  /** Position of the last breakpoint whose prefix has enough tokens to be cached; null if there is none. */
  readonly cachedUpTo: number | null
  /** Start time of the request, from which the lifetimes of its cache entries are counted. */
  readonly startedAt: number
  readonly hasBegun: () => boolean
}

/** Sums over all requests since the start, including those whose records are no longer kept. */
interface RequestTotals {
  /** Requests with an error status. */
  readonly failed: number
  readonly usage: TokenUsage
  /** Cost of the requests whose prices are known. */
  readonly cost: { readonly total: number; readonly saved: number }
  /** Number of requests whose prices are not known. */
  readonly unpriced: number
  /** Tokens that could have been read from the cache but were not. */
  readonly missedTokens: number
}

export interface RequestLog {
  /** Returns the number of the next request, counted from 1, and increments the count. */
  takeNumber(): number
  /**
   * Adds a record and the body of its request, and counts it in `totals`. The oldest records and bodies over the limits
   * are forgotten.
   */
  add(record: RequestRecord, body: string): void
  addComparable(comparable: ComparableRequest): void
  readonly records: readonly RequestRecord[]
  readonly comparableRequests: readonly ComparableRequest[]
  readonly count: number
  /** Number of records that are kept at most. */
  readonly limit: number
  /** Number of records that were added and are no longer kept, because newer ones took their place. */
  readonly forgotten: number
  readonly totals: RequestTotals
  /** Returns the body of a request; undefined if it is not kept. */
  findBody(number: number): string | undefined
  clear(): void
}

const MAX_COMPARABLE_REQUESTS = 64

/** Maximum characters of request bodies that are kept, however many requests there are. */
export const MAX_KEPT_BODY_LENGTH = 64 * 1_048_576

const NO_USAGE: TokenUsage = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

const NO_TOTALS: RequestTotals = {
  failed: 0,
  usage: NO_USAGE,
  cost: { total: 0, saved: 0 },
  unpriced: 0,
  missedTokens: 0,
}

export function createRequestLog(limit: number): RequestLog {
  const bodies = createBodyStore()
  let records: RequestRecord[] = []
  let seen: ComparableRequest[] = []
  let count = 0
  let forgotten = 0
  let totals = NO_TOTALS
  return {
    limit,
    takeNumber() {
      count += 1
      return count
    },
    add(record, body) {
      totals = addToTotals(totals, record)
      records.push(record)
      bodies.add(record.number, body)
      for (const old of records.splice(0, records.length - limit)) {
        bodies.delete(old.number)
        forgotten += 1
      }
    },
    addComparable(request) {
      seen.push(request)
      if (seen.length > MAX_COMPARABLE_REQUESTS) seen = seen.slice(-MAX_COMPARABLE_REQUESTS)
    },
    get records() {
      return records
    },
    get comparableRequests() {
      return seen
    },
    get count() {
      return count
    },
    get forgotten() {
      return forgotten
    },
    get totals() {
      return totals
    },
    findBody: (number) => bodies.find(number),
    clear() {
      records = []
      seen = []
      bodies.clear()
    },
  }
}

interface BodyStore {
  add(number: number, body: string): void
  find(number: number): string | undefined
  delete(number: number): void
  clear(): void
}

/** Keeps the newest bodies that together are not longer than the limit. */
function createBodyStore(): BodyStore {
  const bodies = new Map<number, string>()
  let length = 0
  function remove(number: number): void {
    length -= bodies.get(number)?.length ?? 0
    bodies.delete(number)
  }
  return {
    add(number, body) {
      bodies.set(number, body)
      length += body.length
      for (const oldest of bodies.keys()) {
        if (length <= MAX_KEPT_BODY_LENGTH) break
        remove(oldest)
      }
    },
    find: (number) => bodies.get(number),
    delete: remove,
    clear() {
      bodies.clear()
      length = 0
    },
  }
}

function addToTotals(totals: RequestTotals, { status, usage, cost, cache }: RequestRecord): RequestTotals {
  const isUnpriced = usage !== null && (cost === null || cost.total === null)
  return {
    failed: totals.failed + (status >= 400 ? 1 : 0),
    usage: addTokenUsage(totals.usage, usage ?? NO_USAGE),
    cost: {
      total: totals.cost.total + (cost?.total ?? 0),
      saved: totals.cost.saved + (cost?.saved ?? 0),
    },
    unpriced: totals.unpriced + (isUnpriced ? 1 : 0),
    missedTokens: totals.missedTokens + (cache?.miss?.tokens ?? 0),
  }
}

export function addTokenUsage(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    write5m: one.write5m + other.write5m,
    write1h: one.write1h + other.write1h,
    output: one.output + other.output,
  }
}

/**
 * Formats a request as one line for a terminal: usage, cost, fault, and the reason for a cache miss.
 *
 * @example
 * const server = await serve({ onRequest: (record) => console.log(formatRequestLine(record)) })
 */
export function formatRequestLine(record: RequestRecord): string {
  const head = `#${record.number} ${record.at.slice(11, 19)} ${record.model ?? record.endpoint}`
  if (record.error !== null) return `${head} ${record.status} ${record.error.type}: ${record.error.message}`
  const { usage } = record
  if (record.counted !== null)
    return [`${head}  count_tokens: ${formatTokenCount(record.counted)}`, formatFault(record)]
      .join('  ')
      .trimEnd()
  if (usage === null) return `${head} ${record.status}`
  const write = usage.write5m + usage.write1h
  const prompt = `read ${formatTokenCount(usage.cacheRead)} wrote ${formatTokenCount(write)} input ${formatTokenCount(usage.input)}`
  const parts = [
    head,
    `${record.messages} msgs`,
    `${prompt} → ${formatTokenCount(usage.output)}`,
    record.stopReason ?? '',
    formatDollars(record.cost?.total ?? null),
    formatFault(record),
    formatCompaction(record),
    formatMinimum(record),
    formatMiss(record),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function formatFault({ fault, faultNote }: RequestRecord): string {
  if (fault === null) return ''
  return faultNote === null ? `fault: ${fault}` : `fault: ${fault} (${faultNote})`
}

function formatCompaction({ compactions }: RequestRecord): string {
  return compactions.length === 0 ? '' : 'compacted first'
}

/**
 * Returns a note if the request has cache markers but every marked prefix is below the model's cache minimum.
 * Otherwise empty.
 */
function formatMinimum({ cache }: RequestRecord): string {
  if (cache === null || cache.breakpoints.length === 0) return ''
  const isShort = cache.breakpoints.every(({ fate }) => fate === 'below-minimum')
  return isShort ? `not cached: below the minimum of ${cache.minimum} tokens` : ''
}

function formatMiss({ cache }: RequestRecord): string {
  const miss = cache?.miss
  return miss === null || miss === undefined ? '' : `missed ${formatTokenCount(miss.tokens)}: ${miss.why}`
}

function formatTokenCount(tokens: number): string {
  return tokens < 10_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`
}

function formatDollars(dollars: number | null): string {
  return dollars === null ? '' : `$${dollars.toFixed(4)}`
}

/** Computes the cost of a response and what the cache saved, in dollars, from its `usage` in the form of the Messages API. */
export function computeRequestCost(usage: JsonObject, prices: ModelPrices | null): RequestCost {
  const tokens = readAnthropicUsage(usage)
  if (prices === null || tokens === null) return { total: null, saved: null }
  const money = priceUsage(tokens, prices)
  const cached = promptPrice(money)
  const plain = promptPrice(priceUsageUncached(tokens, prices))
  return { total: money.total, saved: plain === null || cached === null ? null : plain - cached }
}

/** Returns the cost of the prompt without the output; null if a price is not known. */
function promptPrice({ byClass: { input, cacheRead, writeShort, writeLong } }: Cost): number | null {
  if (input === null || cacheRead === null || writeShort === null || writeLong === null) return null
  return input + cacheRead + writeShort + writeLong
}
