/** What a comparison is given and what it gives. */
import type { Usage } from '../conversation/record.ts'
import type { Prices } from '../measure/prices.ts'
import type { BreaksPolicy } from '../policy/groups/cache-policy.ts'
import type { Profile } from '../policy/profile.ts'
import type { ActPaid, BreakEvent } from './break-event.ts'
import type { Redact } from './diff-text.ts'
import type { ProviderWord } from './provider-word.ts'

export interface CacheAnswer {
  /** Of the request that was answered. */
  readonly source: string
  /** Null where the response has none: then nothing is learnt. */
  readonly usage: Usage | null
  readonly word?: ProviderWord | null
  /** The provider says that it cleared something from the request by itself. */
  readonly isEdited?: boolean
}

export interface BreakRules {
  readonly policy: BreaksPolicy
  readonly profile: Pick<Profile, 'cache' | 'thinking'>
  /** Of the model that was asked; null where they are not known. */
  readonly prices: Prices | null
  /** Takes secrets out of what an event quotes of a request; without it, values are told as they were sent. */
  readonly redact?: Redact
}

export type CacheOutcome =
  /** There is nothing to compare with. */
  | { readonly kind: 'first' }
  | { readonly kind: 'read'; readonly expected: number; readonly read: number }
  /** An announced act was paid for: no break. */
  | { readonly kind: 'ours'; readonly act: ActPaid }
  /** `diff`: what changed, as text for a file; `redact` takes secrets out of it. */
  | { readonly kind: 'broke'; readonly event: BreakEvent; readonly diff: (redact: Redact) => string }
  | { readonly kind: 'not-judged'; readonly why: Unjudged }

/** No snapshot (or an excluded model); a response without usage; the provider rewrote the request by itself, or does not say what it deleted. */
export type Unjudged = 'not-watched' | 'no-usage' | 'edited-by-provider' | 'deletion-not-told'
