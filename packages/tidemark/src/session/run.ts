/** Implements `session.run`: one turn, from the prompt until the model makes no more tool calls. */

import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { Limits } from '@tidemark/core/cost/limits'
import type { TurnEvent, TurnFailure, TurnOutcome } from '@tidemark/core/engine/events'
import { findInputLimit } from '@tidemark/core/engine/measure-context'
import { countPrefixTokens } from '@tidemark/core/engine/next-request'
import type { ModelFailure } from '@tidemark/core/engine/reply'
import { findLastAnswerEnd } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { TidemarkError } from '@tidemark/core/errors'
import { isBlock, type MessageContent } from '@tidemark/core/log/block'
import { omitUndefined } from '@tidemark/core/log/json'
import type { ReplyStop } from '@tidemark/core/log/reply-report'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { calibrateSize, canFitLimit, startCalibration } from '@tidemark/core/tokens/usage'
import { takeTurn } from '@tidemark/core/turn/turn'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { extractReplyText } from './append.ts'
import { createEventStream, type EventStream, type SessionEvent } from './events.ts'
import {
  emitSessionEvent,
  type OpenSession,
  refreshFromLog,
  reserveSession,
  traceOperation,
} from './open-session.ts'
import { beginRunLimits, checkLimitsPriced, checkRunLimits } from './session-limits.ts'
import { replaceRefusedSummary } from './switch-model.ts'
import { createToolset, type ToolOptions, type Toolset } from './tools.ts'
import { checkSignals, createTurnContext, createTurnHost } from './turn-host.ts'

export interface RunOptions extends ToolOptions {
  readonly signal?: AbortSignal
  /** Limit of model calls, after which the turn ends with `call-limit`. Default: 1,000. */
  readonly maxCalls?: number
  /** Limits of this run, in addition to those of the session. Once a limit is reached, the turn ends with `limit`. */
  readonly limits?: Limits
  /**
   * The texts that the user typed, one or several. Needed if the prompt is a list of blocks that also has texts of the
   * host, such as attached files. Default: every text of the prompt is the user's, whatever it looks like.
   */
  readonly typed?: string | readonly string[]
}

/** A running turn: an iterable of its events, and its `outcome`. Leaving the loop early aborts the turn. */
export type Run = EventStream<SessionEvent, RunOutcome>

export type RunOutcome =
  | {
      readonly ok: true
      /** The text of the last response, with its continuations, without thinking and tool calls. */
      readonly text: string
      /** Why the last reply ended. */
      readonly stop: ReplyStop | null
      /** The stop reason in the provider's own spelling, such as `tool_use`. */
      readonly stopReason: string | null
    }
  | (TurnFailure & { readonly message: string })

/** Starts a turn at once, whether or not its events are read. Throws for wrong tools or prompts, and if the session is busy. */
export function startTurn(
  session: OpenSession,
  prompt: MessageContent | null,
  options: RunOptions = {},
): Run {
  checkOptionNames('run', options, ['tools', 'runTool', 'findTool', 'signal', 'maxCalls', 'limits', 'typed'])
  if (prompt !== null && typeof prompt !== 'string' && !isBlockList(prompt))
    throw badOptionError(
      'prompt',
      `run: the prompt is ${formatErrorValue(prompt)}; expected text, blocks, or null to continue.`,
    )
  if (options.typed !== undefined && ![options.typed].flat().every((text) => typeof text === 'string'))
    throw badOptionError(
      'typed',
      `run: typed is ${formatErrorValue(options.typed)}; expected a text or a list of texts.`,
    )
  const { maxCalls = 1 } = options
  if (!Number.isInteger(maxCalls) || maxCalls < 1)
    throw badOptionError(
      'maxCalls',
      `run: maxCalls is ${formatErrorValue(maxCalls)}; expected a whole number above 0.`,
    )
  if (options.limits !== undefined) checkLimitsOfRun(session, options.limits)
  const { tools = session.tools.definitions, runTool, findTool } = options
  const isNew = [options.tools, runTool, findTool].some((given) => given !== undefined)
  const toolset = isNew ? createToolset({ tools, ...omitUndefined({ runTool, findTool }) }) : session.tools
  checkToolsNeeded(session, toolset, prompt)
  const stop = new AbortController()
  const signals = [options.signal, stop.signal]
  checkSignals(signals)
  const release = reserveSession(session, 'run')
  session.tools = toolset
  // From now on the tool stays declared: removing it would break the cache, and earlier messages may call it.
  if (toolset.isRunnable === true && session.settings.isHistoryAutomatic) session.offersHistory = true
  return createEventStream({
    events: traceOperation(
      session,
      'run',
      runTurn(session, prompt, {
        signals,
        release,
        ...omitUndefined({ maxCalls: options.maxCalls, limits: options.limits, typed: options.typed }),
      }),
    ),
    onEvent: (event) => emitSessionEvent(session, event),
    abort: () => stop.abort(),
  })
}

/** Throws `bad-option` if nothing runs the tools. Does nothing if the turn ends at once because the last answer is complete. */
function checkToolsNeeded(session: OpenSession, toolset: Toolset, prompt: MessageContent | null): void {
  const { withoutRunner = [] } = toolset
  if (withoutRunner.length === 0) return
  if (prompt === null && findLastAnswerEnd(session.state)?.isFinished === true) return
  throw badOptionError(
    'tools',
    `run: nothing runs the tools ${withoutRunner.join(', ')}. Give runTool(call, signal), or each tool as { description, inputSchema, run }.`,
  )
}

function isBlockList(prompt: unknown): boolean {
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every(isBlock)
}

interface RunSettings {
  readonly signals: readonly (AbortSignal | undefined)[]
  readonly release: () => void
  readonly maxCalls?: number
  readonly limits?: Limits
  readonly typed?: string | readonly string[]
}

