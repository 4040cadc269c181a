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
export async function exchange(world: World, incoming: Incoming): Promise<Exchange> {
  const entry = enter(world, incoming.headers)
  const wanted = requestedFault(incoming.headers, world.faults)
  const visit: Visit = {
    number: world.log.next(),
    requestId: world.ids.next('req'),
    now: world.clock.now(),
    incoming,
    account: entry.ok ? entry.account : null,
    fault: wanted.ok ? wanted.fault : null,
  }
  if (!entry.ok) return turnDown(world, visit, entry.error)
  if (!wanted.ok) return turnDown(world, visit, invalid(wanted.message))
  if (visit.fault?.type === 'status') return failOnDemand(world, visit, visit.fault)
  if (incoming.unreadable !== undefined) return turnDown(world, visit, incoming.unreadable)
  const admission = admit(world, incoming, entry.account)
  if (!admission.ok) return turnDown(world, visit, admission.error)
  if (incoming.endpoint === 'count_tokens') return count(world, visit, admission.prepared)
  return converse(world, visit, admission)
}

/** A status fault replaces the answer, so the request is not validated. */
function failOnDemand(world: World, visit: Visit, fault: Fault): Exchange {
  const answer = applyFault(jsonAnswer(200, '', headersFor(world, visit)), fault, visit.requestId)
  return logged(world, visit, { answer, error: failureOf(answer, fault) })
}

/** The error of a status fault for the request log: its own message, if it has one. */
function failureOf(answer: Answer, fault: Fault | null): { type: string; message: string } {
  const faults = fault?.type === 'several' ? fault.faults : [fault]
  const message = faults.find((each) => each?.type === 'status')?.message
  const otherwise = answer.headers[APPLIED_HEADER] ?? `answered with ${answer.status} on demand`
  return { type: 'fault', message: message ?? otherwise }
}

function turnDown(world: World, visit: Visit, error: Refusal): Exchange {
  const answer = errorAnswer(error, visit.requestId, headersFor(world, visit))
  const { type, message } = error
  return logged(world, visit, { answer: faulted(answer, visit), error: { type, message } })
}

function count(world: World, visit: Visit, prepared: Prepared): Exchange {
  const { body, tokens, originalTokens } = prepared
  const edited =
    body.context_management == null ? {} : { context_management: { original_input_tokens: originalTokens } }
  const text = JSON.stringify({ input_tokens: tokens, ...edited })
  const answer = jsonAnswer(200, text, headersFor(world, visit))
  return logged(world, visit, { answer: faulted(answer, visit), error: null, counted: tokens })
}

function logged(world: World, visit: Visit, outcome: Outcome): Exchange {
  const record = recordOf(world, visit, outcome)
  world.log.add(record)
  world.settings.onRequest(record)
  return { answer: outcome.answer, begin: () => undefined }
}

/** Cache entries, diagnostics, threads and rate limits take effect when the answer begins. */
async function converse(world: World, visit: Visit, admitted: Admitted): Promise<Exchange> {
  const { prepared, thread, continues } = admitted
  const { scope, body, model, gate, sentPrompt: prompt } = prepared
  const diagnosed = { scope, body, model, betas: gate.betas, prompt, now: visit.now }
  const diagnosis = world.diagnostics.diagnose(diagnosed)
  const id = world.ids.next('msg')
  const { number, now, incoming } = visit
  const made = await attempt(world, prepared, { id, number, now, headers: incoming.headers, diagnosis })
  if ('status' in made) {
    world.threads.release(continues)
    return turnDown(world, visit, made)
  }
  const struck = { ...visit, fault: visit.fault ?? made.fault }
  const answer = faulted(answerOf(world, visit, made, prepared), struck)
  if (answer.status !== 200) {
    world.threads.release(continues)
    return logged(world, struck, { answer, error: failureOf(answer, struck.fault) })
  }
  const { analysis, seen } = analyse(world, prepared, made.cache, visit)
  const state = { begun: false }
  world.log.see({ ...seen, begun: () => state.begun })
  recordResponse(world, struck, { prepared, made, id, analysis, answer })
  return {
    answer,
    begin() {
      state.begun = true
      made.commit()
      world.diagnostics.keep(id, diagnosed)
      world.threads.keep(thread, { id, message: { role: 'assistant', content: made.reply.message.content } })
      const { read: _free, ...charged } = made.split
      world.limiter.spend(scope.organization, { input: sum(charged), output: made.outputTokens })
    },
  }
}

/** The response, or status 500 if the script throws. */
async function attempt(world: World, prepared: Prepared, call: Call): Promise<MadeResponse | Refusal> {
  const { body } = prepared
  try {
    if (body.max_tokens === 0) return warm(world, prepared, call)
    if (isObject(body.compaction)) return await compactOnDemand(world, prepared, call)
    if (isOverThreshold(prepared)) return await compactFirst(world, prepared, call)
    return await answerMessage(world, prepared, call)
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

function answerOf(world: World, visit: Visit, made: MadeResponse, prepared: Prepared): Answer {
  const { firstByteMs, deltaSize } = world.settings
  const startMs = (made.delays.startMs ?? 0) + firstByteMs
  return encodeReply(made.reply, {
    stream: prepared.body.stream === true,
    deltaSize,
    delays: { ...made.delays, startMs },
    headers: headersFor(world, visit),
  })
}

function headersFor(world: World, { requestId, account }: Visit): Answer['headers'] {
  if (account === null) return { 'request-id': requestId }
  return {
    'request-id': requestId,
    'anthropic-organization-id': account.organization,
    'anthropic-workspace-id': account.workspace,
    ...world.limiter.headers(account.organization),
  }
}
