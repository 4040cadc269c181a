/**
 * State of cache-break detection between model calls. For each caller of the model (main thread, agent, side call): the
 * last answered API request, the request still waiting for its response, and the announced rewrites. An immutable value
 * with a limited number of callers.
 */

import { listTracedMessages } from '../context/flatten-context.ts'
import type { ModelPrices } from '../cost/prices.ts'
import { isThinkingBlock, isToolUse } from '../log/block.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import type { CacheBreaksPolicy } from '../policy/cache-policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type {
  AppliedContextEdits,
  ProviderCacheMissReport,
  ProviderContextEdit,
} from '../policy/provider-spelling.ts'
import { type BlockIndex, type MessageList, toMessageBlocks } from '../request/block-index.ts'
import type {
  CacheBreak,
  OwnRewriteCost,
  PricedAnnouncement,
  RewriteAnnouncement,
} from './cache-break-types.ts'
import type { CacheForecast } from './cache-forecast.ts'
import type { RequestChain } from './cache-model.ts'
import type { SentRequest } from './sent-request.ts'

export interface CacheMonitor {
  /** State of each caller of the model (main thread, agent, side call), by key. The most recently used caller is last. */
  readonly sources: ReadonlyMap<string, SourceState>
  /** True once a provider that caches by itself has reported tokens read from its cache. Some servers never do. */
  readonly hasRead: boolean
}

interface SourceState {
  readonly last: AnsweredRequest | null
  readonly pending: PendingRequest | null
  /** Rewrites that the engine has announced since the last API request was sent. */
  readonly announced: readonly PricedAnnouncement[]
}

/** The last request of a caller that got a response. */
export interface AnsweredRequest {
  readonly sent: SentRequest
  /** Index of the message blocks. The cache model recognises the API request by the identity of this object. */
  readonly blockIndex: BlockIndex
  /** What the provider reported to have cleared from the API request; null if it reported nothing. */
  readonly edits: ReportedContextEdits | null
}

/**
 * An API request that is waiting for its response, with the earlier request and the forecast to compare the response
 * with.
 */
export interface PendingRequest {
  readonly sent: SentRequest
  readonly previous: AnsweredRequest | null
  /** What the `previous` API request and the requests before it have cached; null if the cache model no longer has it. */
  readonly chain: RequestChain | null
  readonly forecast: CacheForecast
  readonly announced: readonly PricedAnnouncement[]
  /**
   * True if the conversation was compacted, undone or restarted while this API request was waiting for its response.
   * The next request is then not compared with this one.
   */
  readonly isOutdated: boolean
}

export const EMPTY_CALLER_STATE: SourceState = { last: null, pending: null, announced: [] }

export function createCacheMonitor(): CacheMonitor {
  return { sources: new Map(), hasRead: false }
}

/**
 * Stores an API request that is about to be sent, with its cache forecast. An earlier request of the same caller that
 * got no response is replaced. Nothing is stored for models that the policy excludes.
 */
export function withSentRequest(
  watch: CacheMonitor,
  sent: SentRequest,
  forecast: CacheForecast,
  policy: CacheBreaksPolicy,
): CacheMonitor {
  const key = toCallerKey(sent.source)
  const own = watch.sources.get(key) ?? EMPTY_CALLER_STATE
  if (policy.excludedModels.some((pattern) => matchesWildcard(sent.parameters.model, pattern)))
    return own.pending === null ? watch : withCallerState(watch, key, { ...own, pending: null })
  const parent = findForkParentKey(sent.source, sent.forkOf)
  const of = parent === null ? own : (watch.sources.get(parent) ?? EMPTY_CALLER_STATE)
  const against = of.last
  const chain =
    forecast.basis.model.chains.find(({ blockIndex }) => blockIndex === against?.blockIndex) ?? null
  // A fork also carries the cache deletions that its parent has not sent yet. All other announced rewrites are
  // charged to the parent, not to the fork.
  const unsentEdits = of.announced.filter(({ kind }) => kind === 'cache-edits')
  const announced = parent === null ? [...(own.pending?.announced ?? []), ...own.announced] : unsentEdits
  const pending: PendingRequest = { sent, forecast, previous: against, chain, announced, isOutdated: false }
  return limitSources(withCallerState(watch, key, { ...own, pending, announced: [] }), policy.sources)
}

