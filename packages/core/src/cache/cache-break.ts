/** Cache breaks as data: causes, the event, announced rewrites of the engine, figures from usage. */

import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import type { CacheLevel } from '../request/prefix.ts'
import { listBilledParts, type TokensByClass } from '../tokens/usage.ts'
import type { MessageEditor } from './sent-request.ts'

export type CacheBreakReason = RequestDifference | ExternalCause

/** Something in the request differs from the last one. */
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
  /** `characters`: growth in characters; negative if it shrank. */
  | { readonly kind: 'tool-changed' | 'section-changed'; readonly name: string; readonly characters: number }
  | (ValueChange<'marker-ttl-changed', string> & { readonly zone: CacheLevel })
  | (ValueChange<'marker-scope-changed'> & { readonly zone: CacheLevel })
  /** These zones have no marker any more, so nothing of them is looked up in the cache. */
  | { readonly kind: 'markers-removed'; readonly zone: 'prefix' | 'messages' }
  /** The first image, or the last one removed: either changes how all messages are read. */
  | { readonly kind: 'image-added' | 'image-removed'; readonly index: number; readonly origin: string | null }
  | MessageDifference

export interface MessageDifference {
  readonly kind: 'message-changed' | 'message-removed' | 'message-inserted'
  /** Of the message in the request. */
  readonly index: number
  /** uuid of the record; null if there is none. */
  readonly origin: string | null
  readonly by: MessageEditor
  readonly characters: number
}

/** Nothing in the request explains the loss. */
export type ExternalCause =
  /** The pause was longer than the entry lives. */
  | { readonly kind: 'expired'; readonly ttl: string; readonly gapMs: number }
  /** No marker looks back to the entry that the last request left. */
  | { readonly kind: 'look-back-outrun'; readonly lookBack: number }
  /** The provider reports a change, but nothing that we sent changed. */
  | { readonly kind: 'told-by-provider'; readonly zone: ProviderZone }
  /** Nothing changed, and the entry should still be live: lost by the provider. */
  | { readonly kind: 'evicted' }

export type ProviderZone = 'model' | 'tools' | 'system' | 'messages' | 'other'

type NameList = readonly string[]

interface ValueChange<Kind extends string, Value = string | null> {
  readonly kind: Kind
  readonly before: Value
  readonly after: Value
}

// Events: a break, and a rewrite of the engine that cost what it was announced to cost.

export interface CacheBreak {
  /** When the request was sent, in milliseconds since 1970. */
  readonly at: number
  readonly source: string
  readonly model: string
  readonly reason: CacheBreakReason
  /** What else had changed. */
  readonly also: readonly RequestDifference[]
  /** Tokens that should have been read, and those that were. */
  readonly expected: number
  readonly read: number
  readonly tokensLost: number
  /** Dollars above the price of a read; null if a price is unknown. */
  readonly moneyLost: number | null
  /** The facts behind the reason, as text. */
  readonly evidence: string
  /** The provider's own explanation; null if it gives none. */
  readonly provider: ProviderMissReport | null
  /** The rewrite of the engine that caused it; null if there was none. */
  readonly ours: OwnRewrite | null
  /** One line for users, with advice. */
  readonly sentence: string
}

export interface OwnRewrite {
  /** Such as "cleared 12 results". */
  readonly act: string
  /** Calls until it has paid for itself; null if unknown or never. */
  readonly breakEvenTurns: number | null
}

/** An announced rewrite and its cost: no break. */
export interface OwnRewriteCost extends OwnRewrite {
  readonly at: number
  readonly source: string
  readonly tokensRewritten: number
  /** Dollars above the price of a read; null if a price is unknown. */
  readonly moneySpent: number | null
  readonly sentence: string
}

// Rewrites that the engine announces before it sends them, so that they are not taken for breaks.

export type RewriteAnnouncement =
  /** Nothing of the last request is expected to be read: a summary replaced it, an act was undone, the source restarted. */
  | { readonly kind: 'compaction' | 'undo' | 'restart' }
  | ClearingAnnouncement
  | CacheEditsAnnouncement
  | PrefixRewriteAnnouncement

/** Messages sent before will be sent with content cleared. */
interface ClearingAnnouncement extends RewritePrice {
  readonly kind: 'clearing'
}

