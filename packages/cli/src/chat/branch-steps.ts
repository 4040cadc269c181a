/** What /undo, /redo, /rewind and /retry would do to the conversation, found in the log before anything is changed. */
import { buildContextView } from '@tidemark/core/context/context-view'
import { describeToolCall } from '@tidemark/core/facts/tool-calls'
import { readUserTypedText } from '@tidemark/core/facts/user-input'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import {
  isBranchSwitch,
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
  buildSessionLog,
  findRecordIndex,
  listBranchRecords,
  type SessionLog,
} from '@tidemark/core/log/session-log'
import { findNewestUndo, findReturnPoint, type MoveRecord } from '@tidemark/core/turn/switch-branch'
import { findMoveToUndo } from '@tidemark/core/turn/undo'
import { formatClearing } from '../render/describe-event.ts'
import { formatTokens } from '../render/format-numbers.ts'
import { toOneLinePreview } from '../render/text.ts'
import { toScreenText } from '../screen/screen-text.ts'

/** What an undo or redo takes back. */
export interface UndoStep {
  /** The record to pass to `undo`. */
  readonly id: string
  /** As in a sentence: `/clear`, `the compaction (12.7k → 3.1k tokens)`. */
  readonly name: string
  /** Messages of the user since then that leave the context. */
  readonly leaving: number
  /** Tokens of the context that comes back, as the log has them; null if it does not. */
  readonly size: number | null
  /** True if the provider has cleared something since, which stays cleared. */
  readonly hasProviderClearing: boolean
}

/** Returns what /undo would take back; null if there is nothing. `tokens`: the size of the context now. */
export function findUndoStep(records: readonly SessionRecord[], tokens: number): UndoStep | null {
  const session = buildSessionLog(records)
  const view = buildContextView(session)
  const move = findMoveToUndo({ session, view })
  if (move !== null) return describeMove(session, move, nameMove(session, move))
  const rewrite = view.rewrites.at(-1)
  if (rewrite === undefined) return null
  const { uuid: id } = rewrite
  const branch = listBranchRecords(session)
  const later = branch.slice(branch.findIndex(({ uuid }) => uuid === id) + 1)
  return {
    id,
    name: nameRecord(session, id),
    leaving: 0,
    size: findSizeBefore(session, id, tokens),
    hasProviderClearing: later.some(
      (record) =>
        record.type === 'system' &&
        isMicrocompactBoundary(record) &&
        isClearedByProvider(record.microcompactMetadata),
    ),
  }
}

/** Returns the undo that /redo would take back; null if there is none. */
export function findRedoStep(records: readonly SessionRecord[]): UndoStep | null {
  const session = buildSessionLog(records)
  const undo = findNewestUndo({ session, view: buildContextView(session) })
  return undo === null ? null : describeMove(session, undo, nameRecord(session, undo.of ?? undo.uuid))
}

function describeMove(session: SessionLog, move: MoveRecord, name: string): UndoStep {
  const after = new Set(listBranchAfter(session, move).map(({ uuid }) => uuid))
  const movedAt = findRecordIndex(session, move.uuid) ?? 0
  // What the move itself left or brought back is no surprise; what was said since then may be.
  const leaving = listBranchRecords(session).filter(
    (record) =>
      isPrompt(record) && !after.has(record.uuid) && (findRecordIndex(session, record.uuid) ?? 0) > movedAt,
  )
  return {
    id: move.uuid,
    name,
    leaving: leaving.length,
    size: findRecordedSize(listBranchAfter(session, move)),
    hasProviderClearing: false,
  }
}

/** Returns the records of the branch that the conversation would be on if a move were taken back. */
function listBranchAfter(session: SessionLog, move: MoveRecord): readonly KnownRecord[] {
  const uuid = `${move.uuid}-taken-back`
  const back: SessionRecord = {
    ...move,
    subtype: 'conversation_rewound',
    uuid,
    parentUuid: findReturnPoint(session, move),
  }
  return listBranchRecords(appendRecord(session, back), uuid)
}

/** Names a move; for one that took back an undo, what is undone with it again. */
function nameMove(session: SessionLog, move: MoveRecord): string {
  if (move.of !== undefined) return nameRecord(session, move.of)
  if (move.subtype === 'conversation_cleared') return '/clear'
  const here = new Set(listBranchRecords(session).map(({ uuid }) => uuid))
  const first = listBranchAfter(session, move).find((record) => isPrompt(record) && !here.has(record.uuid))
  return first === undefined ? '/rewind' : `/rewind to before “${toOneLinePreview(readTypedText(first), 60)}”`
}

