/**
 * Handles one request, from its headers to the answer that is about to be sent, and adds its record to the request
 * log.
 */
import { applyFault, FAULT_NOTE_HEADER, type Fault } from '../faults/fault.ts'
import { takeRequestFault } from '../faults/fault-schedule.ts'
import {
  type ApiError,
  createApiError,
  createErrorAnswer,
  createInvalidRequestError,
  createJsonAnswer,
  type HttpAnswer,
} from '../protocol/answer.ts'
import { isObject } from '../protocol/messages-request.ts'
import {
  type AdmittedRequest,
  admitRequest,
  authenticateAndCount,
  type IncomingRequest,
} from './admit-request.ts'
import {
  answerCacheWarming,
  answerMessage,
  type ModelResponse,
  type ResponseContext,
} from './answer-message.ts'
import { runWithPauses } from './pauses.ts'
import type { PreparedRequest } from './prepare-prompt.ts'
import { compactOnDemand, compactThenAnswer, hasReachedCompactThreshold } from './provider-compaction.ts'
import {
  addRequestRecord,
  analyzeCache,
  type OutcomeWithoutResponse,
  type RequestContext,
  recordResponse,
  toRecordWithoutResponse,
} from './record-request.ts'
import { createReplyAnswer } from './send-answer.ts'
import type { SimulatorState } from './simulator-state.ts'

/** An answer that is about to be sent. Its caller must call `begin` or `abandon` if the status is 200. */
export interface PendingAnswer {
  readonly answer: HttpAnswer
  /** Called when the first byte of a successful answer is sent. */
  begin(): void
  /** Called instead of `begin` if the answer never begins. */
  abandon(): void
}

/**
 * Handles a request to the Messages API: authenticates and validates it, has the script answer it, and applies the
 * fault if there is one.
 */
export async function handleMessagesRequest(
  state: SimulatorState,
  incoming: IncomingRequest,
): Promise<PendingAnswer> {
  const entry = authenticateAndCount(state, incoming.headers)
  const wanted = takeRequestFault(incoming.headers, state.faults)
  const request: RequestContext = {
    number: state.log.takeNumber(),
    requestId: state.ids.next('req'),
    now: state.clock.now(),
    incoming,
    account: entry.ok ? entry.account : null,
    fault: wanted.ok ? wanted.fault : null,
  }
  if (!entry.ok) return answerWithError(state, request, entry.error)
  if (!wanted.ok) return answerWithError(state, request, createInvalidRequestError(wanted.message))
  if (request.fault?.type === 'status') return answerWithFault(state, request, request.fault)
  if (incoming.bodyError !== undefined) return answerWithError(state, request, incoming.bodyError)
  const admission = await runWithPauses(admitRequest(state, incoming, entry.account))
  if (!admission.ok) return answerWithError(state, request, admission.error)
  if (incoming.endpoint === 'count_tokens') return answerTokenCount(state, request, admission.prepared)
  return answerWithResponse(state, request, admission)
}

/** Answers with the error response of a status fault. The request itself is not validated. */
function answerWithFault(state: SimulatorState, request: RequestContext, fault: Fault): PendingAnswer {
  const answer = applyFault(
    createJsonAnswer(200, '', responseHeaders(state, request)),
    fault,
    request.requestId,
  )
  return finishWithoutResponse(state, request, { answer, error: toLoggedFaultError(answer, fault) })
}

/**
 * Returns the error that the request log shows for a fault: the message of the fault, otherwise a note on how it was
 * applied.
 */
export function toLoggedFaultError(
  answer: HttpAnswer,
  fault: Fault | null,
): { type: string; message: string } {
  const faults = fault?.type === 'several' ? fault.faults : [fault]
  const message = faults.find((each) => each?.type === 'status')?.message
  const otherwise = answer.headers[FAULT_NOTE_HEADER] ?? `answered with ${answer.status} on demand`
  return { type: 'fault', message: message ?? otherwise }
}

function answerWithError(state: SimulatorState, request: RequestContext, error: ApiError): PendingAnswer {
  const answer = createErrorAnswer(error, request.requestId, responseHeaders(state, request))
  const { type, message } = error
  return finishWithoutResponse(state, request, {
    answer: applyRequestFault(answer, request),
    error: { type, message },
  })
}

