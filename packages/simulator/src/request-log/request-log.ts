/** The request log: records of answered requests with cache analysis and cost, and their one-line format. */

import { type Cost, type ModelPrices, priceUncached, priceUsage, type Usage } from '@tidemark/core'
import type { AppliedEdit } from '../context/context-edits.ts'
import type { Transformation } from '../context/thinking-binding.ts'
import type { Account, CacheKey } from '../prompt-cache/cache-key.ts'
import type { Prompt } from '../prompt-cache/prompt.ts'
import type { BreakpointStatus } from '../prompt-cache/prompt-cache.ts'
import type { JsonObject } from '../protocol/api.ts'
import type { CacheTtl } from '../protocol/cache-markers.ts'

/** One request of the log, as in `simulator.requests` and `GET /_simulator/requests`. */
export interface RequestRecord {
  /** 1 for the first request. */
  readonly number: number
  readonly requestId: string
  readonly messageId: string | null
  /** ISO time on the simulator's clock. */
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
  /** What the fault did, if that is not exactly what was requested. */
  readonly faultNote: string | null
  readonly stopReason: string | null
  /** All billed tokens, including summaries made before the answer. */
  readonly usage: TokenUsage | null
  readonly cost: RequestCost | null
  /** The result of `count_tokens`. */
  readonly counted: number | null
  readonly cache: CacheAnalysis | null
  readonly appliedEdits: readonly AppliedEdit[]
  readonly transformations: readonly Transformation[]
  /** Tokens of the summaries made by threshold compaction before the answer. */
  readonly compactions: readonly TokenUsage[]
}

export interface TokenUsage {
  readonly input: number
  readonly cacheRead: number
  readonly write5m: number
  readonly write1h: number
  readonly output: number
}

export interface RequestCost {
  /** In dollars; null if a price is not known. */
  readonly total: number | null
  /** Cost of the prompt without a cache, minus its actual cost. */
  readonly saved: number | null
}

export interface CacheAnalysis {
  readonly hit: { readonly path: string; readonly tokens: number; readonly from: string } | null
  readonly breakpoints: readonly {
    readonly path: string
    readonly ttl: CacheTtl
    readonly tokens: number
    readonly fate: BreakpointStatus
  }[]
  /** The model's minimum of tokens for a cached prefix. */
  readonly minimum: number
  readonly miss: CacheMiss | null
}

/** Why a request read less than an earlier request of its conversation had written to the cache. */
export interface CacheMiss {
  readonly reason: CacheMissCause
  /** The reason as text. */
  readonly why: string
  /** Tokens that could have been read and were not. */
  readonly tokens: number
  /** Number of the request it is compared with. */
  readonly comparedWith: number
  readonly divergence?: Divergence
}

export type CacheMissCause =
  | 'key-changed'
  | 'content-changed'
  | 'expired'
  | 'not-yet-written'
  | 'beyond-look-back'
  | 'no-breakpoint'
  | 'unknown'

/** The first difference between two prompts. */
export interface Divergence {
  readonly path: string
  /** Offset in the rendered block, and in the whole rendered prompt. */
  readonly blockByte: number
  readonly promptByte: number
  readonly was: string
  readonly now: string
}

/** What is kept of a request to compare later requests with it. */
export interface ComparableRequest {
  readonly number: number
  readonly scope: Account
  readonly prompt: Prompt
  readonly key: CacheKey
  /** Position of its last breakpoint above the minimum; null if nothing could be cached. */
  readonly cachedUpTo: number | null
  /** Start of the request, from which its TTLs count. */
  readonly startedAt: number
  readonly hasBegun: () => boolean
}

export interface RequestLog {
  /** The number of the next request, counted from 1. */
  next(): number
  add(record: RequestRecord): void
  addComparable(comparable: ComparableRequest): void
  readonly records: readonly RequestRecord[]
  readonly seen: readonly ComparableRequest[]
  readonly count: number
  clear(): void
}

const MAX_COMPARABLE_REQUESTS = 64

export function createRequestLog(kept: number): RequestLog {
  let records: RequestRecord[] = []
  let seen: ComparableRequest[] = []
  let count = 0
  return {
    next() {
      count += 1
      return count
    },
    add(record) {
      records.push(record)
      if (records.length > kept) records = records.slice(-kept)
    },
    addComparable(request) {
      seen.push(request)
      if (seen.length > MAX_COMPARABLE_REQUESTS) seen = seen.slice(-MAX_COMPARABLE_REQUESTS)
    },
    get records() {
      return records
    },
    get seen() {
      return seen
    },
    get count() {
      return count
    },
    clear() {
      records = []
      seen = []
    },
  }
}

/**
 * A request as one line for a terminal: usage, cost, fault, and why the cache was missed.
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

/** A note if the request has markers and none of the marked prefixes reaches the minimum. */
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

/** The cost of a response by the catalogue's prices, and what the cache saved. */
export function responseCost(usage: JsonObject, prices: ModelPrices | null): RequestCost {
  if (prices === null) return { total: null, saved: null }
  const money = priceUsage(usage as Usage, prices)
  const cached = promptPrice(money)
  const plain = promptPrice(priceUncached(usage as Usage, prices))
  return { total: money.total, saved: plain === null || cached === null ? null : plain - cached }
}

/** The cost of the prompt alone, which is known even if the price of output is not. */
function promptPrice({ byClass: { input, cacheRead, write5m, write1h } }: Cost): number | null {
  if (input === null || cacheRead === null || write5m === null || write1h === null) return null
  return input + cacheRead + write5m + write1h
}
