/** What /undo, /redo, /rewind and /retry would do to the conversation, found in the log before anything is changed. */

import { formatClearing } from '@tidemark/terminal/render/describe-event'
import { formatTokens } from '@tidemark/terminal/render/format-numbers'
import { toOneLinePreview } from '@tidemark/terminal/render/text'
import type { Session } from 'tidemark'
import {
  describeToolCall,
  isBranchSwitch,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isPrompt,
  isToolResult,
  isToolUse,
  type KnownRecord,
  listConversation,
  readUserTypedText,
  type SessionRecord,
  toBlocks,
} from 'tidemark/records'
import { toScreenText } from '../screen/screen-text.ts'

/** What an undo or redo would take back, with a name for use in sentences: `/clear`, `the compaction (12.7k → 3.1k tokens)`. */
export type UndoStep = NonNullable<ReturnType<Session['undoPoints']>['undo']> & { readonly name: string }

/** Returns what /undo would undo; null if there is nothing. */
export function findUndoStep(session: Session): UndoStep | null {
  return nameStep(session.undoPoints().undo)
}

/** Returns the undo that /redo would undo; null if there is none. */
export function findRedoStep(session: Session): UndoStep | null {
  return nameStep(session.undoPoints().redo)
}

function nameStep(point: ReturnType<Session['undoPoints']>['undo']): UndoStep | null {
  if (point === null) return null
  const { record, returning } = point
  const text = returning === null ? '' : toOneLinePreview(readTypedText(returning), 60)
  return { ...point, name: text === '' ? nameRecord(record) : `/rewind to before “${text}”` }
}

function nameRecord(record: SessionRecord): string {
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

/** A user message before which /rewind can go back. */
export interface BranchPrompt {
  readonly uuid: string
  readonly text: string
  /** True if the message is before the newest compaction. Going back to it also undoes the compaction. */
  readonly isCompacted: boolean
}

/** Returns the user messages of the conversation that have typed text, including those before a compaction, oldest first. */
export async function listBranchPrompts(session: Session): Promise<readonly BranchPrompt[]> {
  const branch = await session.records()
  const compaction = session.undoPoints().inEffect.findLast(({ kind }) => kind === 'compact')?.id
  const compactedAt = branch.findIndex(({ record }) => record.uuid === compaction)
  return branch.flatMap(({ record }, index) => {
    const text = readTypedText(record)
    return isPrompt(record) && text !== ''
      ? [{ uuid: record.uuid, text, isCompacted: index < compactedAt }]
      : []
  })
}

function readTypedText(record: SessionRecord): string {
  return toScreenText(readUserTypedText(record) ?? '').trim()
}

/** Returns the files that tool calls have changed since a record. Shell commands may have changed others. */
export async function listFilesChangedSince(session: Session, from: string): Promise<readonly string[]> {
  const branch = (await session.records()).map(({ record }) => record)
  const calls = branch
    .slice(branch.findIndex(({ uuid }) => uuid === from))
    .flatMap((record) =>
      isKnownRecord(record) && record.type === 'assistant'
        ? toBlocks(record.message.content).filter(isToolUse)
        : [],
    )
  const files = calls.flatMap(({ name, input }) => {
    const { touches } = describeToolCall(name, input)
    return touches.flatMap(({ path, action }) => (action === 'read' ? [] : [path]))
  })
  return [...new Set(files)]
}

/**
 * Returns true if the last turn did not end: the last message is one of the user, a tool result, or a response that calls a tool
 * or broke off. Summaries and texts of programs are ignored, so a compaction after the end of the turn changes nothing.
 */
export function isTurnInterrupted(records: readonly SessionRecord[]): boolean {
  const last = listConversation(records).findLast(
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
