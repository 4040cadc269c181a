/**
 * Sends the request that the engine made instead of a client's, and passes the response to the client as it comes. What the
 * provider refuses is recovered here, or answered as the client's own request would have been.
 */
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { encodeSseFrame } from '@tidemark/wire/http/sse'
import { readClientError } from '../models/client-error.ts'
import { pauseIfLarge } from '../platform/node-ports.ts'
import { appendMessages } from '../session/append.ts'
import { encodePendingRequest } from '../session/next.ts'
import { recordRefusal } from '../session/refused.ts'
import { appendCall, countReply, countResponse } from './client-billing.ts'
import type { ClientConversation } from './client-conversations.ts'
import type { ClientRequest } from './client-request.ts'
import { copyHead, readWhilePassing } from './client-response.ts'
import { holdCutAnswer, toOverflow } from './cut-answers.ts'
import { mustHideThinking } from './hidden-thinking.ts'
import { observeRequest, type RequestNotTaken, type TakeOutcome, takeClientRequest } from './take.ts'

export type Fetch = typeof globalThis.fetch

/** A request of a client, as it was given to `fetch`. */
export interface ClientCall {
  readonly input: Parameters<Fetch>[0]
  readonly init: Parameters<Fetch>[1]
  readonly url: string
  readonly headers: Headers
  readonly body: JsonObject
  /** The body as the engine reads it. */
  readonly request: ClientRequest
  readonly signal: AbortSignal | undefined
  readonly upstream: Fetch
}

/** How often one request is changed after a refusal: compacted, without media, without thinking. */
const MAX_CHANGES = 4

/** After so many requests of the engine that the provider refused, but not the client's, the client's are passed on. */
const MAX_STRIKES = 2

/** Answers a client's request with the engine's. */
export async function exchangeManaged(conversation: ClientConversation, call: ClientCall): Promise<Response> {
  if (conversation.strikes >= MAX_STRIKES) {
    reportPassed(conversation, 'The provider refused what the engine sent before.')
    return passOn(conversation, call, 'failed')
  }
  for (let changes = 0; ; changes += 1) {
    const outcome = await takeCall(conversation, call)
    if (!outcome.ok) return passOn(conversation, call, outcome.reason)
    const response = await sendRequest(conversation, call, outcome)
    if (response.ok) {
      conversation.strikes = 0
      const { response: held, cut } = await holdCutAnswer(conversation.open, response)
      if (cut !== null && changes < MAX_CHANGES && (await makeRoomForAnswer(conversation, cut))) continue
      return recordResponse(conversation, held)
    }
    const text = await response.text()
    const failure = readClientError(
      { status: response.status, body: text, headers: response.headers },
      Date.now(),
    )
    if (failure.retryable || !isAboutRequest(failure)) return abandon(conversation, response, text)
    const refused = await recordRefusal(conversation.open, failure)
    if (refused.ok && refused.act === 'changed' && changes < MAX_CHANGES) continue
    return retryUnchanged(conversation, call, failure)
  }
}

/** Makes the context smaller after the window has cut an answer, which is billed all the same. Returns true if it is. */
async function makeRoomForAnswer(conversation: ClientConversation, cut: Reply): Promise<boolean> {
  const outcome = await recordRefusal(conversation.open, toOverflow(cut))
  if (!outcome.ok || outcome.act !== 'changed') return false
  await countReply(conversation, cut)
  return true
}

/** Sends the client's request unchanged, while its messages are recorded; then records the response. */
export async function exchangeObserved(
  conversation: ClientConversation,
  call: ClientCall,
): Promise<Response> {
  const { open, observer } = conversation
  const answer = call.upstream(call.input, call.init)
  const recording = observeRequest(open, call.request)
    .then((isRecorded) => {
      if (isRecorded) observer.noteRequest(call.request, call.body)
      return isRecorded
    })
    .catch((thrown: unknown) => reportUnrecorded(conversation, thrown))
  const [response, isRecorded] = await Promise.all([answer, recording])
  if (response.ok && isRecorded) return recordResponse(conversation, response)
  conversation.isInFlight = false
  return response.ok ? countResponse(response, (reply) => countReply(conversation, reply)) : response
}

async function takeCall({ open }: ClientConversation, { request, signal }: ClientCall): Promise<TakeOutcome> {
  try {
    return await takeClientRequest(open, request, signal)
  } catch (thrown) {
    // The session was closed; the client may go on without it.
    return { ok: false, reason: 'failed', message: describeThrown(thrown) }
  } finally {
    signal?.throwIfAborted()
  }
}

