/**
 * The agent loop: the prompt goes into the log, then request, response and tool calls follow each other until the model
 * calls no more tools. Everything is appended before anything is built on it, so a turn can be resumed from the log.
 */

import { findAppliedClearing, readAppliedEdits } from '../clearing/provider-clearing.ts'
import { createMissingResultsRecord, listUnansweredCalls } from '../context/flatten.ts'
import { type PendingCall, type ResponseResult, sendRequest, startCall } from '../engine/call-model.ts'
import type { CompletedTurn, TurnEvent, TurnFailure, TurnOutcome } from '../engine/events.ts'
import type { TurnHost } from '../engine/host.ts'
import { createUndoNotice, measureContext, withContextState } from '../engine/measure-context.ts'
import { buildNextRequest } from '../engine/next-request.ts'
import type { Signal } from '../engine/ports.ts'
import type { Reply } from '../engine/reply.ts'
import { countTurn, type SessionState } from '../engine/session-state.ts'
import {
  appendBodies,
  isAborted,
  type TurnContext,
  type UnlinkedRecord,
  withWriteLock,
} from '../engine/session-writer.ts'
import { appendPrefixUpdates, appendSourceUpdates } from '../engine/update-prefix.ts'
import { TidemarkError } from '../errors.ts'
import type { MessageContent } from '../log/block.ts'
import type { TurnMoment } from '../planner/plan-input.ts'
import { isRecoverable, NOTHING_TRIED, recover } from './recover.ts'
import { applyClearing, limitMedia, reduceContext } from './reduce-context.ts'
import { listToolCalls, runTools } from './run-tools.ts'

export interface TurnOptions {
  /** Null: resumes a turn that was interrupted, from what the log holds. */
  readonly prompt: MessageContent | null
  readonly signal?: Signal
}

/** Runs one turn on a session that has no other writer in this process. See `runTurn`. */
export async function* runSingleTurn(
  state: SessionState,
  options: TurnOptions,
  host: TurnHost,
): AsyncGenerator<TurnEvent, TurnOutcome> {
  return yield* takeTurn({ state, host, signal: options.signal }, options.prompt)
}

/**
 * Runs one turn. The last event, `turn-ended`, carries the outcome, which is returned as well. A caller that stops
 * reading stops the turn at that point: the log holds everything emitted so far, and `openSession` resumes from it.
 */
