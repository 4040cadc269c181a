/**
 * Undoes the newest rewrite: restores the context from before it, followed by the records appended since. A move to
 * another branch is undone by going back, and an undo is taken back in the same way. Nothing is deleted from the log.
 */

import { findThinkingResponseIds } from '../context/context-entry.ts'
import { type ContextRewrite, findUndoTarget } from '../context/context-view.ts'
import { type RefusedRewrite, refuseRewrite, type TurnEvent } from '../engine/events.ts'
import { measureContext } from '../engine/measure-context.ts'
import type { NewRecord } from '../engine/ports.ts'
import type { SessionState } from '../engine/session-state.ts'
import {
  appendRewrite,
  linkRecords,
  previewAppend,
  reportRewrite,
  type TurnContext,
  type UnlinkedRecord,
} from '../engine/session-writer.ts'
import { isBranchSwitch, isRewriteBoundary, isUndoRecord, type SessionRecord } from '../log/record.ts'
import { findRecordIndex, requireRecordAt, type SessionLog } from '../log/session-log.ts'
import { type MoveOrUndoRecord, takeBackMove } from './switch-branch.ts'

export interface UndoRewriteOptions {
  /**
   * uuid of the record of the compaction, clearing or move to undo. Default: the newest one. That of an undo takes the undo back.
   */
  readonly id?: string
  /** True to undo even if the restored context exceeds the blocking threshold. */
  readonly force?: boolean
}

export type UndoResult =
  | {
      readonly ok: true
      /** uuid of the record of this undo. Pass it to `undo` to take the undo back. */
      readonly id: string
      /** uuid of the record of what was undone. */
      readonly of: string
      /** `rewind`: the conversation went back to the branch that a `rewind` or `clear` of the session had left. */
      readonly kind: 'compact' | 'clear' | 'rewind'
      /** Estimated tokens of the next request. */
      readonly tokens: number
    }
  | RefusedRewrite

/**
 * Appends a record that undoes a compaction, a clearing or a move. Refuses if there is nothing to undo, if a newer rewrite
 * must be undone first, or if the restored context would exceed the blocking threshold (unless `force`).
 */
export async function* undoRewrite(
  turn: TurnContext,
  options: UndoRewriteOptions,
): AsyncGenerator<TurnEvent, UndoResult> {
  const move = findMoveToUndo(turn.state, options.id)
  if (move !== null) {
    const end = yield* takeBackMove(turn, move)
    return end.ok ? { ok: true, id: end.id, of: move.uuid, kind: 'rewind', tokens: end.tokens } : end
  }
  const wording = { unchanged: 'nothing was undone', advice: 'Try again.' }
  const undo = yield* appendRewrite(turn, () => prepareUndo(turn, options), wording)
  if ('ok' in undo) return undo
  const { uuid, kind } = undo.rewrite
  yield { type: 'undone', of: uuid, kind }
  yield reportRewrite(turn, 'undo')
  return { ok: true, id: undo.records[0]?.uuid ?? '', of: uuid, kind, tokens: undo.tokens }
}

/** Returns the move to another branch, or the undo, that is to be taken back; null if it is a compaction or clearing. */
export function findMoveToUndo(
  { session, view }: Pick<SessionState, 'session' | 'view'>,
  id?: string,
): MoveOrUndoRecord | null {
  if (id !== undefined) return findMove(session, id)
  const newest = findNewestMove(session)
  return newest !== null && newest.position > (view.rewrites.at(-1)?.position ?? -1) ? newest.record : null
}

/** Returns the record of the active branch with this uuid if it is a move, or the undo of a rewrite; otherwise null. */
function findMove(session: SessionLog, uuid: string): MoveOrUndoRecord | null {
  for (const { record } of listMovesBackwards(session)) if (record.uuid === uuid) return record
  return null
}

/**
 * Returns the newest move on the active branch that can be undone, and its place on the branch; null if there is none. To
 * take back an undo is such a move; an undo is not, so that one undo after the other goes further back.
 */
function findNewestMove(
  session: SessionLog,
): { readonly record: MoveOrUndoRecord; readonly position: number } | null {
  for (const move of listMovesBackwards(session)) {
    if (isBranchSwitch(move.record) && move.record.isWithdrawal === true) continue
    if (!isUndo(session, move.record)) return move
  }
  return null
}

