/**
 * The provider refused a request as too long, or stopped for want of room: the conversation is compacted and asked
 * once more; thinking that it does not know is left out. Where that fails too, the refusal is let through.
 */
import type { AssistantMessage } from '../../conversation/record.ts'
import { contextOf, outputOf } from '../../measure/usage-figures.ts'
import { mechanismStates } from '../../policy/mechanisms.ts'
import { NO_SWITCHES } from '../../policy/switches.ts'
import type { Failure, FailureKind } from '../failure.ts'
import type { Responded } from '../respond.ts'
import { callsIn } from '../run-tools.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import type { TurnHost } from '../turn-host.ts'
import type { TurnRun } from '../turn-run.ts'
import { compact } from './compact.ts'
import { dropThinking } from './drop-thinking.ts'

const RECOVERABLE: ReadonlySet<FailureKind> = new Set(['overflow', 'too-large', 'thinking-binding'])

/** A failure that a compaction may help, or thinking less. */
export function isRecoverable({ kind }: Failure, host: TurnHost): boolean {
  return RECOVERABLE.has(kind) && mayRecover(host)
}

function mayRecover({ room, policy, switches = NO_SWITCHES }: TurnHost): boolean {
  const isOn = mechanismStates(policy, switches).reactive.on
  return room !== undefined && policy.turn.reactive.retries > 0 && isOn
}

/** Null: there is nothing to recover from, or no way to. */
export async function* recover(
  run: TurnRun,
  responded: Responded,
): AsyncGenerator<TurnEvent, { readonly ok: true } | Halt | null> {
  const { room } = run.host
  const message = troubleOf(responded, run.host)
  if (room === undefined || message === null) return null
  if (isAboutThinking(responded)) {
    const dropped = yield* dropThinking(run, room)
    if (typeof dropped === 'object') return dropped
    return dropped ? { ok: true } : null
  }
  yield { type: 'reactive-compact', message }
  const end = yield* compact(run, room, { trigger: 'auto', cause: 'reactive', isForced: true })
  if (end.ok) return { ok: true }
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}

function isAboutThinking(responded: Responded): boolean {
  return !responded.ok && responded.reason === 'failed' && responded.failure.kind === 'thinking-binding'
}

function troubleOf(responded: Responded, host: TurnHost): string | null {
  if (responded.ok) {
    const { reply } = responded
    const goesOn = callsIn(reply).length > 0
    return !goesOn && mayRecover(host) && hasOverflowed(reply.message, host) ? CUT_SHORT : null
  }
  if (responded.reason !== 'failed' || !isRecoverable(responded.failure, host)) return null
  return responded.failure.message
}

const CUT_SHORT = 'The window was full before the answer was.'

/** The answer ended because the window did: by the provider's word, or by its figures. */
export function hasOverflowed({ stop_reason, usage }: AssistantMessage, { profile }: TurnHost): boolean {
  if (stop_reason === 'model_context_window_exceeded') return true
  if (stop_reason !== 'max_tokens' || profile.window === null) return false
  return contextOf(usage) + outputOf(usage) >= profile.window
}
