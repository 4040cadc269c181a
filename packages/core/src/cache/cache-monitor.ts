/**
 * State of break detection between calls, by query source: the last answered request, the request under way, and the
 * rewrites that the engine has announced. A value; the number of sources is bounded.
 */

import type { Prices } from '../cost/prices.ts'
import type { Usage } from '../log/record.ts'
import type { BreaksPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import type { Counted } from '../request/block-index.ts'
import {
  type ActPaid,
  type Announcement,
  type BreakEvent,
  isReset,
  type PricedAnnouncement,
  type ProviderWord,
} from './cache-break.ts'
import type { Forecast } from './cache-forecast.ts'
import type { RequestChain } from './cache-model.ts'
import type { SentRequest } from './sent-request.ts'

export interface CacheWatch {
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
  readonly counted: Counted
}

/** A request under way. What it is compared with is captured when it is sent. */
export interface PendingRequest {
  readonly sent: SentRequest
  readonly against: AnsweredRequest | null
  /** What `against` left in the cache, according to the model; null if the model no longer has it. */
  readonly chain: RequestChain | null
  readonly forecast: Forecast
  readonly announced: readonly PricedAnnouncement[]
  /** The source started anew while it was under way, so the next request is not compared with it. */
  readonly isOutdated: boolean
}

export const UNWATCHED: SourceState = { last: null, pending: null, announced: [] }

export function emptyCacheWatch(): CacheWatch {
  return { sources: new Map() }
}

/**
 * Before a call: remembers the request as it is sent, with its forecast. A repeated request replaces the one that got
 * no answer. Models that policy excludes are not watched.
 */
export function takeSnapshot(
  watch: CacheWatch,
  sent: SentRequest,
  forecast: Forecast,
  policy: BreaksPolicy,
): CacheWatch {
  const key = watchKey(sent.source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (policy.excludedModels.some((pattern) => matchesPattern(sent.parameters.model, pattern)))
    return own.pending === null ? watch : withWatched(watch, key, { ...own, pending: null })
  const parent = parentKey(sent.source, sent.forkOf)
  const of = parent === null ? own : (watch.sources.get(parent) ?? UNWATCHED)
  const against = of.last
  const chain = forecast.asked.model.chains.find(({ counted }) => counted === against?.counted) ?? null
  // Deletions that a parent has not sent yet go out with its fork too. All else was sent, and paid for, by the parent.
  const unsentEdits = of.announced.filter(({ kind }) => kind === 'cache-edits')
  const announced = parent === null ? [...(own.pending?.announced ?? []), ...own.announced] : unsentEdits
  const pending: PendingRequest = { sent, forecast, against, chain, announced, isOutdated: false }
  return limitSources(withWatched(watch, key, { ...own, pending, announced: [] }), policy.sources)
}

/** What is about to be done to the next request of a source. */
export function announceAct(watch: CacheWatch, source: string, announcement: Announcement): CacheWatch {
  const key = watchKey(source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (!isReset(announcement))
    return withWatched(watch, key, { ...own, announced: [...own.announced, announcement] })
  const pending = own.pending === null ? null : { ...own.pending, isOutdated: true, announced: [] }
  return withWatched(watch, key, { last: null, pending, announced: [] })
}

/** The source becomes the one used last. */
export function withWatched(watch: CacheWatch, key: string, state: SourceState): CacheWatch {
  const sources = new Map(watch.sources)
  sources.delete(key)
  return { sources: sources.set(key, state) }
}

function limitSources(watch: CacheWatch, most: number): CacheWatch {
  if (watch.sources.size <= most) return watch
  return { sources: new Map([...watch.sources].slice(-most)) }
}

// Query sources.

const MAIN = 'repl_main_thread'

/** The main thread goes by several names. */
export function watchKey(source: string): string {
  const isMain = source === '' || source === 'sdk' || source.startsWith(MAIN)
  return isMain ? MAIN : source
}

/** The source whose cache a fork reads; null for a request that is no fork. */
export function parentKey(source: string, forkOf: string | undefined): string | null {
  if (forkOf !== undefined) return watchKey(forkOf)
  return source === 'compact' ? MAIN : null
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

export interface CacheAnswer {
  /** Of the request that was answered. */
  readonly source: string
  /** Null if the response has none: then nothing is judged. */
  readonly usage: Usage | null
  readonly word?: ProviderWord | null
  /** The provider reports that it cleared something from the request by itself. */
  readonly isEdited?: boolean
}

export interface BreakRules {
  readonly policy: BreaksPolicy
  readonly profile: Pick<Profile, 'cache' | 'thinking'>
  /** Of the model that was called; null if unknown. */
  readonly prices: Prices | null
  /** Removes secrets from what an event quotes of a request; without it, values are quoted as sent. */
  readonly redact?: (text: string) => string
}

export type CacheOutcome =
  /** There is nothing to compare with. */
  | { readonly kind: 'first' }
  | { readonly kind: 'read'; readonly expected: number; readonly read: number }
  /** An announced rewrite was paid for: no break. */
  | { readonly kind: 'ours'; readonly act: ActPaid }
  /** `diff`: what changed, as text for a file, without the secrets that `redact` removes. */
  | {
      readonly kind: 'broke'
      readonly event: BreakEvent
      readonly diff: (redact: (text: string) => string) => string
    }
  | { readonly kind: 'not-judged'; readonly why: Unjudged }

/**
 * No snapshot, or an excluded model; no usage in the response; the provider rewrote the request by itself; it does
 * not report what it deleted.
 */
type Unjudged = 'not-watched' | 'no-usage' | 'edited-by-provider' | 'deletion-not-told'
