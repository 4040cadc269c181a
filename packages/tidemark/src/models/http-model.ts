/**
 * Implements the engine's `Model` port over HTTP, with the protocol of any provider. Streams each reply and fails if no
 * data arrives for too long. A request is retried only if no event of its reply has been passed on yet.
 */
import type { Clock, Model, ModelStreamInput, Signal } from '@tidemark/core/engine/ports'
import {
  type ModelFailure,
  planRetry,
  type ReplyEvent,
  type UpcomingRetry,
} from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import { runStepsAtOnce, type WorkInSteps } from '@tidemark/core/log/work-steps'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import { classifyException } from '@tidemark/wire/failure/classify-failure'
import type { SplitClientList } from '@tidemark/wire/providers/client-request'
import type {
  Credentials,
  DecodeBodyResult,
  EncodedRequest,
  MessageCache,
  ProviderCodec,
  ReplyDecoder,
} from '@tidemark/wire/providers/provider-codec'
import { replyToEvents } from '@tidemark/wire/providers/reply-events'
import { createRenewableDeadline, type Deadline, systemClock } from '../platform/node-ports.ts'
import { createKeyRedactor, hideKeyInFailure } from './key-redaction.ts'
import { describeRedirect, NO_REDIRECTS } from './redirects.ts'

interface HttpModelOptions {
  /** The protocol of the provider. */
  readonly codec: ProviderCodec
  /** Base URL of the API, before the paths of the codec. Default: that of the provider itself. */
  readonly baseUrl?: string
  readonly credentials: Credentials
  /** Version of the API. Default: that of the codec. */
  readonly version?: string
  readonly fetch?: typeof globalThis.fetch
  /** Fields of every body beside those of the call. Default: none. */
  readonly fields?: JsonObject
  readonly clock?: Clock
  readonly network?: NetworkPolicy
  /** Timeout in milliseconds without data, both before the first byte and between two chunks of the reply. */
  readonly silenceMs?: number
  /** Returns a random number in [0, 1), used for the jitter of retry delays. Default: `Math.random`. */
  readonly chance?: () => number
  /** Called before the wait that precedes each retry. */
  readonly onRetry?: (retry: UpcomingRetry) => void
}

type NetworkPolicy = Policy['turn']['network']
type Settings = Required<Omit<HttpModelOptions, 'onRetry' | 'version' | 'fields'>> &
  Pick<HttpModelOptions, 'onRetry' | 'version'>

const DEFAULT_SILENCE_MS = 300_000

/** Creates the port. It never throws for a failed call: a stream ends with `reply-failed` instead. */
export function createHttpModel(options: HttpModelOptions): Model {
  const settings: Settings = {
    baseUrl: options.codec.baseUrl,
    fetch: globalThis.fetch,
    clock: systemClock,
    network: DEFAULT_POLICY.turn.network,
    silenceMs: DEFAULT_SILENCE_MS,
    chance: Math.random,
    ...options,
  }
  const encodeBody = createBodyEncoder(options.codec, { ...options.fields, ...STREAMING })
  return {
    stream: (call, signal) => streamWithRetries(settings, () => runStepsAtOnce(encodeBody(call)), signal),
  }
}

