/** Why a cached prefix was not read again: a closed set, each with what a person needs to find the place. */
import type { Hand, Zone } from './sent.ts'

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
  | (Changed<'marker-ttl-changed', string> & { readonly zone: Zone })
  | (Changed<'marker-scope-changed'> & { readonly zone: Zone })
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

/** Where in the cache key it lies, in the words of a provider that says where requests part; null for none of them. */
export function zoneOf(reason: Reason): ProviderZone | null {
  return reason.kind === 'told-by-provider' ? reason.zone : ZONES[reason.kind]
}

const ZONES: Readonly<Record<Exclude<Reason['kind'], 'told-by-provider'>, ProviderZone | null>> = {
  'model-changed': 'model',
  'speed-changed': 'model',
  'tools-added': 'tools',
  'tools-removed': 'tools',
  'tools-reordered': 'tools',
  'tool-changed': 'tools',
  'sections-added': 'system',
  'sections-removed': 'system',
  'sections-reordered': 'system',
  'section-changed': 'system',
  'betas-changed': 'other',
  'thinking-changed': 'other',
  'effort-changed': 'other',
  'tool-choice-changed': 'other',
  'parameter-changed': 'other',
  'image-added': 'messages',
  'image-removed': 'messages',
  'message-changed': 'messages',
  'message-removed': 'messages',
  'message-inserted': 'messages',
  'marker-ttl-changed': null,
  'marker-scope-changed': null,
  'markers-removed': null,
  expired: null,
  'look-back-outrun': null,
  evicted: null,
}
