/**
 * Moves the conversation to another branch of the log: back to before a message, to an empty conversation, or back to
 * the branch it came from. Each move is one record; the branch that is left stays in the log.
 */
import { type RefusedRewrite, refuseRewrite, type TurnEvent, type TurnFailure } from '../engine/events.ts'
import { measureContext } from '../engine/measure-context.ts'
import type { NewRecord } from '../engine/ports.ts'
import { NO_COMPACTION_FAILURES, type SessionState } from '../engine/session-state.ts'
import {
  appendLinkedRecords,
  appendRewrite,
  findLastRecordUuid,
  linkRecords,
  reportRewrite,
  type TurnContext,
  type UnlinkedRecord,
} from '../engine/session-writer.ts'
import { isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import {
  type BranchSwitch,
  isBranchSwitch,
  isCompactBoundary,
  isKnownRecord,
  type KnownRecord,
  NEW_CONVERSATION_SUBTYPE,
  type PreservedMessages,
  REWIND_SUBTYPE,
  type SessionRecord,
  type SystemRecord,
} from '../log/record.ts'
import { findRecordIndex, NO_PARENT, requireRecordAt, type SessionLog } from '../log/session-log.ts'

export type SwitchResult =
  | {
      readonly ok: true
      /** uuid of the record of the move. Pass it to `undo` to go back. */
      readonly id: string
      /** uuid of the last record of the branch that was left; null if the session was empty. */
      readonly left: string | null
      /** uuid of the first record that is no longer in the conversation; null for a new conversation. */
      readonly before: string | null
      /** Estimated tokens of the conversation now. */
      readonly tokens: number
    }
  | RefusedRewrite

interface RewindOptions extends Pick<BranchSwitch, 'isWithdrawal'> {
  /** True to repeat later compactions and clearings that have left everything from that record on in the context. */
  readonly keepsRewrites?: boolean
}

/**
 * Goes back to before the record `uuid`, on whichever branch it is, by appending a move. A record in the middle of a
 * response stands for the whole response, and a tool result for the response that made the call.
 */
export async function* rewindBefore(
  turn: TurnContext,
  uuid: string,
  { keepsRewrites = false, isWithdrawal }: RewindOptions = {},
): AsyncGenerator<TurnEvent, SwitchResult> {
  const rewrites = keepsRewrites ? listLaterRewrites(turn.state, uuid) : []
  const end = yield* switchBranch(turn, () => {
    const { session } = turn.state
    const index = findRecordIndex(session, uuid)
    if (index === undefined)
      return refuseRewrite('unknown-record', `The session has no record ${uuid}; nothing was changed.`)
    const start = findMessageStart(session, index)
    const before = requireRecordAt(session, start).uuid ?? null
    const parentUuid = readUuid(session, session.parents.at(start))
    const move: Move = { subtype: REWIND_SUBTYPE, parentUuid, before }
    return isWithdrawal === true ? { ...move, isWithdrawal } : move
  })
  if (!end.ok) return end
  for (const records of rewrites) {
    // If a copy cannot be written, the context stays as it was before that rewrite, and a new rewrite is made if needed.
    const { session } = turn.state
    const branch = new Set(session.branch.toArray().map((at) => requireRecordAt(session, at).uuid))
    // The copy keeps only records that are still on the branch.
    const copies = copyRewrite(turn, records, (uuids) => uuids.filter((each) => branch.has(each)))
    const failure = yield* appendLinkedRecords(turn, copies)
    if (failure !== null) break
  }
  return end
}

/**
 * Lists the records of each rewrite in effect that came after the message of the record `uuid`, oldest first. Empty if
 * one of them removed anything from that message on from the context.
 */
function listLaterRewrites(
  { session, view }: SessionState,
  uuid: string,
): readonly (readonly KnownRecord[])[] {
  const index = findRecordIndex(session, uuid)
  if (index === undefined) return []
  const start = session.branch.toArray().indexOf(findMessageStart(session, index))
  const later = session.branch
    .toArray()
    .slice(Math.max(0, start))
    .map((at) => requireRecordAt(session, at))
  const shown = new Set(view.entries.toArray().map(({ record }) => record.uuid))
  const isShown = ({ type, uuid: id }: SessionRecord): boolean =>
    (type !== 'user' && type !== 'assistant') || shown.has(id ?? '')
  if (start === -1 || !later.every(isShown)) return []
  return view.rewrites
    .filter(({ position }) => position >= start)
    .map(({ batchId, uuid: id }) =>
      later
        .filter(isKnownRecord)
        .filter((record) => record.uuid === id || (batchId !== null && record.batch?.id === batchId)),
    )
}

/** What the copy of a compaction keeps, and how the texts that the compaction added are to be changed. */
interface CompactionCopy {
  /** uuids of the records that stand after the summary. */
  readonly preserved: readonly string[]
  /** uuids of the records that stand last. */
  readonly last: readonly string[]
  readonly changeText: (text: string) => string
}

/**
 * Repeats a compaction of another branch, and the clearings after it, at the end of this branch. `rewrites`: the
 * records of each. If one cannot be written, the context stays as it was before that rewrite.
 */
export async function* repeatCompaction(
  turn: TurnContext,
  [compaction = [], ...clearings]: readonly (readonly KnownRecord[])[],
  { preserved, last, changeText }: CompactionCopy,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const copies = copyRewrite(turn, compaction, (_, list) => (list === 'preserved' ? preserved : last))
  const changed = copies.map((copy) => {
    if (copy.type === 'system') return copy
    const { message, attachment, ...rest } = copy as NewRecord & { message?: unknown; attachment?: unknown }
    return {
      ...rest,
      ...(message === undefined ? {} : { message: changeTexts(message, changeText) }),
      ...(attachment === undefined ? {} : { attachment: changeTexts(attachment, changeText) }),
    } as NewRecord
  })
  let failure = yield* appendLinkedRecords(turn, changed)
  for (const records of clearings)
    failure ??= yield* appendLinkedRecords(
      turn,
      copyRewrite(turn, records, (uuids) => uuids),
    )
  return failure
}

function changeTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => changeTexts(item, change))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, changeTexts(item, change)]))
}