/**
 * Announces a rewrite that will change the next API request of the caller `source`, so that it is not reported as a cache
 * break. After a compaction, an undo or a restart, that request is compared with none.
 */
export function withAnnouncedRewrite(
  watch: CacheMonitor,
  source: string,
  announcement: RewriteAnnouncement,
): CacheMonitor {
  const key = toCallerKey(source)
  const own = watch.sources.get(key) ?? EMPTY_CALLER_STATE
  if (!isResetAnnouncement(announcement))
    return withCallerState(watch, key, { ...own, announced: [...own.announced, announcement] })
  const pending = own.pending === null ? null : { ...own.pending, isOutdated: true, announced: [] }
  return withCallerState(watch, key, { last: null, pending, announced: [] })
}

/** True for announcements after which the next API request is not compared with an earlier one. */
function isResetAnnouncement(
  announcement: RewriteAnnouncement,
): announcement is Exclude<RewriteAnnouncement, PricedAnnouncement> {
  const { kind } = announcement
  return kind === 'compaction' || kind === 'undo' || kind === 'restart'
}

/** Sets the state of a caller and makes that caller the most recently used one. */
export function withCallerState(watch: CacheMonitor, key: string, state: SourceState): CacheMonitor {
  const sources = new Map(watch.sources)
  sources.delete(key)
  return { ...watch, sources: sources.set(key, state) }
}

function limitSources(watch: CacheMonitor, most: number): CacheMonitor {
  if (watch.sources.size <= most) return watch
  return { ...watch, sources: new Map([...watch.sources].slice(-most)) }
}

// Callers of the model (query sources), and the keys under which their state is stored.

const MAIN_SOURCE = 'repl_main_thread'

/**
 * Returns the key under which the state of the caller `source` is stored. An empty name, `sdk` and names that begin with
 * `repl_main_thread` all mean the conversation itself and share one key.
 */
export function toCallerKey(source: string): string {
  return isMainSource(source) ? MAIN_SOURCE : source
}

/** Returns true if the query source (label of the caller) is the main conversation: `sdk`, empty, or `repl_main_thread…`. */
export function isMainSource(source: string): boolean {
  return source === '' || source === 'sdk' || source.startsWith(MAIN_SOURCE)
}

/** Returns the key of the caller whose cached prefix a fork reads; null if the API request is not a fork. */
export function findForkParentKey(source: string, forkOf: string | undefined): string | null {
  if (forkOf !== undefined) return toCallerKey(forkOf)
  return source === 'compact' ? MAIN_SOURCE : null
}

