/**
 * Context sources: state with a source of truth outside the conversation (todos, a plan, files, modes). After a
 * compaction it is attached again from there rather than summarised. A source renders its state; budgets, duplicates
 * and order are handled in one place.
 */

import type { ContextEntry } from '../context/entry.ts'
import { formatAttachmentText, isVisibleToModel } from '../context/entry.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { Attachment, AttachmentRecord } from '../log/record.ts'
import type { SessionLog } from '../log/session.ts'
import type { ContentBudgets } from '../policy/limits.ts'
import type { DroppableSource, Policy } from '../policy/policy.ts'
import { type TokenCounter, takeHead } from '../summary/truncate-text.ts'

/** In the order in which they are attached. */
export const SOURCE_KINDS = [
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

export type SourceKind = (typeof SOURCE_KINDS)[number]

export interface SourceContext {
  readonly session: SessionLog
  /** Entries that stay in the context: after a compaction the kept, unanswered and pinned ones. */
  readonly kept: Iterable<ContextEntry>
  /** The attachments among them. */
  readonly shown: ShownAttachments
  readonly policy: Policy
  readonly budgets: ContentBudgets
  readonly measure: TokenCounter
  /** A compaction attaches everything; between two compactions only changes are appended. */
  readonly moment: 'compaction' | 'change'
}

/** Input of a compaction: `shown` is derived from `kept`. */
export type CollectSourcesInput = Omit<SourceContext, 'shown' | 'moment'>

/** Input between two compactions: everything in `shown` stays in the context. */
export type CollectUpdatesInput = Omit<SourceContext, 'kept' | 'moment'>

/** One item as its source has it now. */
export interface RenderedItem {
  /** Identifies the item within its source: a path, a name. Empty if there is only one. */
  readonly id: string
  readonly attachment: Attachment
  /** Where the text comes from, for display. */
  readonly source: string
  /** Set if the item may be dropped when the compacted context is above its target. */
  readonly sheddable?: DroppableSource
  /** Adds to earlier attachments rather than replacing them. */
  readonly isDelta?: boolean
  /** Set if `content` may be cut at its end: returns the line put there. Otherwise the item is attached whole or not at all. */
  readonly cutNote?: (shown: string, whole: string) => string
}

/** An item that was considered and is not attached. */
export interface SkippedItem {
  readonly id: string
  readonly why: string
}

export type SourceItem = RenderedItem | SkippedItem

/** Tokens of one item and of all items, as the model reads them, and the number of items. */
export interface SourceLimit {
  readonly each: number
  readonly total: number
  readonly count: number
}

export interface ContextSource {
  /** Unique, without a colon: the first part of the keys of its attachments. */
  readonly name: string
  readonly kind: SourceKind
  /** Also rendered between compactions, so that changes are appended when they happen. */
  readonly tellsChanges: boolean
  /** It renders all its items each time: an item that is shown and no longer rendered has ended. */
  readonly isWhole: boolean
  /** Null: no limit. */
  limit(context: SourceContext): SourceLimit | null
  /** Items by priority, newest first. Iterated only as far as the limit allows. An exception is reported. */
  render(context: SourceContext): AsyncIterable<SourceItem>
}

/** An attachment to append. */
export interface SourceAttachment {
  readonly carrier: string
  readonly kind: SourceKind
  /** The same item always has the same key; after a compaction no key occurs twice in the context. */
  readonly key: string
  readonly attachment: Attachment
  /** Of the text the model reads. */
  readonly tokens: number
  readonly source: string
  readonly sheddable: DroppableSource | null
}

export interface SkippedAttachment {
  readonly carrier: string
  readonly key: string
  readonly why: string
}

export interface CollectedSources {
  readonly carried: readonly SourceAttachment[]
  /** Items whose current state the kept messages already show. */
  readonly alreadyShown: readonly SkippedAttachment[]
  /** uuids of outdated attachments, which must not be kept. */
  readonly superseded: readonly string[]
  readonly skipped: readonly SkippedAttachment[]
  /** Sources that threw. Items rendered before that count. */
  readonly failed: readonly { readonly carrier: string; readonly why: string }[]
}

export function isRenderedItem(offer: SourceItem): offer is RenderedItem {
  return 'attachment' in offer
}

export function createAttachmentKey(carrier: string, id: string): string {
  return `${carrier}:${id}`
}

// A source whose state is a list supplied by the host.

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

export interface ListSourceOptions extends Pick<ContextSource, 'name' | 'kind'> {
  readonly tellsChanges?: boolean
  readonly isWhole?: boolean
  readonly limit?: ContextSource['limit']
  readonly read: (context: SourceContext) => MaybePromise<readonly SourceItem[]>
}

export function createListSource(given: ListSourceOptions): ContextSource {
  const { name, kind, tellsChanges = true, isWhole = true, limit = () => null, read } = given
  async function* render(context: SourceContext): AsyncGenerator<SourceItem> {
    yield* await read(context)
  }
  return { name, kind, tellsChanges, isWhole, limit, render }
}

// Fitting an item into its limit.

interface FittedItem {
  readonly attachment: Attachment
  readonly tokens: number
}

export const NO_LIMIT: SourceLimit = {
  each: Number.POSITIVE_INFINITY,
  total: Number.POSITIVE_INFINITY,
  count: Number.POSITIVE_INFINITY,
}

/** The attachment, cut to `each` if that is allowed; or the reason why it does not fit. */
export function fitItem(
  rendering: RenderedItem,
  { each, total }: SourceLimit,
  measure: TokenCounter,
): FittedItem | string {
  const { attachment } = rendering
  const tokens = measure(formatAttachmentText(attachment))
  const fitted = tokens <= each ? { attachment, tokens } : cutItem(rendering, each, measure)
  if (fitted === null) return `takes ${tokens} tokens, and one may take ${each}`
  return fitted.tokens <= total ? fitted : `takes ${fitted.tokens} tokens, and ${total} are left`
}

function cutItem(
  { attachment, cutNote }: RenderedItem,
  each: number,
  measure: TokenCounter,
): FittedItem | null {
  const { content } = attachment
  if (cutNote === undefined || typeof content !== 'string') return null
  const withHead = (head: string): Attachment => ({
    ...attachment,
    content: `${head.endsWith('\n') ? head : `${head}\n`}${cutNote(head, content)}`,
    truncated: true,
  })
  const measureCut = (head: string): number => measure(formatAttachmentText(withHead(head)))
  const head = takeHead(content, each, measureCut)
  const tokens = measureCut(head)
  return head === '' || tokens > each ? null : { attachment: withHead(head), tokens }
}

// The attachments in the context, by key: what need not be attached again. Updated incrementally; after a rewrite of
// the context it is rebuilt.

export interface ShownAttachments {
  /** By key, oldest first; the last one is in force. */
  readonly byKey: ReadonlyMap<string, readonly ShownAttachment[]>
  /** Items announced one by one: by source, then by name, with the newest text (null: removed). */
  readonly items: ReadonlyMap<string, ReadonlyMap<string, string | null>>
  readonly entries: AppendList<ContextEntry>
}

export interface ShownAttachment {
  readonly uuid: string
  readonly attachment: Attachment
}

export const NO_SHOWN_ATTACHMENTS: ShownAttachments = {
  byKey: new Map(),
  items: new Map(),
  entries: AppendList.of(),
}

/** The attachments in `entries`, updated from those of an earlier state. */
export function updateShownAttachments(
  shown: ShownAttachments,
  entries: AppendList<ContextEntry>,
): ShownAttachments {
  const grew = entries.extends(shown.entries) && entries.length >= shown.entries.length
  const start = grew ? shown : NO_SHOWN_ATTACHMENTS
  const added = entries.toArray(start.entries.length).filter(isShownAttachment)
  const records = added.map(({ record }) => record)
  return { ...withAttachments(start, records), entries }
}

export function findShownAttachments(entries: Iterable<ContextEntry>): ShownAttachments {
  return updateShownAttachments(NO_SHOWN_ATTACHMENTS, AppendList.of(entries))
}

function isShownAttachment(
  entry: ContextEntry,
): entry is ContextEntry & { readonly record: AttachmentRecord } {
  return entry.record.type === 'attachment' && isVisibleToModel(entry)
}

function withAttachments(shown: ShownAttachments, records: readonly AttachmentRecord[]): ShownAttachments {
  if (records.length === 0) return shown
  const byKey = new Map(shown.byKey)
  const items = new Map(shown.items)
  for (const { uuid, attachment } of records) {
    const key = readAttachmentKey(attachment)
    if (key === null) continue
    if (isObject(attachment.items)) addItems(items, sourceNameFromKey(key), attachment.items)
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

export function sourceNameFromKey(key: string): string {
  return key.slice(0, key.indexOf(':'))
}

/** An attachment without a key was written by another program: its key is derived from its type where that is known. */
export function readAttachmentKey(attachment: Attachment): string | null {
  if (typeof attachment.key === 'string' && attachment.key.includes(':')) return attachment.key
  const derived = KEY_FIELDS[attachment.type ?? '']
  if (derived === undefined) return null
  const [carrier, field] = derived
  const id = field === null ? '' : attachment[field]
  return typeof id === 'string' ? `${carrier}:${id}` : null
}

/** By attachment type: the source's usual name, and the field that identifies the item. */
const KEY_FIELDS: Readonly<Record<string, readonly [string, string | null]>> = {
  file: ['files', 'filename'],
  invoked_skills: ['skills', 'name'],
  nested_memory: ['standing', 'path'],
  plan_file_reference: ['plan', 'planFilePath'],
  plan_mode: ['plan-mode', null],
  permission_mode: ['permission', null],
  task_status: ['agents', 'taskId'],
  todo: ['todos', null],
}

/** The model reads the same text in both, apart from the notes on when and why it was attached. */
export function isSameAttachmentText(one: Attachment, other: Attachment): boolean {
  return formatAttachmentText(withoutNotes(one)) === formatAttachmentText(withoutNotes(other))
}

function withoutNotes({ update: _, context: __, ...rest }: Attachment): Attachment {
  return rest
}
