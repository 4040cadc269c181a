/**
 * Data types of cache breaks: their causes, the event that reports them, and the token counts read from usage. Also the
 * announcements that the engine makes before it rewrites the conversation itself.
 */
import type { TokenUsage } from '../log/reply-report.ts'
import type { CacheMissZone, PrefixPart, ProviderCacheMissReport } from '../policy/provider-spelling.ts'
import { type TokensByPriceClass, toTokensByPriceClass } from '../tokens/usage.ts'
import type { MessageChangeSource } from './sent-request.ts'

export type CacheBreakReason = RequestDifference | ExternalCause

/** A difference between an API request and the previous one that can cause a cache break. */
export type RequestDifference =
  | ValueChange<'model-changed', string>
  | ValueChange<'speed-changed'>
  | ValueChange<'effort-changed'>
  | ValueChange<'thinking-changed'>
  | ValueChange<'tool-choice-changed'>
  | { readonly kind: 'betas-changed'; readonly added: NameList; readonly removed: NameList }
  | (ValueChange<'parameter-changed'> & { readonly name: string })
  | { readonly kind: 'tools-added' | 'tools-removed' | 'tools-reordered'; readonly names: NameList }
  | { readonly kind: 'sections-added' | 'sections-removed' | 'sections-reordered'; readonly names: NameList }
  /** A tool definition or system prompt section changed; `characters` is its growth, negative if it shrank. */
  | { readonly kind: 'tool-changed' | 'section-changed'; readonly name: string; readonly characters: number }
  | (ValueChange<'marker-ttl-changed', string> & { readonly zone: PrefixPart })
  | (ValueChange<'marker-scope-changed'> & { readonly zone: PrefixPart })
  /**
   * The tools and system prompt (`prefix`), or the messages, no longer carry any cache marker, so no cached prefix
   * ending there is looked up.
   */
  | { readonly kind: 'markers-removed'; readonly zone: 'prefix' | 'messages' }
  /** The first image was added or the last one removed; either changes the cache key of all messages. */
  | { readonly kind: 'image-added' | 'image-removed'; readonly index: number; readonly origin: string | null }
  | MessageDifference

/** A message that was already sent and is not the same any more. */
export interface MessageDifference {
  readonly kind: 'message-changed' | 'message-removed' | 'message-inserted'
  /** Index of the message in the API request. */
  readonly index: number
  /** uuid of the record that the message comes from; null if there is none. */
  readonly origin: string | null
  readonly by: MessageChangeSource
  readonly characters: number
}

/** A cause of a cache break other than a changed API request, such as an expired cache. */
export type ExternalCause =
  /** The pause between the API requests was longer than the lifetime (TTL) of the cached prefix. */
  | { readonly kind: 'expired'; readonly ttl: string; readonly gapMs: number }
  /** No cache marker of the API request looks back as far as the prefix that the previous request cached. */
  | { readonly kind: 'look-back-outrun'; readonly lookBack: number }
  /** A new prompt ended the turn, and the model is not shown the thinking of finished turns. */
  | { readonly kind: 'thinking-dropped' }
  /** The provider cleared more from the API request of a fork than from that of its parent. */
  | { readonly kind: 'cleared-for-fork' }
  /** The provider reports that a part of the API request changed, but our own comparison finds no change in that part. */
  | { readonly kind: 'told-by-provider'; readonly zone: CacheMissZone }
  /** Nothing changed and the cached prefix had not expired. The provider must have evicted the prefix from its cache. */
  | { readonly kind: 'evicted' }

type NameList = readonly string[]

interface ValueChange<Kind extends string, Value = string | null> {
  readonly kind: Kind
  readonly before: Value
  readonly after: Value
}

// Events: an unexpected cache break, and the cost of a rewrite that the engine made itself.

