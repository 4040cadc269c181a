/** After each answer: the turn is counted, and what the provider cleared by itself goes into the log. */
import { nativeClearing, readApplied } from '../../clear/native-applied.ts'
import type { Reply } from '../reply.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { applyClearing } from './apply-clearing.ts'
import { measureNow, withRoom } from './plan-now.ts'
import type { Room } from './room.ts'
import { nextTurn } from './tracking.ts'

export async function* afterAnswer(run: TurnRun, reply: Reply): AsyncGenerator<TurnEvent, Halt | null> {
  const { room, ids } = run.host
  if (room === undefined) return null
  const known = withRoom(run.state, room)
  const tracking = nextTurn(known.room.tracking, ids.next('turn'))
  run.state = { ...known, room: { ...known.room, tracking } }
  return yield* noteNative(run, room, reply)
}

/** The edits are worked out anew with every request; only what no record tells of yet is noted. */
async function* noteNative(
  run: TurnRun,
  room: Room,
  { message }: Reply,
): AsyncGenerator<TurnEvent, Halt | null> {
  const { native } = run.state
  if (native === null) return null
  const applied = readApplied(message.context_management, run.host.profile.contextEdits)
  const { register } = withRoom(run.state, room).room
  const context = measureNow(run.state, run.host, room)
  const clearing = nativeClearing({ register, context }, native, applied)
  return clearing === null ? null : yield* applyClearing(run, room, clearing)
}
