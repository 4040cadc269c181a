/** One request as it is shown to people: what it was, what the cache did with it and why, what it cost. */

import { type Money, type Prices, priceOf, priceUncached, type Usage } from '@tidemark/core'
import type { AppliedEdit } from '../context/context-edits.ts'
import type { Transformation } from '../context/thinking-binding.ts'
import type { CacheKey, Scope } from '../prompt-cache/cache-key.ts'
import type { Prompt } from '../prompt-cache/prompt.ts'
import type { BreakpointFate } from '../prompt-cache/prompt-cache.ts'
import type { JsonObject } from '../protocol/api.ts'
import type { Ttl } from '../protocol/cache-markers.ts'

export interface RequestRecord {
  /** 1 for the first. */
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
  /** Where the fault did not do what was asked for to the letter: what it did. */
  readonly faultNote: string | null
  readonly stopReason: string | null
  /** All that was billed, summaries on the way included. */
  readonly usage: TokenFigures | null
  readonly cost: CostFigures | null
  /** What `count_tokens` answered. */
  readonly counted: number | null
  readonly cache: CacheAnalysis | null
  readonly appliedEdits: readonly AppliedEdit[]
  readonly transformations: readonly Transformation[]
  /** Summaries made at a threshold, on the way to the answer. */
  readonly compactions: readonly TokenFigures[]
}

export interface TokenFigures {
  readonly input: number
  readonly cacheRead: number
  readonly write5m: number
  readonly write1h: number
  readonly output: number
}

export interface CostFigures {
  /** Dollars; null where a price is not known. */
  readonly total: number | null
  /** What the prompt would have cost without a cache, less what it did cost. */
  readonly saved: number | null
}

export interface CacheAnalysis {
  readonly hit: { readonly path: string; readonly tokens: number; readonly from: string } | null
  readonly breakpoints: readonly {
    readonly path: string
    readonly ttl: Ttl
    readonly tokens: number
    readonly fate: BreakpointFate
  }[]
  /** Tokens that a prefix must have to be cached with this model. */
  readonly minimum: number
  readonly miss: CacheMiss | null
}

/** Why a request read less than an earlier one of its conversation had left in the cache. */
export interface CacheMiss {
  readonly reason: MissReason
  /** In words. */
  readonly why: string
  /** Tokens that were there to be read. */
  readonly tokens: number
  /** The request it is compared with, by its number. */
  readonly comparedWith: number
  readonly divergence?: Divergence
}

export type MissReason =
  | 'key-changed'
  | 'content-changed'
  | 'expired'
  | 'not-yet-written'
  | 'beyond-look-back'
  | 'no-breakpoint'
  | 'unknown'

/** Where the prompt stops being what it was. */
export interface Divergence {
  readonly path: string
  /** Byte in the rendering of the block, and in that of the whole prompt. */
  readonly blockByte: number
  readonly promptByte: number
  readonly was: string
  readonly now: string
}

// The requests answered so far, the newest kept, with what is needed to compare the next one with them.

/** A request as a later one is compared with it. */
export interface Seen {
  readonly number: number
  readonly scope: Scope
  readonly prompt: Prompt
  readonly key: CacheKey
  /** Its last breakpoint that counted, as a position; null where nothing of it could be cached. */
  readonly cachedUpTo: number | null
  /** When its own lifetimes began. */
  readonly startedAt: number
  readonly begun: () => boolean
}

export interface RequestLog {
  /** The number of the next request, counted from 1. */
  next(): number
  add(record: RequestRecord): void
  see(seen: Seen): void
  readonly records: readonly RequestRecord[]
  readonly seen: readonly Seen[]
  readonly count: number
  clear(): void
}

const COMPARABLE = 64

export function createRequestLog(kept: number): RequestLog {
  let records: RequestRecord[] = []
  let seen: Seen[] = []
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
    see(request) {
      seen.push(request)
      if (seen.length > COMPARABLE) seen = seen.slice(-COMPARABLE)
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

// A request on one line of a terminal.

export function lineOf(record: RequestRecord): string {
  const head = `#${record.number} ${record.at.slice(11, 19)} ${record.model ?? record.endpoint}`
  if (record.error !== null) return `${head} ${record.status} ${record.error.type}: ${record.error.message}`
  const { usage } = record
  if (record.counted !== null)
    return [`${head}  count_tokens: ${count(record.counted)}`, faultOf(record)].join('  ').trimEnd()
  if (usage === null) return `${head} ${record.status}`
  const write = usage.write5m + usage.write1h
  const prompt = `read ${count(usage.cacheRead)} wrote ${count(write)} input ${count(usage.input)}`
  const parts = [
    head,
    `${record.messages} msgs`,
    `${prompt} → ${count(usage.output)}`,
    record.stopReason ?? '',
    money(record.cost?.total ?? null),
    faultOf(record),
    compactionOf(record),
    minimumOf(record),
    missOf(record),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function faultOf({ fault, faultNote }: RequestRecord): string {
  if (fault === null) return ''
  return faultNote === null ? `fault: ${fault}` : `fault: ${fault} (${faultNote})`
}

function compactionOf({ compactions }: RequestRecord): string {
  return compactions.length === 0 ? '' : 'compacted first'
}

/** Where a marker was there, and nothing before any of them was long enough. */
function minimumOf({ cache }: RequestRecord): string {
  if (cache === null || cache.breakpoints.length === 0) return ''
  const isShort = cache.breakpoints.every(({ fate }) => fate === 'below-minimum')
  return isShort ? `not cached: below the minimum of ${cache.minimum} tokens` : ''
}

function missOf({ cache }: RequestRecord): string {
  const miss = cache?.miss
  return miss === null || miss === undefined ? '' : `missed ${count(miss.tokens)}: ${miss.why}`
}

function count(tokens: number): string {
  return tokens < 10_000 ? String(tokens) : `${(tokens / 1_000).toFixed(1)}k`
}

function money(dollars: number | null): string {
  return dollars === null ? '' : `$${dollars.toFixed(4)}`
}

// What a response cost by the catalogue's prices, and what the cache saved.

export function costOf(usage: JsonObject, prices: Prices | null): CostFigures {
  if (prices === null) return { total: null, saved: null }
  const money = priceOf(usage as Usage, prices)
  const cached = promptPrice(money)
  const plain = promptPrice(priceUncached(usage as Usage, prices))
  return { total: money.total, saved: plain === null || cached === null ? null : plain - cached }
}

/** The prompt alone: what was saved on it is known though the price of output may not be. */
function promptPrice({ byClass: { input, cacheRead, write5m, write1h } }: Money): number | null {
  if (input === null || cacheRead === null || write5m === null || write1h === null) return null
  return input + cacheRead + write5m + write1h
}