/** The event that reports a cache break. */
export interface CacheBreak {
  /** When the API request was sent, in milliseconds since 1970. */
  readonly at: number
  readonly source: string
  readonly model: string
  readonly reason: CacheBreakReason
  /** Other differences from the previous API request that may have contributed to the cache break. */
  readonly also: readonly RequestDifference[]
  /** `expected`: tokens that should have been read from the cache. `read`: tokens that were. */
  readonly expected: number
  readonly read: number
  readonly tokensLost: number
  /** Dollars that the lost tokens cost above the cache-read price; null if a price is unknown. */
  readonly moneyLost: number | null
  /** Text with the facts that support the reason of the cache break. */
  readonly evidence: string
  /** The provider's own explanation of the cache miss; null if it gives none. */
  readonly provider: ProviderCacheMissReport | null
  /** The engine's own rewrite that caused the cache break; null if none did. */
  readonly ours: OwnRewrite | null
  /** One line of text for users: what happened, what it cost and what to do. */
  readonly sentence: string
}

/** A rewrite by the engine, as a cache break names it. */
export interface OwnRewrite {
  /** Description of the rewrite, such as "cleared 12 results". */
  readonly act: string
  /** Model calls until the rewrite has paid for itself; null if unknown or never. */
  readonly breakEvenTurns: number | null
}

/** The cost of a rewrite that the engine made itself and announced in advance. It is reported instead of a cache break. */
export interface OwnRewriteCost extends OwnRewrite {
  readonly at: number
  readonly source: string
  readonly tokensRewritten: number
  /** Dollars that the rewrite cost above the cache-read price; null if a price is unknown. */
  readonly moneySpent: number | null
  readonly sentence: string
}

// The engine announces its own rewrites before it sends them, so that they are not reported as cache breaks.

export type RewriteAnnouncement =
  /**
   * The next API request has nothing to be compared with, because a summary replaced the messages, a rewrite was
   * undone, or the caller started a new conversation.
   */
  | { readonly kind: 'compaction' | 'undo' | 'restart' }
  | ClearingAnnouncement
  | CacheEditsAnnouncement
  | PrefixRewriteAnnouncement

/** An announcement that messages already sent will be sent again with some content cleared. */
interface ClearingAnnouncement extends RewritePrice {
  readonly kind: 'clearing'
}

/** An announcement that the provider will delete tool results from the cached prefix; the messages stay unchanged. */
interface CacheEditsAnnouncement extends RewritePrice {
  readonly kind: 'cache-edits'
  /** Tokens deleted from the cached prefix, by the last response that reported them; 0 if none did. */
  readonly deletedBefore: number
}

/** An announcement that the engine changes system prompt or tools on purpose, for example to add a tool in mid-session. */
interface PrefixRewriteAnnouncement extends RewritePrice {
  readonly kind: 'rewrite'
  readonly zone: CacheMissZone
}

interface RewritePrice {
  /** Description of the rewrite, such as "cleared 12 results" or "rewrote section git". */
  readonly act: string
  /** Tokens that later API requests no longer contain because of the rewrite. */
  readonly freedTokens?: number
  /** Planned number of model calls until the rewrite has paid for itself; null if it never does. */
  readonly breakEvenTurns?: number | null
}

/** Announcements of rewrites whose cost is reported. */
export type PricedAnnouncement = Exclude<
  RewriteAnnouncement,
  { readonly kind: 'compaction' | 'undo' | 'restart' }
>

// Token counts of cache reads and writes, taken from the usage of a response.

/** What the usage of a call tells about the cache, in tokens. */
export interface CacheTokenCounts {
  /** Tokens of the first run of the call. Only the first run processed the API request exactly as sent. */
  readonly first: TokensByPriceClass
  /**
   * Both count tokens of the last run of the call. `lastRead`: read from the cache. `cached`: read or written, so the
   * next API request can read them.
   */
  readonly lastRead: number
  readonly cached: number
  /** Total tokens that the provider has deleted from the cached prefix so far; null if it does not report them. */
  readonly deleted: number | null
  /** True if the provider compacted the conversation during the call, so that later runs had a different prefix. */
  readonly isCompacted: boolean
}

export function toCacheTokenCounts(usage: TokenUsage): CacheTokenCounts {
  const { parts = [], removed = null } = usage
  const messages = parts.filter(({ kind }) => kind === 'message')
  const { writes, read } = messages.at(-1) ?? usage
  return {
    first: toTokensByPriceClass(messages[0] ?? usage),
    lastRead: read,
    cached: read + writes.short + writes.long,
    deleted: removed,
    isCompacted: parts.some(({ kind }) => kind === 'compaction'),
  }
}