async function sendRequest(
  conversation: ClientConversation,
  { url, init, headers, signal, upstream }: ClientCall,
  outcome: Extract<TakeOutcome, { readonly ok: true }>,
): Promise<Response> {
  const sent = new Headers(headers)
  for (const name of ['content-length', 'content-encoding']) sent.delete(name)
  if (outcome.betas.length === 0) sent.delete('anthropic-beta')
  else sent.set('anthropic-beta', outcome.betas.join(','))
  await encodePendingRequest(conversation.open)
  const { text } = outcome
  await pauseIfLarge(text)
  try {
    return await upstream(url, {
      ...init,
      method: 'POST',
      headers: sent,
      body: text,
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (thrown) {
    abandonRequest(conversation)
    throw thrown
  }
}

/** Failures that the request itself caused; a wrong key or an empty account would refuse any request. */
const NOT_ABOUT_REQUEST: ReadonlySet<ModelFailure['kind']> = new Set([
  'auth',
  'billing',
  'aborted',
  'network',
  'timeout',
])

function isAboutRequest({ kind }: ModelFailure): boolean {
  return !NOT_ABOUT_REQUEST.has(kind)
}

/** Sends the client's own request: if the provider takes it, the engine's was at fault; if not, the client gets the error. */
async function retryUnchanged(
  conversation: ClientConversation,
  call: ClientCall,
  { message }: ModelFailure,
): Promise<Response> {
  reportPassed(conversation, `The provider refused the engine's request: ${message}`)
  const response = await passOn(conversation, call, 'failed')
  if (response.ok) conversation.strikes += 1
  return response
}

/** Sends the client's request as it is. One of the conversation, which only the engine failed with, is recorded. */
async function passOn(
  conversation: ClientConversation,
  call: ClientCall,
  reason: RequestNotTaken['reason'],
): Promise<Response> {
  if (reason === 'failed' && !conversation.open.stop.signal.aborted) {
    conversation.open.pendingRequest = null
    conversation.open.gate.open()
    return exchangeObserved(conversation, call)
  }
  abandonRequest(conversation)
  const response = await call.upstream(call.input, call.init)
  return response.ok ? countResponse(response, (reply) => countReply(conversation, reply)) : response
}

function reportPassed({ open }: ClientConversation, message: string): void {
  open.listeners.emit({ type: 'request-passed', reason: 'failed', message })
}

/** Gives up the request that `take` returned, because no response to it will be recorded. */
function abandonRequest(conversation: ClientConversation): void {
  conversation.isInFlight = false
  conversation.open.pendingRequest = null
  conversation.open.gate.open()
}

function abandon(conversation: ClientConversation, response: Response, text: string): Response {
  abandonRequest(conversation)
  return new Response(text, copyHead(response))
}

/** Passes a response on as it comes. It is in the log before the client has the end of it. */
function recordResponse(conversation: ClientConversation, response: Response): Promise<Response> {
  const { open } = conversation
  return readWhilePassing(response, {
    hidesThinking: open.pendingRequest !== null && mustHideThinking(open),
    onReply: (reply) => recordReply(conversation, reply),
    // What came of it is in the log once the client sends it back; what it cost is, now.
    async onCut(reply) {
      abandonRequest(conversation)
      await countReply(conversation, reply)
    },
  })
}

async function recordReply(conversation: ClientConversation, { message }: Reply): Promise<void> {
  const { open, observer } = conversation
  const isObserved = open.pendingRequest === null
  if (isObserved) open.refusal = null
  // The size of a client's request says nothing about the context once that was rewritten.
  const { usage, ...unmeasured } = message
  const isMeasured = !isObserved || open.state.view.rewrites.length === 0
  const counting = isMeasured ? Promise.resolve() : appendCall(open, message, usage)
  conversation.recording = counting
    .then(() => appendMessages(open, [isMeasured ? message : unmeasured]))
    .then(
      () => (isObserved ? observer.noteResponse(message) : undefined),
      (thrown: unknown) => void reportUnrecorded(conversation, thrown),
    )
  await conversation.recording
  conversation.isInFlight = false
}

function reportUnrecorded(conversation: ClientConversation, thrown: unknown): false {
  abandonRequest(conversation)
  const message = `The response could not be recorded: ${describeThrown(thrown)}`
  conversation.open.listeners.emit({ type: 'request-passed', reason: 'unrecorded', message })
  return false
}

export function describeThrown(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

const PING = encodeSseFrame({ event: 'ping', data: '{"type": "ping"}' })

/**
 * Returns the response once it is there. If that takes longer than `afterMs`, as with a compaction, a stream begins with
 * pings, so that no client gives up; an error then comes as an event of the stream.
 */
export async function withPings(
  answer: Promise<Response>,
  afterMs: number,
  everyMs: number,
): Promise<Response> {
  const first = await waitAtMost(answer, afterMs)
  if (first !== null) return first
  return new Response(ReadableStream.from(streamWithPings(answer, everyMs)), {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  })
}

async function* streamWithPings(answer: Promise<Response>, everyMs: number): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  const settled = answer.then(
    (response) => ({ response }),
    (thrown: unknown) => ({ thrown }),
  )
  let isPassedOn = false
  try {
    for (;;) {
      yield encoder.encode(PING)
      const end = await waitAtMost(settled, everyMs)
      if (end === null) continue
      isPassedOn = true
      if ('thrown' in end) throw end.thrown
      const { response } = end
      if (response.ok && response.body !== null) yield* response.body
      else yield encoder.encode(encodeSseFrame({ event: 'error', data: await readErrorEvent(response) }))
      return
    }
  } finally {
    // The client stopped reading before the response came.
    if (!isPassedOn) answer.then(({ body }) => body?.cancel()).catch(() => {})
  }
}

/** Waits for a promise, but not longer than so many milliseconds; null if it is not settled by then. */
async function waitAtMost<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the body of an error response as the data of an error event, in one line. */
async function readErrorEvent(response: Response): Promise<string> {
  const text = await response.text()
  try {
    const body: unknown = JSON.parse(text)
    if (isObject(body) && body.type === 'error') return JSON.stringify(body)
  } catch {
    // Not JSON: an error of something between here and the provider.
  }
  return JSON.stringify({ type: 'error', error: { type: 'api_error', message: text } })
}
