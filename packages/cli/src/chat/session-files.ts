/** Reads what a session has on disk: its log, its report, its notes and the diffs of cache breaks. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isVisibleToModel } from '@tidemark/core/context/context-entry'
import { buildContextView } from '@tidemark/core/context/context-view'
import {
  emptySessionCost,
  type FindModelPrices,
  sumSessionCost,
  updateSessionCost,
} from '@tidemark/core/cost/session-cost'
import { isTextBlock, toBlocks } from '@tidemark/core/log/block'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import {
  isCompactBoundary,
  isKnownRecord,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
import { buildSessionLog, listBranchRecords } from '@tidemark/core/log/session-log'
import { runAtOnce } from '@tidemark/core/log/work-steps'
import { createReceipt, type Receipt } from '@tidemark/core/summary/receipt'
import type { CostTotals } from 'tidemark'
import { lookUpModel, modelCatalogue, pricesAtDate } from 'tidemark/catalogue'
import { findNamedLogs, sessionPaths } from 'tidemark/internal'
import { inspectFiles, readLog, type SessionReport } from 'tidemark/logs'
import { sanitizeLines } from '../render/text.ts'

/** Returns the records of a session's log; none if it is new. */
export async function readSessionRecords(home: string, id: string): Promise<readonly SessionRecord[]> {
  const read = await readLog(sessionPaths(home, id).log, { withAgents: false }).catch(() => null)
  return read?.ok === true ? read.records.map(({ record }) => record) : []
}

/** Returns the report of `tidemark inspect` for a session; null if it has no log yet. */
export async function inspectSession(home: string, id: string): Promise<SessionReport | null> {
  const { logs } = await findNamedLogs([sessionPaths(home, id).log])
  const { sessions } = await inspectFiles(logs)
  return sessions[0] ?? null
}

/** What a fork has of the session that it was copied from. */
export interface InheritedCost {
  readonly from: string
  readonly totals: CostTotals
}

/** Returns what the copied part of a session has cost where it was made; null if the session is not a fork. */
export async function readInheritedCost(home: string, id: string): Promise<InheritedCost | null> {
  const copied = (await readSessionRecords(home, id)).filter(({ forkedFrom }) => forkedFrom !== undefined)
  const from = copied.at(-1)?.forkedFrom?.sessionId
  if (from === undefined) return null
  const originals = copied.map(({ forkedFrom: _, ...record }): SessionRecord => record)
  const findPrices: FindModelPrices = (model, at) => {
    const found = lookUpModel(modelCatalogue, model)
    return found.found ? pricesAtDate(found.model, at) : null
  }
  const cost = runAtOnce(updateSessionCost(emptySessionCost(), AppendList.of(originals), findPrices))
  return { from, totals: sumSessionCost(cost) }
}

/** Returns the notes that are kept of a session; null if there are none yet. */
export async function readNotes(home: string, id: string): Promise<string | null> {
  const path = join(sessionPaths(home, id).folder, 'session-memory', 'summary.md')
  return await readFile(path, 'utf8').then(sanitizeLines, () => null)
}

/** Milliseconds by which the record of a cache break may be later than its diff file. */
const DIFF_TOLERANCE_MS = 5_000

/** Returns the diff file of the cache break at a time; null if there is none. */
export async function readBreakDiff(home: string, id: string, at: number): Promise<string | null> {
  const { folder } = sessionPaths(home, id)
  const names = await readdir(folder).catch(() => [])
  const distances = names.flatMap((name) => {
    const [, day, hours, minutes, seconds] = /^cache-break-(.{10}T)(\d+)-(\d+)-(.+)\.diff$/.exec(name) ?? []
    const distance = Math.abs(at - Date.parse(`${day}${hours}:${minutes}:${seconds}`))
    return distance <= DIFF_TOLERANCE_MS ? [{ name, distance }] : []
  })
  const [nearest] = distances.toSorted((one, other) => one.distance - other.distance)
  if (nearest === undefined) return null
  return await readFile(join(folder, nearest.name), 'utf8').then(sanitizeLines, () => null)
}

/** What the log has of a compaction. */
interface LoggedCompaction {
  readonly at: string
  /** What the user asked the summary to keep; null if nothing. */
  readonly instructions: string | null
  /** The text of the summary; null if the provider keeps it. */
  readonly summary: string | null
  /** Makes the receipt, which takes a moment in a long session. */
  makeReceipt(): Receipt
}

/** Returns a compaction from the log, by its record; null if the log does not have it. */
export async function readCompaction(
  home: string,
  id: string,
  boundary: string,
): Promise<LoggedCompaction | null> {
  const records = await readSessionRecords(home, id)
  const start = records.findIndex(({ uuid }) => uuid === boundary)
  const record = records[start]
  if (record === undefined || !isKnownRecord(record) || !isCompactBoundary(record)) return null
  const end = findBatchEnd(records, start)
  const added = records.slice(start, end).filter(isKnownRecord)
  const summary = added.find(({ isCompactSummary }) => isCompactSummary === true)
  return {
    at: record.timestamp,
    instructions: record.compactMetadata.userContext ?? null,
    summary: summary === undefined ? null : readMessageText(summary),
    makeReceipt: () => makeReceipt(records, { start, end, added }),
  }
}

function readMessageText(record: KnownRecord): string | null {
  if (record.type !== 'user' && record.type !== 'assistant') return null
  const texts = toBlocks(record.message.content).flatMap((block) => (isTextBlock(block) ? [block.text] : []))
  return texts.length === 0 ? null : sanitizeLines(texts.join('\n'))
}

/** `start` and `end`: where the records of the compaction lie; `added`: those of known kinds. */
function makeReceipt(
  records: readonly SessionRecord[],
  {
    start,
    end,
    added,
  }: { readonly start: number; readonly end: number; readonly added: readonly KnownRecord[] },
): Receipt {
  const log = buildSessionLog(records.slice(0, start))
  const before = buildContextView(log).entries.toArray()
  const after = buildContextView(buildSessionLog(records.slice(0, end))).entries.toArray()
  const shown = new Set(after.map(({ record }) => record.uuid))
  return runAtOnce(
    createReceipt({
      before,
      after,
      history: listBranchRecords(log),
      summarised: before.filter((entry) => isVisibleToModel(entry) && !shown.has(entry.record.uuid)),
      carried: added.flatMap((record) => {
        if (record.type !== 'attachment') return []
        const { type = 'attachment', key } = record.attachment
        return [{ kind: type, key: typeof key === 'string' ? key : type }]
      }),
    }),
  )
}

/** Returns the index behind the last record that was appended together with one; without a batch, the next message. */
function findBatchEnd(records: readonly SessionRecord[], start: number): number {
  const batch = records[start]?.batch?.id
  const isBehind = (record: SessionRecord): boolean =>
    batch === undefined ? record.type === 'assistant' || isPrompt(record) : record.batch?.id !== batch
  const end = records.findIndex((record, index) => index > start && isBehind(record))
  return end === -1 ? records.length : end
}
