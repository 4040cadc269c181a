/**
 * Handles one request to OpenAI's APIs, from its headers to the answer that is about to be sent, and adds its record to
 * the request log.
 */
import { applyFault, type FaultErrorFormat } from '../faults/fault.ts'
import { takeRequestFault } from '../faults/fault-schedule.ts'
import {
  createCompletionBody,
  END_OF_CHUNKS,
  encodeChunk,
  listCompletionChunks,
} from '../openai/chat/completion.ts'
import {
  CHAT_ERROR_FORMAT,
  createOpenaiError,
  createOpenaiErrorAnswer,
  createParameterError,
  type OpenaiError,
  RESPONSES_ERROR_FORMAT,
  toErrorFields,
} from '../openai/openai-error.ts'
import type { JsonFields } from '../openai/openai-shape.ts'
import { createFailedResponse, createPendingResponse } from '../openai/responses/response-body.ts'
import {
  encodeStreamEvent,
  listResponseEvents,
  listStreamStartEvents,
} from '../openai/responses/response-stream.ts'
import { listInput } from '../openai/responses/stored-responses.ts'
import type { ResponsesEndpoint } from '../openai/validation/responses-shape.ts'
import { type ApiError, type BodyChunk, createJsonAnswer, type HttpAnswer } from '../protocol/answer.ts'
import { isObject } from '../protocol/messages-request.ts'
import type { ReplyDelays } from '../scripts/script.ts'
import {
  type AdmissionResult,
  admitChat,
  admitResponses,
  type PreparedOpenai,
  type PreparedResponses,
} from './admit-openai.ts'
import { authenticateAndCount } from './admit-request.ts'
import {
  answerChat,
  answerCompactRequest,
  answerResponses,
  type ChatAnswer,
  type OpenaiCallContext,
  type ResponsesAnswer,
} from './answer-openai.ts'
import { finishWithoutResponse, type PendingAnswer, toLoggedFaultError } from './handle-messages.ts'
import { recordOpenaiAnswer } from './record-openai.ts'
import type { LoggedRequest, RequestContext } from './record-request.ts'
import type { SimulatorState } from './simulator-state.ts'

export type OpenaiEndpoint = ResponsesEndpoint | 'chat'

interface OpenaiIncoming extends LoggedRequest {
  readonly endpoint: OpenaiEndpoint
  readonly bodyError?: ApiError
}

interface OpenaiExchange {
  readonly state: SimulatorState
  readonly request: RequestContext
  readonly endpoint: OpenaiEndpoint
}

/** Handles a request: authenticates and validates it, has the script answer it, and applies the fault if there is one. */
export async function handleOpenaiRequest(
  state: SimulatorState,
  incoming: OpenaiIncoming,
): Promise<PendingAnswer> {
  const { headers, endpoint, bodyError, value } = incoming
  const entry = authenticateAndCount(state, headers)
  const wanted = takeRequestFault(headers, state.faults)
  const request: RequestContext = {
    number: state.log.takeNumber(),
    requestId: state.ids.next('req'),
    now: state.clock.now(),
    incoming,
    account: entry.ok ? entry.account : null,
    fault: wanted.ok ? wanted.fault : null,
  }
  const exchange = { state, request, endpoint }
  if (!entry.ok) return answerWithError(exchange, translateError(entry.error, headers))
  if (!wanted.ok) return answerWithError(exchange, createParameterError(wanted.message, null))
  if (request.fault?.type === 'status') {
    const answer = applyRequestFault(exchange, createJsonAnswer(200, '', responseHeaders(exchange)))
    return finishWithoutResponse(state, request, { answer, error: toLoggedFaultError(answer, request.fault) })
  }
  if (bodyError !== undefined) return answerWithError(exchange, translateError(bodyError, headers))
  const asked = { value, headers, account: entry.account, now: request.now }
  const admission: AdmissionResult<PreparedOpenai> =
    endpoint === 'chat' ? admitChat(state, asked) : admitResponses(state, endpoint, asked)
  if (!admission.ok) return refuse(exchange, admission)
  const { prepared } = admission
  if (endpoint !== 'input_tokens') return answerPrepared(exchange, prepared)
  const { tokens } = prepared.prompt
  const text = JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens })
  const answer = applyRequestFault(exchange, createJsonAnswer(200, text, responseHeaders(exchange)))
  return finishWithoutResponse(state, request, { answer, error: null, counted: tokens })
}

