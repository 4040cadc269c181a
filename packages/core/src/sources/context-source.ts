/**
 * Types and helpers for context sources: state that exists outside the conversation (todos, a plan, files, modes).
 * After a compaction this state is read again and attached rather than summarised. A source only lists its items; the
 * collector handles budgets, duplicates and order.
 */

import { type ContextEntry, formatAttachmentText, isVisibleToModel } from '../context/context-entry.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { Attachment, AttachmentRecord } from '../log/record.ts'
import type { SessionLog } from '../log/session-log.ts'
import type { DroppableSource } from '../policy/compact-policy.ts'
import type { Policy } from '../policy/policy.ts'
import type { ContentBudgets } from '../policy/scale-policy.ts'
import type { TokenCounter } from '../text/truncate-text.ts'

/** The kinds of context sources, in the order in which their attachments are appended. */
export const SOURCE_KINDS = [
  'ambient',
  'standing',
  'files',
  'todos',
  'plan',
  'plan-mode',
  'skills',
  'agents',
  'host',
  'session-start',
] as const

export type SourceKind = (typeof SOURCE_KINDS)[number]

/** What a context source may read when its items are asked for. */
export interface SourceContext {
  readonly session: SessionLog
  /** Entries that stay in the context; after a compaction, the kept, unanswered and pinned ones. */
  readonly kept: Iterable<ContextEntry>
  /** The attachments among the entries in `kept`. */
  readonly shown: ShownAttachmentIndex
  readonly policy: Policy
  readonly budgets: ContentBudgets
  readonly measure: TokenCounter
  /** True if a client with its own message list leads the conversation. Default: false. */
  readonly isClientLed?: boolean
  /**
   * Why the source is read. `compaction`: all items are attached. `change`: only items that changed since they were
   * last attached.
   */
  readonly moment: 'compaction' | 'change'
}

/** Input for collecting attachments after a compaction. It has no `shown`, which is computed from `kept`. */
export type CollectSourcesInput = Omit<SourceContext, 'shown' | 'moment'>

/** Input for collecting changes between compactions. It has no `kept`, because everything in the context stays. */
export type CollectUpdatesInput = Omit<SourceContext, 'kept' | 'moment'>

/** One item of a context source, such as one file, in its current state. */
export interface RenderedItem {
  /** Identifies the item within its source, such as a path or a name; empty if the source has only one item. */
  readonly id: string
  readonly attachment: Attachment
  /** Origin of the item's text, for display, such as a path, an id or `host`. */
  readonly source: string
  /**
   * Group with which the item may be dropped if the compacted context is above its target size. If omitted, it is never dropped.
   */
  readonly sheddable?: DroppableSource
  /** True if the item adds to earlier attachments of its source instead of replacing them. */
  readonly isDelta?: boolean
  /** Returns the note that replaces the cut-off end of a long item. If omitted, the item is attached whole or not at all. */
  readonly cutNote?: (shown: string, whole: string) => string
}

/** An item that a context source considered but does not attach, with the reason. */
interface SkippedItem {
  readonly id: string
  readonly why: string
}

/** What a context source yields: an item to attach, or one that it leaves out. */
export type SourceItem = RenderedItem | SkippedItem

/** Limits of a context source: maximum tokens of one item (`each`) and of all items (`total`), and maximum number of items. */
export interface SourceLimit {
  readonly each: number
  readonly total: number
  readonly count: number
}

/**
 * A source of state that is attached again after a compaction and, with `tellsChanges`, also between compactions when it changes.
 */
export interface ContextSource {
  /** Unique name of the source, without a colon. Attachment keys begin with it, as in `files:/src/a.ts`. */
  readonly name: string
  readonly kind: SourceKind
  /** True if the source is also read between compactions, so that changed items are appended when they change. */
  readonly tellsChanges: boolean
  /** True if the source lists all its items each time. An item that the context shows and the source does not list has ended. */
  readonly isWhole: boolean
  /**
   * True if changes are appended with the very next request. Changes of other sources wait for the end of the turn if
   * the provider would otherwise drop its thinking. Default: false.
   */
  readonly isUrgent?: boolean
  /** Returns the limits of the context source; null for no limit. */
  limit(context: SourceContext): SourceLimit | null
  /**
   * Yields items by priority, newest first. Reading stops when a limit of the source is reached. If it throws, the
   * source is reported as failed.
   */
  render(context: SourceContext): AsyncIterable<SourceItem>
}

/** An attachment from a context source that is to be appended to the conversation. */
export interface SourceAttachment {
  /** Name of the context source. */
  readonly carrier: string
  readonly kind: SourceKind
  /**
   * Key of the item, such as `files:/src/a.ts`. The same item always has the same key. After a compaction no key occurs
   * twice in the context.
   */
  readonly key: string
  readonly attachment: Attachment
  /** Tokens of the attachment's text as the model reads it. */
  readonly tokens: number
  /** Origin of the text, for display, such as a path, an id or `host`. */
  readonly source: string
  /** Group with which it may be dropped to reach the target; null if it is never dropped. */
  readonly sheddable: DroppableSource | null
}

/** An item that is not attached. `carrier`: name of the context source; `why`: the reason, for display. */
export interface SkippedAttachment {
  readonly carrier: string
  readonly key: string
  readonly why: string
}

/** The attachments of all context sources, and what became of the rest. */
export interface CollectedSources {
  readonly carried: readonly SourceAttachment[]
  /** uuids of outdated attachments, which the compacted context leaves out. */
  readonly superseded: readonly string[]
  readonly skipped: readonly SkippedAttachment[]
  /** Context sources that threw an exception. Items listed before the exception are still attached. */
  readonly failed: readonly { readonly carrier: string; readonly why: string }[]
}

