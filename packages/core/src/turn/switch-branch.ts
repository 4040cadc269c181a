/**
 * Moves the conversation to another branch of the log: back to before a message, to an empty conversation, or back to
 * the branch it came from. Each move is one record; the branch that is left stays in the log.
 */
import { type RefusedRewrite, refuseRewrite, type TurnEvent } from '../engine/events.ts'
import { type CompactionServices, runCleanups } from '../engine/host.ts'
import { measureContext } from '../engine/measure-context.ts'
import { NO_COMPACTION_FAILURES } from '../engine/session-state.ts'
import {
  appendLinkedRecords,
  findLastRecordUuid,
  linkRecords,
  refreshSession,
  type TurnContext,
} from '../engine/session-writer.ts'
import { isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import {
  type BranchSwitch,
  isBranchSwitch,
  NEW_CONVERSATION_SUBTYPE,
  REWIND_SUBTYPE,
} from '../log/branch-switch.ts'
import { isKnownRecord, type SessionRecord } from '../log/record.ts'
import { findRecordIndex, NO_PARENT, readRecordAt, type SessionLog } from '../log/session-log.ts'

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

/** Maximum number of attempts while other writers keep appending. */
const MAX_TRIES = 8

/**
 * Goes back to before the record `uuid`, on whichever branch it is. A record in the middle of a response stands for the
 * whole response, and a tool result for the response that made the call.
 */
export async function* rewindTo(
  turn: TurnContext,
  compaction: CompactionServices,
  uuid: string,
): AsyncGenerator<TurnEvent, SwitchResult> {
  return yield* switchBranch(turn, compaction, () => {
    const { session } = turn.state
    const index = findRecordIndex(session, uuid)
    if (index === undefined)
      return refuseRewrite('unknown-record', `The session has no record ${uuid}; nothing was changed.`)
    const start = findMessageStart(session, index)
    const before = readRecordAt(session, start).uuid ?? null
    return { subtype: REWIND_SUBTYPE, parentUuid: readUuid(session, session.parents.at(start)), before }
  })
}

/** Begins a new, empty conversation in the same session. */
export async function* clearConversation(
  turn: TurnContext,
  compaction: CompactionServices,
): AsyncGenerator<TurnEvent, SwitchResult> {
  return yield* switchBranch(turn, compaction, () => ({
    subtype: NEW_CONVERSATION_SUBTYPE,
    parentUuid: null,
    before: null,
  }))
}

/** Goes back to the branch that the move left. What was said since then stays in the log, on its own branch. */
export async function* undoSwitch(
  turn: TurnContext,
  compaction: CompactionServices,
  { uuid, logicalParentUuid }: BranchSwitch,
): AsyncGenerator<TurnEvent, SwitchResult> {
  return yield* switchBranch(turn, compaction, () => ({
    subtype: REWIND_SUBTYPE,
    parentUuid: logicalParentUuid,
    before: null,
    of: uuid,
  }))
}

/** Returns the newest move on the active branch that can be undone, and its place on the branch; null if there is none. */
export function findNewestSwitch(
  session: SessionLog,
): { readonly record: BranchSwitch; readonly position: number } | null {
  const { branch } = session
  for (let position = branch.length - 1; position >= 0; position -= 1) {
    const record = readRecordAt(session, branch.at(position) ?? 0)
    if (isBranchSwitch(record) && record.of === undefined) return { record, position }
  }
  return null
}

interface Move {
  readonly subtype: BranchSwitch['subtype']
  readonly parentUuid: string | null
  readonly before: string | null
  readonly of?: string
}

async function* switchBranch(
  turn: TurnContext,
  compaction: CompactionServices,
  plan: () => Move | RefusedRewrite,
): AsyncGenerator<TurnEvent, SwitchResult> {
  for (let tried = 0; tried < MAX_TRIES; tried += 1) {
    const move = plan()
    if ('ok' in move) return move
    const { subtype, parentUuid, before, of } = move
    const left = findLastRecordUuid(turn.state)
    const body = { type: 'system' as const, subtype, isMeta: true, logicalParentUuid: left }
    const records = linkRecords(turn, [of === undefined ? body : { ...body, of }], parentUuid)
    const failure = yield* appendLinkedRecords(turn, records)
    if (failure === null) {
      const id = records[0]?.uuid ?? ''
      forgetOldBranch(turn, subtype === NEW_CONVERSATION_SUBTYPE)
      yield { type: 'branch-switched', id, left, before }
      const rewritten = { kind: 'rewind' as const, source: turn.host.source, toolUseIds: [], filePaths: [] }
      yield { type: 'rewritten', rewritten, faults: runCleanups(compaction.cleanups ?? [], rewritten) }
      const tokens = measureContext(turn.state, turn.host, compaction).expected
      return { ok: true, id, left, before, tokens }
    }
    if (failure.reason === 'locked')
      return refuseRewrite('locked', 'Another writer holds the session; nothing was changed.')
    if (failure.reason === 'port') return refuseRewrite('port', failure.message)
    await refreshSession(turn)
  }
  return refuseRewrite('superseded', 'Others kept writing to the session; nothing was changed. Try again.')
}

/** Drops what the engine knows about the branch that was left. A new conversation also computes its prompt anew. */
function forgetOldBranch(turn: TurnContext, isNew: boolean): void {
  const { state } = turn
  const context = state.context === null ? null : { ...state.context, breaker: NO_COMPACTION_FAILURES }
  const kept = { ...state, whenRequested: null, providerEdits: null, context }
  turn.state = isNew ? { ...kept, sectionTexts: new Map() } : kept
}

/** Returns the index of the first record of the message that the record belongs to. */
function findMessageStart(session: SessionLog, index: number): number {
  const record = readRecordAt(session, index)
  if (!isKnownRecord(record)) return index
  if (record.type === 'assistant') return session.responseStarts.get(record.message.id) ?? index
  if (record.type !== 'user') return index
  const ids = new Set(
    toBlocks(record.message.content).flatMap((block) => (isToolResult(block) ? [block.tool_use_id] : [])),
  )
  // The nearest call counts: a host that went back and sends its list again uses the ids of the branch that it left.
  for (let call = index - 1; ids.size > 0 && call >= 0; call -= 1)
    if (makesCall(readRecordAt(session, call), ids)) return findMessageStart(session, call)
  return index
}

function makesCall(record: SessionRecord, ids: ReadonlySet<string>): boolean {
  if (!isKnownRecord(record) || record.type !== 'assistant') return false
  return toBlocks(record.message.content).some((block) => isToolUse(block) && ids.has(block.id))
}

function readUuid(session: SessionLog, index: number | undefined): string | null {
  return index === undefined || index <= NO_PARENT ? null : (readRecordAt(session, index).uuid ?? null)
}
