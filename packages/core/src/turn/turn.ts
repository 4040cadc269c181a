/**
 * A turn: what the person said goes into the log, then request, reply and tools in turn until the model calls no
 * more. All that happens is appended before anything is built on it, so a turn can be taken up from the log alone.
 */

import { nativeClearing, readApplied } from '../clearing/provider-clearing.ts'
import { openCalls, settlingRecord } from '../context/flatten.ts'
import { type OpenedCall, openCall, type Responded, respond } from '../engine/call-model.ts'
import type { Halt, TurnDone, TurnEvent, TurnOutcome } from '../engine/events.ts'
import type { Room, TurnHost } from '../engine/host.ts'
import { keepSize } from '../engine/limit-media.ts'
import { measureNow, UNDO_NOTICE, undoNotice, untoldUndoings, withRoom } from '../engine/measure-context.ts'
import { nextRequest } from '../engine/next-request.ts'
import type { Signal } from '../engine/ports.ts'
import type { Reply } from '../engine/reply.ts'
import { nextTurn, type SessionState } from '../engine/session-state.ts'
import { aloneOn, append, isAborted, type TurnRun, type Unlinked } from '../engine/session-writer.ts'
import { tellCarriers, tellChanges } from '../engine/update-prefix.ts'
import { TidemarkError } from '../errors.ts'
import type { Content } from '../log/block.ts'
import type { Moment } from '../planner/plan-input.ts'
import { isRecoverable, recover, remediesFor } from './recover.ts'
import { applyClearing, makeRoom } from './reduce-context.ts'
import { callsIn, runTools } from './run-tools.ts'

export interface TurnAsked {
  /** Null: goes on with what the log says, where a turn was cut short. */
  readonly prompt: Content | null
  readonly signal?: Signal
}

/**
 * Runs one turn. The last event, `turn-ended`, tells the outcome, which is returned as well. Who stops listening
 * stops the turn where it is: the log has everything told so far, and `openSession` takes it up.
 */
export async function* runTurn(
  state: SessionState,
  asked: TurnAsked,
  host: TurnHost,
): AsyncGenerator<TurnEvent, TurnOutcome> {
  return yield* takeTurn({ state, host, signal: asked.signal }, asked.prompt)
}

