/**
 * The agent loop: appends the prompt, then sends requests and runs tools until the model calls no more tools. Every
 * step is appended before the next one uses it, so a turn can be resumed from the log.
 */

import { findAppliedClearing } from '../clearing/provider-clearing.ts'
import { createMissingResultsRecord, listUnansweredCalls } from '../context/flatten-context.ts'
import {
  appendPrefixUpdates,
  appendSourceUpdates,
  collectOpeningRecords,
} from '../engine/announce-updates.ts'
import { admitCall, checkLimitsBeforeCall, priceNewCalls } from '../engine/call-limits.ts'
import {
  findResumeCost,
  type ModelCallResult,
  type PendingModelCall,
  registerModelCall,
  sendRequest,
} from '../engine/call-model.ts'
import type { CompletedTurn, TurnEvent, TurnFailure, TurnOutcome } from '../engine/events.ts'
import type { TurnHost } from '../engine/host.ts'
import { createUndoNotice, measureContext, withPlanningState } from '../engine/measure-context.ts'
import { buildNextRequestInSteps } from '../engine/next-request.ts'
import { planRetry, type Reply, type ReplyFailed } from '../engine/reply.ts'
import { findLastAnswerEnd } from '../engine/session-state.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  runSlicesToEnd,
  type TurnContext,
  type UnlinkedRecord,
  withWriteLock,
  yieldToHost,
} from '../engine/session-writer.ts'
import { TidemarkError } from '../errors.ts'
import { createRecordedUserInputs } from '../facts/user-input.ts'
import { isTextBlock, type MessageContent, readStopReason, toBlocks } from '../log/block.ts'
import type { PlanningMoment } from '../planner/plan-input.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import {
  appendContinuation,
  compactAfterCutToolCalls,
  createContinuationRecord,
  createInterruptionNotice,
  isRecoverableFailure,
  NO_REMEDIES_TRIED,
  NOTHING_TO_ANSWER_FAILURE,
  recoverFromRefusal,
  withdrawTooLongPrompts,
} from './recover-refusal.ts'
import { appendClearing, dropExcessMedia, reduceContext, swapInOrPrepareSummary } from './reduce-context.ts'
import { listToolCalls, runTools } from './run-tools.ts'
import { runPromptSubmitHooks, runSessionStartHooks, runStopHooks, type StopObjection } from './turn-hooks.ts'

/**
 * Runs one turn. The last event, `turn-ended`, has the outcome, which is also returned. If the caller stops reading,
 * the turn stops; the log has everything emitted so far, and `readSessionState` resumes from it. `typed`: the parts of the
 * prompt that the user typed, see `createRecordedUserInputs`.
 */
