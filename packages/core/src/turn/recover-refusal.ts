/**
 * Recovers after the provider refused a request or the context window ended the response: drops media, drops thinking
 * or compacts, then sends again, as often as policy allows. If nothing helps, the refusal is returned.
 */
import { swapInPrepared } from '../background/prepare-summary.ts'
import { compact } from '../compaction/compact.ts'
import { findResponsesWithThinking } from '../context/context-entry.ts'
import type { ModelCallResult } from '../engine/call-model.ts'
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { CompactionServices, TurnHost } from '../engine/host.ts'
import { measureContext } from '../engine/measure-context.ts'
import type { ModelFailure, ModelFailureKind, Reply, TokenExcess } from '../engine/reply.ts'
import { appendUnlinkedRecords, type TurnContext } from '../engine/session-writer.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { countContextTokens, countOutputTokens } from '../tokens/usage.ts'
import { CUT_SHORT_MESSAGE, continueCutAnswer, hasOverflowed } from './cut-answers.ts'
import { createClearingBoundary, dropRefusedMedia } from './reduce-context.ts'
import { listToolCalls } from './run-tools.ts'

/** How often each remedy was tried for one request, or how often it may be tried. */
export interface Remedies {
  /** Number of tries of dropping images and documents. */
  readonly media: number
  /** Number of tries of compacting or dropping thinking. */
  readonly rewrites: number
}

export const NO_REMEDIES_TRIED: Remedies = { media: 0, rewrites: 0 }

type RecoveryResult = { readonly ok: true; readonly tried: Remedies }

/** Tries the next remedy for a refused request. Returns null if there is nothing to remedy or no remedy is left. */
export async function* recoverFromRefusal(
  turn: TurnContext,
  response: ModelCallResult,
  tried: Remedies,
): AsyncGenerator<TurnEvent, RecoveryResult | TurnFailure | null> {
  const message = findProblem(response, turn.host)
  if (message === null) return null
  const failure = !response.ok && response.reason === 'failed' ? response.failure : null
  const allowed = allowedRemedies(turn.host)
  if (tried.media < allowed.media && (failure?.kind === 'media' || failure?.kind === 'too-large')) {
    const dropped = yield* dropRefusedMedia(turn, failure)
    if (typeof dropped === 'object') return dropped
    if (dropped) return { ok: true, tried: { ...tried, media: tried.media + 1 } }
  }
  const compaction = turn.host.compaction
  if (compaction === undefined || tried.rewrites >= allowed.rewrites || failure?.kind === 'media') return null
  const recovered: RecoveryResult = { ok: true, tried: { ...tried, rewrites: tried.rewrites + 1 } }
  if (failure?.kind === 'thinking-binding') {
    const dropped = yield* dropThinking(turn, compaction)
    if (typeof dropped === 'object') return dropped
    return dropped ? recovered : null
  }
  const end = yield* compactForRoom(turn, compaction, message, failure?.gap)
  if (end.ok) return (response.ok ? yield* continueCutAnswer(turn) : null) ?? recovered
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}

/**
 * Compacts if the context window ended a response with tool calls. Its results are appended by now, so that the next
 * request would be longer still, and its response cut earlier.
 */
export async function* makeRoomAfterCutCall(
  turn: TurnContext,
  { message }: Reply,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { host } = turn
  const { compaction } = host
  if (compaction === undefined || allowedRemedies(host).rewrites === 0 || !hasOverflowed(message, host))
    return null
  const limit = countContextTokens(message.usage) + countOutputTokens(message.usage)
  const end = yield* compactForRoom(turn, compaction, CUT_SHORT_MESSAGE, limit > 0 ? { limit } : undefined)
  return end.ok || end.reason !== 'aborted' ? null : { ok: false, reason: 'aborted' }
}

/** Compacts because the window was full. `refused`: what the provider said about sizes. */
async function* compactForRoom(
  turn: TurnContext,
  compaction: CompactionServices,
  message: string,
  refused: TokenExcess | undefined,
) {
  yield { type: 'reactive-compact' as const, message }
  if (yield* swapInPrepared(turn, 'reactive', { waits: true })) return { ok: true as const }
  return yield* compact(turn, compaction, {
    trigger: 'auto',
    cause: 'reactive',
    isForced: true,
    ...(refused === undefined ? {} : { refused }),
  })
}

/** Returns a sentence about the problem, if recovery may fix it; null if there is no such problem. */
function findProblem(response: ModelCallResult, host: TurnHost): string | null {
  if (response.ok) {
    const { reply } = response
    const isFinal = listToolCalls(reply).length === 0
    return isFinal && allowedRemedies(host).rewrites > 0 && hasOverflowed(reply.message, host)
      ? CUT_SHORT_MESSAGE
      : null
  }
  if (response.reason !== 'failed' || !isRecoverableFailure(response.failure, host)) return null
  return response.failure.message
}

const RECOVERABLE_FAILURES: ReadonlySet<ModelFailureKind> = new Set([
  'overflow',
  'too-large',
  'media',
  'thinking-binding',
])

/** Returns true if a smaller request, or one with less thinking or media, may avoid the failure. */
export function isRecoverableFailure({ kind }: ModelFailure, host: TurnHost): boolean {
  const { media, rewrites } = allowedRemedies(host)
  return RECOVERABLE_FAILURES.has(kind) && (rewrites > 0 || (media > 0 && kind !== 'overflow'))
}

function allowedRemedies({ compaction, policy, switches = NO_SWITCHES }: TurnHost): Remedies {
  const { mediaRetries, retries } = policy.turn.reactive
  const isOn = findMechanismStates(policy, switches).reactive.on
  return { media: isOn ? mediaRetries : 0, rewrites: isOn && compaction !== undefined ? retries : 0 }
}

/**
 * Drops all thinking from the context after the provider refused it, because it came from another account or model or
 * because earlier messages changed. Returns true if any thinking was dropped.
 */
async function* dropThinking(
  turn: TurnContext,
  compaction: CompactionServices,
): AsyncGenerator<TurnEvent, boolean | TurnFailure> {
  const clearedThinking = findResponsesWithThinking(turn.state.view.entries.toArray())
  if (clearedThinking.length === 0) return false
  const failure = yield* appendUnlinkedRecords(turn, [
    createClearingBoundary({
      trigger: 'thinking-refused',
      preTokens: measureContext(turn.state, turn.host, compaction).expected,
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