/** Checks whether a name matches a pattern in which `*` stands for any text, ignoring case. */
export function matchesWildcard(name: string, pattern: string): boolean {
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

// Input and outcome of a cache check, which compares the cache read of a response with the expected one.

/** What a response tells about its cache read. */
export interface CacheCheckInput {
  /** Caller of the API request (query source), such as `repl_main_thread`. */
  readonly source: string
  /** Usage of the response. If null, the cache read cannot be judged. */
  readonly usage: TokenUsage | null
  /** The provider's own explanation of a cache miss. */
  readonly word?: ProviderCacheMissReport | null
  /** What the provider reports to have cleared from the API request by itself; null or absent if nothing. */
  readonly edits?: ReportedContextEdits | null
  /**
   * Set if the response ended before the provider could report its edits: what the API request asked to clear in
   * addition to the request before. The provider is taken to have cleared that.
   */
  readonly requestedClearing?: RequestedClearing
}

export type RequestedClearing = Pick<ReportedContextEdits, 'results' | 'tokens' | 'firstCleared'>

/**
 * Totals of the context edits that the provider applied to an API request. It applies them to every request again, so
 * equal totals mean that nothing more was cleared since the previous request.
 */
export interface ReportedContextEdits extends AppliedContextEdits {
  /** Id of the first tool call whose result or input is newly cleared; absent if it is not known. */
  readonly firstCleared?: string
}

/** Rules of the provider and the policy for judging a cache read. */
export interface CacheBreakRules {
  readonly policy: CacheBreaksPolicy
  readonly profile: Pick<ProviderProfile, 'cache' | 'thinking' | 'spelling'>
  /** Prices of the model that was called; null if unknown. */
  readonly prices: ModelPrices | null
  /** Removes secrets from parameter values that a cache-break event quotes. Without it, values are quoted as sent. */
  readonly redact?: (text: string) => string
  /**
   * True to count losses that nothing explains, from a provider that promises no cache reads. Default: false, without an
   * alarm.
   */
  readonly countsUnpromised?: boolean
}

export type CacheCheckOutcome =
  /** There is no earlier API request to compare with. */
  | { readonly kind: 'first' }
  | { readonly kind: 'read'; readonly expected: number; readonly read: number }
  /** Tokens were lost from the cache because of an announced rewrite. This is not a cache break. */
  | { readonly kind: 'ours'; readonly act: OwnRewriteCost }
  /** `diff` returns the differences between the two API requests as text, with secrets removed by `redact`. */
  | {
      readonly kind: 'broke'
      readonly event: CacheBreak
      readonly diff: (redact: (text: string) => string) => string
    }
  | { readonly kind: 'not-judged'; readonly why: NotJudgedReason }

/**
 * Why a cache read was not judged: no API request was stored for the source (its model may be excluded); the response
 * has no usage; the provider edited the request in an unknown way; the provider does not report how much it deleted; or
 * it promises no cache read (`best-effort`), and nothing in the request explains that less was read.
 */
export type NotJudgedReason =
  | 'not-watched'
  | 'no-usage'
  | 'edited-by-provider'
  | 'deletion-not-told'
  | 'best-effort'

// Context edits that the provider makes by itself, as the cache sees them.

/**
 * How the provider's edits differ from those of the previous API request. `more`: it cleared more. `fewer`: it cleared
 * less, so that cleared content is back. `unknown`: edits of an unknown kind changed.
 */
export type ContextEditsChange = 'same' | 'more' | 'fewer' | 'unknown'

/** The messages of a fork and of the parent whose cached prefix it reads, and what the provider cleared from the parent. */
interface ForkEditsInput {
  readonly parent: MessageList
  readonly fork: MessageList
  /** True if the provider cleared tool results, or thinking, from the parent's request. */
  readonly isCleared: { readonly results: boolean; readonly thinking: boolean }
}

/**
 * Returns how many results or turns of thinking the provider must keep in the request of a fork, so that it clears exactly
 * what it cleared from the parent's request: what the fork adds is kept as well, and if nothing was cleared, everything is
 * kept. With the numbers of the parent, the provider would clear more: the fork would miss the cache and not see the
 * cleared results.
 */
export function countKeptInFork(
  act: ProviderContextEdit['act'],
  kept: number,
  input: ForkEditsInput,
): number {
  const { parent, fork, isCleared } = input
  const isResults = act === 'clear-results'
  const count = isResults ? countToolCalls : countThinkingTurns
  const isUsed = isResults ? isCleared.results : isCleared.thinking
  return Math.max(1, isUsed ? kept + count(fork) - count(parent) : count(fork))
}

function countToolCalls(messages: MessageList): number {
  return listTracedMessages(messages).reduce(
    (sum, message) => sum + toMessageBlocks(message).filter(isToolUse).length,
    0,
  )
}

function countThinkingTurns(messages: MessageList): number {
  return listTracedMessages(messages).filter((message) => toMessageBlocks(message).some(isThinkingBlock))
    .length
}