/** Streams one reply, with retries. A reply is never retried after its first event was yielded. */
async function* streamWithRetries(
  settings: Settings,
  encodeBody: () => EncodedRequest,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const body = encodeBody()
  const hide = createKeyRedactor(settings.credentials.secret)
  for (let attempt = 0; ; attempt += 1) {
    const isSent = signal?.aborted !== true
    let [isAnswered, hasBegun] = [false, false]
    let failed: ReplyFailed | null = null
    for await (const given of streamOnce(settings, body, signal)) {
      const event = hideKeyInFailure(given, hide)
      if (event.type === 'reply-failed' && !hasBegun) failed = event
      else if (event.type !== 'reply-alive' || hasBegun) {
        hasBegun = true
        yield event
      } else isAnswered = true
    }
    if (failed === null) return
    // A failure that the provider reports, such as an overload, is not billed. A request that was sent and then aborted
    // is billed, so it is reported as lost.
    const { kind, errorType } = failed.failure
    if (kind === 'aborted' ? isSent : isAnswered && errorType === undefined) yield { type: 'reply-lost' }
    const network = limitRetries(settings, failed.failure)
    const retry = planRetry(failed.failure, attempt, network, settings.chance())
    if (!retry.again) return yield failed
    settings.onRetry?.({ cause: failed.failure, delayMs: retry.delayMs, attempt: attempt + 1 })
    await settings.clock.sleep(retry.delayMs, signal)
    if (signal?.aborted === true)
      return yield replyFailed(classifyException('called off while waiting to try again', true))
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
  { text, headers }: EncodedRequest,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const { codec, version, credentials, clock } = settings
  const deadline = createRenewableDeadline(clock, settings.silenceMs, signal)
  try {
    const answer = settings.fetch(`${settings.baseUrl}${codec.paths.reply}`, {
      method: 'POST',
      headers: { ...codec.createHeaders(credentials, version), ...headers },
      body: text,
      signal: deadline.signal,
      ...NO_REDIRECTS,
    })
    const response = await waitUntilExpired(answer, deadline)
    deadline.renew()
    if (!response.ok) yield replyFailed(await waitUntilExpired(readFailure(response, settings), deadline))
    else if (response.headers.get('content-type')?.includes(codec.streamType ?? EVENT_STREAM) === true) {
      yield { type: 'reply-alive' }
      yield* readStream(response, codec.decode, deadline)
    } else yield* toReplyEvents(codec.decodeBody(await waitUntilExpired(response.text(), deadline)))
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

async function readFailure(response: Response, settings: Settings): Promise<ModelFailure> {
  const { codec, clock } = settings
  const redirect = describeRedirect(response)
  if (redirect !== null) return { kind: 'invalid-request', retryable: false, message: redirect }
  const headers = Object.fromEntries(response.headers)
  const failure = codec.toFailure({
    status: response.status,
    body: await response.text(),
    headers,
    now: clock.now(),
  })
  return isAboutAddress(failure) ? { ...failure, message: describeAddress(failure, settings) } : failure
}

/** True for a 404 that seems to come from a wrong base URL. For a missing model, the error has a code or says "model". */
function isAboutAddress({ status, errorCode, message }: ModelFailure): boolean {
  return status === 404 && errorCode === undefined && !/model/i.test(message)
}

function describeAddress({ message }: ModelFailure, { baseUrl, codec }: Settings): string {
  return `No API answers at ${baseUrl}${codec.paths.reply}, so check the base URL (${message})`
}

async function* readStream(
  response: Response,
  decode: ReplyDecoder,
  deadline: Deadline,
): AsyncGenerator<ReplyEvent> {
  let state = decode.initial
  const chunks = response.body?.[Symbol.asyncIterator]()
  try {
    while (chunks !== undefined) {
      const chunk = await waitUntilExpired(chunks.next(), deadline)
      if (chunk.done === true) break
      // The timeout is paused while the consumer handles events, because it limits only how long the provider sends nothing.
      deadline.pause()
      const [next, events] = decode.step(state, chunk.value)
      state = next
      yield* events
      if (events.some(isClosing)) return
      deadline.renew()
    }
    yield* decode.finish(state)
  } catch (thrown) {
    yield* decode.finish(state, toCallFailure(thrown, deadline))
  } finally {
    // Closes the connection. The promise is not awaited, because a custom body may never settle it.
    chunks?.return?.().catch(() => {})
  }
}

function isClosing({ type }: ReplyEvent): boolean {
  return type === 'reply-ended' || type === 'reply-failed'
}

/** Returns the events of a reply that arrived as one JSON body instead of a stream. */
function toReplyEvents(read: DecodeBodyResult): readonly ReplyEvent[] {
  return read.ok ? replyToEvents(read.reply) : [replyFailed(read.failure)]
}

function toCallFailure(thrown: unknown, { expiryReason }: Deadline): ModelFailure {
  if (expiryReason !== 'timeout') return classifyException(thrown, expiryReason === 'aborted')
  return classifyException(Object.assign(new Error('Nothing came for too long'), { name: 'TimeoutError' }))
}

const EVENT_STREAM = 'text/event-stream'
const STREAMING = { stream: true }

/** Encodes the bodies of successive model calls. Each is one string, so its length is known and a retry is identical. */
export type BodyEncoder = (call: ModelStreamInput, list?: SplitClientList) => WorkInSteps<EncodedRequest>

/**
 * Returns a function that encodes the request bodies of successive model calls in steps, with `fields` added to each. Each
 * message is encoded once and cached, so the time does not grow with the conversation. Calls of several sessions may alternate.
 */
export function createBodyEncoder(codec: ProviderCodec, fields: JsonObject = STREAMING): BodyEncoder {
  let previous: unknown
  const texts = createMessageCache()
  return function* (call, list) {
    const given = list === undefined ? {} : { list }
    const encoded = yield* codec.encode(call, { fields, previous, texts, ...given })
    previous = encoded.state
    return encoded
  }
}

/**
 * Creates a cache of encoded messages. Entries are weak references: the cache model keeps message objects long after a
 * rewrite removed them from the context, and their texts can then be freed.
 */
function createMessageCache(): MessageCache {
  const known = new WeakMap<object, WeakRef<object>>()
  return {
    get: (message) => known.get(message)?.deref(),
    set: (message, text) => {
      known.set(message, new WeakRef(text))
    },
  }
}
