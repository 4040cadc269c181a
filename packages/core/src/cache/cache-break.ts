/** Why a cached prefix was not read again: a closed set, each with what a person needs to find the place. */

import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import type { Level } from '../request/prefix.ts'
import { billedParts, type TokensByClass } from '../tokens/usage.ts'
import type { Hand } from './sent-request.ts'

export type Reason = Difference | Circumstance

/** Something in the request is not what it was in the last one. */
export type Difference =
  | Changed<'model-changed', string>
  | Changed<'speed-changed'>
  | Changed<'effort-changed'>
  | Changed<'thinking-changed'>
  | Changed<'tool-choice-changed'>
  | { readonly kind: 'betas-changed'; readonly added: Names; readonly removed: Names }
  | (Changed<'parameter-changed'> & { readonly name: string })
  | { readonly kind: 'tools-added' | 'tools-removed' | 'tools-reordered'; readonly names: Names }
  | { readonly kind: 'sections-added' | 'sections-removed' | 'sections-reordered'; readonly names: Names }
  /** `characters`: how many more there are now; less than 0 for fewer. */
  | { readonly kind: 'tool-changed' | 'section-changed'; readonly name: string; readonly characters: number }
  | (Changed<'marker-ttl-changed', string> & { readonly zone: Level })
  | (Changed<'marker-scope-changed'> & { readonly zone: Level })
  /** Nothing of these zones is marked any more, so nothing of them is looked for in the cache. */
  | { readonly kind: 'markers-removed'; readonly zone: 'prefix' | 'messages' }
  /** The first image of the conversation, or the last one gone: either changes how all messages are read. */
  | { readonly kind: 'image-added' | 'image-removed'; readonly index: number; readonly origin: string | null }
  | MessageDifference

export interface MessageDifference {
  readonly kind: 'message-changed' | 'message-removed' | 'message-inserted'
  /** Which message of the request. */
  readonly index: number
  /** uuid of the record; null where there is none. */
  readonly origin: string | null
  readonly by: Hand
  readonly characters: number
}

/** The request is the same as far as anybody can see. */
export type Circumstance =
  /** More time went by than the entry lives. */
  | { readonly kind: 'expired'; readonly ttl: string; readonly gapMs: number }
  /** No marker reaches back to where the last request left its entry. */
  | { readonly kind: 'look-back-outrun'; readonly lookBack: number }
  /** The provider names what changed, and nothing of ours did. */
  | { readonly kind: 'told-by-provider'; readonly zone: ProviderZone }
  /** On the provider's side: nothing changed, and the entry should still live. */
  | { readonly kind: 'evicted' }

export type ProviderZone = 'model' | 'tools' | 'system' | 'messages' | 'other'

type Names = readonly string[]

interface Changed<Kind extends string, Value = string | null> {
  readonly kind: Kind
  readonly before: Value
  readonly after: Value
}

// What is told of a break, and of an act of the engine that had to be paid for: plain data, for people and programs.

export interface BreakEvent {
  /** When the request was sent, in milliseconds. A report on a log has the time of the answer, which logs tell. */
  readonly at: number
  readonly source: string
  readonly model: string
  readonly reason: Reason
  /** What else had changed. */
  readonly also: readonly Difference[]
  /** Tokens that should have been read, and those that were. */
  readonly expected: number
  readonly read: number
  readonly tokensLost: number
  /** Dollars above the price of a read; null where a price is not known. */
  readonly moneyLost: number | null
  /** The facts the reason rests on, in words. */
  readonly evidence: string
  /** What the provider itself says; null where it says nothing. */
  readonly provider: ProviderWord | null
  /** The act of the engine's that did it; null where it was none. */
  readonly ours: OwnAct | null
  /** One line, with what to do about it. */
  readonly sentence: string
}

export interface OwnAct {
  /** In words: "cleared 12 results". */
  readonly act: string
  /** Calls until what it frees has paid for what it cost; null where that is not known or never. */
  readonly breakEvenTurns: number | null
}

/** An act that was announced and cost what such an act costs: no break. */
export interface ActPaid extends OwnAct {
  readonly at: number
  readonly source: string
  readonly tokensRewritten: number
  /** Dollars above the price of a read; null where a price is not known. */
  readonly moneySpent: number | null
  readonly sentence: string
}

// What the engine says it is about to do to a request, so that its own acts are known for what they are.

export type Announcement =
  /** Nothing of the last request can be expected: a summary took its place, an act was undone, the source began anew. */
  { readonly kind: 'compaction' | 'undo' | 'restart' } | ClearingAnnounced | EditsAnnounced | RewriteAnnounced

