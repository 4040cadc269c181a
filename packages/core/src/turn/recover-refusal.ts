/**
 * Recovers after the provider refused a request or the context window ended the response: drops media, drops thinking
 * or compacts, so that the request can be sent again, as often as policy allows. If nothing helps, the refusal is returned.
 * Also continues answers that were cut off, and withdraws prompts that no request has room for.
 */
import { swapInPreparedSummary } from '../background/prepare-summary.ts'
import { compact } from '../compaction/compact.ts'
import { type ContextEntry, findThinkingResponseIds } from '../context/context-entry.ts'
import type { ModelCallResult } from '../engine/call-model.ts'
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { TurnHost } from '../engine/host.ts'
import { measureContext } from '../engine/measure-context.ts'
import type { ModelFailure, ModelFailureKind, Reply, TokenExcess } from '../engine/reply.ts'
import { findLastAnswerEnd, type SessionState } from '../engine/session-state.ts'
import { appendUnlinkedRecords, type TurnContext, type UnlinkedRecord } from '../engine/session-writer.ts'
import type { MessageContent } from '../log/block.ts'
import { isPrompt, isSyntheticError, type UserRecord } from '../log/record.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import { readReportedContextTokens, readReportedOutputTokens } from '../tokens/usage.ts'
import { createClearingBoundary, dropRefusedMedia } from './reduce-context.ts'
import { listToolCalls } from './run-tools.ts'
import { rewindBefore } from './switch-branch.ts'

/** How often each remedy was tried for one request, or how often it may be tried. */
export interface RemedyCounts {
  /** Number of tries of dropping images and documents. */
  readonly media: number
  /** Number of tries of compacting or dropping thinking. */
  readonly rewrites: number
}

export const NO_REMEDIES_TRIED: RemedyCounts = { media: 0, rewrites: 0 }

type RecoveryResult = { readonly ok: true; readonly tried: RemedyCounts }

/**
 * Tries the next remedy for a refused request, or for a response that the full window ended. If it worked, the caller sends
 * the request again. Returns null if there is nothing to remedy or no remedy is left, a failure if the turn must end.
 */
export async function* recoverFromRefusal(
  turn: TurnContext,
  response: ModelCallResult,
  tried: RemedyCounts,
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
  if (tried.rewrites >= allowed.rewrites || failure?.kind === 'media') return null
  const recovered: RecoveryResult = { ok: true, tried: { ...tried, rewrites: tried.rewrites + 1 } }
  if (failure?.kind === 'thinking-binding') {
    const dropped = yield* dropThinking(turn)
    if (typeof dropped === 'object') return dropped
    return dropped ? recovered : null
  }
  const end = yield* compactForRoom(turn, message, failure?.gap)
  if (end.ok) return (response.ok ? yield* continueCutAnswer(turn) : null) ?? recovered
  return end.reason === 'aborted' ? { ok: false, reason: 'aborted' } : null
}

/**
 * Compacts if the context window ended a response with tool calls. The results of the calls are appended by now, so the
 * next request would be even longer, and its response cut even earlier. Returns a failure only if the turn was aborted.
 */
export async function* compactAfterCutToolCalls(
  turn: TurnContext,
  reply: Reply,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { host } = turn
  if (allowedRemedies(host).rewrites === 0 || !hasFilledWindow(reply, host)) return null
  const { usage } = reply
  const limit = readReportedContextTokens(usage) + readReportedOutputTokens(usage)
  const end = yield* compactForRoom(turn, WINDOW_FULL_MESSAGE, limit > 0 ? { limit } : undefined)
  return end.ok || end.reason !== 'aborted' ? null : { ok: false, reason: 'aborted' }
}

