/** A turn under way: the session as it grows, and how records come into it. */

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

/** `state` moves on with everything appended. */
export interface TurnRun {
  state: SessionState
  readonly host: TurnHost
  readonly signal: Signal | undefined
  /** Where several runs share one `state`: their writes one after the other, each on what the one before left. */
  readonly alone?: Alone
}

export type Alone = <T>(work: () => Promise<T>) => Promise<T>

/** Nobody else writes to the session of `run` while `work` is under way. */
export function aloneOn<T>({ alone }: TurnRun, work: () => Promise<T>): Promise<T> {
  return alone === undefined ? work() : alone(work)
}

export type Unlinked = Body<UserRecord | AssistantRecord | AttachmentRecord | SystemRecord>

type Body<R extends RecordBase> = R extends unknown
  ? Omit<R, 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'seq' | 'batch'>
  : never

/** Appends `bodies` as one batch behind what the conversation says last. Null: it is done. */
export async function* append(
  run: TurnRun,
  bodies: readonly Unlinked[],
): AsyncGenerator<TurnEvent, Halt | null> {
  return bodies.length === 0 ? null : yield* written(run, () => linked(run, bodies))
}

/**
 * The same for records that say themselves what they follow: a boundary follows nothing. They were made of the
 * session as it is now; one that has moved on until they can be written refuses them as a conflict.
 */
export async function* appendRecords(
  run: TurnRun,
  records: readonly NewRecord[],
): AsyncGenerator<TurnEvent, Halt | null> {
  return records.length === 0 ? null : yield* written(run, () => records, run.state.position)
}

async function* written(
  run: TurnRun,
  make: () => readonly NewRecord[],
  madeAt?: number,
): AsyncGenerator<TurnEvent, Halt | null> {
  const outcome = await aloneOn(run, () => write(run, make(), madeAt))
  if ('reason' in outcome) return outcome
  yield { type: 'appended', records: outcome }
  return null
}

async function write(
  run: TurnRun,
  records: readonly NewRecord[],
  madeAt: number | undefined,
): Promise<Halt | readonly SessionRecord[]> {
  const { id, position } = run.state
  const outcome =
    madeAt === undefined || madeAt === position
      ? await run.host.journal.append(id, position, records)
      : { ok: false as const, reason: 'conflict' as const, position }
  if (!outcome.ok) return { ok: false, reason: outcome.reason, refusal: outcome, unsaved: records }
  // Others may have learnt something meanwhile: the state as it is now, not as it was.
  run.state = withRecords(run.state, outcome.records, outcome.position)
  return outcome.records
}

/** Brings the session to where its log is: what to do after a conflict. */
export function refresh(run: TurnRun): Promise<void> {
  return aloneOn(run, async () => {
    for (;;) {
      const before = run.state
      const after = await catchUp(run.host.journal, before)
      if (run.state !== before) continue
      run.state = after
      return
    }
  })
}

/** As records of their own, behind what the conversation says last. */
export function linked(
  { state, host }: TurnRun,
  bodies: readonly Unlinked[],
  behind: string | null = tipOf(state),
): readonly NewRecord[] {
  const timestamp = new Date(host.clock.now()).toISOString()
  let parentUuid = behind
  return bodies.map((body) => {
    const record = { ...body, uuid: host.ids.next('record'), parentUuid, timestamp, sessionId: state.id }
    parentUuid = record.uuid
    return record
  })
}

export function tipOf({ session }: SessionState): string | null {
  return session.tip === ROOT ? null : (recordAt(session, session.tip).uuid ?? null)
}

export function isAborted({ signal }: TurnRun): boolean {
  return signal?.aborted === true
}

// A session as it would be with records that nobody has appended yet: what a rewrite is measured and checked on.

export function trial(state: SessionState, records: readonly NewRecord[]): SessionState {
  const of = records.length
  const stamped = records.map(
    (record, index): SessionRecord =>
      ({ ...record, seq: state.position + index + 1, batch: { id: TRIAL, index, of } }) as SessionRecord,
  )
  return withRecords(state, stamped, state.position + of)
}

const TRIAL = 'trial'