/** The provider is asked to delete from the cached prefix; the messages stay. */
interface CacheEditsAnnouncement extends RewritePrice {
  readonly kind: 'cache-edits'
  /** `cache_deleted_input_tokens` of the last response that had it, else 0. */
  readonly deletedBefore: number
}

/** A part of the prefix is rewritten on purpose (a section inline, a late tool): a break of our own. */
interface PrefixRewriteAnnouncement extends RewritePrice {
  readonly kind: 'rewrite'
  readonly zone: ProviderZone
}

interface RewritePrice {
  /** Such as "cleared 12 results", "rewrote section git". */
  readonly act: string
  /** Tokens that later requests no longer contain. */
  readonly freedTokens?: number
  /** Planned calls until it has paid for itself; null if never. */
  readonly breakEvenTurns?: number | null
}

export type PricedAnnouncement = Exclude<
  RewriteAnnouncement,
  { readonly kind: 'compaction' | 'undo' | 'restart' }
>

/** It leaves nothing to compare the next request with. */
export function isResetAnnouncement(
  announcement: RewriteAnnouncement,
): announcement is Exclude<RewriteAnnouncement, PricedAnnouncement> {
  const { kind } = announcement
  return kind === 'compaction' || kind === 'undo' || kind === 'restart'
}

// What usage shows of the cache.

export interface CacheFigures {
  /** Of the first run, which saw the request as it was sent. */
  readonly first: TokensByClass
  /** What the last run read, and all up to its last marker: what the next request can read. */
  readonly lastRead: number
  readonly cached: number
  /** Running total that the provider deleted from the cached prefix; null if not reported. */
  readonly deleted: number | null
  /** The provider compacted the conversation by itself, so what follows has another prefix. */
  readonly isCompacted: boolean
}

type UsageFields = { readonly [field: string]: unknown }

export function toCacheFigures(usage: Usage): CacheFigures {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  const runs = listed.filter(isObject)
  const messages = runs.filter(({ type }) => type === 'message')
  const first = countRunTokens(messages[0] ?? usage)
  const last = countRunTokens(messages.at(-1) ?? usage)
  return {
    first,
    lastRead: last.cacheRead,
    cached: last.cacheRead + last.write5m + last.write1h,
    deleted: typeof usage.cache_deleted_input_tokens === 'number' ? usage.cache_deleted_input_tokens : null,
    isCompacted: runs.some(({ type }) => type === 'compaction'),
  }
}

const NO_TOKENS: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

/** Of one run. */
function countRunTokens(run: UsageFields): TokensByClass {
  const { iterations: _, ...alone } = run
  return listBilledParts(alone as Usage)[0]?.tokens ?? NO_TOKENS
}

/** Tokens paid for and not read from the cache. */
export function countUncachedTokens({ input, write5m, write1h }: TokensByClass): number {
  return input + write5m + write1h
}

// Figures as text.

/** 12,345 */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** $0.46, or $0.0046 for small amounts. */
export function formatDollars(dollars: number): string {
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
}

export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 120
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

// The provider's own explanation of a miss (`diagnostics`).

export interface ProviderMissReport {
  readonly zone: ProviderZone
  /** The provider's estimate; null if it gives none. */
  readonly missedTokens: number | null
  /** The provider's name of the reason. */
  readonly said: string
  /** It may only mean that the provider could not compare: it supports a reason but is none by itself. */
  readonly isVague?: boolean
}

const MISS_REASON_ZONES: ReadonlyMap<string, ProviderZone> = new Map([
  ['model_changed', 'model'],
  ['system_changed', 'system'],
  ['tools_changed', 'tools'],
  ['messages_changed', 'messages'],
  ['unavailable', 'other'],
])

/** Another parameter differs, or the previous request is out of the provider's range. */
const VAGUE_MISS_REASONS: ReadonlySet<string> = new Set(['unavailable'])

/** From the `diagnostics` of a response; null if not requested, unknown, or no difference. */
export function readMissReport(diagnostics: unknown): ProviderMissReport | null {
  const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : null
  if (!isObject(reason) || typeof reason.type !== 'string') return null
  const zone = MISS_REASON_ZONES.get(reason.type)
  if (zone === undefined) return null
  const missed = reason.cache_missed_input_tokens
  const word = { zone, missedTokens: typeof missed === 'number' ? missed : null, said: reason.type }
  return VAGUE_MISS_REASONS.has(reason.type) ? { ...word, isVague: true } : word
}
