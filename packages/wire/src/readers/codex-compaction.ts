/**
 * A compaction by Codex as compaction records. Codex logs the whole history that replaces the old one; items that are
 * already in the log, word for word, are kept by reference, and new ones become records.
 */
import { type CompactMetadata, isObject, type PreservedMessages, type SystemRecord } from '@tidemark/core'
import {
  type Draft,
  type InputPart,
  identityOf,
  type ModelPart,
  partOf,
  type ToolPart,
} from './codex-items.ts'
import type { Fields } from './codex-line.ts'
import { type CodexLog, modelRecord, type Place, placeIn, remember, userRecord } from './codex-log.ts'
import type { CallIds } from './codex-tools.ts'
import type { ReadRecord } from './log-reader.ts'

type Shown = ModelPart | InputPart | ToolPart

/** An item of the new history: a record that exists already, or one to be created. */
interface Item {
  readonly part: Shown
  /** uuid of the existing record. */
  readonly kept: string | null
}

interface CompactionPlace extends Pick<Draft, 'line' | 'timestamp' | 'model'> {
  readonly trigger: CompactMetadata['trigger']
}

export function compactionRecords(
  log: CodexLog,
  payload: Fields,
  at: CompactionPlace,
): readonly ReadRecord[] {
  const message = typeof payload.message === 'string' ? payload.message : ''
  const history = Array.isArray(payload.replacement_history) ? payload.replacement_history : null
  const items = history === null ? rebuilt(log, message) : withTwoRuns(itemsOf(log, history))
  return written(log, items, { ...at, message })
}

/** A call id in the history equals that of the call it was copied from. */
const AS_NAMED: CallIds = { opened: (id) => id, answered: (id) => id }

function itemsOf(log: CodexLog, history: readonly unknown[]): readonly Item[] {
  const parts = history.filter(isObject).flatMap((item) => {
    const part = partOf(item, AS_NAMED)
    return part.from === 'other' || part.from === 'unreadable' ? [] : [part]
  })
  const originals = new Map<string, string[]>()
  for (const identity of parts.map(identityOf).toReversed()) {
    const free = originals.get(identity) ?? []
    // If the same content occurs more than once, the newest records are the ones kept.
    const uuid = log.said.get(identity)?.at(-1 - free.length)
    if (uuid !== undefined) originals.set(identity, [uuid, ...free])
  }
  return parts.map((part): Item => ({ part, kept: originals.get(identityOf(part))?.shift() ?? null }))
}

/** For logs without the new history: the newest user prompts, within a budget, then the summary. */
function rebuilt(log: CodexLog, message: string): readonly Item[] {
  let budget = KEPT_PROMPT_CHARACTERS
  const kept = log.prompts.toReversed().filter(({ textLength }) => {
    budget -= textLength
    return budget >= 0
  })
  const prompts = kept.toReversed().map(({ uuid }): Item => ({ part: NO_INPUT, kept: uuid }))
  const summary: InputPart = { from: 'host', blocks: [{ type: 'text', text: message }] }
  return [...prompts, { part: summary, kept: null }]
}

/** 20,000 tokens at four characters each. */
const KEPT_PROMPT_CHARACTERS = 80_000
const NO_INPUT: InputPart = { from: 'user', blocks: [] }

/** A boundary can name two lists of kept records. If the history has more runs of them, the longest two are kept. */
function withTwoRuns(items: readonly Item[]): readonly Item[] {
  const runs = runsOf(items)
  const longest = runs.toSorted((one, other) => other.length - one.length).slice(0, 2)
  const kept = new Set(longest.flat())
  return items.map((item) => (kept.has(item) ? item : { ...item, kept: null }))
}

function runsOf(items: readonly Item[]): readonly (readonly Item[])[] {
  const runs: Item[][] = []
  items.forEach((item, index) => {
    if (item.kept === null) return
    const isNext = index > 0 && items[index - 1]?.kept !== null
    if (isNext) runs.at(-1)?.push(item)
    else runs.push([item])
  })
  return runs
}

function written(
  log: CodexLog,
  items: readonly Item[],
  at: CompactionPlace & { readonly message: string },
): readonly ReadRecord[] {
  const logicalParentUuid = log.tip
  const place = { ...placeIn(log, at), parentUuid: null }
  const summary = summaryIn(items, at.message)
  const records: ReadRecord['record'][] = []
  if (summary === null) records.push(summaryRecord(placeIn(log, at, '.0'), { from: 'host', blocks: [] }))
  const lists: { anchorUuid: string; uuids: string[] }[] = []
  let anchorUuid = place.uuid
  for (const [index, { part, kept }] of items.entries()) {
    if (kept === null) {
      const own = placeIn(log, at, `.${index + 1}`)
      records.push(part === summary ? summaryRecord(own, part) : copyRecord(log, own, { part, at }))
      anchorUuid = own.uuid
    } else if (lists.at(-1)?.anchorUuid === anchorUuid) lists.at(-1)?.uuids.push(kept)
    else lists.push({ anchorUuid, uuids: [kept] })
  }
  const boundary = boundaryRecord({ ...place, logicalParentUuid }, metadataOf(log, at, lists))
  const all = [boundary, ...records]
  const batch = { id: boundary.uuid, of: all.length }
  return all.map((record, index) => ({ record: { ...record, batch: { ...batch, index } }, line: at.line }))
}

/** The summary: the item with Codex's own summary text, or a block that only its provider can read. */
function summaryIn(items: readonly Item[], message: string): Shown | null {
  const fresh = items.filter(({ kept }) => kept === null).map(({ part }) => part)
  const sealed = fresh.find(({ blocks }) => SEALED.has(blocks[0]?.type))
  if (sealed !== undefined || message.trim() === '') return sealed ?? null
  return fresh.findLast(({ blocks }) => String(blocks[0]?.text ?? '').includes(message)) ?? null
}

const SEALED: ReadonlySet<unknown> = new Set(['compaction', 'compaction_summary', 'context_compaction'])

function summaryRecord(place: Place, part: Shown): ReadRecord['record'] {
  const record = userRecord(place, { from: 'host', blocks: part.blocks })
  return { ...record, isMeta: false, isCompactSummary: true, isVisibleInTranscriptOnly: true }
}

/** A copy written by Codex, not by the original author: hence `isMeta`. */
function copyRecord(
  log: CodexLog,
  place: Place,
  { part, at }: { readonly part: Shown; readonly at: CompactionPlace },
): ReadRecord['record'] {
  remember(log, part, place.uuid)
  if (part.from === 'model')
    return modelRecord(place, part, { id: `codex-${place.uuid}`, model: at.model, usage: null })
  return { ...userRecord(place, part), isMeta: true }
}

function metadataOf(
  log: CodexLog,
  at: CompactionPlace & { readonly message: string },
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

function boundaryRecord(
  place: Place & { readonly logicalParentUuid: string | null },
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
