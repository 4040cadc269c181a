/**
 * Carriers: state that has a source of truth (todos, a plan, files, modes) and is shown from there again, rather
 * than through a summary. A carrier says what it has; budgets, copies and order are seen to in one place.
 */

import type { Entry } from '../context/entry.ts'
import { isShown, textOfAttachment } from '../context/message-parts.ts'
import { List } from '../log/append-list.ts'
import { isObject } from '../log/json.ts'
import type { Attachment, AttachmentRecord } from '../log/record.ts'
import type { Session } from '../log/session.ts'
import type { Budgets } from '../policy/limits.ts'
import type { Policy, Sheddable } from '../policy/policy.ts'
import { headWithin, type Measure } from '../summary/truncate-text.ts'

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

// A carrier whose state is a list that its host knows.

/** What a host gives: at once, or after asking. */
export type Given<T> = T | Promise<T>

export interface SimpleCarrier extends Pick<Carrier, 'name' | 'kind'> {
  readonly tellsChanges?: boolean
  readonly isWhole?: boolean
  readonly limit?: Carrier['limit']
  readonly read: (context: CarryContext) => Given<readonly Offer[]>
}

export function simpleCarrier(given: SimpleCarrier): Carrier {
  const { name, kind, tellsChanges = true, isWhole = true, limit = () => null, read } = given
  async function* render(context: CarryContext): AsyncGenerator<Offer> {
    yield* await read(context)
  }
  return { name, kind, tellsChanges, isWhole, limit, render }
}

// What a carrier may still bring: its limit, less what it has brought.

export interface Fitted {
  readonly attachment: Attachment
  readonly tokens: number
}

export const NO_LIMIT: Limit = {
  each: Number.POSITIVE_INFINITY,
  total: Number.POSITIVE_INFINITY,
  count: Number.POSITIVE_INFINITY,
}

/** The attachment as it fits into `each`, cut where that is allowed; a sentence where it does not fit into what is left. */
export function fit(rendering: Rendering, { each, total }: Limit, measure: Measure): Fitted | string {
  const { attachment } = rendering
  const tokens = measure(textOfAttachment(attachment))
  const fitted = tokens <= each ? { attachment, tokens } : cut(rendering, each, measure)
  if (fitted === null) return `takes ${tokens} tokens, and one may take ${each}`
  return fitted.tokens <= total ? fitted : `takes ${fitted.tokens} tokens, and ${total} are left`
}

function cut({ attachment, cutNote }: Rendering, each: number, measure: Measure): Fitted | null {
  const { content: whole } = attachment
  if (cutNote === undefined || typeof whole !== 'string') return null
  const withHead = (head: string): Attachment => ({
    ...attachment,
    content: `${ended(head)}${cutNote(head, whole)}`,
    truncated: true,
  })
  const measured = (head: string): number => measure(textOfAttachment(withHead(head)))
  const head = headWithin(whole, each, measured)
  const tokens = measured(head)
  return head === '' || tokens > each ? null : { attachment: withHead(head), tokens }
}

function ended(head: string): string {
  return head.endsWith('\n') ? head : `${head}\n`
}

// What attachments a view shows, by key: how a carrier knows what need not be said again. Kept up to date entry by
// entry; a view that was rewritten is read anew.

export interface Shown {
  /** By key, oldest first; the last one is what the model goes by. */
  readonly byKey: ReadonlyMap<string, readonly ShownAttachment[]>
  /** What was announced piece by piece: by carrier, then by name, with the newest text (null: gone). */
  readonly items: ReadonlyMap<string, ReadonlyMap<string, string | null>>
  readonly entries: List<Entry>
}

export interface ShownAttachment {
  readonly uuid: string
  readonly attachment: Attachment
}

export const NOTHING_SHOWN: Shown = { byKey: new Map(), items: new Map(), entries: List.of() }

/** What `entries` show, given what an earlier state of them did. */
export function advanceShown(shown: Shown, entries: List<Entry>): Shown {
  const grew = entries.extends(shown.entries) && entries.length >= shown.entries.length
  const start = grew ? shown : NOTHING_SHOWN
  const fresh = entries.toArray(start.entries.length).filter(isShownAttachment)
  return {
    ...withAttachments(
      start,
      fresh.map(({ record }) => record),
    ),
    entries,
  }
}

export function shownIn(entries: Iterable<Entry>): Shown {
  return advanceShown(NOTHING_SHOWN, List.of(entries))
}

function isShownAttachment(entry: Entry): entry is Entry & { readonly record: AttachmentRecord } {
  return entry.record.type === 'attachment' && isShown(entry)
}

function withAttachments(shown: Shown, records: readonly AttachmentRecord[]): Shown {
  if (records.length === 0) return shown
  const byKey = new Map(shown.byKey)
  const items = new Map(shown.items)
  for (const { uuid, attachment } of records) {
    const key = keyOf(attachment)
    if (key === null) continue
    if (isObject(attachment.items)) addItems(items, carrierOf(key), attachment.items)
    else byKey.set(key, [...(byKey.get(key) ?? []), { uuid, attachment }])
  }
  return { ...shown, byKey, items }
}

function addItems(
  items: Map<string, ReadonlyMap<string, string | null>>,
  carrier: string,
  told: Readonly<Record<string, unknown>>,
): void {
  const fresh = Object.entries(told).map(
    ([name, text]) => [name, typeof text === 'string' ? text : null] as const,
  )
  items.set(carrier, new Map([...(items.get(carrier) ?? []), ...fresh]))
}

export function carrierOf(key: string): string {
  return key.slice(0, key.indexOf(':'))
}

/** Where an attachment has no key, another program wrote it: its type tells, for the kinds that carriers have. */
export function keyOf(attachment: Attachment): string | null {
  if (typeof attachment.key === 'string' && attachment.key.includes(':')) return attachment.key
  const derived = DERIVED[attachment.type ?? '']
  if (derived === undefined) return null
  const [carrier, field] = derived
  const id = field === null ? '' : attachment[field]
  return typeof id === 'string' ? `${carrier}:${id}` : null
}

/** By type: the carrier's usual name, and the field that tells one from another. */
const DERIVED: Readonly<Record<string, readonly [string, string | null]>> = {
  file: ['files', 'filename'],
  invoked_skills: ['skills', 'name'],
  nested_memory: ['standing', 'path'],
  plan_file_reference: ['plan', 'planFilePath'],
  plan_mode: ['plan-mode', null],
  permission_mode: ['permission', null],
  task_status: ['agents', 'taskId'],
  todo: ['todos', null],
}

/** The model reads the same in both, apart from when and why it was said. */
export function sameRendering(one: Attachment, other: Attachment): boolean {
  return textOfAttachment(plain(one)) === textOfAttachment(plain(other))
}

function plain({ update: _, context: __, ...rest }: Attachment): Attachment {
  return rest
}
