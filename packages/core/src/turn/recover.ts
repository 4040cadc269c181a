/**
 * The provider refused a request as too long, or stopped for want of room: the conversation is compacted and asked
 * once more. Thinking that it does not know is left out, and so are images that it will not take or that make too
 * many bytes. Where that fails too, the refusal is let through.
 */

import { compact } from '../compaction/compact.ts'
import type { View } from '../context/context-view.ts'
import type { Responded } from '../engine/call-model.ts'
import type { Halt, TurnEvent } from '../engine/events.ts'
import type { Room, TurnHost } from '../engine/host.ts'
import { dropMedia } from '../engine/limit-media.ts'
import { measureNow } from '../engine/measure-context.ts'
import type { Failure, FailureKind } from '../engine/reply.ts'
import { append, type TurnRun } from '../engine/session-writer.ts'
import { blocksOf, isThinking } from '../log/block.ts'
import type { AssistantMessage, MicrocompactMetadata } from '../log/record.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { contextOf, outputOf } from '../tokens/usage.ts'
import { callsIn } from './run-tools.ts'

const RECOVERABLE: ReadonlySet<FailureKind> = new Set(['overflow', 'too-large', 'media', 'thinking-binding'])

/** A failure that a compaction may help, or thinking less. */
export function isRecoverable({ kind }: Failure, host: TurnHost): boolean {
  const { media, rewrites } = remediesFor(host)
  return RECOVERABLE.has(kind) && (rewrites > 0 || (media > 0 && kind !== 'overflow'))
}

/** How often each remedy may still be tried on one request. */
interface Remedies {
  /** Leaving out images and documents. */
  readonly media: number
  /** Compacting, or leaving out thinking. */
  readonly rewrites: number
}

export function remediesFor({ room, policy, switches = NO_SWITCHES }: TurnHost): Remedies {
  const { mediaRetries, retries } = policy.turn.reactive
  const isOn = mechanismStates(policy, switches).reactive.on
  return { media: isOn ? mediaRetries : 0, rewrites: isOn && room !== undefined ? retries : 0 }
}

type Recovered = { readonly ok: true; readonly left: Remedies }

/** Null: there is nothing to recover from, or no way to. */
export async function* recover(
  run: TurnRun,
  responded: Responded,
  remedies: Remedies,
): AsyncGenerator<TurnEvent, Recovered | Halt | null> {
  const message = troubleOf(responded, run.host)
  if (message === null) return null
  const failure = failureOf(responded)
  if (remedies.media > 0 && (failure?.kind === 'media' || failure?.kind === 'too-large')) {
    const dropped = yield* dropMedia(run, failure)
    if (typeof dropped === 'object') return dropped
    if (dropped) return { ok: true, left: { ...remedies, media: remedies.media - 1 } }
  }
  return remedies.rewrites > 0 && failure?.kind !== 'media'
    ? yield* rewritten(run, { message, failure, remedies })
    : null
}

interface Trouble {
  readonly message: string
  readonly failure: Failure | null
  readonly remedies: Remedies
}

async function* rewritten(
  run: TurnRun,
  { message, failure, remedies }: Trouble,
): AsyncGenerator<TurnEvent, Recovered | Halt | null> {
  const { room } = run.host
  if (room === undefined) return null
  const recovered: Recovered = { ok: true, left: { ...remedies, rewrites: remedies.rewrites - 1 } }
  if (failure?.kind === 'thinking-binding') {
    const dropped = yield* dropThinking(run, room)
    if (typeof dropped === 'object') return dropped
    return dropped ? recovered : null
  }
  yield { type: 'reactive-compact', message }
  const end = yield* compact(run, room, { trigger: 'auto', cause: 'reactive', isForced: true })
  if (end.ok) return recovered
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}

function failureOf(responded: Responded): Failure | null {
  return !responded.ok && responded.reason === 'failed' ? responded.failure : null
}

function troubleOf(responded: Responded, host: TurnHost): string | null {
  if (responded.ok) {
    const { reply } = responded
    const goesOn = callsIn(reply).length > 0
    return !goesOn && remediesFor(host).rewrites > 0 && hasOverflowed(reply.message, host) ? CUT_SHORT : null
  }
  if (responded.reason !== 'failed' || !isRecoverable(responded.failure, host)) return null
  return responded.failure.message
}

const CUT_SHORT = 'The window was full before the answer was.'

/** The answer ended because the window did: by the provider's word, or by its figures. */
function hasOverflowed({ stop_reason, usage }: AssistantMessage, { profile }: TurnHost): boolean {
  if (stop_reason === 'model_context_window_exceeded') return true
  if (stop_reason !== 'max_tokens' || profile.window === null) return false
  return contextOf(usage) + outputOf(usage) >= profile.window
}

// The provider does not know the thinking it was sent back: it was made by another account or model, or the
// conversation before it is no longer the one it was made in. It leaves the view, whole, and the request is sent again.

/** True: there was some, and it is gone. */
async function* dropThinking(run: TurnRun, room: Room): AsyncGenerator<TurnEvent, boolean | Halt> {
  const clearedThinking = thinkers(run.state.view)
  if (clearedThinking.length === 0) return false
  const before = measureNow(run.state, run.host, room).expected
  const microcompactMetadata: MicrocompactMetadata = {
    trigger: 'thinking-refused',
    preTokens: before,
    tokensSaved: 0,
    compactedToolIds: [],
    clearedAttachmentUUIDs: [],
    clearedThinking,
  }
  const halt = yield* append(run, [
    {
      type: 'system',
      subtype: 'microcompact_boundary',
      content: 'Context microcompacted',
      level: 'info',
      isMeta: false,
      microcompactMetadata,
    },
  ])
  if (halt !== null) return halt
  yield { type: 'thinking-dropped', responses: clearedThinking.length }
  return true
}

/** Responses of the view that still show thinking. */
function thinkers({ entries }: View): readonly string[] {
  const ids = [...entries].flatMap(({ record, cleared }) =>
    record.type === 'assistant' &&
    cleared?.thinking !== true &&
    blocksOf(record.message.content).some(isThinking)
      ? [record.message.id]
      : [],
  )
  return [...new Set(ids)]
}
