/** Implements `session.next`: reduces the context if needed and returns the next API request for the caller's own loop. */
import type { CacheForecast } from '@tidemark/core/cache/cache-forecast'
import {
  createMissingResultsRecord,
  listUnansweredCalls,
  toApiMessages,
} from '@tidemark/core/context/flatten-context'
import type { Payload } from '@tidemark/core/context/payload'
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import type { TurnEvent, TurnFailure } from '@tidemark/core/engine/events'
import { measureContext } from '@tidemark/core/engine/measure-context'
import type { ModelFailureKind } from '@tidemark/core/engine/reply'
import { findLastAnswerEnd } from '@tidemark/core/engine/session-state'
import { appendUnlinkedRecords, type TurnContext } from '@tidemark/core/engine/session-writer'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { isPrompt } from '@tidemark/core/log/record'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { type AssembledRequest, toModelCallInput } from '@tidemark/core/request/build-request'
import {
  type CallerPrompt,
  orderPromptSections,
  type PlacedSection,
  type SystemPrompt,
} from '@tidemark/core/request/system-prompt'
import type { ContextTokens } from '@tidemark/core/tokens/usage'
import { NOTHING_TO_ANSWER_FAILURE, withdrawTooLongPrompts } from '@tidemark/core/turn/recover-refusal'
import { prepareNextRequest } from '@tidemark/core/turn/turn'
import type { SplitClientList } from '@tidemark/wire/providers/client-request'
import { findCodec } from '../models/providers.ts'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { type OpenSession, refreshFromLog, reserveSession, runOperation } from './open-session.ts'
import { describeTurnFailure } from './run.ts'
import { withParameters } from './session-model.ts'
import { replaceRefusedSummary } from './switch-model.ts'
import { createToolset, type ToolDefinitions, type Tools, type Toolset } from './tools.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

export interface NextOptions {
  /** Tools by name, or definitions in the format of the API. Default: the tools of the previous request. */
  readonly tools?: Tools | ToolDefinitions
  /** The system prompt for this and later requests. Default: the current system prompt of the session. */
  readonly system?: SystemPrompt | CallerPrompt
  /**
   * Request parameters for this and later requests, such as `{ temperature: 0 }`, added to those of the model; null
   * removes one. Change parameters here and not in the body, so that the cause of a cache break is known.
   */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** Adds a placeholder result for each tool call that has none. Without this option, the results must be appended first. */
  readonly settle?: boolean
  readonly signal?: AbortSignal
}

/** The body of an API request: parameters, tools, system prompt and messages. */
export type RequestBody = Omit<Payload, 'betas'>

/** The next request, or why there is none. `Body`: an SDK type, as in `next<Anthropic.MessageCreateParamsNonStreaming>()`. */
export type NextOutcome<Body = RequestBody> = ReadyRequest<Body> | RefusedNext

/** Why there is no next request. */
type RefusedNext = UnansweredCalls | (TurnFailure & { readonly message: string })

/** A refusal because tool calls of the last response have no result yet. Nothing was appended to the log. */
interface UnansweredCalls {
  readonly ok: false
  readonly reason: 'open-calls'
  /** Ids of the tool calls without a result. */
  readonly calls: readonly string[]
  readonly message: string
}

export interface ReadyRequest<Body = RequestBody> {
  readonly ok: true
  /** The request body, for `client.messages.create(body, { headers })`. */
  readonly body: Body
  /** The headers that the request body needs, such as one that lists betas; empty if it needs none. */
  readonly headers: Readonly<Record<string, string>>
  readonly betas: readonly string[]
  /** How many tokens of the request are expected to be read from the provider's prompt cache. */
  readonly forecast: CacheForecast
  /** Tokens of the request, measured or estimated before it is sent. */
  readonly context: ContextTokens
  /**
   * The exact JSON text of the request body, for callers that send it themselves. Blocks that JSON cannot reproduce
   * exactly keep their original text.
   */
  readonly text: string
}

/** Implements `session.next`: checks the options, prepares the request, and converts it for the caller. */
export async function prepareNextBody<Body>(
  session: OpenSession,
  options: NextOptions = {},
): Promise<NextOutcome<Body>> {
  checkOptionNames('next', options, ['tools', 'system', 'parameters', 'settle', 'signal'])
  const tools = options.tools === undefined ? null : createToolset({ tools: options.tools })
  const sections = options.system === undefined ? null : orderPromptSections(options.system)
  const parameters = options.parameters === undefined ? null : checkParameters(options.parameters)
  const ready = await prepareAwaitedRequest(session, 'next', { ...options, tools, sections, parameters })
  return 'ok' in ready ? ready : toReadyRequest<Body>(session, ready)
}

