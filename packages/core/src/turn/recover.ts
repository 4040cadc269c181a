/**
 * Recovery after the provider refused a request or the window ended the response: drop media, drop thinking, or
 * compact, then send again, as often as policy allows. If that fails, the refusal is passed on.
 */

import { compact } from '../compaction/compact.ts'
import type { Responded } from '../engine/call-model.ts'
import type { Halt, TurnEvent } from '../engine/events.ts'
import type { Room, TurnHost } from '../engine/host.ts'
import { measureNow } from '../engine/measure-context.ts'
import type { Failure, FailureKind } from '../engine/reply.ts'
import { thinkersIn } from '../engine/session-state.ts'
import { append, type TurnRun } from '../engine/session-writer.ts'
import type { AssistantMessage } from '../log/record.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { contextOf, outputOf } from '../tokens/usage.ts'
import { clearingBoundary, dropMedia } from './reduce-context.ts'
import { callsIn } from './run-tools.ts'

/** How often each remedy was tried on one request, or may be. */
interface Remedies {
  /** Dropping images and documents. */
  readonly media: number
  /** Compacting, or dropping thinking. */
  readonly rewrites: number
}

export const NOTHING_TRIED: Remedies = { media: 0, rewrites: 0 }

type Recovered = { readonly ok: true; readonly tried: Remedies }

/** Null: there is nothing to recover from, or every remedy was tried. */
export async function* recover(
  turn: TurnRun,
  response: Responded,
  tried: Remedies,
): AsyncGenerator<TurnEvent, Recovered | Halt | null> {
  const message = findProblem(response, turn.host)
  if (message === null) return null
  const failure = !response.ok && response.reason === 'failed' ? response.failure : null
  const allowed = allowedRemedies(turn.host)
  if (tried.media < allowed.media && (failure?.kind === 'media' || failure?.kind === 'too-large')) {
    const dropped = yield* dropMedia(turn, failure)
    if (typeof dropped === 'object') return dropped
    if (dropped) return { ok: true, tried: { ...tried, media: tried.media + 1 } }
  }
  const compaction = turn.host.room
  if (compaction === undefined || tried.rewrites >= allowed.rewrites || failure?.kind === 'media') return null
  const recovered: Recovered = { ok: true, tried: { ...tried, rewrites: tried.rewrites + 1 } }
  if (failure?.kind === 'thinking-binding') {
    const dropped = yield* dropThinking(turn, compaction)
    if (typeof dropped === 'object') return dropped
    return dropped ? recovered : null
  }
  yield { type: 'reactive-compact', message }
  const end = yield* compact(turn, compaction, { trigger: 'auto', cause: 'reactive', isForced: true })
  if (end.ok) return recovered
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}

/** A response that can be recovered from, as a sentence for the event; null if there is nothing to do. */
function findProblem(response: Responded, host: TurnHost): string | null {
  if (response.ok) {
    const { reply } = response
    const isFinal = callsIn(reply).length === 0
    return isFinal && allowedRemedies(host).rewrites > 0 && hasOverflowed(reply.message, host)
      ? CUT_SHORT
      : null
  }
  if (response.reason !== 'failed' || !isRecoverable(response.failure, host)) return null
  return response.failure.message
}

const CUT_SHORT = 'The window was full before the answer was.'

/** The response ended because the window did: by its stop reason, or by its usage. */
function hasOverflowed({ stop_reason, usage }: AssistantMessage, { profile }: TurnHost): boolean {
  if (stop_reason === 'model_context_window_exceeded') return true
  if (stop_reason !== 'max_tokens' || profile.window === null) return false
  return contextOf(usage) + outputOf(usage) >= profile.window
}

const RECOVERABLE: ReadonlySet<FailureKind> = new Set(['overflow', 'too-large', 'media', 'thinking-binding'])

/** A failure that a smaller request, or one with less thinking or media, may avoid. */
export function isRecoverable({ kind }: Failure, host: TurnHost): boolean {
  const { media, rewrites } = allowedRemedies(host)
  return RECOVERABLE.has(kind) && (rewrites > 0 || (media > 0 && kind !== 'overflow'))
}

function allowedRemedies({ room, policy, switches = NO_SWITCHES }: TurnHost): Remedies {
  const { mediaRetries, retries } = policy.turn.reactive
  const isOn = mechanismStates(policy, switches).reactive.on
  return { media: isOn ? mediaRetries : 0, rewrites: isOn && room !== undefined ? retries : 0 }
}

/**
 * Drops all thinking from the context, because the provider does not accept it: it came from another account or model,
 * or the conversation before it has changed. True if there was any.
 */
async function* dropThinking(turn: TurnRun, compaction: Room): AsyncGenerator<TurnEvent, boolean | Halt> {
  const clearedThinking = thinkersIn(turn.state.view.entries.toArray())
  if (clearedThinking.length === 0) return false
  const failure = yield* append(turn, [
    clearingBoundary({
      trigger: 'thinking-refused',
      preTokens: measureNow(turn.state, turn.host, compaction).expected,
      tokensSaved: 0,
      compactedToolIds: [],
      clearedAttachmentUUIDs: [],
      clearedThinking,
    }),
  ])
  if (failure !== null) return failure
  yield { type: 'thinking-dropped', responses: clearedThinking.length }
  return true
}
