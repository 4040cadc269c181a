/** A turn under way: the session as it grows, and how records come into it. */
import type {
  AssistantRecord,
  AttachmentRecord,
  RecordBase,
  SystemRecord,
  UserRecord,
} from '../conversation/record.ts'
import { ROOT, recordAt } from '../conversation/tree.ts'
import type { NewRecord, Signal } from './ports.ts'
import { type SessionState, withRecords } from './session-state.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import type { TurnHost } from './turn-host.ts'

/** `state` moves on with everything appended. */
export interface TurnRun {
  state: SessionState
  readonly host: TurnHost
  readonly signal: Signal | undefined
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
  if (bodies.length === 0) return null
  const { state, host } = run
  const outcome = await host.journal.append(state.id, state.position, linked(run, bodies))
  if (!outcome.ok) return { ok: false, reason: outcome.reason, refusal: outcome }
  run.state = withRecords(state, outcome.records, outcome.position)
  yield { type: 'appended', records: outcome.records }
  return null
}

function linked({ state, host }: TurnRun, bodies: readonly Unlinked[]): readonly NewRecord[] {
  const timestamp = new Date(host.clock.now()).toISOString()
  let parentUuid = tipOf(state)
  return bodies.map((body) => {
    const record = { ...body, uuid: host.ids.next('record'), parentUuid, timestamp, sessionId: state.id }
    parentUuid = record.uuid
    return record
  })
}

function tipOf({ session }: SessionState): string | null {
  return session.tip === ROOT ? null : (recordAt(session, session.tip).uuid ?? null)
}

export function isAborted({ signal }: TurnRun): boolean {
  return signal?.aborted === true
}