/**
 * Creates copies of the records of a rewrite for the end of the branch; appends nothing. `keep` returns which uuids of a
 * list (`preserved` or `last`) the copy has.
 */
function copyRewrite(
  turn: TurnContext,
  records: readonly KnownRecord[],
  keep: (uuids: readonly string[], list: 'preserved' | 'last') => readonly string[],
): readonly NewRecord[] {
  const copies = linkRecords(
    turn,
    records.map(({ uuid: _, parentUuid: __, seq: ___, batch: ____, ...body }) => body as UnlinkedRecord),
  )
  const renamed = new Map(records.map(({ uuid }, at) => [uuid, copies[at]?.uuid ?? uuid]))
  const summary = records.find(({ isCompactSummary }) => isCompactSummary === true)?.uuid
  const copyKept = (
    kept: PreservedMessages | undefined,
    list: 'preserved' | 'last',
  ): PreservedMessages | undefined => {
    const uuids = keep(kept?.uuids ?? [], list)
    const anchor = kept?.anchorUuid ?? (list === 'last' ? records.at(-1)?.uuid : summary) ?? ''
    return uuids.length === 0 ? undefined : { anchorUuid: renamed.get(anchor) ?? anchor, uuids }
  }
  return copies.map((copy, at) => {
    const record = records[at]
    if (record === undefined || !isCompactBoundary(record)) return copy
    const { preservedMessages, unansweredMessages, ...metadata } = record.compactMetadata ?? {}
    const kept = copyKept(preservedMessages, 'preserved')
    const unanswered = copyKept(unansweredMessages, 'last')
    const compactMetadata = {
      ...metadata,
      ...(kept === undefined ? {} : { preservedMessages: kept }),
      ...(unanswered === undefined ? {} : { unansweredMessages: unanswered }),
    }
    return {
      ...copy,
      parentUuid: null,
      logicalParentUuid: findLastRecordUuid(turn.state),
      compactMetadata,
    } as NewRecord
  })
}

/** Begins a new, empty conversation in the same session. */
export async function* beginNewConversation(turn: TurnContext): AsyncGenerator<TurnEvent, SwitchResult> {
  return yield* switchBranch(turn, () => ({
    subtype: NEW_CONVERSATION_SUBTYPE,
    parentUuid: null,
    before: null,
  }))
}