/** Converts an error that both providers have to OpenAI's format. */
function translateError({ status, message, headers }: ApiError, sent: LoggedRequest['headers']): OpenaiError {
  const more = headers === undefined ? {} : { headers }
  if (status === 401 && sent.authorization === undefined)
    return createOpenaiError(
      401,
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
    )
  if (status === 401)
    return createOpenaiError(401, 'Incorrect API key provided.', { code: 'invalid_api_key' })
  if (status === 429)
    return createOpenaiError(429, 'Rate limit reached for your organization. Please try again later.', {
      type: 'requests',
      code: 'rate_limit_exceeded',
      ...more,
    })
  return createOpenaiError(status, message, more)
}

function answerWithError(exchange: OpenaiExchange, error: OpenaiError): PendingAnswer {
  const { state, request } = exchange
  const answer = applyRequestFault(exchange, createOpenaiErrorAnswer(error, responseHeaders(exchange)))
  return finishWithoutResponse(state, request, { answer, error: toLoggedError(error) })
}

function toLoggedError({ type, code, message }: OpenaiError): {
  readonly type: string
  readonly message: string
} {
  return { type: code ?? type, message }
}

/** Refuses a request. For a prompt over the window, the error may come inside the stream, as from the real provider. */
function refuse(
  exchange: OpenaiExchange,
  { error, tooLong }: Extract<AdmissionResult<PreparedOpenai>, { readonly ok: false }>,
): PendingAnswer {
  const { state, request } = exchange
  const { overflow } = state.settings.openai
  if (tooLong?.api !== 'responses' || tooLong.body.stream !== true || overflow === 'status')
    return answerWithError(exchange, error)
  const { now } = request
  const { body, model } = tooLong
  const id = state.ids.next('resp')
  const info = { id, createdAt: now, completedAt: now, body, model, diagnosis: null }
  const events = listStreamStartEvents(createPendingResponse(info), createLateError(overflow, info, error))
  const chunks = events.map((event) => ({ bytes: encodeStreamEvent(event), delayMs: 0 }))
  const answer = applyRequestFault(exchange, createStream(exchange, chunks))
  return finishWithoutResponse(state, request, { answer, error: toLoggedError(error) })
}

function createLateError(
  overflow: 'error-event' | 'flat-error-event' | 'failed-event',
  info: Parameters<typeof createFailedResponse>[0],
  error: OpenaiError,
): JsonFields {
  const { code, message, param } = error
  switch (overflow) {
    case 'error-event':
      return { type: 'error', error: toErrorFields(error) }
    case 'flat-error-event':
      return { type: 'error', code, message, param }
    case 'failed-event':
      return { type: 'response.failed', response: createFailedResponse(info, error) }
  }
}

/** Answers an accepted request. Cache, stored responses and rate limits change when the first byte of the response is sent. */
async function answerPrepared(exchange: OpenaiExchange, prepared: PreparedOpenai): Promise<PendingAnswer> {
  const { state, request, endpoint } = exchange
  const { number, now, incoming } = request
  const id = state.ids.next(endpoint === 'chat' ? 'chatcmpl' : 'resp')
  const call = { id, number, now, headers: incoming.headers }
  const answered = await respond(exchange, prepared, call)
  if ('status' in answered) return answerWithError(exchange, answered)
  const struck = { ...exchange, request: { ...request, fault: request.fault ?? answered.fault } }
  const sent = applyRequestFault(struck, encodeAnswer(struck, answered, prepared))
  if (sent.status !== 200)
    return finishWithoutResponse(state, struck.request, {
      answer: sent,
      error: toLoggedFaultError(sent, struck.request.fault),
    })
  recordOpenaiAnswer(state, struck.request, { prepared, answer: answered, sent, id })
  let isBegun = false
  const { recent } = state.openai
  recent.push({ number, fingerprint: prepared.fingerprint, hasBegun: () => isBegun })
  if (recent.length > MAX_RECENT) recent.shift()
  return {
    answer: sent,
    begin() {
      isBegun = true
      commitAnswer(state, prepared, answered, id)
    },
    abandon: () => undefined,
  }
}

const MAX_RECENT = 64