export async function* takeTurn(
  turn: TurnContext,
  prompt: MessageContent | null,
  typed?: string | readonly string[],
): AsyncGenerator<TurnEvent, TurnOutcome> {
  const maxCalls = checkMaxCalls(turn.host)
  const reached =
    (yield* appendPrompt(turn, prompt, typed)) ??
    (yield* runLoop(turn, maxCalls, prompt === null ? 'call' : 'prompt'))
  const end = reached.ok ? reached : yield* withdrawTooLongPrompts(turn, reached)
  if (end.ok) {
    turn.host.startBackgroundWork?.(turn.state, 'turn-end')
    yield* swapInOrPrepareSummary(turn)
  }
  const outcome: TurnOutcome = { ...end, state: turn.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

/** Default limit of model calls in one turn. Only a model that repeats itself reaches it. */
const DEFAULT_MAX_CALLS = 1000

function checkMaxCalls({ maxCalls = DEFAULT_MAX_CALLS }: TurnHost): number {
  if (Number.isInteger(maxCalls) && maxCalls > 0) return maxCalls
  throw new TidemarkError('bad-option', `maxCalls: expected a whole number above 0, got ${maxCalls}.`)
}

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/**
 * Appends the prompt in one batch, after error results for tool calls that have no result. Without a prompt, the turn
 * continues the last answer if it was cut off, and fails if it was finished: there is nothing to ask the model.
 */
async function* appendPrompt(
  turn: TurnContext,
  prompt: MessageContent | null,
  typed: string | readonly string[] | undefined,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const calls = listUnansweredCalls(turn.state.flat)
  const last = findLastAnswerEnd(turn.state)
  if (prompt === null && last?.isFinished === true) return NOTHING_TO_ANSWER_FAILURE
  const hooked = prompt === null ? [] : yield* runPromptSubmitHooks(turn, prompt)
  if ('ok' in hooked) return hooked
  if (isTurnAborted(turn)) return ABORTED
  const source = turn.host.startSource?.() ?? null
  const started = source === null ? [] : yield* runSessionStartHooks(turn, source)
  const opening = prompt === null ? [] : yield* collectOpeningRecords(turn)
  const bodies: readonly UnlinkedRecord[] = [
    ...opening,
    ...(calls.length === 0 ? [] : [createMissingResultsRecord(calls)]),
    ...started,
    ...(prompt === null
      ? last?.isCut === true
        ? [createContinuationRecord()]
        : []
      : [
          ...(last?.isInterrupted === true ? [createInterruptionNotice()] : []),
          ...createUndoNotice(turn),
          {
            type: 'user' as const,
            message: { role: 'user' as const, content: prompt },
            userInputs: createRecordedUserInputs(prompt, typed),
          },
        ]),
    ...hooked,
  ]
  if (isTurnAborted(turn)) return ABORTED
  if (calls.length > 0) yield { type: 'calls-settled', calls }
  const failure = yield* appendUnlinkedRecords(turn, bodies)
  if (failure === null && source !== null) turn.host.noteStarted?.()
  return failure
}

/** Calls the model and runs its tools until it calls none. `first`: `prompt` if a prompt was just appended, otherwise `call`. */
async function* runLoop(
  turn: TurnContext,
  maxCalls: number,
  first: PlanningMoment,
): AsyncGenerator<TurnEvent, CompletedTurn | TurnFailure> {
  let cuts = 0
  let stopsOverruled = 0
  let isContinued = false
  for (let calls = 0; calls < maxCalls; calls += 1) {
    const response = yield* callWithRecovery(turn, calls === 0 ? first : 'call')
    if (!response.ok) return response
    const { reply } = response
    const noted = yield* countTurnAndRecordClearing(turn, reply)
    if (noted !== null) return noted
    turn.host.startBackgroundWork?.(turn.state, 'response')
    const toolCalls = listToolCalls(reply)
    const { stop = null } = reply
    const completed: CompletedTurn = { ok: true, stop, stopReason: readStopReason(reply.message) }
    const isCut = stop === 'cut' && toolCalls.every((call) => call.isCut)
    // Many models refuse a request that ends with their own text, so a response paused in its text is continued like a cut one.
    const isPausedInText = stop === 'paused' && endsInText(reply)
    cuts = isCut || isPausedInText ? cuts + 1 : 0
    const isLast = cuts > countAllowedContinuations(turn.host)
    // The provider interrupted a paused response. Sent back unchanged, it continues.
    if (toolCalls.length === 0 && stop !== 'paused' && (cuts === 0 || isLast)) {
      if (stopsOverruled >= MAX_STOPS_OVERRULED) {
        yield { type: 'hook-failed', hook: 'stop', message: STOP_LIMIT_MESSAGE }
        return completed
      }
      const objection: StopObjection | null = yield* runStopHooks(turn, completed, isContinued)
      if (objection === null) return completed
      stopsOverruled += 1
      isContinued ||= objection.isCheck
      const failure = yield* appendUnlinkedRecords(turn, [objection.record])
      if (failure !== null) return failure
      continue
    }
    if (isTurnAborted(turn)) return ABORTED
    const failure =
      toolCalls.length === 0 && cuts > 0
        ? yield* appendContinuation(turn, cuts)
        : ((yield* runTools(turn, toolCalls)) ?? (yield* compactAfterCutToolCalls(turn, reply)))
    if (failure !== null) return failure
    if (isLast) return completed
  }
  return { ok: false, reason: 'call-limit', calls: maxCalls }
}

/** How often Stop hooks can make one turn go on. Without a limit, a hook that is never satisfied would spend money forever. */
const MAX_STOPS_OVERRULED = 25
const STOP_LIMIT_MESSAGE = `Stop hooks made the turn go on ${MAX_STOPS_OVERRULED} times; it has ended now.`

function endsInText({ message }: Reply): boolean {
  const last = toBlocks(message.content).at(-1)
  return last !== undefined && isTextBlock(last)
}

/**
 * Sends a request. If it is refused for its size, media or thinking, changes it and sends it again. If its reply breaks
 * off, waits and sends it again.
 */
async function* callWithRecovery(
  turn: TurnContext,
  moment: PlanningMoment,
): AsyncGenerator<TurnEvent, ModelCallResult> {
  let tried = NO_REMEDIES_TRIED
  let attempt = 0
  for (let at = moment; ; at = 'call') {
    const { response, held } = yield* deferFailureEvent(turn.host, callModel(turn, at))
    const cause = held?.event.failure
    if (cause !== undefined && isBrokenReply(held)) {
      const { host, signal } = turn
      const retry = planRetry(cause, attempt, host.policy.turn.network, host.chance?.() ?? 0)
      if (retry.again) {
        attempt += 1
        yield { type: 'retrying', cause, delayMs: retry.delayMs, attempt }
        await host.clock.sleep(retry.delayMs, signal)
        continue
      }
    }
    const recovery = yield* recoverFromRefusal(turn, response, tried)
    if (recovery?.ok !== true) {
      if (held !== null) yield held
      return recovery ?? response
    }
    tried = recovery.tried
  }
}

/** Makes one model call: reduces the context, builds the request and sends it. */
async function* callModel(
  turn: TurnContext,
  moment: PlanningMoment,
): AsyncGenerator<TurnEvent, ModelCallResult> {
  const call = yield* prepareNextRequest(turn, moment)
  if ('ok' in call) return call
  try {
    return yield* sendRequest(turn, call)
  } finally {
    call.admitted?.end()
  }
}

/**
 * Builds the next request and stores it as the last one sent, also for hosts that send it themselves. Records that
 * other writers append afterwards are sent with the following request. `findRefusal`: returns a failure for a request
 * that must not be sent; it is then not stored either.
 */
export async function* prepareNextRequest(
  turn: TurnContext,
  moment: PlanningMoment,
  findRefusal: (request: AssembledRequest) => TurnFailure | null = () => null,
): AsyncGenerator<TurnEvent, PendingModelCall | TurnFailure> {
  if (isTurnAborted(turn)) return ABORTED
  // What a client may pay for its cache depends on what it has saved so far, also in a session that was just opened.
  if (turn.host.client !== undefined) await priceNewCalls(turn)
  const failure =
    (turn.host.limits === undefined ? null : await checkLimitsBeforeCall(turn)) ?? // before anything is rewritten for a request that is not sent
    (yield* reduceContext(turn, moment)) ?? // clears or compacts, as planned
    (yield* dropExcessMedia(turn)) ?? // drops the oldest images above the provider's limits
    (yield* appendSourceUpdates(turn)) ?? // announces changed todos, plan and other context sources
    (yield* appendPrefixUpdates(turn)) // announces changes of system prompt and tools
  if (failure !== null) return failure
  await yieldToHost(turn)
  const start = async (): Promise<PendingModelCall | TurnFailure> => {
    const { current } = turn.state.prefix
    if (current === null) throw new RangeError('expected a prefix snapshot after prefix updates')
    const next = await runSlicesToEnd(turn, buildNextRequestInSteps(turn.state, current, turn.host))
    turn.state = next.state
    if (next.findings.length > 0) return { ok: false, reason: 'invalid', findings: next.findings }
    return findRefusal(next.request) ?? registerModelCall(turn, next)
  }
  const isLimited = turn.host.limits !== undefined
  const call = await (isLimited ? startAdmitted(turn, start) : withWriteLock(turn, start))
  const cost = 'ok' in call ? null : findResumeCost(turn, call)
  if (cost !== null) yield { type: 'resume-cost', ...cost }
  return call
}

/** Starts a call unless a limit is reached. This is checked without the write lock, which running calls need to end. */
async function startAdmitted(
  turn: TurnContext,
  start: () => Promise<PendingModelCall | TurnFailure>,
): Promise<PendingModelCall | TurnFailure> {
  const admitted = await admitCall(turn)
  if ('ok' in admitted) return admitted
  let started: PendingModelCall | null = null
  try {
    const call = await withWriteLock(turn, start)
    if ('ok' in call) return call
    started = { ...call, admitted }
    return started
  } finally {
    if (started === null) admitted.end()
  }
}

/** Returns how often an answer that the output limit ended is continued. */
function countAllowedContinuations({ policy, switches = NO_SWITCHES }: TurnHost): number {
  return findFeatureStates(policy, switches).reactive.on ? policy.turn.reactive.continuations : 0
}

/**
 * Counts a response for the distance between compactions, and appends a record of what the provider cleared. The provider
 * reports its clearings with every response, so those that already have a record are skipped.
 */
export async function* countTurnAndRecordClearing(
  turn: TurnContext,
  { message }: Reply,
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { ids, profile } = turn.host
  const known = withPlanningState(turn.state, turn.host)
  const { tracking: before } = known.context
  const tracking = { ...before, turns: before.turns + 1, turnId: ids.next('turn') }
  turn.state = { ...known, context: { ...known.context, tracking } }
  const { providerEdits } = turn.state
  if (providerEdits === null) return null
  const applied = profile.spelling.readEdits(message, profile)
  const context = measureContext(turn.state, turn.host)
  const clearing = findAppliedClearing({ register: known.context.register, context }, providerEdits, applied)
  return clearing === null ? null : yield* appendClearing(turn, clearing)
}

type FailureEvent = TurnEvent & { readonly type: 'reply'; readonly event: ReplyFailed }

interface DeferredFailure {
  readonly response: ModelCallResult
  /** Failure event that was held back; null if there was none. */
  readonly held: FailureEvent | null
}

/**
 * Returns true if the reply began and broke off for a reason that may pass. A call that failed before any event is not
 * repeated here, because the model has retried it already.
 */
function isBrokenReply(failed: FailureEvent | null): boolean {
  return failed !== null && failed.event.reply !== null && failed.event.failure.retryable
}

/** Delays the event of a failure that recovery or a retry may fix. It is emitted only if that fails too. */
async function* deferFailureEvent(
  host: TurnHost,
  events: AsyncGenerator<TurnEvent, ModelCallResult>,
): AsyncGenerator<TurnEvent, DeferredFailure> {
  let held: FailureEvent | null = null
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return { response: step.value, held }
      const { value } = step
      const failed =
        value.type === 'reply' && value.event.type === 'reply-failed'
          ? { ...value, event: value.event }
          : null
      if (failed !== null && (isRecoverableFailure(failed.event.failure, host) || isBrokenReply(failed)))
        held = failed
      else yield value
    }
  } finally {
    // If the caller stops reading, the model call is stopped too.
    await events.return({ ok: false, reason: 'aborted' })
  }
}
