/**
 * The provider refused a request as too long, or stopped for want of room: the conversation is compacted and asked
 * once more. Where that fails too, the refusal is let through.
 */
import { mechanismStates } from '../../policy/mechanisms.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { compact } from './compact.ts'

/** Null: there is nothing to recover from, or no way to. */
export async function* recover(
  run: TurnRun,
  halt: Halt,
): AsyncGenerator<TurnEvent, { readonly ok: true } | Halt | null> {
  const { room, policy, switches = NO_SWITCHES } = run.host
  if (room === undefined || halt.reason !== 'failed' || policy.turn.reactive.retries === 0) return null
  const { kind, message } = halt.failure
  if (kind !== 'overflow' && kind !== 'too-large') return null
  if (!mechanismStates(policy, switches).reactive.on) return null
  yield { type: 'reactive-compact', message }
  const end = yield* compact(run, room, { trigger: 'auto', cause: 'reactive', isForced: true })
  if (end.ok) return { ok: true }
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}