/** Compacts because the window was full. `refused`: the sizes that the provider reported. */
async function* compactForRoom(turn: TurnContext, message: string, refused: TokenExcess | undefined) {
  yield { type: 'reactive-compact' as const, message }
  if (yield* swapInPreparedSummary(turn, 'reactive', { waits: true })) return { ok: true as const }
  return yield* compact(turn, {
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
    return isFinal && allowedRemedies(host).rewrites > 0 && hasFilledWindow(reply, host)
      ? WINDOW_FULL_MESSAGE
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

function allowedRemedies({ policy, switches = NO_SWITCHES }: TurnHost): RemedyCounts {
  const { mediaRetries, retries } = policy.turn.reactive
  const isOn = findFeatureStates(policy, switches).reactive.on
  return { media: isOn ? mediaRetries : 0, rewrites: isOn ? retries : 0 }
}

/**
 * Drops all thinking from the context after the provider refused it, because it came from another account or model or
 * because earlier messages changed. Returns true if any thinking was dropped.
 */
async function* dropThinking(turn: TurnContext): AsyncGenerator<TurnEvent, boolean | TurnFailure> {
  const clearedThinking = findThinkingResponseIds(turn.state.view.entries.toArray())
  if (clearedThinking.length === 0) return false
  const failure = yield* appendUnlinkedRecords(turn, [
    createClearingBoundary({
      trigger: 'thinking-refused',
      preTokens: measureContext(turn.state, turn.host).expected,
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

// Answers that the output limit, the context window or an abort has cut: how the last answer ended, and how it is continued.

export const WINDOW_FULL_MESSAGE = 'The window was full before the answer was.'

/** Returns true if the context window ended the response, according to its stop reason or its usage. */
export function hasFilledWindow({ stop, usage }: Reply, { profile }: TurnHost): boolean {
  if (stop === 'window') return true
  if (stop !== 'cut' || profile.window === null) return false
  return readReportedContextTokens(usage) + readReportedOutputTokens(usage) >= profile.window
}

const CONTINUE_TEXT =
  'Your answer above was cut off. Continue it exactly where it stopped, without repeating anything.'

/** Creates the body of a record that asks the model to continue its last answer. */
export function createContinuationRecord(): UnlinkedRecord {
  return { type: 'user', isMeta: true, message: { role: 'user', content: CONTINUE_TEXT } }
}

const INTERRUPTED_TEXT = 'The user interrupted your answer above; it ends where they stopped you.'

/** Creates the body of a record that tells the model, before the next prompt, that its last answer was interrupted. */
export function createInterruptionNotice(): UnlinkedRecord {
  return { type: 'user', isMeta: true, message: { role: 'user', content: INTERRUPTED_TEXT } }
}

/**
 * Appends a message that asks the model to continue its last answer. `part`: how often this answer was continued, with this time.
 */
export async function* appendContinuation(
  turn: TurnContext,
  part: number,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  yield { type: 'answer-continued', part }
  return yield* appendUnlinkedRecords(turn, [createContinuationRecord()])
}

/** Appends a message that asks the model to continue its last answer, unless a compaction has summarized that answer. */
async function* continueCutAnswer(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  return findLastAnswerEnd(turn.state) === null ? null : yield* appendContinuation(turn, 1)
}

/** Failure of a request that would end with a finished answer of the model: it would be paid for, with nothing to answer. */
export const NOTHING_TO_ANSWER_FAILURE: TurnFailure = {
  ok: false,
  reason: 'invalid',
  findings: [
    { code: 'prefill-refused', path: 'messages', message: 'Expected the last message to be from the user.' },
  ],
}

// Takes prompts that are too long for any request out of the conversation again, so that the session can go on. The
// prompts are returned to the caller; the log keeps them on the branch that is left.

/**
 * Withdraws the prompts that the model has not answered if a request failed because it is too long, and nothing could
 * make it shorter. Returns the failure with the prompts. Nothing is withdrawn from a list that the caller keeps itself.
 */
export async function* withdrawTooLongPrompts(
  turn: TurnContext,
  failure: TurnFailure,
): AsyncGenerator<TurnEvent, TurnFailure> {
  if (turn.host.client !== undefined || !isTooLong(failure)) return failure
  const prompts = listUnansweredPrompts(turn.state)
  const [first] = prompts
  if (first === undefined) return failure
  const end = yield* rewindBefore(turn, first.uuid, { keepsRewrites: true, isWithdrawal: true })
  if (!end.ok) return failure
  const withdrawn = prompts.map(({ message }) => message.content as MessageContent)
  return { ...failure, withdrawn }
}

function isTooLong(failure: TurnFailure): failure is TooLongFailure {
  if (failure.reason === 'full') return failure.isPromptTooLong === true
  return failure.reason === 'failed' && failure.failure.kind === 'overflow'
}

type TooLongFailure = Extract<TurnFailure, { readonly reason: 'full' | 'failed' }>

/** Lists the prompts after the last response, oldest first. */
function listUnansweredPrompts({ view }: SessionState): readonly UserRecord[] {
  const entries = view.entries.toArray()
  const later = entries.slice(entries.findLastIndex(isResponse) + 1).map(({ record }) => record)
  return later.filter(isPrompt)
}

function isResponse({ record }: ContextEntry): boolean {
  return record.type === 'assistant' && !isSyntheticError(record)
}
