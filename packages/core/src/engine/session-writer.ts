/** A turn under way, and how records are appended to its session: in batches, compared and swapped on the position. */

import type {
  AssistantRecord,
  AttachmentRecord,
  RecordBase,
  SessionRecord,
  SystemRecord,
  UserRecord,
} from '../log/record.ts'
import { ROOT, recordAt } from '../log/session.ts'
import type { Halt, TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import type { NewRecord, Signal } from './ports.ts'
import { catchUp, type SessionState, withRecords } from './session-state.ts'

/** `state` is replaced with everything appended. */
export interface TurnRun {
  state: SessionState
  readonly host: TurnHost
  readonly signal: Signal | undefined
  /** If several turns share one `state`: runs their writes one after the other. */
  readonly alone?: Alone
}

export type Alone = <T>(work: () => Promise<T>) => Promise<T>

/** No other turn that shares the state writes to the session while `work` runs. */
export function aloneOn<T>({ alone }: TurnRun, work: () => Promise<T>): Promise<T> {
  return alone === undefined ? work() : alone(work)
}

/** A record without its links: the writer adds uuid, parent, time and session. */
export type Unlinked = Body<UserRecord | AssistantRecord | AttachmentRecord | SystemRecord>

type Body<R extends RecordBase> = R extends unknown
  ? Omit<R, 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'seq' | 'batch'>
  : never

/** Appends `bodies` as one batch after the last message of the conversation. Null if it succeeded. */
export async function* append(
  turn: TurnRun,
  bodies: readonly Unlinked[],
): AsyncGenerator<TurnEvent, Halt | null> {
  return bodies.length === 0 ? null : yield* appendBatch(turn, () => linked(turn, bodies))
}

/**
 * Appends records that carry their own links, such as a compaction boundary, as one batch. They were created from the
 * present state: if the session has moved on by the time they can be written, that is a conflict.
 */
export async function* appendRecords(
  turn: TurnRun,
  records: readonly NewRecord[],
): AsyncGenerator<TurnEvent, Halt | null> {
  return records.length === 0 ? null : yield* appendBatch(turn, () => records, turn.state.position)
}

/** `create` is called under the write lock. `createdAt`: the position that the records require. */
async function* appendBatch(
  turn: TurnRun,
  create: () => readonly NewRecord[],
  createdAt?: number,
): AsyncGenerator<TurnEvent, Halt | null> {
  const outcome = await aloneOn(turn, async (): Promise<Halt | readonly SessionRecord[]> => {
    const records = create()
    const { id, position } = turn.state
    const result =
      createdAt === undefined || createdAt === position
        ? await turn.host.journal.append(id, position, records)
        : { ok: false as const, reason: 'conflict' as const, position }
    if (!result.ok) return { ok: false, reason: result.reason, refusal: result, unsaved: records }
    // The state may have changed during the append: build on the present one.
    turn.state = withRecords(turn.state, result.records, result.position)
    return result.records
  })
  if ('reason' in outcome) return outcome
  yield { type: 'appended', records: outcome }
  return null
}

/** Reads what other writers appended: to be done after a conflict. */
export function refresh(turn: TurnRun): Promise<void> {
  return aloneOn(turn, async () => {
    for (;;) {
      const before = turn.state
      const after = await catchUp(turn.host.journal, before)
      if (turn.state !== before) continue
      turn.state = after
      return
    }
  })
}

/** The bodies as records, linked to each other and to `parent`; default: the last record of the conversation. */
export function linked(
  { state, host }: TurnRun,
  bodies: readonly Unlinked[],
  parent: string | null = tipOf(state),
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
export function tipOf({ session }: SessionState): string | null {
  return session.tip === ROOT ? null : (recordAt(session, session.tip).uuid ?? null)
}

export function isAborted({ signal }: TurnRun): boolean {
  return signal?.aborted === true
}

/** The session as it would be with `records`, which are not appended: to measure and validate a rewrite. */
export function trial(state: SessionState, records: readonly NewRecord[]): SessionState {
  const of = records.length
  const stamped = records.map(
    (record, index): SessionRecord =>
      ({ ...record, seq: state.position + index + 1, batch: { id: PREVIEW, index, of } }) as SessionRecord,
  )
  return withRecords(state, stamped, state.position + of)
}

const PREVIEW = 'trial'
