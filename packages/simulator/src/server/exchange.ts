/** One request from its headers to the answer that is about to be sent, with its record in the request log. */

import { APPLIED_HEADER, applyFault, type Fault } from '../faults/fault.ts'
import { requestedFault } from '../faults/fault-schedule.ts'
import { type Answer, errorAnswer, invalid, jsonAnswer, type Refusal, refusal } from '../protocol/answer.ts'
import { isObject } from '../protocol/api.ts'
import { type Admitted, admit, enter, type Incoming } from './admit-request.ts'
import { answerMessage, type Call, type MadeResponse, warm } from './answer-message.ts'
import type { Prepared } from './prepare-prompt.ts'
import { compactFirst, compactOnDemand, isOverThreshold } from './provider-compaction.ts'
import { analyse, type Outcome, recordOf, recordResponse, type Visit } from './record-request.ts'
import { encodeReply } from './send-answer.ts'
import type { World } from './simulator-state.ts'

interface Exchange {
  readonly answer: Answer
  /** Called when the first byte of a successful answer is sent. */
  begin(): void
}

/** Authenticates and admits the request, lets the script answer it, and applies a fault. */
export async function exchange(state: World, incoming: Incoming): Promise<Exchange> {
  const entry = enter(state, incoming.headers)
  const wanted = requestedFault(incoming.headers, state.faults)
  const request: Visit = {
    number: state.log.next(),
    requestId: state.ids.next('req'),
    now: state.clock.now(),
    incoming,
    account: entry.ok ? entry.account : null,
    fault: wanted.ok ? wanted.fault : null,
  }
  if (!entry.ok) return turnDown(state, request, entry.error)
  if (!wanted.ok) return turnDown(state, request, invalid(wanted.message))
  if (request.fault?.type === 'status') return failOnDemand(state, request, request.fault)
  if (incoming.bodyError !== undefined) return turnDown(state, request, incoming.bodyError)
  const admission = admit(state, incoming, entry.account)
  if (!admission.ok) return turnDown(state, request, admission.error)
  if (incoming.endpoint === 'count_tokens') return count(state, request, admission.prepared)
  return converse(state, request, admission)
}

/** A status fault replaces the answer, so the request is not validated. */
function failOnDemand(state: World, request: Visit, fault: Fault): Exchange {
  const answer = applyFault(jsonAnswer(200, '', headersFor(state, request)), fault, request.requestId)
  return logged(state, request, { answer, error: failureOf(answer, fault) })
}

/** The error of a status fault for the request log: its own message, if it has one. */
function failureOf(answer: Answer, fault: Fault | null): { type: string; message: string } {
  const faults = fault?.type === 'several' ? fault.faults : [fault]
  const message = faults.find((each) => each?.type === 'status')?.message
  const otherwise = answer.headers[APPLIED_HEADER] ?? `answered with ${answer.status} on demand`
  return { type: 'fault', message: message ?? otherwise }
}

function turnDown(state: World, request: Visit, error: Refusal): Exchange {
  const answer = errorAnswer(error, request.requestId, headersFor(state, request))
  const { type, message } = error
  return logged(state, request, { answer: faulted(answer, request), error: { type, message } })
}

function count(state: World, request: Visit, prepared: Prepared): Exchange {
  const { body, tokens, originalTokens } = prepared
  const edited =
    body.context_management == null ? {} : { context_management: { original_input_tokens: originalTokens } }
  const text = JSON.stringify({ input_tokens: tokens, ...edited })
  const answer = jsonAnswer(200, text, headersFor(state, request))
  return logged(state, request, { answer: faulted(answer, request), error: null, counted: tokens })
}

function logged(state: World, request: Visit, outcome: Outcome): Exchange {
  const record = recordOf(state, request, outcome)
  state.log.add(record)
  state.settings.onRequest(record)
  return { answer: outcome.answer, begin: () => undefined }
}

/** Cache entries, diagnostics, threads and rate limits take effect when the answer begins. */
async function converse(state: World, request: Visit, admitted: Admitted): Promise<Exchange> {
  const { prepared, thread, continues } = admitted
  const { scope, body, model, features, sentPrompt: prompt } = prepared
  const diagnosed = { scope, body, model, betas: features.betas, prompt, now: request.now }
  const diagnosis = state.diagnostics.diagnose(diagnosed)
  const id = state.ids.next('msg')
  const { number, now, incoming } = request
  const response = await attempt(state, prepared, { id, number, now, headers: incoming.headers, diagnosis })
  if ('status' in response) {
    state.threads.release(continues)
    return turnDown(state, request, response)
  }
  const struck = { ...request, fault: request.fault ?? response.fault }
  const answer = faulted(answerOf(state, request, response, prepared), struck)
  if (answer.status !== 200) {
    state.threads.release(continues)
    return logged(state, struck, { answer, error: failureOf(answer, struck.fault) })
  }
  let isBegun = false
  const { analysis, seen } = analyse(state, prepared, response.cache, {
    number,
    now,
    hasBegun: () => isBegun,
  })
  state.log.see(seen)
  recordResponse(state, struck, { prepared, response, id, analysis, answer })
  return {
    answer,
    begin() {
      isBegun = true
      response.commit()
      state.diagnostics.keep(id, diagnosed)
      state.threads.keep(thread, {
        id,
        message: { role: 'assistant', content: response.reply.message.content },
      })
      const { read: _free, ...charged } = response.split
      state.limiter.spend(scope.organization, { input: sum(charged), output: response.outputTokens })
    },
  }
}

/** The response, or status 500 if the script throws. */
async function attempt(state: World, prepared: Prepared, call: Call): Promise<MadeResponse | Refusal> {
  const { body } = prepared
  try {
    if (body.max_tokens === 0) return warm(state, prepared, call)
    if (isObject(body.compaction)) return await compactOnDemand(state, prepared, call)
    if (isOverThreshold(prepared)) return await compactFirst(state, prepared, call)
    return await answerMessage(state, prepared, call)
  } catch (error) {
    return refusal(500, `The script failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function sum(figures: Readonly<Record<string, number>>): number {
  return Object.values(figures).reduce((total, each) => total + each, 0)
}

function faulted(answer: Answer, { fault, requestId }: Visit): Answer {
  return fault === null ? answer : applyFault(answer, fault, requestId)
}

function answerOf(state: World, request: Visit, response: MadeResponse, prepared: Prepared): Answer {
  const { firstByteMs, deltaSize } = state.settings
  const startMs = (response.delays.startMs ?? 0) + firstByteMs
  return encodeReply(response.reply, {
    stream: prepared.body.stream === true,
    deltaSize,
    delays: { ...response.delays, startMs },
    headers: headersFor(state, request),
  })
}

function headersFor(state: World, { requestId, account }: Visit): Answer['headers'] {
  if (account === null) return { 'request-id': requestId }
  return {
    'request-id': requestId,
    'anthropic-organization-id': account.organization,
    'anthropic-workspace-id': account.workspace,
    ...state.limiter.headers(account.organization),
  }
}
