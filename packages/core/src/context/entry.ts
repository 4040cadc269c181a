/** One line of the view: a record, and what of it has been cleared. */

import { type Block, blocksOf, isBlock, isCacheEdits, isMedia, isText, isToolResult } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { ClearedInput, KnownRecord, MicrocompactMetadata } from '../log/record.ts'

export interface Entry {
  readonly record: KnownRecord
  /** Where the record stands in the session. */
  readonly index: number
  /** Absent where the record is shown as it was said. */
  readonly cleared?: Cleared
}

/** What is no longer shown. The record itself is untouched: it is read again when a clearing is undone. */
export interface Cleared {
  /** Left out altogether: an attachment, or words to the provider's cache. */
  readonly whole: boolean
  readonly thinking: boolean
  /** Tool results, by call, with the line that says where the text is. */
  readonly results: readonly { readonly id: string; readonly note: string | null }[]
  readonly inputs: readonly ClearedInput[]
  readonly media?: readonly HiddenMedia[]
}

/** The entries with one clearing applied. Entries it does not touch stay the same objects. */
export function clearEntries(entries: List<Entry>, metadata: MicrocompactMetadata): List<Entry> {
  const clearing = {
    metadata,
    results: namesIn(metadata.compactedToolIds),
    attachments: namesIn(metadata.clearedAttachmentUUIDs),
    thinking: namesIn(metadata.clearedThinking),
  }
  return List.of([...entries].map((entry) => clearEntry(entry, clearing)))
}

const NOTHING_CLEARED: Cleared = { whole: false, thinking: false, results: [], inputs: [] }

/** The entries without the thinking of these responses (`message.id`). Entries it does not touch stay the same objects. */
export function withoutThinking(entries: readonly Entry[], responses: unknown): readonly Entry[] {
  const names = namesIn(responses)
  if (names.size === 0) return entries
  return entries.map((entry) => {
    const { record, cleared = NOTHING_CLEARED } = entry
    const isNamed = record.type === 'assistant' && names.has(record.message.id)
    return isNamed && !cleared.thinking ? { ...entry, cleared: { ...cleared, thinking: true } } : entry
  })
}

const LEFT_OUT: Cleared = { whole: true, thinking: false, results: [], inputs: [] }

/** The entries without words to the provider's cache: it has lapsed, and what was deleted there is shown again. */
export function withoutEdits(entries: List<Entry>): List<Entry> {
  return List.of([...entries].map((entry) => (isEdits(entry) ? { ...entry, cleared: LEFT_OUT } : entry)))
}

function isEdits({ record }: Entry): boolean {
  if (record.type !== 'user') return false
  const blocks = blocksOf(record.message.content)
  return blocks.length > 0 && blocks.every(isCacheEdits)
}

/** Other programs may write anything there. */
function namesIn(list: unknown): ReadonlySet<string> {
  return new Set(Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [])
}

interface Clearing {
  readonly metadata: MicrocompactMetadata
  readonly results: ReadonlySet<string>
  readonly attachments: ReadonlySet<string>
  readonly thinking: ReadonlySet<string>
}

function clearEntry(entry: Entry, clearing: Clearing): Entry {
  const before = entry.cleared
  const { record } = entry
  const now: Cleared = {
    whole: before?.whole === true || (record.type === 'attachment' && clearing.attachments.has(record.uuid)),
    thinking:
      before?.thinking === true || (record.type === 'assistant' && clearing.thinking.has(record.message.id)),
    results: [...(before?.results ?? []), ...newResults(entry, clearing)],
    inputs: [...(before?.inputs ?? []), ...newInputs(entry, clearing.metadata)],
    ...withMedia(before?.media ?? [], newMedia(entry, clearing.metadata)),
  }
  return same(before, now) ? entry : { ...entry, cleared: now }
}

