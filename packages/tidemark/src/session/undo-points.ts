/** Finds in the log what `undo` can undo, and which undo can itself be undone. Nothing is changed. */
import {
  isClearedByProvider,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
import {
  appendRecord,
  findRecordIndex,
  listBranchRecords,
  type SessionLog,
} from '@tidemark/core/log/session-log'
import { readReportedContextTokens, readReportedOutputTokens } from '@tidemark/core/tokens/usage'
import { findReturnPoint, type MoveOrUndoRecord } from '@tidemark/core/turn/switch-branch'
import { findMoveToUndo, findUndoToTakeBack } from '@tidemark/core/turn/undo'
import { measureContextRemaining } from './context-usage.ts'
import type { OpenSession } from './open-session.ts'

/** A compaction, clearing or move that `undo` can take back. */
interface UndoPoint {
  /** The id to pass to `undo`. */
  readonly id: string
  /** The record of the compaction, clearing or move. For an undo, the record of what it undid. */
  readonly record: SessionRecord
  /** The first prompt that returns if a `rewind` is undone; null for other points. */
  readonly returning: SessionRecord | null
  /** Number of prompts since the point that leave the context. */
  readonly leaving: number
  /** Approximate tokens of the context after the undo; null if the log does not tell. */
  readonly tokens: number | null
  /** True if the provider cleared content after the point. It stays cleared. */
  readonly hasProviderClearing: boolean
}

export interface UndoPoints {
  /** What `undo` without an id undoes; null if there is nothing. */
  readonly undo: UndoPoint | null
  /** The newest undo, which `undo` with its id undoes; null if there is none. */
  readonly redo: UndoPoint | null
  /** The compactions and clearings that are in effect, by the ids of their records, the oldest first. */
  readonly inEffect: readonly { readonly id: string; readonly kind: 'compact' | 'clear' }[]
}

/** Implements `session.undoPoints`. */
export function findUndoPoints(open: OpenSession): UndoPoints {
  const { session, view } = open.state
  const undone = findUndoToTakeBack({ session, view })
  return {
    undo: findUndoPoint(open),
    redo: undone === null ? null : describeMove(session, undone),
    inEffect: view.rewrites.map(({ uuid, kind }) => ({ id: uuid, kind })),
  }
}

function findUndoPoint(open: OpenSession): UndoPoint | null {
  const { session, view } = open.state
  const move = findMoveToUndo({ session, view })
  if (move !== null) return { ...describeMove(session, move), returning: findReturningPrompt(session, move) }
  const id = view.rewrites.at(-1)?.uuid
  const record = id === undefined ? null : findRecord(session, id)
  if (id === undefined || record === null) return null
  const branch = listBranchRecords(session)
  const later = branch.slice(branch.findIndex(({ uuid }) => uuid === id) + 1)
  return {
    id,
    record,
    returning: null,
    leaving: 0,
    tokens: findSizeBefore(record, measureContextRemaining(open).tokens),
    hasProviderClearing: later.some(
      (each) => isMicrocompactBoundary(each) && isClearedByProvider(each.microcompactMetadata),
    ),
  }
}

function describeMove(session: SessionLog, move: MoveOrUndoRecord): UndoPoint {
  const back = listBranchAfter(session, move)
  const after = new Set(back.map(({ uuid }) => uuid))
  const movedAt = findRecordIndex(session, move.uuid) ?? 0
  // Messages that the move itself left or brought back are not counted, only those written since.
  const leaving = listBranchRecords(session).filter(
    (record) =>
      isPrompt(record) && !after.has(record.uuid) && (findRecordIndex(session, record.uuid) ?? 0) > movedAt,
  )
  return {
    id: move.uuid,
    record: findUndone(session, move),
    returning: null,
    leaving: leaving.length,
    tokens: findRecordedSize(back),
    hasProviderClearing: false,
  }
}

/** Returns the first prompt that returns if a `rewind` is undone; null for other moves. */
function findReturningPrompt(session: SessionLog, move: MoveOrUndoRecord): SessionRecord | null {
  if (move.of !== undefined || move.subtype === 'conversation_cleared') return null
  const here = new Set(listBranchRecords(session).map(({ uuid }) => uuid))
  return listBranchAfter(session, move).find((each) => isPrompt(each) && !here.has(each.uuid)) ?? null
}

/** Returns the records of the branch that becomes current if a move is undone. */
function listBranchAfter(session: SessionLog, move: MoveOrUndoRecord): readonly KnownRecord[] {
  const uuid = `${move.uuid}-taken-back`
  const back: SessionRecord = {
    ...move,
    subtype: 'conversation_rewound',
    uuid,
    parentUuid: findReturnPoint(session, move),
  }
  return listBranchRecords(appendRecord(session, back), uuid)
}

/** Follows an undo to what it undid. */
function findUndone(session: SessionLog, record: SessionRecord): SessionRecord {
  const { of } = record as { readonly of?: string }
  const undone = of === undefined ? null : findRecord(session, of)
  return undone === null ? record : findUndone(session, undone)
}

function findRecord(session: SessionLog, uuid: string): SessionRecord | null {
  const index = findRecordIndex(session, uuid)
  return index === undefined ? null : (session.records.at(index) ?? null)
}

/** Returns the tokens of the context if a rewrite were undone; null if its record has no sizes. */
function findSizeBefore(record: SessionRecord, tokens: number): number | null {
  if (!isKnownRecord(record)) return null
  if (isMicrocompactBoundary(record)) return tokens + record.microcompactMetadata.tokensSaved
  if (!isCompactBoundary(record)) return null
  const { preTokens, postTokens } = record.compactMetadata
  return preTokens + Math.max(0, tokens - (postTokens ?? tokens))
}

/** Returns the tokens of the context after these records, from the last response or rewrite that recorded a size. */
function findRecordedSize(records: readonly KnownRecord[]): number | null {
  for (const record of records.toReversed()) {
    if (isCompactBoundary(record)) return record.compactMetadata.postTokens ?? null
    if (record.type === 'system' && record.subtype?.endsWith('_undone') === true) return null
    if (record.type !== 'assistant' || record.usage === undefined) continue
    return readReportedContextTokens(record.usage) + readReportedOutputTokens(record.usage)
  }
  return null
}
