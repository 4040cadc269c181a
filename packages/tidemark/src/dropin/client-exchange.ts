/**
 * Sends the engine's request instead of a client's, and passes the response to the client as it arrives. A refusal by
 * the provider is recovered here, or the client gets the response to its own request.
 */
import { isDeepStrictEqual } from 'node:util'
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import { listBranchRecords } from '@tidemark/core/log/session-log'
import { toModelCallInput } from '@tidemark/core/request/build-request'
import type { ClientRequest, SplitClientList } from '@tidemark/wire/providers/client-request'
import type { EncodedRequest, ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { classifyClientError } from '../models/client-error.ts'
import { pauseIfLarge, runWithPauses } from '../platform/node-ports.ts'
import type { OpenSession } from '../session/open-session.ts'
import { forgetRefusedRequest, recoverRefusedRequest } from '../session/refused-request.ts'
import { passAndCount } from './client-billing.ts'
import type { ClientConversation } from './client-conversation.ts'
import { refuseForLimit, refuseIfAtLimit } from './client-limits.ts'
import { CLIENT_ABORTED, readWhilePassing, withBodyText } from './client-response.ts'
import { createOverflowFailure, detectCutAnswer, readRefusalInStream } from './cut-answers.ts'
import { mustHideThinking } from './hidden-thinking.ts'
import { withEngineUsageRequested, withoutAddedUsage } from './stream-usage.ts'
import type { RequestNotTaken, TakenRequest } from './take-request.ts'

export type Fetch = typeof globalThis.fetch

/** A request of a client, as it was given to `fetch`. */
export interface ClientCall {
  /** The protocol of the request. */
  readonly codec: ProviderCodec
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

/** Maximum number of changes to one request after refusals: compacted, without media, without thinking. */
const MAX_CHANGES = 4

/** After this many engine requests in a row were refused while the client's own were accepted, only the client's own are sent. */
const MAX_STRIKES = 2

/**
 * Sends the engine's request and returns the response for the client. After a refusal the context is changed and sent again, up
 * to four times; if that does not help, the client's own request is sent.
 */
export async function exchangeManaged(conversation: ClientConversation, call: ClientCall): Promise<Response> {
  if (conversation.strikes >= MAX_STRIKES && canPass(call)) {
    reportPassed(conversation, 'The provider refused what the engine sent before.')
    return passOn(conversation, call, 'failed')
  }
  forgetRefusedRequest(conversation.open)
  for (let changes = 0; ; changes += 1) {
    const outcome = await conversation.take(call.request, call.codec, call.signal)
    if (!outcome.ok && outcome.reason === 'limit') {
      conversation.abandon()
      return refuseForLimit(call.codec, outcome.message)
    }
    if (!outcome.ok)
      return canPass(call)
        ? passOn(conversation, call, outcome.reason)
        : refuseCompacted(call, outcome.message, conversation)
    const { answer, isOwn } = await sendRequest(conversation, call, outcome)
    const { response, refusal } = answer.ok
      ? await readRefusalInStream(answer, call.codec)
      : { response: answer, refusal: null }
    if (refusal !== null && changes < MAX_CHANGES) {
      const made = await recoverRefusedRequest(conversation.open, refusal)
      if (made.ok && made.act === 'changed') {
        await response.body?.cancel()
        continue
      }
    }
    if (response.ok) {
      conversation.strikes = 0
      const { response: held, cut } = await detectCutAnswer(conversation.open, response)
      if (cut !== null && changes < MAX_CHANGES && (await makeRoomForAnswer(conversation, cut))) continue
      const passed = await recordResponse(conversation, call, held)
      return withoutAddedUsage(passed, call.codec, call.request.ownFields)
    }
    const text = await response.text()
    const failure = readErrorText(response, text, call.codec)
    if (failure.retryable || !isAboutRequest(failure)) return abandon(conversation, response, text)
    if (changes < MAX_CHANGES && !conversation.refusesUsage && isAboutUsage(failure, call)) {
      conversation.refusesUsage = true
      conversation.withdraw()
      continue
    }
    const refused = await recoverRefusedRequest(conversation.open, failure)
    if (refused.ok && refused.act === 'changed' && changes < MAX_CHANGES) continue
    const isRepeatable = canPass(call) && !isOwn()
    if (!isRepeatable) return abandon(conversation, response, text)
    return retryUnchanged(conversation, call, failure, withBodyText(response, text))
  }
}

/** True if a server refused the request because it does not know the field that asks for the usage of a stream. */
function isAboutUsage({ message }: ModelFailure, { request, codec }: ClientCall): boolean {
  return message.includes('stream_options') && withEngineUsageRequested(request, codec) !== request
}

/** True if the client's own request can be sent. The provider does not know the items of Tidemark's compactions. */
function canPass({ request: { compacted } }: ClientCall): boolean {
  return compacted === undefined
}

/** Refuses a request that continues a compaction of Tidemark, which only the engine can send, when the engine cannot. */
export function refuseCompacted(
  { codec, request: { compacted } }: ClientCall,
  reason: string,
  conversation?: ClientConversation,
): Response {
  conversation?.abandon()
  const message = `The request continues a compaction that Tidemark made in the session ${compacted?.session}, and cannot be sent without it: ${reason} Send the messages themselves instead, or begin anew.`
  return Response.json(codec.client.createErrorBody(400, message), { status: 400 })
}

/**
 * Answers a client that asks for a compaction: records its new messages, compacts the log, and returns an item that
 * stands for the compacted log. If nothing can be compacted, the item stands for the log as it is.
 */
export async function exchangeCompaction(
  conversation: ClientConversation,
  call: ClientCall,
  kind: 'reply' | 'compact',
): Promise<Response> {
  const { codec, request, body } = call
  const { writeCompaction } = codec.client
  const outcome = await conversation.recordThenCompact(request, codec)
  const { open } = conversation
  const last = listBranchRecords(open.state.session).at(-1)?.uuid
  const isRecorded = outcome.ok || !NOT_RECORDED.has(outcome.reason)
  if (!isRecorded || writeCompaction === undefined || last === undefined) {
    if (!canPass(call)) return refuseCompacted(call, 'it could not be recorded.', conversation)
    reportPassed(conversation, 'The request for a compaction is passed on.')
    return passOn(conversation, call, 'side-call')
  }
  conversation.release()
  const place = { session: open.id, record: last }
  const text = writeCompaction({ place, body, kind })
  const isStream = request.isStream && kind === 'reply'
  return new Response(text, {
    headers: { 'content-type': isStream ? 'text/event-stream' : 'application/json' },
  })
}

/** Reasons for which a request that asks for a compaction was not even recorded. */
const NOT_RECORDED: ReadonlySet<string> = new Set<RequestNotTaken['reason'] | 'busy'>([
  'side-call',
  'not-yet',
  'prefill',
  'unreadable',
  'failed',
  'busy',
])

/** Reduces the context after the window has cut a response. If it can, counts the response's cost and returns true. */
async function makeRoomForAnswer(conversation: ClientConversation, cut: Reply): Promise<boolean> {
  const outcome = await recoverRefusedRequest(conversation.open, createOverflowFailure(cut))
  if (!outcome.ok || outcome.act !== 'changed') return false
  await conversation.countCost(cut)
  return true
}

/** Sends the client's request unchanged, while its messages are recorded; then records the response. */
export async function exchangeObserved(
  conversation: ClientConversation,
  call: ClientCall,
): Promise<Response> {
  const { signal, request, codec } = call
  signal?.throwIfAborted()
  const answer = call.upstream(call.input, call.init)
  const recording = conversation.observe(request, codec)
  const [[sent], isRecorded] = await Promise.all([Promise.allSettled([answer]), recording])
  if (sent.status === 'rejected') {
    if (isRecorded && signal?.aborted === true) await conversation.recordInterrupted(null, CLIENT_ABORTED)
    throw sent.reason
  }
  const response = sent.value
  if (response.ok && isRecorded) return recordResponse(conversation, call, response)
  conversation.release()
  return response.ok ? countPassing(conversation, call, response) : response
}

/** Passes a response on without recording it, and counts its cost. */
function countPassing(
  conversation: ClientConversation,
  { codec }: ClientCall,
  response: Response,
): Promise<Response> {
  return passAndCount(response, codec, (reply) => conversation.countCost(reply))
}

/**
 * True if the client continues a response that the provider stores, and the context was never rewritten. The provider
 * then has the same conversation as the engine, so the client's own request is sent.
 */
function isKnownAtProvider({ open }: ClientConversation, { codec, request }: ClientCall): boolean {
  const { continues, compacted } = request
  const isStored = codec.client.storesResponses === true && continues !== null && compacted === undefined
  // After an undo, the provider's stored conversation is still the rewritten one.
  const { rewrites, undoneRewrites } = open.state.view
  return isStored && rewrites.length === 0 && undoneRewrites.length === 0
}

interface SentRequest {
  readonly answer: Response
  /** True if the sent request equals the client's own, so that a retry with the client's own would change nothing. */
  readonly isOwn: () => boolean
}

async function sendRequest(
  conversation: ClientConversation,
  call: ClientCall,
  { pending, list }: TakenRequest,
): Promise<SentRequest> {
  const { url, init, headers, signal, upstream, codec, request, body } = call
  if (isKnownAtProvider(conversation, call))
    return { answer: await sendUnchanged(conversation, call), isOwn: () => true }
  const sent = new Headers(headers)
  for (const name of ['content-length', 'content-encoding']) sent.delete(name)
  const encoded = await encodeReadyRequest(conversation.open, pending, list)
  const asking = conversation.refusesUsage ? request : withEngineUsageRequested(request, codec)
  const { text, headers: changed } = codec.client.writeRequest(encoded, asking)
  for (const [name, value] of Object.entries(changed))
    if (value === null) sent.delete(name)
    else sent.set(name, value)
  await pauseIfLarge(text)
  const answer = await sendCounted(conversation, signal, () =>
    upstream(url, {
      ...init,
      method: 'POST',
      headers: sent,
      body: text,
      ...(signal === undefined ? {} : { signal }),
    }),
  )
  const isSameHeader = ([name, value]: readonly [string, string | null]): boolean =>
    headers.get(name) === value
  return {
    answer,
    isOwn: () => Object.entries(changed).every(isSameHeader) && isDeepStrictEqual(JSON.parse(text), body),
  }
}

/** Encodes a request that waits to be sent, in slices. */
async function encodeReadyRequest(
  { encodeBody }: OpenSession,
  { request }: PendingModelCall,
  list: SplitClientList | undefined,
): Promise<EncodedRequest> {
  return runWithPauses(encodeBody(toModelCallInput(request), list))
}

/** Sends a request. If the client aborts it before the response, its cost is counted. */
async function sendCounted(
  conversation: ClientConversation,
  signal: ClientCall['signal'],
  send: () => Promise<Response>,
): Promise<Response> {
  let isSent = false
  try {
    signal?.throwIfAborted()
    isSent = true
    return await send()
  } catch (thrown) {
    // The provider works on what it was sent, and bills it, although the client no longer waits.
    if (isSent && signal?.aborted === true) await conversation.recordInterrupted(null, CLIENT_ABORTED)
    else conversation.abandon()
    throw thrown
  }
}

async function sendUnchanged(
  conversation: ClientConversation,
  { input, init, signal, upstream }: ClientCall,
): Promise<Response> {
  // The body of a request object can be read once, and the request may be sent again after an error.
  return sendCounted(conversation, signal, () =>
    upstream(input instanceof Request ? input.clone() : input, init),
  )
}

/** Failures that say nothing about the request itself: with a wrong key or an empty account, any request would be refused. */
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

/**
 * Sends the client's own request. If the provider accepts it, the engine's request was at fault; if not, the client gets the
 * error. But if it is only too long by now, the client gets `refused`, the response to the engine's request.
 */
async function retryUnchanged(
  conversation: ClientConversation,
  call: ClientCall,
  { kind, message }: ModelFailure,
  refused: Response,
): Promise<Response> {
  const refusal = await refuseIfAtLimit(conversation.open, call)
  if (refusal !== null) {
    conversation.abandon()
    return refusal
  }
  reportPassed(conversation, `The provider refused the engine's request: ${message}`)
  const { response, failure } = await readFailure(await passOn(conversation, call, 'failed'), call.codec)
  if (failure?.kind === 'overflow' && kind !== 'overflow') {
    await response.body?.cancel()
    return refused
  }
  if (failure === null) conversation.strikes += 1
  return response
}

/** Returns why the provider refused a request, by status or within a stream; null if it did not. `response` can still be read. */
async function readFailure(
  response: Response,
  codec: ProviderCodec,
): Promise<{ readonly response: Response; readonly failure: ModelFailure | null }> {
  if (response.ok) {
    const { response: begun, refusal } = await readRefusalInStream(response, codec)
    return { response: begun, failure: refusal }
  }
  const text = await response.text()
  return { response: withBodyText(response, text), failure: readErrorText(response, text, codec) }
}

function readErrorText({ status, headers }: Response, text: string, codec: ProviderCodec): ModelFailure {
  return classifyClientError({ status, body: text, headers }, codec, Date.now())
}

/** Sends the client's request as it is. Recorded only for `failed`, as it then belongs to the conversation. */
async function passOn(
  conversation: ClientConversation,
  call: ClientCall,
  reason: RequestNotTaken['reason'],
): Promise<Response> {
  if (reason === 'failed' && !conversation.open.stop.signal.aborted) {
    conversation.withdraw()
    return exchangeObserved(conversation, call)
  }
  conversation.abandon()
  const response = await call.upstream(call.input, call.init)
  return response.ok ? countPassing(conversation, call, response) : response
}

function reportPassed({ open }: ClientConversation, message: string): void {
  open.listeners.emit({ type: 'request-passed', reason: 'failed', message })
}

function abandon(conversation: ClientConversation, response: Response, text: string): Response {
  conversation.abandon()
  return withBodyText(response, text)
}

/** Passes a response on as it arrives. The response is in the log before the client has its last bytes. */
function recordResponse(
  conversation: ClientConversation,
  { codec }: ClientCall,
  response: Response,
): Promise<Response> {
  return readWhilePassing(response, {
    codec,
    hidesThinking: conversation.isManaged && mustHideThinking(conversation.open),
    onReply: (reply) => conversation.record(reply, codec),
    // What came of it is in the log once the client sends it back; what it cost is, now.
    onCut: (reply, cause) => conversation.recordInterrupted(reply, cause),
  })
}