/**
 * Takes back a move, by going back to the branch that it left; or the undo of a rewrite, by going back to before the
 * undo. Messages since then stay in the log, on their own branch.
 */
export async function* takeBackMove(
  turn: TurnContext,
  record: MoveOrUndoRecord,
): AsyncGenerator<TurnEvent, SwitchResult> {
  return yield* switchBranch(turn, () => ({
    subtype: REWIND_SUBTYPE,
    parentUuid: findReturnPoint(turn.state.session, record),
    before: null,
    of: record.uuid,
  }))
}

/** A move to another branch, or the undo of a compaction or clearing. */
export type MoveOrUndoRecord = BranchSwitch | SystemRecord

/** Returns the uuid of the record that the conversation ends with once the move is taken back; null for none. */
export function findReturnPoint(session: SessionLog, record: MoveOrUndoRecord): string | null {
  if (isBranchSwitch(record)) return record.logicalParentUuid
  const index = findRecordIndex(session, record.uuid)
  return index === undefined ? null : readUuid(session, session.parents.at(index))
}

interface Move {
  readonly subtype: BranchSwitch['subtype']
  readonly parentUuid: string | null
  readonly before: string | null
  readonly of?: string
  readonly isWithdrawal?: boolean
}

/** Appends the move that `plan` returns for the session as it is now. Plans again if another writer appended meanwhile. */
async function* switchBranch(
  turn: TurnContext,
  plan: () => Move | RefusedRewrite,
): AsyncGenerator<TurnEvent, SwitchResult> {
  const prepare = () => {
    const move = plan()
    if ('ok' in move) return move
    const { parentUuid, before, ...fields } = move
    const left = findLastRecordUuid(turn.state)
    const body = { type: 'system' as const, ...fields, isMeta: true, logicalParentUuid: left }
    return { records: linkRecords(turn, [body], parentUuid), subtype: fields.subtype, before, left }
  }
  const wording = { unchanged: 'nothing was changed', advice: 'Try again.' }
  const move = yield* appendRewrite(turn, prepare, wording)
  if ('ok' in move) return move
  const { records, subtype, before, left } = move
  const id = records[0]?.uuid ?? ''
  forgetOldBranch(turn, subtype === NEW_CONVERSATION_SUBTYPE)
  yield { type: 'branch-switched', id, left, before }
  yield reportRewrite(turn, 'rewind')
  return { ok: true, id, left, before, tokens: measureContext(turn.state, turn.host).expected }
}

/** Drops what the engine knows about the branch that was left. A new conversation also computes its prompt anew. */
function forgetOldBranch(turn: TurnContext, isNew: boolean): void {
  const { state } = turn
  const context = state.context === null ? null : { ...state.context, breaker: NO_COMPACTION_FAILURES }
  const kept = { ...state, whenRequested: null, providerEdits: null, freeCompactionFrom: null, context }
  turn.state = isNew ? { ...kept, sectionTexts: new Map() } : kept
}

/** Returns the index of the first record of the message that the record belongs to. */
function findMessageStart(session: SessionLog, index: number): number {
  const record = requireRecordAt(session, index)
  if (!isKnownRecord(record)) return index
  if (record.type === 'assistant') return session.responseStarts.get(record.message.id) ?? index
  if (record.type !== 'user') return index
  const ids = new Set(
    toBlocks(record.message.content).flatMap((block) => (isToolResult(block) ? [block.tool_use_id] : [])),
  )
  // The nearest call counts: a host that went back and sends its list again uses the ids of the branch that it left.
  for (let call = index - 1; ids.size > 0 && call >= 0; call -= 1)
    if (makesCall(requireRecordAt(session, call), ids)) return findMessageStart(session, call)
  return index
}

function makesCall(record: SessionRecord, ids: ReadonlySet<string>): boolean {
  if (!isKnownRecord(record) || record.type !== 'assistant') return false
  return toBlocks(record.message.content).some((block) => isToolUse(block) && ids.has(block.id))
}

function readUuid(session: SessionLog, index: number | undefined): string | null {
  return index === undefined || index <= NO_PARENT ? null : (requireRecordAt(session, index).uuid ?? null)
}