async function* runTurn(
  session: OpenSession,
  prompt: MessageContent | null,
  { signals, release, maxCalls, limits, typed }: RunSettings,
): AsyncGenerator<SessionEvent, RunOutcome> {
  let text = ''
  let isContinued = false
  session.limits.isInForce ||= limits !== undefined
  const run = createTurnContext(session, { signals, ...omitUndefined({ maxCalls }) })
  try {
    await refreshFromLog(session, run)
    if (limits !== undefined) beginRunLimits(session, limits)
    // Another process may have appended a prompt to a session that was finished.
    checkToolsNeeded(session, session.tools, prompt)
    session.awaited.abandon()
    session.refusal = null
    const tooLarge = prompt === null ? null : checkPromptFits(session, prompt)
    const failure = tooLarge ?? (yield* replaceRefusedSummary(session, run))
    const events = failure === null ? takeTurn(run, prompt, typed) : endTurn(run, failure)
    for (;;) {
      const step = await events.next()
      if (step.done === true) return toRunOutcome(step.value, text)
      if (step.value.type === 'answered') {
        text = (isContinued ? text : '') + extractReplyText(step.value.reply)
        isContinued = false
      } else if (step.value.type === 'answer-continued') isContinued = true
      yield step.value
    }
  } catch (thrown) {
    // Errors with a code name what the caller gave: a port or an option. Any other error is a fault of the library.
    if (!(thrown instanceof TidemarkError)) throw thrown
    const failure: TurnFailure = { ok: false, reason: 'port', message: thrown.message, unsaved: [] }
    return toRunOutcome(yield* endTurn(run, failure), text)
  } finally {
    session.limits.run = null
    session.limits.isInForce = session.limits.own.length > 0
    release()
  }
}

function checkLimitsOfRun({ model, settings }: OpenSession, limits: Limits): void {
  checkRunLimits(limits)
  checkLimitsPriced(limits, [model.choice, settings.summariser], settings.clock.now())
}

async function* endTurn(run: TurnContext, failure: TurnFailure): AsyncGenerator<TurnEvent, TurnOutcome> {
  const outcome: TurnOutcome = { ...failure, state: run.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

function toRunOutcome({ state, ...end }: TurnOutcome, text: string): RunOutcome {
  if (end.ok) return { ok: true, text, stop: end.stop, stopReason: end.stopReason }
  return { ...end, message: describeTurnFailure(end, toApiMessages(state.flat)) }
}

/**
 * Returns a failure if prompt, system prompt and tools alone exceed the window by every estimate. The prompt is then
 * not appended, and nothing is compacted. Null if they may fit: the provider's own count decides.
 */
function checkPromptFits(session: OpenSession, prompt: MessageContent): TurnFailure | null {
  const { estimator, scaled, choice } = session.model
  const host = createTurnHost(session)
  const limit = findInputLimit(host, scaled)
  const front = countPrefixTokens(session.state, host)
  const content = estimator.content(prompt)
  const start = startCalibration(estimator.weights.start)
  const { estimate } = session.settings.policy
  const own = calibrateSize(start, content, estimate)
  const prefix = calibrateSize(start, front, estimate)
  if (canFitLimit({ expected: own.expected + prefix.expected, high: own.high + prefix.high }, prompt, limit))
    return null
  const message = `The prompt has about ${formatTokens(own.expected)} tokens, and the system prompt and tools before it have ${formatTokens(prefix.expected)}: ${choice.id} takes ${formatTokens(limit)}.`
  return { ok: false, reason: 'full', message, withdrawn: [prompt] }
}

function formatTokens(tokens: number): string {
  return Math.ceil(tokens).toLocaleString('en-US')
}

/** Returns a message about why an operation stopped and what to do. `messages`: the current conversation. */
export function describeTurnFailure(failure: TurnFailure, messages: readonly ApiMessage[]): string {
  const message = describeCause(failure, messages)
  const count = 'withdrawn' in failure ? (failure.withdrawn?.length ?? 0) : 0
  if (count === 0) return message
  const which = count === 1 ? 'The prompt is' : `The ${count} prompts that the model has not answered are`
  return `${message.replace(/\.?$/, '.')} ${which} not part of the conversation. Split what is too long, or put it in a file that a tool can read.`
}

function describeCause(failure: TurnFailure, messages: readonly ApiMessage[]): string {
  switch (failure.reason) {
    case 'conflict':
      return 'Another process wrote to the session at the same time. Nothing was lost; try again.'
    case 'locked':
      return 'message' in failure.refusal ? failure.refusal.message : 'Another process holds the session.'
    case 'invalid': {
      if (messages.length === 0) return 'The conversation is empty: append a prompt first.'
      const [first] = failure.findings
      if (messages.at(-1)?.role === 'assistant' || first?.code === 'prefill-refused')
        return 'The last message is an answer of the model: append a prompt first.'
      return `The provider would reject the request: ${first?.path ?? ''}: ${first?.message ?? 'invalid'}.`
    }
    case 'failed':
      return describeModelFailure(failure.failure)
    case 'aborted':
      return 'It was aborted.'
    case 'call-limit':
      return `The turn was stopped at its limit of calls to the model (${failure.calls}). Run with null to continue.`
    case 'prefix':
    case 'blocked':
    case 'port':
    case 'full':
    case 'limit':
      return failure.message
  }
}

/** For an unknown model, the provider's message is only `model: NAME`, so more is added. */
function describeModelFailure({ kind, message }: ModelFailure): string {
  const model = kind === 'not-found' ? /^model: (.+)$/.exec(message)?.[1] : undefined
  return model === undefined ? message : `The provider has not found the model ${model}`
}