async function respond(
  { state, endpoint }: OpenaiExchange,
  prepared: PreparedOpenai,
  call: OpenaiCallContext,
): Promise<ResponsesAnswer | ChatAnswer | OpenaiError> {
  try {
    if (prepared.api === 'chat') return await answerChat(state, prepared, call)
    return await (endpoint === 'compact' ? answerCompactRequest : answerResponses)(state, prepared, call)
  } catch (error) {
    return createOpenaiError(
      500,
      `The script failed: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Makes the cache entries and stored responses of an answer visible to later requests. */
function commitAnswer(
  state: SimulatorState,
  prepared: PreparedOpenai,
  answer: ResponsesAnswer | ChatAnswer,
  id: string,
): void {
  const { account, fingerprint } = prepared
  const { cache, outputTokens, summary, answerUnits } = answer
  summary?.cache.commit([])
  cache.commit(answerUnits)
  const { read: _free, ...charged } = cache.split
  const input = Object.values(charged).reduce((sum, tokens) => sum + tokens, 0)
  state.limiter.countTokens(account.organization, { input, output: outputTokens })
  if (prepared.api !== 'responses' || 'completion' in answer) return
  state.openai.diagnostics.remember(id, fingerprint)
  state.openai.reasoning.remember(answer.output)
  if (prepared.body.store !== false && answer.finished.object === 'response')
    storeAnswer(state, prepared, answer, id)
}

function storeAnswer(
  state: SimulatorState,
  { body, items, account }: PreparedResponses,
  { output, finished }: ResponsesAnswer,
  id: string,
): void {
  const own = listInput(body).length
  state.openai.stored.add(id, {
    organization: account.organization,
    previous: body.previous_response_id ?? null,
    input: own === 0 ? [] : items.slice(-own).map(({ item }) => item),
    output,
    body: finished,
  })
}

function encodeAnswer(
  exchange: OpenaiExchange,
  answer: ResponsesAnswer | ChatAnswer,
  { body }: PreparedOpenai,
): HttpAnswer {
  const chunks = listChunks(exchange, answer, body)
  if (body.stream === true) return createStream(exchange, chunks)
  const value = 'completion' in answer ? createCompletionBody(answer.completion) : answer.finished
  const json = createJsonAnswer(200, JSON.stringify(value), responseHeaders(exchange))
  const delayMs = chunks.reduce((sum, chunk) => sum + chunk.delayMs, 0)
  return { ...json, chunks: json.chunks.map((chunk) => ({ ...chunk, delayMs })) }
}

function listChunks(
  { state }: OpenaiExchange,
  answer: ResponsesAnswer | ChatAnswer,
  body: JsonFields,
): readonly BodyChunk[] {
  const { deltaSize, firstByteMs } = state.settings
  const delays = { ...answer.delays, startMs: (answer.delays.startMs ?? 0) + firstByteMs }
  if ('completion' in answer) {
    const options = isObject(body.stream_options) ? body.stream_options : {}
    const chunks = listCompletionChunks(answer.completion, {
      deltaSize,
      hasUsage: options.include_usage === true,
    })
    return [
      ...chunks.map((chunk) => ({ bytes: encodeChunk(chunk), delayMs: findDelay(chunk.delay, delays) })),
      { bytes: END_OF_CHUNKS, delayMs: 0 },
    ]
  }
  const { pending, finished } = answer
  return listResponseEvents({ pending, finished, deltaSize }).map((event) => ({
    bytes: encodeStreamEvent(event),
    delayMs: findDelay(event.delay, delays),
  }))
}

function findDelay(
  kind: 'start' | 'block' | 'piece' | 'block-piece' | 'none',
  { startMs = 0, blockMs = 0, pieceMs = 0 }: ReplyDelays,
): number {
  return { start: startMs, block: blockMs, piece: pieceMs, 'block-piece': blockMs + pieceMs, none: 0 }[kind]
}

function createStream(exchange: OpenaiExchange, chunks: readonly BodyChunk[]): HttpAnswer {
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...responseHeaders(exchange),
    },
    chunks,
    ending: 'close',
  }
}

/** Applies the fault of a request, if it has one. */
function applyRequestFault({ request, endpoint }: OpenaiExchange, answer: HttpAnswer): HttpAnswer {
  const format: FaultErrorFormat = endpoint === 'chat' ? CHAT_ERROR_FORMAT : RESPONSES_ERROR_FORMAT
  return request.fault === null ? answer : applyFault(answer, request.fault, request.requestId, format)
}

function responseHeaders({ state, request }: OpenaiExchange): HttpAnswer['headers'] {
  const { requestId, account } = request
  if (account === null) return { 'x-request-id': requestId }
  const limits = state.limiter.headers(account.organization)
  return {
    'x-request-id': requestId,
    'openai-organization': account.organization,
    'openai-version': '2020-10-01',
    ...Object.fromEntries(
      ['requests', 'tokens'].flatMap((name) =>
        ['limit', 'remaining'].map((kind) => [
          `x-ratelimit-${kind}-${name}`,
          limits[`anthropic-ratelimit-${name}-${kind}`] ?? '',
        ]),
      ),
    ),
  }
}
