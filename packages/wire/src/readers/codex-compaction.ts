/**
 * Converts a compaction by Codex to compaction records. Codex logs the whole new history; where a log line lacks it, it
 * is rebuilt. Items that already have a record are kept by reference, and new items become records.
 */
import { isObject } from '@tidemark/core/log/json'
import type { CompactMetadata, PreservedMessages, SystemRecord } from '@tidemark/core/log/record'
import {
  type CodexInputItem,
  type CodexModelItem,
  type CodexToolResult,
  createItemKey,
  type PendingCodexLine,
  readCodexItem,
} from './codex-items.ts'
import type { JsonFields } from './codex-line.ts'
import {
  type CodexRecordState,
  createLinkedFields,
  indexCodexItem,
  type RecordFields,
  toAssistantRecord,
  toUserRecord,
} from './codex-records.ts'
import { UNCHANGED_IDS } from './codex-tools.ts'
import type { RecordWithLine } from './log-reader.ts'

type ContextItem = CodexModelItem | CodexInputItem | CodexToolResult

/** An item of the conversation after a compaction. */
interface HistoryItem {
  readonly item: ContextItem
  /** Uuid of the earlier record of this item, if the compaction kept it; null for a new item. */
  readonly keptUuid: string | null
}

interface CompactionInput extends Pick<PendingCodexLine, 'line' | 'timestamp' | 'model' | 'surroundings'> {
  readonly trigger: CompactMetadata['trigger']
}

/** Returns one batch: the boundary, then the summary and all other items without an earlier record. Changes `log`. */
export function toCompactionRecords(
  log: CodexRecordState,
  payload: JsonFields,
  at: CompactionInput,
): readonly RecordWithLine[] {
  const message = typeof payload.message === 'string' ? payload.message : ''
  const history = Array.isArray(payload.replacement_history) ? payload.replacement_history : null
  const items =
    history === null ? rebuildHistory(log, message) : keepTwoLongestRuns(matchHistory(log, history))
  return buildCompactionRecords(log, items, { ...at, message })
}

function matchHistory(log: CodexRecordState, history: readonly unknown[]): readonly HistoryItem[] {
  const parts = history.filter(isObject).flatMap((item) => {
    const part = readCodexItem(item, UNCHANGED_IDS)
    return part.from === 'other' || part.from === 'unreadable' ? [] : [part]
  })
  const originals = new Map<string, string[]>()
  for (const identity of parts.map(createItemKey).toReversed()) {
    const free = originals.get(identity) ?? []
    // If several earlier records have the same content, the newest of them are used.
    const uuid = log.uuidsByIdentity.get(identity)?.at(-1 - free.length)
    if (uuid !== undefined) originals.set(identity, [uuid, ...free])
  }
  return parts.map(
    (part): HistoryItem => ({ item: part, keptUuid: originals.get(createItemKey(part))?.shift() ?? null }),
  )
}

/**
 * Rebuilds the history after a compaction whose log line does not contain it: the newest user prompts up to a total
 * length, then the summary.
 */
function rebuildHistory(log: CodexRecordState, message: string): readonly HistoryItem[] {
  let budget = KEPT_PROMPT_CHARACTERS
  const kept = log.prompts.toReversed().filter(({ textLength }) => {
    budget -= textLength
    return budget >= 0
  })
  const prompts = kept.toReversed().map(({ uuid }): HistoryItem => ({ item: EMPTY_INPUT, keptUuid: uuid }))
  const summary: CodexInputItem = { from: 'host', blocks: [{ type: 'text', text: message }] }
  return [...prompts, { item: summary, keptUuid: null }]
}

/** Maximum total length of the user prompts that are kept, in characters: 20,000 tokens of four characters each. */
const KEPT_PROMPT_CHARACTERS = 80_000
const EMPTY_INPUT: CodexInputItem = { from: 'user', blocks: [] }

/**
 * Keeps only the two longest sequences of adjacent kept items and treats the others as new. A compaction record can
 * refer to only two lists of earlier records.
 */
function keepTwoLongestRuns(items: readonly HistoryItem[]): readonly HistoryItem[] {
  const runs = findKeptRuns(items)
  const longest = runs.toSorted((one, other) => other.length - one.length).slice(0, 2)
  const kept = new Set(longest.flat())
  return items.map((item) => (kept.has(item) ? item : { ...item, keptUuid: null }))
}

