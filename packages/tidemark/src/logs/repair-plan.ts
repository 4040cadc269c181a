/** What a clean copy of a log has to do with each of its lines. Found by folding the log once. */
import {
  blocksOf,
  emptySession,
  type Ids,
  isKnown,
  isToolResult,
  isToolUse,
  missingResult,
  recordAt,
  reduce,
  type Session,
  type SessionRecord,
  type UserRecord,
} from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'

/** How a line that counts is written: only what is named changes. */
export interface LineChange {
  readonly uuid?: string
  readonly parentUuid?: string | null
}

export interface RepairPlan {
  /** Lines that hold a record of the copy. */
  readonly counted: ReadonlySet<number>
  readonly changes: ReadonlyMap<number, LineChange>
  /** Records to write behind a line: answers to calls that never got one. */
  readonly additions: ReadonlyMap<number, readonly UserRecord[]>
  /** What was mended, line by line. */
  readonly mended: readonly Mend[]
  /** Records that say again what another with the same uuid has said. */
  readonly copies: readonly number[]
}

export interface Mend {
  readonly line: number
  readonly what: string
}

export interface RepairPlanner {
  take(read: ReadRecord): void
  plan(): RepairPlan
}

interface Planning {
  session: Session
  readonly counted: Set<number>
  readonly changes: Map<number, LineChange>
  readonly mended: Mend[]
  readonly copies: number[]
  /** Place in the session → the uuid that the record there has in the copy, where that is another. */
  readonly renamed: Map<number, string>
  /** Call → the record that makes it. */
  readonly calls: Map<string, ReadRecord>
  readonly answered: Set<string>
  /** Response → the last line of it, or of the batch that line belongs to. */
  readonly ends: Map<string, number>
}

export function createRepairPlanner(ids: Ids): RepairPlanner {
  const planning: Planning = {
    session: emptySession(),
    counted: new Set(),
    changes: new Map(),
    mended: [],
    copies: [],
    renamed: new Map(),
    calls: new Map(),
    answered: new Set(),
    ends: new Map(),
  }
  return { take: (read) => takeRecord(planning, read, ids), plan: () => planOf(planning, ids) }
}

const OUTSIDE = -2

function takeRecord(planning: Planning, read: ReadRecord, ids: Ids): void {
  const { record, line } = read
  const { damage, records } = planning.session
  planning.session = reduce(planning.session, record, line)
  const kinds = planning.session.damage.toArray(damage.length).map(({ kind }) => kind)
  const parent = planning.session.parents.at(records.length) ?? OUTSIDE
  const isTwin = kinds.includes('duplicate-uuid')
  if (isTwin && parent === OUTSIDE && record.batch == null) {
    planning.copies.push(line)
    return
  }
  planning.counted.add(line)
  if (isTwin && parent !== OUTSIDE) rename(planning, { index: records.length, line }, ids.next('record'))
  if (kinds.includes('missing-parent') || kinds.includes('cyclic-parent'))
    change(planning, line, { parentUuid: uuidAt(planning, parent) }, PARENT_LOST)
  if (record.isSidechain !== true) noteCalls(planning, read)
}

const PARENT_LOST = 'its parent was not before it; it follows the record before it'

function rename(
  planning: Planning,
  { index, line }: { readonly index: number; readonly line: number },
  uuid: string,
): void {
  planning.renamed.set(index, uuid)
  change(planning, line, { uuid }, 'its uuid was taken')
}

function uuidAt(planning: Planning, index: number): string | null {
  if (index < 0) return null
  return planning.renamed.get(index) ?? recordAt(planning.session, index).uuid ?? null
}

function change(planning: Planning, line: number, fields: LineChange, what: string): void {
  planning.changes.set(line, { ...planning.changes.get(line), ...fields })
  planning.mended.push({ line, what })
}

function noteCalls(planning: Planning, read: ReadRecord): void {
  const { record } = read
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return
  for (const block of blocksOf(record.message.content)) {
    if (isToolUse(block) && record.type === 'assistant') planning.calls.set(block.id, read)
    if (isToolResult(block)) planning.answered.add(block.tool_use_id)
  }
  if (record.type === 'assistant') planning.ends.set(record.message.id, endOfBatch(read))
}

/** The records of a batch stand together. */
function endOfBatch({ record: { batch }, line }: ReadRecord): number {
  return batch == null ? line : line + batch.of - 1 - batch.index
}

function planOf(planning: Planning, ids: Ids): RepairPlan {
  const additions = new Map<number, readonly UserRecord[]>()
  for (const [id, { record, line }] of planning.calls) {
    if (planning.answered.has(id) || !isKnown(record) || record.type !== 'assistant') continue
    const end = planning.ends.get(record.message.id) ?? line
    additions.set(end, [...(additions.get(end) ?? []), answerTo(record, id, ids)])
  }
  const { counted, changes, mended, copies } = planning
  return { counted, changes, additions, mended, copies }
}

/** What Claude Code writes on every line; its reader may look for them. */
const SURROUNDINGS = ['cwd', 'version', 'gitBranch', 'userType']

function answerTo(call: SessionRecord & { readonly uuid: string }, id: string, ids: Ids): UserRecord {
  const around = Object.entries(call).filter(([field]) => SURROUNDINGS.includes(field))
  return {
    ...Object.fromEntries(around),
    type: 'user',
    uuid: ids.next('record'),
    parentUuid: call.uuid,
    timestamp: call.timestamp ?? '',
    sessionId: call.sessionId ?? '',
    isSidechain: false,
    message: { role: 'user', content: [missingResult(id)] },
  }
}