/** Names a rewrite or move by its record. For an undo, names what was undone. */
function nameRecord(session: SessionLog, uuid: string): string {
  const index = findRecordIndex(session, uuid)
  const record = index === undefined ? undefined : session.records.at(index)
  if (record === undefined || !isKnownRecord(record) || record.type !== 'system') return 'it'
  if (record.of !== undefined) return nameRecord(session, record.of)
  if (isCompactBoundary(record)) {
    const { preTokens, postTokens } = record.compactMetadata
    const after = postTokens === undefined ? '' : ` → ${formatTokens(postTokens)}`
    return `the compaction (${formatTokens(preTokens)}${after} tokens)`
  }
  if (isMicrocompactBoundary(record)) {
    const what = formatClearing(record.microcompactMetadata, 0)
    return `the clearing (${what.charAt(0).toLowerCase()}${what.slice(1)})`
  }
  if (!isBranchSwitch(record)) return 'it'
  return record.subtype === 'conversation_cleared' ? '/clear' : '/rewind'
}

/** Returns the tokens of the context without a rewrite that is in effect; null if its record has no figures. */
function findSizeBefore(session: SessionLog, uuid: string, tokens: number): number | null {
  const record = session.records.at(findRecordIndex(session, uuid) ?? 0)
  if (record === undefined || !isKnownRecord(record) || record.type !== 'system') return null
  if (isMicrocompactBoundary(record)) return tokens + record.microcompactMetadata.tokensSaved
  if (!isCompactBoundary(record)) return null
  const { preTokens, postTokens } = record.compactMetadata
  return preTokens + Math.max(0, tokens - (postTokens ?? tokens))
}

/** Returns the tokens of the context at the end of these records, by the last response or rewrite that has a figure. */
function findRecordedSize(records: readonly KnownRecord[]): number | null {
  for (const record of records.toReversed()) {
    if (record.type === 'system' && isCompactBoundary(record))
      return record.compactMetadata.postTokens ?? null
    if (record.type === 'system' && record.subtype?.endsWith('_undone') === true) return null
    if (record.type !== 'assistant' || record.message.usage === undefined) continue
    const { input_tokens = 0, output_tokens = 0, ...cached } = record.message.usage
    const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = cached
    return input_tokens + output_tokens + (read ?? 0) + (written ?? 0)
  }
  return null
}

/** A message of the user that /rewind can go back to before. */
export interface ListedPrompt {
  readonly uuid: string
  readonly text: string
  /** True if it lies before the newest compaction: going back takes the compaction back as well. */
  readonly isCompacted: boolean
}

/** Returns the messages of the user in the conversation, also those before a compaction, the oldest first. */
export function listBranchPrompts(records: readonly SessionRecord[]): readonly ListedPrompt[] {
  const session = buildSessionLog(records)
  const { rewrites } = buildContextView(session)
  const compaction = rewrites.findLast(({ kind }) => kind === 'compact')?.uuid
  const branch = listBranchRecords(session)
  const compactedAt = branch.findIndex(({ uuid }) => uuid === compaction)
  return branch.flatMap((record, index) => {
    const text = readTypedText(record)
    return isPrompt(record) && text !== ''
      ? [{ uuid: record.uuid, text, isCompacted: index < compactedAt }]
      : []
  })
}

function readTypedText(record: KnownRecord): string {
  return toScreenText(readUserTypedText(record) ?? '').trim()
}

/** Returns the files that calls of the conversation have changed from a record on. Commands may have changed more. */
export function listChangedFiles(records: readonly SessionRecord[], from: string): readonly string[] {
  const branch = listBranchRecords(buildSessionLog(records))
  const calls = branch
    .slice(branch.findIndex(({ uuid }) => uuid === from))
    .flatMap((record) =>
      record.type === 'assistant' ? toBlocks(record.message.content).filter(isToolUse) : [],
    )
  const files = calls.flatMap(({ name, input }) => {
    const { touches } = describeToolCall(name, input)
    return touches.flatMap(({ path, action }) => (action === 'read' ? [] : [path]))
  })
  return [...new Set(files)]
}

/**
 * Checks whether the last turn has not ended: the last message of the conversation is one of the user, the result of a
 * tool, or an answer that calls a tool or broke off. Summaries and what programs write do not count, so a compaction
 * after the end changes nothing.
 */
export function isTurnInterrupted(records: readonly SessionRecord[]): boolean {
  const last = listBranchRecords(buildSessionLog(records)).findLast(
    (record) =>
      (record.type === 'assistant' || record.type === 'user') &&
      record.isCompactSummary !== true &&
      (record.isMeta !== true || hasToolResult(record)),
  )
  if (last?.type === 'assistant')
    return last.isInterrupted === true || toBlocks(last.message.content).some(isToolUse)
  return last !== undefined
}

function hasToolResult(record: KnownRecord): boolean {
  return record.type === 'user' && toBlocks(record.message.content).some(isToolResult)
}