/** A result is cleared once. */
function newResults(entry: Entry, clearing: Clearing): Cleared['results'] {
  if (entry.record.type !== 'user') return []
  const ids = blocksOf(entry.record.message.content)
    .filter(isToolResult)
    .map((block) => block.tool_use_id)
  const fresh = ids.filter(
    (id) => clearing.results.has(id) && !entry.cleared?.results.some((old) => old.id === id),
  )
  return fresh.map((id) => ({ id, note: noteOn(id, clearing.metadata.notes) }))
}

function noteOn(id: string, notes: unknown): string | null {
  const note = isObject(notes) && Object.hasOwn(notes, id) ? notes[id] : null
  return typeof note === 'string' ? note : null
}

function newInputs(entry: Entry, metadata: MicrocompactMetadata): readonly ClearedInput[] {
  if (entry.record.type !== 'assistant' || !Array.isArray(metadata.clearedInputs)) return []
  const ids = new Set(blocksOf(entry.record.message.content).map((block) => block.id))
  return metadata.clearedInputs.filter((input: unknown) => isObject(input) && ids.has(input.toolUseId))
}

function newMedia({ record }: Entry, { clearedMedia }: MicrocompactMetadata): readonly HiddenMedia[] {
  if (record.type !== 'user' || !Array.isArray(clearedMedia)) return []
  return clearedMedia.flatMap((item: unknown) => {
    if (!isObject(item) || item.uuid !== record.uuid || typeof item.nth !== 'number') return []
    return [{ toolUseId: typeof item.toolUseId === 'string' ? item.toolUseId : null, nth: item.nth }]
  })
}

function withMedia(before: readonly HiddenMedia[], news: readonly HiddenMedia[]): Pick<Cleared, 'media'> {
  return before.length + news.length === 0 ? {} : { media: [...before, ...news] }
}

function mediaIn({ media = [] }: Cleared): number {
  return media.length
}

function same(before: Cleared | undefined, now: Cleared): boolean {
  if (before === undefined)
    return !now.whole && !now.thinking && now.results.length + now.inputs.length + mediaIn(now) === 0
  const grown =
    now.results.length > before.results.length ||
    now.inputs.length > before.inputs.length ||
    mediaIn(now) > mediaIn(before)
  return !grown && now.whole === before.whole && now.thinking === before.thinking
}

// Images and documents that are no longer shown. Which one is meant is told by the record, the result it stands in
// and its number there; what stands in its place is counted like it, so that numbers hold however many have gone.

/** One of a record's images and documents. */
interface HiddenMedia {
  /** The call whose result it stands in; null for one that stands by itself. */
  readonly toolUseId: string | null
  /** From 0, among those there. */
  readonly nth: number
}

/** What stands where one was. */
export function mediaPlaceholder(kind: string): Block {
  return { type: 'text', text: `[${kind}: no longer shown, to keep the request within its size]` }
}

const PLACEHOLDERS: ReadonlySet<string> = new Set(
  ['image', 'document'].map((kind) => String(mediaPlaceholder(kind).text)),
)

/** An image or a document, or what stands in the place of one. */
export function isMediaPlace(block: Block): boolean {
  return isMedia(block) || (isText(block) && PLACEHOLDERS.has(block.text))
}

/** The blocks of a record without what is hidden. Blocks it does not touch stay the same objects. */
export function withoutMedia(
  blocks: readonly Block[],
  hidden: readonly HiddenMedia[] = [],
): readonly Block[] {
  if (hidden.length === 0) return blocks
  const at = (id: string | null): ReadonlySet<number> =>
    new Set(hidden.filter(({ toolUseId }) => toolUseId === id).map(({ nth }) => nth))
  return replaced(blocks, at(null)).map((block) => {
    if (!isToolResult(block) || !Array.isArray(block.content)) return block
    const gone = at(block.tool_use_id)
    return gone.size === 0 ? block : { ...block, content: replaced(block.content, gone) }
  })
}

function replaced(blocks: readonly Block[], gone: ReadonlySet<number>): readonly Block[] {
  let nth = -1
  return blocks.map((block: unknown) => {
    if (!isBlock(block) || !isMediaPlace(block)) return block as Block
    nth += 1
    return gone.has(nth) && isMedia(block) ? mediaPlaceholder(block.type) : block
  })
}
