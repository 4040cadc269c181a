/** Plans the repaired copy of a log in one pass over its records: which lines are copied, changed, left out or added. */
import { createInterruptedResult } from '@tidemark/core/context/message-repair'
import type { IdGenerator } from '@tidemark/core/engine/ports'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord, type SessionRecord, type UserRecord } from '@tidemark/core/log/record'
import {
  appendRecord,
  emptySessionLog,
  requireRecordAt,
  type SessionLog,
} from '@tidemark/core/log/session-log'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'

/** New values for fields of a record, to be written to the repaired copy of a log. */
export interface RecordIdChange {
  readonly uuid?: string
  readonly parentUuid?: string | null
}

export interface RepairPlan {
  /** Numbers of the lines whose record is copied to the repaired log. */
  readonly copiedLines: ReadonlySet<number>
  readonly changes: ReadonlyMap<number, RecordIdChange>
  /**
   * Records to add to the repaired log, keyed by the number of the line before them. They are results for tool calls
   * that have none.
   */
  readonly additions: ReadonlyMap<number, readonly UserRecord[]>
  /** Descriptions of the repairs, each with its line number. */
  readonly repairs: readonly LineRepair[]
  /** Numbers of the lines that repeat an earlier record. */
  readonly duplicateLines: readonly number[]
}

export interface LineRepair {
  readonly line: number
  readonly what: string
}

interface RepairPlanner {
  take(read: RecordWithLine): void
  plan(): RepairPlan
}

interface PlanState {
  session: SessionLog
  readonly counted: Set<number>
  readonly changes: Map<number, RecordIdChange>
  readonly repairs: LineRepair[]
  readonly copies: number[]
  /** New uuids for records whose uuid is already in use, keyed by the index of the record in the session. */
  readonly renamed: Map<number, string>
  /** Records that contain a tool call, keyed by the id of the call. */
  readonly calls: Map<string, RecordWithLine>
  readonly answered: Set<string>
  /**
   * The last line of each response, keyed by response id. If that line belongs to a batch, the last line of the batch.
   */
  readonly ends: Map<string, number>
}

/** Creates the planner. `take` gets all records in order; then `plan` is called once. `ids`: for new uuids. */
export function createRepairPlanner(ids: IdGenerator): RepairPlanner {
  const planning: PlanState = {
    session: emptySessionLog(),
    counted: new Set(),
    changes: new Map(),
    repairs: [],
    copies: [],
    renamed: new Map(),
    calls: new Map(),
    answered: new Set(),
    ends: new Map(),
  }
  return { take: (read) => takeRecord(planning, read, ids), plan: () => finishPlan(planning, ids) }
}

/** Stands for the parent index of a record that is not part of the conversation. */
const OUTSIDE = -2

function takeRecord(planning: PlanState, read: RecordWithLine, ids: IdGenerator): void {
  const { record, line } = read
  const { damage, records } = planning.session
  planning.session = appendRecord(planning.session, record, line)
  const kinds = planning.session.damage.toArray(damage.length).map(({ kind }) => kind)
  const parent = planning.session.parents.at(records.length) ?? OUTSIDE
  const isDuplicate = kinds.includes('duplicate-uuid')
  if (isDuplicate && parent === OUTSIDE && record.batch == null) {
    planning.copies.push(line)
    return
  }
  planning.counted.add(line)
  if (isDuplicate && parent !== OUTSIDE) {
    const uuid = ids.next('record')
    planning.renamed.set(records.length, uuid)
    change(planning, line, { uuid }, 'its uuid was in use already; it got a new one')
  }
  if (kinds.includes('missing-parent') || kinds.includes('cyclic-parent'))
    change(
      planning,
      line,
      { parentUuid: uuidAt(planning, parent) },
      parent < 0 ? PARENT_LOST_AT_START : PARENT_LOST,
    )
  if (record.isSidechain !== true) noteCalls(planning, read)
}

const PARENT_LOST = 'its parent does not come before it; it was linked to the previous record'
const PARENT_LOST_AT_START = 'its parent is not in the log; it is now the first record, without a parent'

function uuidAt(planning: PlanState, index: number): string | null {
  if (index < 0) return null
  return planning.renamed.get(index) ?? requireRecordAt(planning.session, index).uuid ?? null
}

function change(planning: PlanState, line: number, fields: RecordIdChange, what: string): void {
  planning.changes.set(line, { ...planning.changes.get(line), ...fields })
  planning.repairs.push({ line, what })
}

function noteCalls(planning: PlanState, read: RecordWithLine): void {
  const { record } = read
  if (!isKnownRecord(record) || (record.type !== 'user' && record.type !== 'assistant')) return
  for (const block of toBlocks(record.message.content)) {
    if (isToolUse(block) && record.type === 'assistant') planning.calls.set(block.id, read)
    if (isToolResult(block)) planning.answered.add(block.tool_use_id)
  }
  if (record.type === 'assistant') planning.ends.set(record.message.id, endOfBatch(read))
}

/** Returns the number of the last line of a record's batch. The records of a batch are on consecutive lines. */
function endOfBatch({ record: { batch }, line }: RecordWithLine): number {
  return batch == null ? line : line + batch.of - 1 - batch.index
}

function finishPlan(planning: PlanState, ids: IdGenerator): RepairPlan {
  const additions = new Map<number, readonly UserRecord[]>()
  for (const [id, { record, line }] of planning.calls) {
    if (planning.answered.has(id) || !isKnownRecord(record) || record.type !== 'assistant') continue
    const end = planning.ends.get(record.message.id) ?? line
    additions.set(end, [...(additions.get(end) ?? []), createMissingResult(record, id, ids)])
  }
  const { counted, changes, repairs, copies } = planning
  return { copiedLines: counted, changes, additions, repairs, duplicateLines: copies }
}

/** Fields that Claude Code writes on every line of a log and may expect when it reads the log. */
const CONTEXT_FIELDS = ['cwd', 'version', 'gitBranch', 'userType']

function createMissingResult(
  call: SessionRecord & { readonly uuid: string },
  id: string,
  ids: IdGenerator,
): UserRecord {
  const context = Object.entries(call).filter(([field]) => CONTEXT_FIELDS.includes(field))
  return {
    ...Object.fromEntries(context),
    type: 'user',
    uuid: ids.next('record'),
    parentUuid: call.uuid,
    timestamp: call.timestamp ?? '',
    sessionId: call.sessionId ?? '',
    isSidechain: false,
    message: { role: 'user', content: [createInterruptedResult(id)] },
  }
}