/** True for an item to attach, false for one that the source leaves out. */
export function isRenderedItem(offer: SourceItem): offer is RenderedItem {
  return 'attachment' in offer
}

/** Returns the key of an item. `carrier`: name of its context source. */
export function createAttachmentKey(carrier: string, id: string): string {
  return `${carrier}:${id}`
}

// Context sources whose items are a list that a function returns.

/** A value or a promise of that value. */
export type ValueOrPromise<T> = T | Promise<T>

interface ListSourceOptions extends Pick<ContextSource, 'name' | 'kind'> {
  readonly tellsChanges?: boolean
  readonly isWhole?: boolean
  readonly limit?: ContextSource['limit']
  readonly read: (context: SourceContext) => ValueOrPromise<readonly SourceItem[]>
}

/** Creates a context source from a function that returns all its items at once. */
export function createListSource(given: ListSourceOptions): ContextSource {
  const { name, kind, tellsChanges = true, isWhole = true, limit = () => null, read } = given
  async function* render(context: SourceContext): AsyncGenerator<SourceItem> {
    yield* await read(context)
  }
  return { name, kind, tellsChanges, isWhole, limit, render }
}

/**
 * Index of the attachments in the context, which need not be attached again. It is updated incrementally, and rebuilt after
 * a rewrite of the context.
 */
export interface ShownAttachmentIndex {
  /** Attachments by key, oldest first. The last attachment of a key is the current one. */
  readonly byKey: ReadonlyMap<string, readonly ShownAttachment[]>
  /** Items of sources that append only changes: newest text by source name and item name; null for a removed item. */
  readonly items: ReadonlyMap<string, ReadonlyMap<string, string | null>>
  /** The context entries that the index covers. */
  readonly entries: AppendList<ContextEntry>
}

/** An attachment in the context, with the uuid of its record. */
export interface ShownAttachment {
  readonly uuid: string
  readonly attachment: Attachment
}

export const NO_SHOWN_ATTACHMENTS: ShownAttachmentIndex = {
  byKey: new Map(),
  items: new Map(),
  entries: AppendList.of(),
}

/**
 * Returns the index of the attachments in `entries`. If `entries` extends the entries already indexed in `shown`, only
 * the new ones are read.
 */
export function updateShownAttachments(
  shown: ShownAttachmentIndex,
  entries: AppendList<ContextEntry>,
): ShownAttachmentIndex {
  const grew = entries.extends(shown.entries) && entries.length >= shown.entries.length
  const start = grew ? shown : NO_SHOWN_ATTACHMENTS
  const added = entries.toArray(start.entries.length).filter(isShownAttachment)
  const records = added.map(({ record }) => record)
  return { ...withAttachments(start, records), entries }
}

/** Returns an index of the attachments among the entries, made from scratch. */
export function indexShownAttachments(entries: Iterable<ContextEntry>): ShownAttachmentIndex {
  return updateShownAttachments(NO_SHOWN_ATTACHMENTS, AppendList.of(entries))
}

function isShownAttachment(
  entry: ContextEntry,
): entry is ContextEntry & { readonly record: AttachmentRecord } {
  return entry.record.type === 'attachment' && isVisibleToModel(entry)
}

function withAttachments(
  shown: ShownAttachmentIndex,
  records: readonly AttachmentRecord[],
): ShownAttachmentIndex {
  if (records.length === 0) return shown
  const byKey = new Map(shown.byKey)
  const items = new Map(shown.items)
  for (const { uuid, attachment } of records) {
    const key = readAttachmentKey(attachment)
    if (key === null) continue
    if (isObject(attachment.items)) addItems(items, readSourceNameFromKey(key), attachment.items)
    else byKey.set(key, [...(byKey.get(key) ?? []), { uuid, attachment }])
  }
  return { ...shown, byKey, items }
}

function addItems(
  items: Map<string, ReadonlyMap<string, string | null>>,
  carrier: string,
  announced: Readonly<Record<string, unknown>>,
): void {
  const fresh = Object.entries(announced).map(
    ([name, text]) => [name, typeof text === 'string' ? text : null] as const,
  )
  items.set(carrier, new Map([...(items.get(carrier) ?? []), ...fresh]))
}

/** Returns the name of the context source with which an attachment key begins. */
export function readSourceNameFromKey(key: string): string {
  return key.slice(0, key.indexOf(':'))
}

/**
 * Returns the key of an attachment, such as `files:/src/a.ts`. If another program wrote the attachment without a key,
 * derives it from the attachment type; null if that type is unknown.
 */
export function readAttachmentKey(attachment: Attachment): string | null {
  if (typeof attachment.key === 'string' && attachment.key.includes(':')) return attachment.key
  const derived = KEY_FIELDS[attachment.type ?? '']
  if (derived === undefined) return null
  const [carrier, field] = derived
  const id = field === null ? '' : attachment[field]
  return typeof id === 'string' ? `${carrier}:${id}` : null
}

/**
 * For each attachment type: the name of its context source, and the field that identifies the item (null if there is only one).
 */
const KEY_FIELDS: Readonly<Record<string, readonly [string, string | null]>> = {
  file: ['files', 'filename'],
  invoked_skills: ['skills', 'name'],
  nested_memory: ['standing', 'path'],
  plan_file_reference: ['plan', 'planFilePath'],
  plan_mode: ['plan-mode', null],
  task_status: ['agents', 'taskId'],
  todo: ['todos', null],
}

/** Checks whether the model reads the same text in two attachments, apart from notes on when and why they were attached. */
export function isSameAttachmentText(one: Attachment, other: Attachment): boolean {
  return formatAttachmentText(withoutNotes(one)) === formatAttachmentText(withoutNotes(other))
}

function withoutNotes({ update: _, context: __, ...rest }: Attachment): Attachment {
  return rest
}
