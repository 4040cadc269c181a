/**
 * A turn: what the person said goes into the log, then request, reply and tools in turn until the model calls no
 * more. All that happens is appended before anything is built on it, so a turn can be taken up from the log alone.
 */
import type { Content } from '../conversation/block.ts'
import { TidemarkError } from '../errors.ts'
import type { Moment } from '../plan/plan-context.ts'
import { openCalls, settlingRecord } from '../view/settle.ts'
import type { OpenedCall } from './close-call.ts'
import { keepSize } from './keep-size.ts'
import { nextRequest } from './next-request.ts'
import type { Signal } from './ports.ts'
import { tellChanges } from './prefix-changes.ts'
import type { Reply } from './reply.ts'
import { openCall, type Responded, respond } from './respond.ts'
import { afterAnswer } from './rewrite/after-answer.ts'
import { holdFailure } from './rewrite/hold-failure.ts'
import { makeRoom } from './rewrite/make-room.ts'
import { recover, remediesFor } from './rewrite/recover.ts'
import { tellCarriers } from './rewrite/tell-carriers.ts'
import { UNDO_NOTICE, undoNotice, untoldUndoings } from './rewrite/undone-since.ts'
import { callsIn, runTools } from './run-tools.ts'
import type { SessionState } from './session-state.ts'
import type { Halt, TurnDone, TurnEvent, TurnOutcome } from './turn-event.ts'
import type { TurnHost } from './turn-host.ts'
import { aloneOn, append, isAborted, type TurnRun, type Unlinked } from './turn-run.ts'

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
