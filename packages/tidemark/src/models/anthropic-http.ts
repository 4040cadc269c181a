/**
 * Implements the engine's `Model` port with the Messages API over HTTP. Streams each reply and fails if no data arrives
 * for too long. A request is retried only if no event of its reply has been passed on yet.
 */
import type { Clock, Model, ModelCall, Signal } from '@tidemark/core/engine/ports'
import { type ModelFailure, planRetry, type ReplyEvent, type RetryInfo } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import { runAtOnce, type Steps } from '@tidemark/core/log/work-steps'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import { toAnthropicFailure } from '@tidemark/wire/anthropic/anthropic-errors'
import {
  decodeReplyBytes,
  finishReplyBytes,
  initialByteStreamState,
} from '@tidemark/wire/anthropic/decode-stream'
import { encodeRequest, joinEncodedRequest } from '@tidemark/wire/anthropic/encode-request'
import { type Credentials, toRequestHeaders } from '@tidemark/wire/anthropic/headers'
import {
  extendRequestInSteps,
  type IncrementalRequest,
  joinIncrementalRequest,
  type MessageText,
  type MessageTexts,
} from '@tidemark/wire/anthropic/incremental-request'
import { replyToEvents } from '@tidemark/wire/anthropic/reply-frames'
import { decodeResponse } from '@tidemark/wire/anthropic/response'
import { failureFromException } from '@tidemark/wire/failure/classify-failure'
import { createDeadline, type Deadline, systemClock } from '../platform/node-ports.ts'
import { createKeyRedactor, hideKeyInFailure } from './hidden-key.ts'
import { describeRedirect, NO_REDIRECTS } from './redirects.ts'

interface AnthropicModelOptions {
  /** Base URL of the API, without `/v1`. Default: `https://api.anthropic.com`. */
  readonly baseUrl?: string
  readonly credentials: Credentials
  readonly version?: string
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
  readonly network?: NetworkPolicy
  /** Timeout in milliseconds without data, both before the first byte and between two chunks of the reply. */
  readonly silenceMs?: number
  /** Returns a random number in [0, 1), used for the jitter of retry delays. Default: `Math.random`. */
  readonly chance?: () => number
  /** Called before the wait that precedes each retry. */
  readonly onRetry?: (retry: RetryInfo) => void
}

type NetworkPolicy = Policy['turn']['network']
type Settings = Required<Omit<AnthropicModelOptions, 'onRetry'>> & Pick<AnthropicModelOptions, 'onRetry'>

const DEFAULT_SILENCE_MS = 300_000

export function createAnthropicModel(options: AnthropicModelOptions): Model {
  const settings: Settings = {
    baseUrl: 'https://api.anthropic.com',
    version: '2023-06-01',
    fetch: globalThis.fetch,
    clock: systemClock,
    network: DEFAULT_POLICY.turn.network,
    silenceMs: DEFAULT_SILENCE_MS,
    chance: Math.random,
    ...options,
  }
  const encodeBody = createBodyEncoder()
  return { stream: (call, signal) => streamWithRetries(settings, () => runAtOnce(encodeBody(call)), signal) }
}

/** Streams one reply, with retries. A reply is never retried after its first event was yielded. */
async function* streamWithRetries(
  settings: Settings,
  encodeBody: () => EncodedBody,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const body = encodeBody()
  const hide = createKeyRedactor(settings.credentials.secret)
  for (let attempt = 0; ; attempt += 1) {
    let hasBegun = false
    let failed: ReplyFailed | null = null
    for await (const given of streamOnce(settings, body, signal)) {
      const event = hideKeyInFailure(given, hide)
      if (event.type === 'reply-failed' && !hasBegun) failed = event
      else if (event.type !== 'reply-alive' || hasBegun) {
        hasBegun = true
        yield event
      }
    }
    if (failed === null) return
    const network = limitRetries(settings, failed.failure)
    const retry = planRetry(failed.failure, attempt, network, settings.chance())
    if (!retry.again) return yield failed
    settings.onRetry?.({ cause: failed.failure, delayMs: retry.delayMs, attempt: attempt + 1 })
    await settings.clock.sleep(retry.delayMs, signal)
    if (signal?.aborted === true)
      return yield replyFailed(failureFromException('called off while waiting to try again', true))
  }
}

/** Retries after a server on this machine has refused the connection: most likely nothing listens there. */
const LOOPBACK_RETRIES = 2

function limitRetries({ network, baseUrl }: Settings, { errorCode }: ModelFailure): NetworkPolicy {
  const isLoopback = /^(?:127\.|localhost$|\[::1\]$)/.test(new URL(baseUrl).hostname)
  if (errorCode !== 'ECONNREFUSED' || !isLoopback) return network
  return { ...network, retries: Math.min(network.retries, LOOPBACK_RETRIES) }
}