export async function* takeTurn(
  turn: TurnContext,
  prompt: MessageContent | null,
): AsyncGenerator<TurnEvent, TurnOutcome> {
  const maxCalls = checkMaxCalls(turn.host)
  const end =
    (yield* appendPrompt(turn, prompt)) ??
    (yield* runLoop(turn, maxCalls, prompt === null ? 'call' : 'prompt'))
  const outcome: TurnOutcome = { ...end, state: turn.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

/** Far more than an ordinary turn needs; a model that goes in circles reaches it. */
const DEFAULT_MAX_CALLS = 1000

function checkMaxCalls({ maxCalls = DEFAULT_MAX_CALLS }: TurnHost): number {
  if (Number.isInteger(maxCalls) && maxCalls > 0) return maxCalls
  throw new TidemarkError('bad-option', `maxCalls: expected a whole number above 0, got ${maxCalls}.`)
}

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/** Appends the prompt, preceded by results for tool calls that never got one, as one batch. */
async function* appendPrompt(
  turn: TurnContext,
  prompt: MessageContent | null,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const calls = listUnansweredCalls(turn.state.flat)
  const bodies: readonly UnlinkedRecord[] = [
    ...(calls.length === 0 ? [] : [createMissingResultsRecord(calls)]),
    ...(prompt === null
      ? []
      : [
          ...createUndoNotice(turn),
          { type: 'user' as const, message: { role: 'user' as const, content: prompt } },
        ]),
  ]
  if (isAborted(turn)) return ABORTED
  if (calls.length > 0) yield { type: 'calls-settled', calls }
  return yield* appendBodies(turn, bodies)
}

/** Calls the model and runs its tools until it calls none. `first`: where in the turn the first call is made. */
async function* runLoop(
  turn: TurnContext,
  maxCalls: number,
  first: TurnMoment,
): AsyncGenerator<TurnEvent, CompletedTurn | TurnFailure> {
  for (let calls = 0; calls < maxCalls; calls += 1) {
    const response = yield* callWithRecovery(turn, calls === 0 ? first : 'call')
    if (!response.ok) return response
    const { reply } = response
    const noted = yield* recordResponse(turn, reply)
    if (noted !== null) return noted
    const toolCalls = listToolCalls(reply)
    const stopReason = reply.message.stop_reason ?? null
    // `pause_turn`: the provider interrupted a long turn of the model; it continues when sent back as it is.
    if (toolCalls.length === 0 && stopReason !== 'pause_turn') return { ok: true, stopReason }
    if (isAborted(turn)) return ABORTED
    const failure = yield* runTools(turn, toolCalls)
    if (failure !== null) return failure
  }
  return { ok: false, reason: 'call-limit', calls: maxCalls }
}

/** A request and its response. A request refused for its size, its media or its thinking is changed and sent again. */
async function* callWithRecovery(
  turn: TurnContext,
  moment: TurnMoment,
): AsyncGenerator<TurnEvent, ResponseResult> {
  let tried = NOTHING_TRIED
  for (let at = moment; ; at = 'call') {
    const { response, held } = yield* deferFailureEvent(turn.host, callModel(turn, at))
    const recovery = yield* recover(turn, response, tried)
    if (recovery?.ok !== true) {
      if (held !== null) yield held
      return recovery ?? response
    }
    tried = recovery.tried
  }
}

/** One model call: make the request fit, build it, send it. */
async function* callModel(turn: TurnContext, moment: TurnMoment): AsyncGenerator<TurnEvent, ResponseResult> {
  const call = yield* readyRequest(turn, moment)
  return 'ok' in call ? call : yield* sendRequest(turn, call)
}

/**
 * The next request, recorded as sent; also for hosts that send it themselves. What another writer of the session
 * appends from here on is for the request after it.
 */
export async function* readyRequest(
  turn: TurnContext,
  moment: TurnMoment,
): AsyncGenerator<TurnEvent, PendingCall | TurnFailure> {
  if (isAborted(turn)) return ABORTED
  const failure =
    (yield* reduceContext(turn, moment)) ?? // clear or compact, as planned
    (yield* limitMedia(turn)) ?? // drop the oldest images over the provider's limits
    (yield* appendSourceUpdates(turn)) ?? // todos, plan … that changed since the model last saw them
    (yield* appendPrefixUpdates(turn)) // system prompt and tools that changed since the snapshot
  if (failure !== null) return failure
  return await withWriteLock(turn, async () => {
    const { current } = turn.state.prefix
    if (current === null) throw new RangeError('expected a prefix snapshot after prefix updates')
    const next = buildNextRequest(turn.state, current, turn.host)
    turn.state = next.state
    if (next.findings.length > 0) return { ok: false, reason: 'invalid', findings: next.findings }
    return startCall(turn, next)
  })
}

/**
 * After each response: counts the turn, and records what the provider cleared by itself. The provider reports its
 * edits with every response; only those that no record holds yet are appended.
 */
export async function* recordResponse(
  turn: TurnContext,
  { message }: Reply,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { ids, profile } = turn.host
  const compaction = turn.host.compaction
  if (compaction === undefined) return null
  const known = withContextState(turn.state, compaction)
  const tracking = countTurn(known.context.tracking, ids.next('turn'))
  turn.state = { ...known, context: { ...known.context, tracking } }
  const { providerEdits } = turn.state
  if (providerEdits === null) return null
  const applied = readAppliedEdits(message.context_management, profile.contextEdits)
  const context = measureContext(turn.state, turn.host, compaction)
  const clearing = findAppliedClearing({ register: known.context.register, context }, providerEdits, applied)
  return clearing === null ? null : yield* applyClearing(turn, compaction, clearing)
}

interface DeferredFailure {
  readonly response: ResponseResult
  /** The failure event, not yet emitted; null if there was none. */
  readonly held: TurnEvent | null
}

/** Holds back the event of a failure that recovery may cure: it is emitted only if recovery fails too. */
async function* deferFailureEvent(
  host: TurnHost,
  events: AsyncGenerator<TurnEvent, ResponseResult>,
): AsyncGenerator<TurnEvent, DeferredFailure> {
  let held: TurnEvent | null = null
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return { response: step.value, held }
      const { value } = step
      const failed = value.type === 'reply' && value.event.type === 'reply-failed' ? value.event : null
      if (failed !== null && isRecoverable(failed.failure, host)) held = value
      else yield step.value
    }
  } finally {
    // A caller that stops reading stops the call too.
    await events.return({ ok: false, reason: 'aborted' })
  }
}
