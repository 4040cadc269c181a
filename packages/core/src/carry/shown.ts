/**
 * What attachments a view shows, by key: how a carrier knows what need not be said again. Kept up to date entry by
 * entry; a view that was rewritten is read anew.
 */
import { isObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import type { Attachment, AttachmentRecord } from '../conversation/record.ts'
import { textOfAttachment } from '../view/attachment-text.ts'
import type { Entry } from '../view/entry.ts'
import { isShown } from '../view/parts.ts'

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