/** Sends one API request and streams its reply. Yields exactly one closing event (`reply-ended` or `reply-failed`). */
async function* streamOnce(
  settings: Settings,
  { text, betas }: EncodedBody,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const { version, credentials, clock } = settings
  const deadline = createDeadline(clock, settings.silenceMs, signal)
  try {
    const answer = settings.fetch(`${settings.baseUrl}/v1/messages`, {
      method: 'POST',
      headers: toRequestHeaders({ version, betas, credentials }),
      body: text,
      signal: deadline.signal,
      ...NO_REDIRECTS,
    })
    const response = await waitUntilExpired(answer, deadline)
    deadline.renew()
    if (!response.ok) yield replyFailed(await waitUntilExpired(readFailure(response, clock), deadline))
    else if (response.headers.get('content-type')?.includes('text/event-stream') === true)
      yield* readStream(response, deadline)
    else yield* toReplyEvents(await waitUntilExpired(response.text(), deadline))
  } catch (thrown) {
    yield replyFailed(toCallFailure(thrown, deadline))
  } finally {
    deadline.end()
  }
}

/** Waits for the network until the deadline expires, then throws: a custom `fetch` may ignore its signal. */
async function waitUntilExpired<T>(work: Promise<T>, { expired }: Deadline): Promise<T> {
  const end = await Promise.race([work.then((value) => ({ value })), expired])
  if (typeof end === 'object') return end.value
  throw new Error(end)
}

type ReplyFailed = ReplyEvent & { readonly type: 'reply-failed' }

function replyFailed(failure: ModelFailure): ReplyFailed {
  return { type: 'reply-failed', failure, reply: null }
}

async function readFailure(response: Response, clock: Clock): Promise<ModelFailure> {
  const redirect = describeRedirect(response)
  if (redirect !== null) return { kind: 'invalid-request', retryable: false, message: redirect }
  const headers = Object.fromEntries(response.headers)
  return toAnthropicFailure({
    status: response.status,
    body: await response.text(),
    headers,
    now: clock.now(),
  })
}

async function* readStream(response: Response, deadline: Deadline): AsyncGenerator<ReplyEvent> {
  let state = initialByteStreamState
  const chunks = response.body?.[Symbol.asyncIterator]()
  try {
    while (chunks !== undefined) {
      const chunk = await waitUntilExpired(chunks.next(), deadline)
      if (chunk.done === true) break
      // The timeout is paused while the consumer handles events, because it limits only how long the provider sends
      // nothing.
      deadline.pause()
      const [next, events] = decodeReplyBytes(state, chunk.value)
      state = next
      yield* events
      if (state.stream.isClosed) return
      deadline.renew()
    }
    yield* finishReplyBytes(state)[1]
  } catch (thrown) {
    yield* finishReplyBytes(state, toCallFailure(thrown, deadline))[1]
  } finally {
    // Closes the connection. The promise is not awaited, because a custom body may never settle it.
    chunks?.return?.().catch(() => {})
  }
}

/** Returns the events of a reply that arrived as one JSON body instead of a stream. */
function toReplyEvents(text: string): readonly ReplyEvent[] {
  const read = decodeResponse(text)
  return read.ok ? replyToEvents(read.reply) : [replyFailed(read.failure)]
}

function toCallFailure(thrown: unknown, { expiryReason }: Deadline): ModelFailure {
  if (expiryReason !== 'timeout') return failureFromException(thrown, expiryReason === 'aborted')
  return failureFromException(Object.assign(new Error('Nothing came for too long'), { name: 'TimeoutError' }))
}

/** A request body as one string, so that `fetch` knows its length and a retry sends the same bytes. */
interface EncodedBody {
  readonly text: string
  readonly betas: readonly string[]
}

const STREAMING = { stream: true }

/**
 * Returns a function that encodes the request bodies of successive model calls in steps, with `fields` added to each.
 * Each message is encoded once and cached, so the time does not grow with the conversation. Calls of several sessions
 * may alternate.
 */
export function createBodyEncoder(fields: JsonObject = STREAMING): (call: ModelCall) => Steps<EncodedBody> {
  let previous: IncrementalRequest | undefined
  const texts = createMessageTexts()
  return function* (call) {
    if (call.request !== undefined) {
      previous = yield* extendRequestInSteps(call.request, { fields, previous, texts })
      return { text: joinIncrementalRequest(previous), betas: previous.betas }
    }
    // This request was not assembled by the engine, so there are no cached message texts to reuse.
    const { payload, raw } = call
    const options = raw === undefined ? {} : { raw: { messages: raw } }
    const encoded = encodeRequest({ ...payload, ...fields }, options)
    return { text: joinEncodedRequest(encoded), betas: encoded.betas }
  }
}

/**
 * Creates a cache of message texts for requests that alternate. A text can be collected as soon as no request holds it:
 * messages live on in the cache model long after the context was rewritten, and their texts are not needed there.
 */
function createMessageTexts(): MessageTexts {
  const known = new WeakMap<object, WeakRef<MessageText>>()
  return {
    get: (message) => known.get(message)?.deref(),
    set: (message, text) => {
      known.set(message, new WeakRef(text))
    },
  }
}
