/**
 * A turn: what the person said goes into the log, then request, reply and tools in turn until the model calls no
 * more. All that happens is appended before anything is built on it, so a turn can be taken up from the log alone.
 */
import type { Content } from '../conversation/block.ts'
import { openCalls, settlingRecord } from '../view/settle.ts'
import { nextRequest } from './next-request.ts'
import type { Signal } from './ports.ts'
import { tellChanges } from './prefix-changes.ts'
import type { Reply } from './reply.ts'
import { type Responded, respond } from './respond.ts'
import { callsIn, runTools } from './run-tools.ts'
import type { SessionState } from './session-state.ts'
import type { Halt, TurnDone, TurnEvent, TurnOutcome } from './turn-event.ts'
import type { TurnHost } from './turn-host.ts'
import { append, isAborted, type TurnRun, type Unlinked } from './turn-run.ts'

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
  const run: TurnRun = { state, host, signal: asked.signal }
  const end = (yield* begin(run, asked.prompt)) ?? (yield* goOn(run))
  const outcome: TurnOutcome = { ...end, state: run.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

const ABORTED: Halt = { ok: false, reason: 'aborted' }

/** The prompt, and before it answers to calls that have none: one batch. */
async function* begin(run: TurnRun, prompt: Content | null): AsyncGenerator<TurnEvent, Halt | null> {
  if (isAborted(run)) return ABORTED
  const calls = openCalls(run.state.flat)
  const bodies: readonly Unlinked[] = [
    ...(calls.length === 0 ? [] : [settlingRecord(calls)]),
    ...(prompt === null
      ? []
      : [{ type: 'user' as const, message: { role: 'user' as const, content: prompt } }]),
  ]
  if (calls.length > 0) yield { type: 'calls-settled', calls }
  return yield* append(run, bodies)
}

async function* goOn(run: TurnRun): AsyncGenerator<TurnEvent, TurnDone | Halt> {
  for (;;) {
    const responded = yield* call(run)
    if (!responded.ok) return responded
    const { reply } = responded
    const calls = callsIn(reply)
    if (calls.length === 0 && !isPaused(reply)) return doneWith(reply)
    if (isAborted(run)) return ABORTED
    const halt = yield* runTools(run, calls)
    if (halt !== null) return halt
  }
}

/** One request and its reply. */
async function* call(run: TurnRun): AsyncGenerator<TurnEvent, Responded> {
  if (isAborted(run)) return ABORTED
  const halt = yield* tellChanges(run)
  if (halt !== null) return halt
  const { standing } = run.state.told
  if (standing === null) throw new RangeError('no epoch stands though changes were told')
  const next = nextRequest(run.state, standing, run.host)
  run.state = next.state
  if (next.findings.length > 0) return { ok: false, reason: 'invalid', findings: next.findings }
  return yield* respond(run, next)
}

/** The provider broke off a long turn of the model's own accord, to be sent back as it is. */
function isPaused({ message }: Reply): boolean {
  return message.stop_reason === 'pause_turn'
}

function doneWith({ message }: Reply): TurnDone {
  return { ok: true, stopReason: message.stop_reason ?? null }
}
