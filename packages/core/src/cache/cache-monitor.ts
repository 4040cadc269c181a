/**
 * State of break detection between calls, by query source: the last answered request, the request under way, and the
 * rewrites that the engine has announced. A value; the number of sources is bounded.
 */

import type { ModelPrices } from '../cost/prices.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { BlockIndex } from '../request/block-index.ts'
import {
  type CacheBreak,
  isResetAnnouncement,
  type OwnRewriteCost,
  type PricedAnnouncement,
  type ProviderMissReport,
  type RewriteAnnouncement,
} from './cache-break.ts'
import type { CacheForecast } from './cache-forecast.ts'
import type { RequestChain } from './cache-model.ts'
import type { SentRequest } from './sent-request.ts'

export interface CacheMonitor {
  /** By source; the one used last comes last. */
  readonly sources: ReadonlyMap<string, SourceState>
}

interface SourceState {
  readonly last: AnsweredRequest | null
  readonly pending: PendingRequest | null
  /** Since the last request was sent. */
  readonly announced: readonly PricedAnnouncement[]
}

export interface AnsweredRequest {
  readonly sent: SentRequest
  /** Its messages; the cache model knows the request by them. */
  readonly blockIndex: BlockIndex
}

/** A request under way. What it is compared with is captured when it is sent. */
export interface PendingRequest {
  readonly sent: SentRequest
  readonly previous: AnsweredRequest | null
  /** What `against` left in the cache, according to the model; null if the model no longer has it. */
  readonly chain: RequestChain | null
  readonly forecast: CacheForecast
  readonly announced: readonly PricedAnnouncement[]
  /** The source started anew while it was under way, so the next request is not compared with it. */
  readonly isOutdated: boolean
}

export const EMPTY_SOURCE_STATE: SourceState = { last: null, pending: null, announced: [] }

export function createCacheMonitor(): CacheMonitor {
  return { sources: new Map() }
}

/**
 * Before a call: remembers the request as it is sent, with its forecast. A repeated request replaces the one that got
 * no answer. Models that policy excludes are not watched.
 */
export function recordSentRequest(
  watch: CacheMonitor,
  sent: SentRequest,
  forecast: CacheForecast,
  policy: BreaksPolicy,
): CacheMonitor {
  const key = toMonitorKey(sent.source)
  const own = watch.sources.get(key) ?? EMPTY_SOURCE_STATE
  if (policy.excludedModels.some((pattern) => matchesPattern(sent.parameters.model, pattern)))
    return own.pending === null ? watch : withSourceState(watch, key, { ...own, pending: null })
  const parent = findParentKey(sent.source, sent.forkOf)
  const of = parent === null ? own : (watch.sources.get(parent) ?? EMPTY_SOURCE_STATE)
  const against = of.last
  const chain =
    forecast.basis.model.chains.find(({ blockIndex }) => blockIndex === against?.blockIndex) ?? null
  // Deletions that a parent has not sent yet go out with its fork too. All else was sent, and paid for, by the parent.
  const unsentEdits = of.announced.filter(({ kind }) => kind === 'cache-edits')
  const announced = parent === null ? [...(own.pending?.announced ?? []), ...own.announced] : unsentEdits
  const pending: PendingRequest = { sent, forecast, previous: against, chain, announced, isOutdated: false }
  return limitSources(withSourceState(watch, key, { ...own, pending, announced: [] }), policy.sources)
}

/** What is about to be done to the next request of a source. */
export function announceRewrite(
  watch: CacheMonitor,
  source: string,
  announcement: RewriteAnnouncement,
): CacheMonitor {
  const key = toMonitorKey(source)
  const own = watch.sources.get(key) ?? EMPTY_SOURCE_STATE
  if (!isResetAnnouncement(announcement))
    return withSourceState(watch, key, { ...own, announced: [...own.announced, announcement] })
  const pending = own.pending === null ? null : { ...own.pending, isOutdated: true, announced: [] }
  return withSourceState(watch, key, { last: null, pending, announced: [] })
}

/** The source becomes the one used last. */
export function withSourceState(watch: CacheMonitor, key: string, state: SourceState): CacheMonitor {
  const sources = new Map(watch.sources)
  sources.delete(key)
  return { sources: sources.set(key, state) }
}

function limitSources(watch: CacheMonitor, most: number): CacheMonitor {
  if (watch.sources.size <= most) return watch
  return { sources: new Map([...watch.sources].slice(-most)) }
}

// Query sources.

const MAIN_SOURCE = 'repl_main_thread'

/** The main thread goes by several names. */
export function toMonitorKey(source: string): string {
  const isMain = source === '' || source === 'sdk' || source.startsWith(MAIN_SOURCE)
  return isMain ? MAIN_SOURCE : source
}

/** The source whose cache a fork reads; null for a request that is no fork. */
export function findParentKey(source: string, forkOf: string | undefined): string | null {
  if (forkOf !== undefined) return toMonitorKey(forkOf)
  return source === 'compact' ? MAIN_SOURCE : null
}

/** `*` matches any text; case does not count. */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*')
  const text = name.toLowerCase()
  if (!text.startsWith(first)) return false
  const last = rest.pop()
  if (last === undefined) return text === first
  let from = first.length
  for (const part of rest) {
    const found = text.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

// What a comparison takes and gives.

export interface CacheCheckInput {
  /** Of the request that was answered. */
  readonly source: string
  /** Null if the response has none: then nothing is judged. */
  readonly usage: Usage | null
  readonly word?: ProviderMissReport | null
  /** The provider reports that it cleared something from the request by itself. */
  readonly isEdited?: boolean
}

export interface BreakRules {
  readonly policy: BreaksPolicy
  readonly profile: Pick<ProviderProfile, 'cache' | 'thinking'>
  /** Of the model that was called; null if unknown. */
  readonly prices: ModelPrices | null
  /** Removes secrets from what an event quotes of a request; without it, values are quoted as sent. */
  readonly redact?: (text: string) => string
}

export type CacheCheckOutcome =
  /** There is nothing to compare with. */
  | { readonly kind: 'first' }
  | { readonly kind: 'read'; readonly expected: number; readonly read: number }
  /** An announced rewrite was paid for: no break. */
  | { readonly kind: 'ours'; readonly act: OwnRewriteCost }
  /** `diff`: what changed, as text for a file, without the secrets that `redact` removes. */
  | {
      readonly kind: 'broke'
      readonly event: CacheBreak
      readonly diff: (redact: (text: string) => string) => string
    }
  | { readonly kind: 'not-judged'; readonly why: NotJudgedReason }

/**
 * No snapshot, or an excluded model; no usage in the response; the provider rewrote the request by itself; it does
 * not report what it deleted.
 */
type NotJudgedReason = 'not-watched' | 'no-usage' | 'edited-by-provider' | 'deletion-not-told'
