/** Reads what a session has recorded: records on all branches, compactions, and what the copied part of a forked session cost. */
import { isVisibleToModel } from '@tidemark/core/context/context-entry'
import { buildContextView } from '@tidemark/core/context/context-view'
import {
  type CostTotals,
  emptySessionCost,
  sumSessionCost,
  updateSessionCost,
} from '@tidemark/core/cost/session-cost'
import { restoreSpilledResults } from '@tidemark/core/history/spill-results'
import { isTextBlock, toBlocks } from '@tidemark/core/log/block'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import {
  isCompactBoundary,
  isKnownRecord,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
import {
  appendRecord,
  buildSessionLog,
  emptySessionLog,
  listBranchRecords,
} from '@tidemark/core/log/session-log'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { createReceipt, type Receipt } from '@tidemark/core/summary/receipt'
import { checkOptionNames } from '../platform/argument-errors.ts'
import type { OpenSession } from './open-session.ts'

export interface RecordsOptions {
  /** `all`: also records that `rewind`, `clear` or `undo` left. Default: `current`. */
  readonly branches?: 'current' | 'all'
  /** True to read large tool results whole, which are stored apart from the log. Default: false. */
  readonly isWhole?: boolean
}

export interface ConversationRecord {
  readonly record: SessionRecord
  /** The record of the move that left the branch of this record; null if the record is part of the conversation. */
  readonly leftBy: SessionRecord | null
}

/**
 * Returns the records of a log that are part of the conversation, the oldest first, also those that a compaction has
 * replaced. Branches that `rewind`, `clear` or `undo` left are not in it.
 *
 * @example const log = await readLog(path); if (log.ok) listConversation(log.records.map(({ record }) => record))
 */
export function listConversation(records: readonly SessionRecord[]): readonly KnownRecord[] {
  return listBranchRecords(buildSessionLog(records))
}

/**
 * Implements `session.records`: the records of the conversation, the oldest first, or those of all branches. With
 * `isWhole`, reads large results from the blobs.
 */
export async function listSessionRecords(
  { state, settings }: OpenSession,
  options: RecordsOptions = {},
): Promise<readonly ConversationRecord[]> {
  checkOptionNames('records', options, ['branches', 'isWhole'])
  const { branches = 'current', isWhole = false } = options
  const listed =
    branches === 'all'
      ? markLeftRecords(state.session.records.toArray())
      : listBranchRecords(state.session).map((record) => ({ record, leftBy: null }))
  if (!isWhole) return listed
  const restore = async (record: SessionRecord): Promise<SessionRecord> =>
    isKnownRecord(record) && record.type === 'user' ? restoreSpilledResults(record, settings.blobs) : record
  return Promise.all(listed.map(async ({ record, leftBy }) => ({ record: await restore(record), leftBy })))
}

function markLeftRecords(records: readonly SessionRecord[]): readonly ConversationRecord[] {
  let session = emptySessionLog()
  const leftBy = new Map<number, SessionRecord>()
  for (const record of records) {
    const before = session.branch
    session = appendRecord(session, record)
    if (session.branch.extends(before)) continue
    const kept = new Set(session.branch)
    for (const index of before) if (!kept.has(index)) leftBy.set(index, record)
    for (const index of kept) leftBy.delete(index)
  }
  return records.map((record, index) => ({ record, leftBy: leftBy.get(index) ?? null }))
}

/** What the log has of one compaction, in effect or not. */
export interface SessionCompaction {
  /** When it was made, as an ISO date. */
  readonly at: string
  /** What the user asked the summary to keep; null if nothing. */
  readonly instructions: string | null
  /** The text that the model is shown instead; null if the provider keeps it. */
  readonly summary: string | null
  /** Creates the receipt. Takes a moment in a long session. */
  makeReceipt(): Receipt
}

/** Returns a compaction by the id of its record; null if the log does not have it. */
export function findLoggedCompaction({ state }: OpenSession, id: string): SessionCompaction | null {
  const records = state.session.records.toArray()
  const start = records.findIndex(({ uuid }) => uuid === id)
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
  return texts.length === 0 ? null : texts.join('\n')
}

/** `start` and `end`: range of the compaction's records. `added`: those of them whose kind is known. */
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
  return runStepsAtOnce(
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

/** Returns the index after the last record of the same batch. Without a batch, the index of the next response or prompt. */
function findBatchEnd(records: readonly SessionRecord[], start: number): number {
  const batch = records[start]?.batch?.id
  const isBehind = (record: SessionRecord): boolean =>
    batch === undefined ? record.type === 'assistant' || isPrompt(record) : record.batch?.id !== batch
  const end = records.findIndex((record, index) => index > start && isBehind(record))
  return end === -1 ? records.length : end
}

/** What the part of a session that was copied from another one has cost there. */
export interface CopiedCost {
  /** The id of that session. */
  readonly from: string
  readonly totals: CostTotals
}

/** Returns what the copied part of a session has cost in the session that it was copied from; null if nothing was copied. */
export function sumCopiedCost({ state, model }: OpenSession): CopiedCost | null {
  const copied = state.session.records.toArray().filter(({ forkedFrom }) => forkedFrom !== undefined)
  const from = copied.at(-1)?.forkedFrom?.sessionId
  if (from === undefined) return null
  const originals = copied.map(({ forkedFrom: _, ...record }): SessionRecord => record)
  const cost = runStepsAtOnce(
    updateSessionCost(emptySessionCost(), AppendList.of(originals), model.choice.priceList),
  )
  return { from, totals: sumSessionCost(cost) }
}