function answerTokenCount(
  state: SimulatorState,
  request: RequestContext,
  prepared: PreparedRequest,
): PendingAnswer {
  const { body, tokens, originalTokens } = prepared
  const edited =
    body.context_management == null ? {} : { context_management: { original_input_tokens: originalTokens } }
  const text = JSON.stringify({ input_tokens: tokens, ...edited })
  const answer = createJsonAnswer(200, text, responseHeaders(state, request))
  return finishWithoutResponse(state, request, {
    answer: applyRequestFault(answer, request),
    error: null,
    counted: tokens,
  })
}

/** Records a request that got no response of the model: an error, a fault or a token count. Returns its answer. */
export function finishWithoutResponse(
  state: SimulatorState,
  request: RequestContext,
  outcome: OutcomeWithoutResponse,
): PendingAnswer {
  addRequestRecord(state, request, toRecordWithoutResponse(state, request, outcome))
  return { answer: outcome.answer, begin: () => undefined, abandon: () => undefined }
}

/**
 * Answers a valid request. Changes to the cache, diagnostics, message threads and rate limits are made when the first
 * byte of the answer is sent.
 */
async function answerWithResponse(
  state: SimulatorState,
  request: RequestContext,
  admitted: AdmittedRequest,
): Promise<PendingAnswer> {
  const { prepared, thread, continues } = admitted
  const { scope, body, model, features, sentPrompt } = prepared
  const diagnosed = { scope, body, model, betas: features.betas, prompt: sentPrompt, now: request.now }
  const diagnosis = state.diagnostics.diagnose(diagnosed)
  const id = state.ids.next('msg')
  const { number, now, incoming } = request
  const response = await respond(state, prepared, { id, number, now, headers: incoming.headers, diagnosis })
  if ('status' in response) {
    state.threads.release(continues)
    return answerWithError(state, request, response)
  }
  const struck = { ...request, fault: request.fault ?? response.fault }
  const answer = applyRequestFault(encodeResponse(state, request, response, prepared), struck)
  if (answer.status !== 200) {
    state.threads.release(continues)
    return finishWithoutResponse(state, struck, { answer, error: toLoggedFaultError(answer, struck.fault) })
  }
  let isBegun = false
  const { analysis, seen } = analyzeCache(state, prepared, response, {
    number,
    now,
    hasBegun: () => isBegun,
  })
  state.log.addComparable(seen)
  recordResponse(state, struck, { prepared, response, id, analysis, answer })
  return {
    answer,
    begin() {
      isBegun = true
      response.commit()
      state.diagnostics.remember(id, diagnosed)
      state.threads.store(thread, {
        id,
        message: { role: 'assistant', content: response.reply.message.content },
      })
      for (const call of [...response.summaries, response]) {
        const { read: _free, ...charged } = call.split
        const tokens = { input: sumValues(charged), output: call.outputTokens }
        state.limiter.countTokens(scope.organization, tokens)
      }
    },
    abandon: () => state.threads.release(continues),
  }
}

/** Creates the response, or an error with status 500 if the script throws. */
async function respond(
  state: SimulatorState,
  prepared: PreparedRequest,
  call: ResponseContext,
): Promise<ModelResponse | ApiError> {
  const { body } = prepared
  try {
    if (body.max_tokens === 0) return answerCacheWarming(state, prepared, call)
    if (isObject(body.compaction)) return await compactOnDemand(state, prepared, call)
    if (hasReachedCompactThreshold(prepared)) return await compactThenAnswer(state, prepared, call)
    return await answerMessage(state, prepared, call)
  } catch (error) {
    return createApiError(500, `The script failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function sumValues(figures: Readonly<Record<string, number>>): number {
  return Object.values(figures).reduce((total, each) => total + each, 0)
}

function applyRequestFault(answer: HttpAnswer, { fault, requestId }: RequestContext): HttpAnswer {
  return fault === null ? answer : applyFault(answer, fault, requestId)
}

function encodeResponse(
  state: SimulatorState,
  request: RequestContext,
  response: ModelResponse,
  prepared: PreparedRequest,
): HttpAnswer {
  const { firstByteMs, deltaSize } = state.settings
  const startMs = (response.delays.startMs ?? 0) + firstByteMs
  return createReplyAnswer(response.reply, {
    stream: prepared.body.stream === true,
    deltaSize,
    delays: { ...response.delays, startMs },
    headers: responseHeaders(state, request),
  })
}

function responseHeaders(
  state: SimulatorState,
  { requestId, account }: RequestContext,
): HttpAnswer['headers'] {
  if (account === null) return { 'request-id': requestId }
  return {
    'request-id': requestId,
    'anthropic-organization-id': account.organization,
    'anthropic-workspace-id': account.workspace,
    ...state.limiter.headers(account.organization),
  }
}
