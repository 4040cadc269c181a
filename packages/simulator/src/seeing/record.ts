/** One request as it is shown to people: what it was, what the cache did with it and why, what it cost. */

import type { Ttl } from '../cache/markers.ts'
import type { BreakpointFate } from '../cache/prompt-cache.ts'
import type { Transformation } from '../context/binding.ts'
import type { AppliedEdit } from '../context/edits.ts'

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