/** Messages already sent will be sent with something cleared. */
export interface ClearingAnnounced extends Price {
  readonly kind: 'clearing'
}

/** The provider is asked to delete from the cached prefix; the messages stay as they are. */
export interface EditsAnnounced extends Price {
  readonly kind: 'cache-edits'
  /** `cache_deleted_input_tokens` of the last response that had it; 0 where none had. */
  readonly deletedBefore: number
}

/** A part of the prefix is rewritten on purpose: a section inline, a late tool. It is a break, and ours. */
export interface RewriteAnnounced extends Price {
  readonly kind: 'rewrite'
  readonly zone: ProviderZone
}

/** What the act is worth. */
interface Price {
  /** In words: "cleared 12 results", "rewrote section git". */
  readonly act: string
  /** Tokens that later requests no longer carry. */
  readonly freedTokens?: number
  /** After how many calls it has paid for itself, as planned; null where it never does. */
  readonly breakEvenTurns?: number | null
}

export type PricedAnnouncement = Exclude<Announcement, { readonly kind: 'compaction' | 'undo' | 'restart' }>

/** Does it leave nothing to compare with? */
export function isReset(
  announcement: Announcement,
): announcement is Exclude<Announcement, PricedAnnouncement> {
  const { kind } = announcement
  return kind === 'compaction' || kind === 'undo' || kind === 'restart'
}

// What a call's usage says about the cache: what it read at first, what it left behind, what it paid for anew.

export interface CacheFigures {
  /** Of the run that met the request as it was sent. */
  readonly first: TokensByClass
  /** What the last run read, and all up to its last marker: what the next request can read. */
  readonly lastRead: number
  readonly cached: number
  /** Running total of what the provider has deleted from the cached prefix; null where it does not say. */
  readonly deleted: number | null
  /** The provider summarised the conversation by itself, and what follows has another prefix. */
  readonly isCompacted: boolean
}

type Fields = { readonly [field: string]: unknown }

export function toCacheFigures(usage: Usage): CacheFigures {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  const runs = listed.filter(isObject)
  const messages = runs.filter(({ type }) => type === 'message')
  const first = tokensOf(messages[0] ?? usage)
  const last = tokensOf(messages.at(-1) ?? usage)
  return {
    first,
    lastRead: last.cacheRead,
    cached: last.cacheRead + last.write5m + last.write1h,
    deleted: typeof usage.cache_deleted_input_tokens === 'number' ? usage.cache_deleted_input_tokens : null,
    isCompacted: runs.some(({ type }) => type === 'compaction'),
  }
}

const NOTHING: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

/** One run, without the list it stands in. */
function tokensOf(run: Fields): TokensByClass {
  const { iterations: _, ...alone } = run
  return billedParts(alone as Usage)[0]?.tokens ?? NOTHING
}

/** What was paid for and not read. */
export function paidAnew({ input, write5m, write1h }: TokensByClass): number {
  return input + write5m + write1h
}

// Figures as people read them, the same everywhere.

/** 12,345 */
export function countText(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** $0.46, and $0.0046 where it is little. */
export function dollarsText(dollars: number): string {
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
}

export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 120
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

// What a provider itself says about a miss: where the two requests part, and how many tokens it thinks that cost.

export interface ProviderWord {
  readonly zone: ProviderZone
  /** An estimate of the provider's; null where it gives none. */
  readonly missedTokens: number | null
  /** Its own word for it. */
  readonly said: string
  /** It may mean no more than that the provider could not look: then it can back a reason, and is none by itself. */
  readonly isVague?: boolean
}

const ZONES_PROVIDER_WORD: ReadonlyMap<string, ProviderZone> = new Map([
  ['model_changed', 'model'],
  ['system_changed', 'system'],
  ['tools_changed', 'tools'],
  ['messages_changed', 'messages'],
  ['unavailable', 'other'],
])

/** Another parameter than those it names differs, or the request before is further back than it looks. */
const VAGUE: ReadonlySet<string> = new Set(['unavailable'])

/** From the `diagnostics` of a response; null where it was not asked, does not know, or sees no difference. */
export function providerWord(diagnostics: unknown): ProviderWord | null {
  const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : null
  if (!isObject(reason) || typeof reason.type !== 'string') return null
  const zone = ZONES_PROVIDER_WORD.get(reason.type)
  if (zone === undefined) return null
  const missed = reason.cache_missed_input_tokens
  const word = { zone, missedTokens: typeof missed === 'number' ? missed : null, said: reason.type }
  return VAGUE.has(reason.type) ? { ...word, isVague: true } : word
}