/** Returns the newest undo on the active branch; null if there is none, or if a rewrite or another move came after it. */
export function findUndoToTakeBack({
  session,
  view,
}: Pick<SessionState, 'session' | 'view'>): MoveOrUndoRecord | null {
  const rewrittenAt = view.rewrites.at(-1)?.position ?? -1
  for (const { record, position } of listMovesBackwards(session)) {
    if (position < rewrittenAt || record.of === undefined) return null
    if (isUndo(session, record)) return record
  }
  return null
}

function* listMovesBackwards(
  session: SessionLog,
): Generator<{ readonly record: MoveOrUndoRecord; readonly position: number }> {
  const { branch } = session
  for (let position = branch.length - 1; position >= 0; position -= 1) {
    const record = requireRecordAt(session, branch.at(position) ?? 0)
    if (isBranchSwitch(record) || isUndoRecord(record)) yield { record, position }
  }
}

/** Checks whether a move is an undo. To take back an undo is none, and to take that back is one again. */
function isUndo(session: SessionLog, record: MoveOrUndoRecord): boolean {
  let result = false
  let move: SessionRecord | null = record
  while (move !== null && (isBranchSwitch(move) || isUndoRecord(move)) && move.of !== undefined) {
    result = !result
    const at: number = findRecordIndex(session, move.uuid) ?? 0
    const before: number | undefined = findRecordIndex(session, move.of)
    move = before !== undefined && before < at ? requireRecordAt(session, before) : null
  }
  return result
}

interface PreparedUndo {
  readonly rewrite: ContextRewrite
  readonly records: readonly NewRecord[]
  /** Estimated tokens of the request after the undo. */
  readonly tokens: number
}

function prepareUndo(
  turn: TurnContext,
  { id, force = false }: UndoRewriteOptions,
): PreparedUndo | RefusedRewrite {
  const { compaction } = turn.host
  const { state, host } = turn
  const choice = findUndoTarget(state.view, id)
  if (!choice.ok) {
    const { reason, message } = choice
    return refuseRewrite(reason, message, reason === 'not-newest' ? { newest: choice.newest } : {})
  }
  const { act, subtype } = choice
  const body = withLostThinking(turn, act, { type: 'system', subtype, isMeta: true, of: act.uuid })
  const records = linkRecords(turn, [body])
  const next = previewAppend(state, records)
  const later = next.view.entries.toArray(act.replacedEntries.length)
  const added = later.reduce((sum, entry) => sum + compaction.estimator.entry(entry), 0)
  const restored = findSizeBefore(state, act)
  const measured = measureContext(next, host)
  const isKnown = measured.source !== 'estimated' || restored === null
  const tokens = isKnown ? measured.expected : restored + added
  const line = compaction.scaled.known ? compaction.scaled.lines.blocking : null
  if (line === null || tokens < line || force) return { rewrite: act, records, tokens }
  return refuseRewrite(
    'too-large',
    `What would come back has ${tokens} tokens and the blocking line is ${line}. Force it, or switch to a model with a larger window first.`,
  )
}

type UndoBody = Extract<UnlinkedRecord, { readonly type: 'system' }>

/** Adds to the undo record the responses whose thinking becomes invalid, because the undo changes the messages before them. */
function withLostThinking(turn: TurnContext, { replacedEntries }: ContextRewrite, body: UndoBody): UndoBody {
  if (turn.host.profile.thinking.binding !== 'prefix') return body
  const { view } = previewAppend(turn.state, linkRecords(turn, [body]))
  const lost = findThinkingResponseIds(view.entries.toArray(replacedEntries.length))
  return lost.length === 0 ? body : { ...body, clearedThinking: lost }
}

/** Returns the tokens of the context before the compaction or clearing, from its boundary record; null if not recorded there. */
function findSizeBefore({ session, view }: SessionState, act: ContextRewrite): number | null {
  const record = requireRecordAt(session, view.branch.at(act.position) ?? 0)
  if (!isRewriteBoundary(record)) return null
  const metadata = 'compactMetadata' in record ? record.compactMetadata : record.microcompactMetadata
  const tokens = metadata?.preTokens
  return typeof tokens === 'number' && tokens > 0 ? tokens : null
}
