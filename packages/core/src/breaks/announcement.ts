/** What the engine says it is about to do to a request, so that its own acts are known for what they are. */
import type { ProviderZone } from './reason.ts'

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
