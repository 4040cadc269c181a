/** Finds the entries that a compaction kept unchanged: messages after its pivot, pinned records, and unanswered ones. */
import type { AppendList } from '../log/persistent-collections.ts'
import {
  type CompactBoundary,
  isKnownRecord,
  type PreservedMessages,
  type PreservedSegment,
} from '../log/record.ts'
import { findRecordIndex, readRecordAt, type SessionLog } from '../log/session-log.ts'
import { type ContextEntry, withoutThinking } from './context-entry.ts'

/** Entries that a compaction kept, with the uuid of the record after which they are inserted (the anchor). */
export interface AnchoredEntries {
  readonly anchor: string
  readonly entries: readonly ContextEntry[]
}

interface KeptRecords {
  readonly anchored: readonly AnchoredEntries[]
  /** uuids of records that the compaction should have kept but that are not in the log. */
  readonly missing: readonly string[]
}

/**
 * Returns each record that the compaction kept, with the clearings that the context had applied to it. A record that
 * was not in the context is read from the log, without clearings.
 */
export function collectKeptRecords(
  boundary: CompactBoundary,
  before: AppendList<ContextEntry>,
  session: SessionLog,
): KeptRecords {
  const metadata = boundary.compactMetadata
  const kept = metadata?.preservedMessages ?? toPreservedMessages(before, metadata?.preservedSegment)
  const lists = [kept, metadata?.unansweredMessages].filter((list) => list != null)
  const shown = new Map([...before].map((entry) => [entry.record.uuid, entry]))
  const missing: string[] = []
  const seen = new Set<string>()
  const anchored = lists.map(({ anchorUuid, uuids }) => {
    const unique = uuids.filter((uuid) => !seen.has(uuid) && seen.add(uuid))
    const entries = unique.flatMap((uuid) => {
      const entry = shown.get(uuid) ?? findEntryInLog(uuid, session)
      if (entry === undefined) missing.push(uuid)
      return entry ?? []
    })
    return { anchor: anchorUuid, entries: withoutThinking(entries, metadata?.clearedThinking) }
  })
  return { anchored: anchored.filter(({ entries }) => entries.length > 0), missing }
}

function toPreservedMessages(
  before: AppendList<ContextEntry>,
  segment: PreservedSegment | undefined,
): PreservedMessages | undefined {
  if (segment == null) return undefined
  const { anchorUuid, headUuid, tailUuid } = segment
  const uuids = [...before].map((entry) => entry.record.uuid)
  const head = uuids.indexOf(headUuid)
  const tail = uuids.lastIndexOf(tailUuid)
  if (head !== -1 && tail >= head) return { anchorUuid, uuids: uuids.slice(head, tail + 1) }
  // The preserved segment comes from a log that other programs may have written, so values that are not strings are
  // ignored.
  return { anchorUuid, uuids: [headUuid, tailUuid].filter((uuid) => typeof uuid === 'string') }
}

function findEntryInLog(uuid: string, session: SessionLog): ContextEntry | undefined {
  const index = findRecordIndex(session, uuid)
  const record = index === undefined ? undefined : readRecordAt(session, index)
  return index === undefined || record === undefined || !isKnownRecord(record) ? undefined : { record, index }
}
