/** A turn under way, and how records are appended to its session: in batches, compared and swapped on the position. */

import type {
  AssistantRecord,
  AttachmentRecord,
  RecordBase,
  SessionRecord,
  SystemRecord,
  UserRecord,
} from '../log/record.ts'
import { NO_PARENT, recordAt } from '../log/session.ts'
import type { TurnEvent, TurnFailure } from './events.ts'
import type { TurnHost } from './host.ts'
import type { NewRecord, Signal } from './ports.ts'
import { applyRecords, readNewRecords, type SessionState } from './session-state.ts'

/** `state` is replaced with everything appended. */
export interface TurnContext {
  state: SessionState
  readonly host: TurnHost
  readonly signal: Signal | undefined
  /** If several turns share one `state`: runs their writes one after the other. */
  readonly writeLock?: WriteLock
}

export type WriteLock = <T>(work: () => Promise<T>) => Promise<T>

/** No other turn that shares the state writes to the session while `work` runs. */
export function withWriteLock<T>({ writeLock }: TurnContext, work: () => Promise<T>): Promise<T> {
  return writeLock === undefined ? work() : writeLock(work)
}

/** A record without its links: the writer adds uuid, parent, time and session. */
export type UnlinkedRecord = WithoutLinks<UserRecord | AssistantRecord | AttachmentRecord | SystemRecord>

type WithoutLinks<R extends RecordBase> = R extends unknown
  ? Omit<R, 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'seq' | 'batch'>
  : never

/** Appends `bodies` as one batch after the last message of the conversation. Null if it succeeded. */
export async function* appendBodies(
  turn: TurnContext,
  bodies: readonly UnlinkedRecord[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  return bodies.length === 0 ? null : yield* appendBatch(turn, () => linkRecords(turn, bodies))
}

/**
 * Appends records that carry their own links, such as a compaction boundary, as one batch. They were created from the
 * present state: if the session has moved on by the time they can be written, that is a conflict.
 */
export async function* appendLinkedRecords(
  turn: TurnContext,
  records: readonly NewRecord[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  return records.length === 0 ? null : yield* appendBatch(turn, () => records, turn.state.position)
}

/** `create` is called under the write lock. `createdAt`: the position that the records require. */
async function* appendBatch(
  turn: TurnContext,
  create: () => readonly NewRecord[],
  createdAt?: number,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const outcome = await withWriteLock(turn, async (): Promise<TurnFailure | readonly SessionRecord[]> => {
    const records = create()
    const { id, position } = turn.state
    const result =
      createdAt === undefined || createdAt === position
        ? await turn.host.journal.append(id, position, records)
        : { ok: false as const, reason: 'conflict' as const, position }
    if (!result.ok) return { ok: false, reason: result.reason, refusal: result, unsaved: records }
    // The state may have changed during the append: build on the present one.
    turn.state = applyRecords(turn.state, result.records, result.position)
    return result.records
  })
  if ('reason' in outcome) return outcome
  yield { type: 'appended', records: outcome }
  return null
}

/** Reads what other writers appended: to be done after a conflict. */
export function refreshSession(turn: TurnContext): Promise<void> {
  return withWriteLock(turn, async () => {
    for (;;) {
      const before = turn.state
      const after = await readNewRecords(turn.host.journal, before)
      if (turn.state !== before) continue
      turn.state = after
      return
    }
  })
}

/** The bodies as records, linked to each other and to `parent`; default: the last record of the conversation. */
export function linkRecords(
  { state, host }: TurnContext,
  bodies: readonly UnlinkedRecord[],
  parent: string | null = findLastUuid(state),
): readonly NewRecord[] {
  const timestamp = new Date(host.clock.now()).toISOString()
  let parentUuid = parent
  return bodies.map((body) => {
    const record = { ...body, uuid: host.ids.next('record'), parentUuid, timestamp, sessionId: state.id }
    parentUuid = record.uuid
    return record
  })
}

/** uuid of the last record of the conversation; null if it is empty. */
export function findLastUuid({ session }: SessionState): string | null {
  return session.newestRecord === NO_PARENT ? null : (recordAt(session, session.newestRecord).uuid ?? null)
}

export function isAborted({ signal }: TurnContext): boolean {
  return signal?.aborted === true
}

/** The session as it would be with `records`, which are not appended: to measure and validate a rewrite. */
export function previewAppend(state: SessionState, records: readonly NewRecord[]): SessionState {
  const of = records.length
  const stamped = records.map(
    (record, index): SessionRecord =>
      ({
        ...record,
        seq: state.position + index + 1,
        batch: { id: PREVIEW_BATCH_ID, index, of },
      }) as SessionRecord,
  )
  return applyRecords(state, stamped, state.position + of)
}

const PREVIEW_BATCH_ID = 'trial'