interface RequestChanges {
  /** Changes by this request; null keeps the session's value. */
  readonly tools: Toolset | null
  readonly sections: readonly PlacedSection[] | null
  readonly parameters: JsonObject | null
  readonly settle?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Prepares the next request with these changes, which the session keeps, and reduces the context if needed. The session
 * then waits for the response. Throws `busy` if another operation runs. `operation`: the caller's method, for messages.
 */
export async function prepareAwaitedRequest(
  session: OpenSession,
  operation: 'next' | 'take',
  { tools, sections, parameters, settle, signal }: RequestChanges,
): Promise<PendingModelCall | RefusedNext> {
  const release = reserveSession(session, operation)
  try {
    await refreshFromLog(session, createTurnContext(session, { signals: [signal] }))
    // The previous response may never come. Its reservation is dropped, because near a limit the new request would wait for it.
    session.awaited.request?.admitted?.end()
    const calls = listUnansweredCalls(session.state.flat).map(({ id }) => id)
    if (calls.length > 0 && settle !== true) {
      const message = `next: no result for ${calls.join(', ')}. Append toolResult(id, …) for each, or give { settle: true } to go on without.`
      return { ok: false, reason: 'open-calls', calls, message }
    }
    if (tools !== null) session.tools = tools
    if (sections !== null) session.sections = sections
    if (parameters !== null) session.model = withParameters(session.model, parameters)
    const run = createTurnContext(session, { signals: [signal] })
    const ready = await runOperation(session, buildRequest(session, run))
    if ('ok' in ready)
      return { ...ready, message: describeTurnFailure(ready, toApiMessages(session.state.flat)) }
    session.awaited.begin(ready)
    return ready
  } finally {
    release()
  }
}

/**
 * Failures whose cause may be the request itself: sent again, it would fail again. After another failure, such as a
 * wrong API key or an abort, the same request may succeed.
 */
const CAUSED_BY_REQUEST: ReadonlySet<ModelFailureKind> = new Set([
  'overflow',
  'too-large',
  'media',
  'thinking-binding',
  'invalid-request',
  'unknown',
])

/** Returns the provider's earlier refusal if the request is unchanged since and would be refused again. */
function findStandingRefusal(session: OpenSession, request: AssembledRequest): TurnFailure | null {
  const { refusal } = session
  if (refusal === null || refusal.failure.retryable || !CAUSED_BY_REQUEST.has(refusal.failure.kind))
    return null
  if (refusal.text !== toComparableRequestText(session, request)) return null
  return { ok: false, reason: 'failed', failure: refusal.failure }
}

/**
 * Encodes a request and returns it as one text, to compare it with an earlier one: the headers that its body needs, and
 * the exact body.
 */
export function toComparableRequestText({ encodeBody }: OpenSession, request: AssembledRequest): string {
  const { text, headers } = runStepsAtOnce(encodeBody(toModelCallInput(request)))
  return `${JSON.stringify(headers)}\n${text}`
}

/** Names of body fields that `next` builds itself, each with where it comes from. */
const OWN_FIELDS: Readonly<Record<string, string>> = {
  messages: 'append them',
  model: 'call switchModel',
  system: 'give next({ system })',
  tools: 'give next({ tools })',
}

/** Returns a copy of the caller's parameters as JSON. Throws `bad-option` for a field that `next` builds itself. */
function checkParameters(given: unknown): JsonObject {
  if (!isObject(given))
    throw badOptionError('parameters', `next: parameters is ${formatErrorValue(given)}; expected an object.`)
  for (const name of Object.keys(given))
    if (Object.hasOwn(OWN_FIELDS, name))
      throw badOptionError('parameters', `next: ${name} is no parameter: ${OWN_FIELDS[name]}.`)
  return JSON.parse(JSON.stringify(given)) as JsonObject
}

async function* buildRequest(
  session: OpenSession,
  run: TurnContext,
): AsyncGenerator<TurnEvent, PendingModelCall | TurnFailure> {
  if (findLastAnswerEnd(run.state)?.isFinished === true) return NOTHING_TO_ANSWER_FAILURE
  const calls = listUnansweredCalls(run.state.flat)
  if (calls.length > 0) {
    yield { type: 'calls-settled', calls }
    const failure = yield* appendUnlinkedRecords(run, [createMissingResultsRecord(calls)])
    if (failure !== null) return failure
  }
  const refused = yield* replaceRefusedSummary(session, run)
  if (refused !== null) return refused
  const ready = yield* prepareNextRequest(run, endsInPrompt(run) ? 'prompt' : 'call', (request) =>
    findStandingRefusal(session, request),
  )
  if ('ok' in ready) return yield* withdrawTooLongPrompts(run, ready)
  yield { type: 'request-sent', request: ready.request, forecast: ready.forecast }
  return ready
}

/**
 * Returns true if the last message is a prompt of the user rather than a tool result or a response, or if there is no message.
 */
function endsInPrompt({ state }: TurnContext): boolean {
  const { entries } = state.view
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    if (record?.type === 'user' || record?.type === 'assistant') return isPrompt(record)
  }
  return true
}

/**
 * Converts a prepared request to the result of `session.next`. `list`: the parts of a client's own list that are sent
 * as the client wrote them.
 */
export function toReadyRequest<Body>(
  session: OpenSession,
  { request, forecast }: PendingModelCall,
  list?: SplitClientList,
): ReadyRequest<Body> {
  const call = toModelCallInput(request)
  const { payload } = call
  const host = createTurnHost(session)
  const codec = findCodec(session.model.choice)
  const encode = (): string => runStepsAtOnce(session.encodeBody(call, list)).text
  return {
    ok: true,
    // The request body has the format of the API. `Body` is the caller's type for it.
    body: (list === undefined ? codec.toBody(payload) : JSON.parse(encode())) as unknown as Body,
    headers: codec.toBodyHeaders(payload),
    betas: payload.betas ?? [],
    forecast,
    context: measureContext(session.state, host),
    get text() {
      return encode()
    },
  }
}
