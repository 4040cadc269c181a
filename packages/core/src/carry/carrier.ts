/**
 * Carriers: state that has a source of truth (todos, a plan, files, modes) and is shown from there again, rather
 * than through a summary. A carrier says what it has; budgets, copies and order are seen to in one place.
 */
import type { Attachment } from '../conversation/record.ts'
import type { Session } from '../conversation/session.ts'
import type { Budgets } from '../policy/budgets.ts'
import type { Sheddable } from '../policy/groups/compact-policy.ts'
import type { Policy } from '../policy/policy.ts'
import type { Measure } from '../retrieve/fit-text.ts'
import type { Entry } from '../view/entry.ts'
import type { Shown } from './shown.ts'

/** In the order in which they stand in a conversation. */
export const CARRIED_KINDS = [
  'standing',
  'files',
  'todos',
  'plan',
  'plan-mode',
  'permission',
  'skills',
  'agents',
  'deltas',
  'host',
  'session-start',
] as const

export type CarriedKind = (typeof CARRIED_KINDS)[number]

export interface CarryContext {
  readonly session: Session
  /** What stays in the view: after a compaction the messages kept, those not answered and those pinned. */
  readonly kept: Iterable<Entry>
  /** The attachments among them, by key. */
  readonly shown: Shown
  readonly policy: Policy
  readonly budgets: Budgets
  readonly measure: Measure
  /** A compaction brings all of it; between two only what changed is told. */
  readonly moment: 'compaction' | 'change'
}

/** What a compaction is asked with: what is shown is read off `kept`. */
export type CompactionQuestion = Omit<CarryContext, 'shown' | 'moment'>

/** What is asked between two compactions: all that `shown` was read from stays. */
export type ChangeQuestion = Omit<CarryContext, 'kept' | 'moment'>

/** One thing as its source has it now. */
export interface Rendering {
  /** What it is among the carrier's own: a path, a name. Empty where there is only one. */
  readonly id: string
  readonly attachment: Attachment
  /** Where the text was taken from, for people. */
  readonly source: string
  /** May go when a compacted view is above its target. Absent: never. */
  readonly sheddable?: Sheddable
  /** Adds to what was told before rather than replacing it. */
  readonly isDelta?: boolean
  /**
   * Given where `content` may be cut at its end: the line that then stands there, for the part that is shown of
   * the whole. Without it the thing comes whole or not at all.
   */
  readonly cutNote?: (shown: string, whole: string) => string
}

/** Something that was looked at and is not brought. */
export interface NotOffered {
  readonly id: string
  readonly why: string
}

export type Offer = Rendering | NotOffered

/** Tokens of what the model reads, and how many things. */
export interface Limit {
  readonly each: number
  readonly total: number
  readonly count: number
}

export interface Carrier {
  /** Unique, without a colon: the first part of every key of its attachments. */
  readonly name: string
  readonly kind: CarriedKind
  /** Also asked between compactions, so that a change is told when it happens. */
  readonly tellsChanges: boolean
  /** What it renders is all there is: what is shown of it and rendered no more has ended. */
  readonly isWhole: boolean
  /** Null: as much as there is, whole. */
  limit(context: CarryContext): Limit | null
  /** In order of precedence, newest first. Asked no further than the limit goes. May throw: it is reported. */
  render(context: CarryContext): AsyncIterable<Offer>
}

/** What is to be appended. */
export interface Carried {
  readonly carrier: string
  readonly kind: CarriedKind
  /** The same thing has the same key; two of one key never stand in a view after a compaction. */
  readonly key: string
  readonly attachment: Attachment
  /** Of what the model reads. */
  readonly tokens: number
  readonly source: string
  readonly sheddable: Sheddable | null
}

export interface NotCarried {
  readonly carrier: string
  readonly key: string
  readonly why: string
}

export interface CarryOutcome {
  readonly carried: readonly Carried[]
  /** Kept messages show it already, as it is now. */
  readonly alreadyShown: readonly NotCarried[]
  /** uuids of kept attachments that are out of date: they are not to be kept. */
  readonly superseded: readonly string[]
  readonly skipped: readonly NotCarried[]
  /** Carriers that threw. What they had rendered until then counts. */
  readonly failed: readonly { readonly carrier: string; readonly why: string }[]
}

export function isRendering(offer: Offer): offer is Rendering {
  return 'attachment' in offer
}

export function keyFor(carrier: string, id: string): string {
  return `${carrier}:${id}`
}