function findKeptRuns(items: readonly HistoryItem[]): readonly (readonly HistoryItem[])[] {
  const runs: HistoryItem[][] = []
  items.forEach((item, index) => {
    if (item.keptUuid === null) return
    const isNext = index > 0 && items[index - 1]?.keptUuid !== null
    if (isNext) runs.at(-1)?.push(item)
    else runs.push([item])
  })
  return runs
}

function buildCompactionRecords(
  log: CodexRecordState,
  items: readonly HistoryItem[],
  at: CompactionInput & { readonly message: string },
): readonly RecordWithLine[] {
  const logicalParentUuid = log.lastUuid
  const place = { ...createLinkedFields(log, at), parentUuid: null }
  const summary = findSummaryItem(items, at.message)
  const records: RecordWithLine['record'][] = []
  if (summary === null)
    records.push(toSummaryRecord(createLinkedFields(log, at, '.0'), { from: 'host', blocks: [] }))
  const lists: { anchorUuid: string; uuids: string[] }[] = []
  let anchorUuid = place.uuid
  for (const [index, { item, keptUuid }] of items.entries()) {
    if (keptUuid === null) {
      const own = createLinkedFields(log, at, `.${index + 1}`)
      records.push(item === summary ? toSummaryRecord(own, item) : toCopyRecord(log, own, { part: item, at }))
      anchorUuid = own.uuid
    } else if (lists.at(-1)?.anchorUuid === anchorUuid) lists.at(-1)?.uuids.push(keptUuid)
    else lists.push({ anchorUuid, uuids: [keptUuid] })
  }
  const boundary = createBoundary({ ...place, logicalParentUuid }, toCompactMetadata(log, at, lists))
  const all = [boundary, ...records]
  const batch = { id: boundary.uuid, of: all.length }
  return all.map((record, index) => ({ record: { ...record, batch: { ...batch, index } }, line: at.line }))
}

/**
 * Finds the summary among the new items of a compaction: an encrypted item, or an item that contains Codex's summary
 * text. Returns null if there is none.
 */
function findSummaryItem(items: readonly HistoryItem[], message: string): ContextItem | null {
  const fresh = items.filter(({ keptUuid }) => keptUuid === null).map(({ item }) => item)
  const sealed = fresh.find(({ blocks }) => ENCRYPTED_TYPES.has(blocks[0]?.type))
  if (sealed !== undefined || message.trim() === '') return sealed ?? null
  return fresh.findLast(({ blocks }) => String(blocks[0]?.text ?? '').includes(message)) ?? null
}

const ENCRYPTED_TYPES: ReadonlySet<unknown> = new Set([
  'compaction',
  'compaction_summary',
  'context_compaction',
])

function toSummaryRecord(place: RecordFields, part: ContextItem): RecordWithLine['record'] {
  const record = toUserRecord(place, { from: 'host', blocks: part.blocks })
  return { ...record, isMeta: false, isCompactSummary: true, isVisibleInTranscriptOnly: true }
}

/**
 * Creates a record for a new item of a compaction. It is marked `isMeta`, because Codex wrote this copy and not the
 * item's author.
 */
function toCopyRecord(
  log: CodexRecordState,
  place: RecordFields,
  { part, at }: { readonly part: ContextItem; readonly at: CompactionInput },
): RecordWithLine['record'] {
  indexCodexItem(log, part, place.uuid)
  if (part.from === 'model')
    return toAssistantRecord(place, part, { id: `codex-${place.uuid}`, model: at.model, usage: null })
  return { ...toUserRecord(place, part), isMeta: true }
}

function toCompactMetadata(
  log: CodexRecordState,
  at: CompactionInput & { readonly message: string },
  [first, second]: readonly PreservedMessages[],
): CompactMetadata {
  return {
    trigger: at.trigger,
    preTokens: log.inputTokens,
    summarizer: at.message.trim() === '' ? 'block' : 'model',
    ...(first === undefined ? {} : { preservedMessages: first }),
    ...(second === undefined ? {} : { unansweredMessages: second }),
  }
}

function createBoundary(
  place: RecordFields & { readonly logicalParentUuid: string | null },
  compactMetadata: CompactMetadata,
): SystemRecord {
  return {
    ...place,
    type: 'system',
    subtype: 'compact_boundary',
    content: 'Conversation compacted',
    level: 'info',
    isMeta: false,
    compactMetadata,
  }
}