/** The same on a session that others may write to meanwhile, through runs that share its state. */
export async function* takeTurn(
  run: TurnRun,
  prompt: Content | null,
): AsyncGenerator<TurnEvent, TurnOutcome> {
  const most = mostCalls(run.host)
  const end = (yield* begin(run, prompt)) ?? (yield* goOn(run, most, prompt === null ? 'call' : 'prompt'))
  const outcome: TurnOutcome = { ...end, state: run.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

/** Far more than any turn of people's; a model that goes in circles reaches it. */
const MOST_CALLS = 1000

function mostCalls({ maxCalls = MOST_CALLS }: TurnHost): number {
  if (Number.isInteger(maxCalls) && maxCalls > 0) return maxCalls
  throw new TidemarkError('bad-option', `maxCalls: expected a whole number above 0, got ${maxCalls}.`)
}

const ABORTED: Halt = { ok: false, reason: 'aborted' }

/** The prompt, and before it answers to calls that have none: one batch. */
async function* begin(run: TurnRun, prompt: Content | null): AsyncGenerator<TurnEvent, Halt | null> {
  if (isAborted(run)) return ABORTED
  const calls = openCalls(run.state.flat)
  const bodies: readonly Unlinked[] = [
    ...(calls.length === 0 ? [] : [settlingRecord(calls)]),
    ...(prompt === null ? [] : [...undoings(run), promptBody(prompt)]),
  ]
  if (calls.length > 0) yield { type: 'calls-settled', calls }
  return yield* append(run, bodies)
}

function promptBody(content: Content): Unlinked {
  return { type: 'user', message: { role: 'user', content } }
}

/** The model is told once, with the person's next words, that what it sees was put back. */
export function undoings({ state }: TurnRun): readonly Unlinked[] {
  const found = untoldUndoings(state.view)
  if (found.length === 0) return []
  return [{ type: 'attachment', isMeta: true, attachment: { type: UNDO_NOTICE, content: undoNotice(found) } }]
}

/** `first`: a turn without a prompt goes on with an earlier one. */
async function* goOn(run: TurnRun, most: number, first: Moment): AsyncGenerator<TurnEvent, TurnDone | Halt> {
  for (let calls = 0; calls < most; calls += 1) {
    const responded = yield* answered(run, calls === 0 ? first : 'call')
    if (!responded.ok) return responded
    const { reply } = responded
    const noted = yield* afterAnswer(run, reply)
    if (noted !== null) return noted
    const asked = callsIn(reply)
    if (asked.length === 0 && !isPaused(reply)) return doneWith(reply)
    if (isAborted(run)) return ABORTED
    const halt = yield* runTools(run, asked)
    if (halt !== null) return halt
  }
  return { ok: false, reason: 'call-limit', calls: most }
}

/** A request and its reply; one that the provider finds too long is made smaller and sent again. */
async function* answered(run: TurnRun, moment: Moment): AsyncGenerator<TurnEvent, Responded> {
  let remedies = remediesFor(run.host)
  for (let at = moment; ; at = 'call') {
    const { responded, held } = yield* holdFailure(run.host, call(run, at))
    const again = yield* recover(run, responded, remedies)
    if (again?.ok !== true) {
      if (held !== null) yield held
      return again ?? responded
    }
    remedies = again.left
  }
}

/** Something to be done before each request, on the log alone; a halt ends the turn. */
type Step = (run: TurnRun, moment: Moment) => AsyncGenerator<TurnEvent, Halt | null>

/** In this order. What rewrites the view comes before what is told of the prefix, which comes last. */
const BEFORE_REQUEST: readonly Step[] = [makeRoom, keepSize, tellCarriers, tellChanges]

/** One request and its reply. */
async function* call(run: TurnRun, moment: Moment): AsyncGenerator<TurnEvent, Responded> {
  const ready = yield* readyRequest(run, moment)
  return 'ok' in ready ? ready : yield* respond(run, ready)
}

/**
 * The next request, once all that is due before it is done. It is about to be sent: what is appended after it was
 * made, by whoever shares the session, is for the request behind it.
 */
export async function* readyRequest(
  run: TurnRun,
  moment: Moment,
): AsyncGenerator<TurnEvent, OpenedCall | Halt> {
  if (isAborted(run)) return ABORTED
  for (const step of BEFORE_REQUEST) {
    const halt = yield* step(run, moment)
    if (halt !== null) return halt
  }
  return await aloneOn(run, async () => madeRequest(run))
}

function madeRequest(run: TurnRun): OpenedCall | Halt {
  const { standing } = run.state.told
  if (standing === null) throw new RangeError('no epoch stands though changes were told')
  const next = nextRequest(run.state, standing, run.host)
  run.state = next.state
  if (next.findings.length > 0) return { ok: false, reason: 'invalid', findings: next.findings }
  return openCall(run, next)
}

/** The provider broke off a long turn of the model's own accord, to be sent back as it is. */
function isPaused({ message }: Reply): boolean {
  return message.stop_reason === 'pause_turn'
}

function doneWith({ message }: Reply): TurnDone {
  return { ok: true, stopReason: message.stop_reason ?? null }
}

// After each answer: the turn is counted, and what the provider cleared by itself goes into the log.

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

// A failure that may be recovered from is nobody's business until the recovery has failed too.

interface Held {
  readonly responded: Responded
  /** The failure, which nobody has been told of yet; null where there is none. */
  readonly held: TurnEvent | null
}

async function* holdFailure(
  host: TurnHost,
  events: AsyncGenerator<TurnEvent, Responded>,
): AsyncGenerator<TurnEvent, Held> {
  let held: TurnEvent | null = null
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return { responded: step.value, held }
      if (isHeldBack(step.value, host)) held = step.value
      else yield step.value
    }
  } finally {
    // Who stops listening stops the call too.
    await events.return({ ok: false, reason: 'aborted' })
  }
}

function isHeldBack(event: TurnEvent, host: TurnHost): boolean {
  if (event.type !== 'reply' || event.event.type !== 'reply-failed') return false
  return isRecoverable(event.event.failure, host)
}
