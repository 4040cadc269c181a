/** The Messages API over HTTP, as the engine's `Model`: retries while nothing has come, deadlines, abort. */
import {
  type Clock,
  DEFAULT_POLICY,
  type Failure,
  type Model,
  type ModelCall,
  type Policy,
  type ReplyEvent,
  type Signal,
} from '@tidemark/core'
import {
  bodyText,
  byteStart,
  type Credentials,
  encodeRequest,
  endBytes,
  eventsOf,
  failureOfThrown,
  fromBytes,
  fromResponse,
  type GrowingRequest,
  growingText,
  growRequest,
  toFailure,
  toHeaders,
} from '@tidemark/wire'
import { createDeadline, type Deadline, systemClock } from '../platform/node-ports.ts'

export interface AnthropicModelOptions {
  /** Without `/v1`. */
  readonly baseUrl?: string
  readonly credentials: Credentials
  readonly version?: string
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
  readonly network?: Policy['turn']['network']
  /** Longest silence, before the first byte and between two. */
  readonly silenceMs?: number
  /** From 0 up to 1; for the jitter of waits. */
  readonly chance?: () => number
  /** Told before each wait. */
  readonly onRetry?: (retry: {
    readonly failure: Failure
    readonly attempt: number
    readonly delayMs: number
  }) => void
}

interface Settings extends Required<Omit<AnthropicModelOptions, 'onRetry'>> {
  readonly onRetry: AnthropicModelOptions['onRetry']
}

const DEFAULT_SILENCE_MS = 300_000

export function createAnthropicModel(options: AnthropicModelOptions): Model {
  const settings: Settings = {
    baseUrl: options.baseUrl ?? 'https://api.anthropic.com',
    credentials: options.credentials,
    version: options.version ?? '2023-06-01',
    fetch: options.fetch ?? globalThis.fetch,
    clock: options.clock ?? systemClock,
    network: options.network ?? DEFAULT_POLICY.turn.network,
    silenceMs: options.silenceMs ?? DEFAULT_SILENCE_MS,
    chance: options.chance ?? Math.random,
    onRetry: options.onRetry,
  }
  const writeBody = createBodyWriter()
  return { stream: (call, signal) => streamed(settings, () => writeBody(call), signal) }
}

/** The body is written when the first event is asked for. */
async function* streamed(
  settings: Settings,
  write: () => RequestBody,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const body = write()
  for (let attempt = 0; ; attempt += 1) {
    let begun = false
    let failed: (ReplyEvent & { readonly type: 'reply-failed' }) | null = null
    for await (const event of attempted(settings, body, signal)) {
      if (event.type === 'reply-failed' && !begun) failed = event
      else if (event.type !== 'reply-alive' || begun) {
        begun = true
        yield event
      }
    }
    if (failed === null) return
    const retry = planRetry(failed.failure, attempt, settings.network, settings.chance())
    if (!retry.again) return yield failed
    settings.onRetry?.({ failure: failed.failure, attempt, delayMs: retry.delayMs })
    await settings.clock.sleep(retry.delayMs, signal)
    if (signal?.aborted === true)
      return yield {
        type: 'reply-failed',
        failure: failureOfThrown('called off while waiting to try again', true),
        reply: null,
      }
  }
}

/** One request, one reply: exactly one closing event. */
async function* attempted(
  settings: Settings,
  body: RequestBody,
  signal?: Signal,
): AsyncGenerator<ReplyEvent> {
  const deadline = createDeadline(settings.clock, settings.silenceMs, signal)
  try {
    const response = await send(settings, body, deadline.signal)
    deadline.beat()
    if (!response.ok) yield failedWith(await refusal(response, settings.clock))
    else if (isStream(response)) yield* streamedEvents(response, deadline)
    else yield* wholeEvents(await response.text())
  } catch (thrown) {
    yield failedWith(thrownFailure(thrown, deadline))
  } finally {
    deadline.end()
  }
}

function send(settings: Settings, { text, betas }: RequestBody, signal: AbortSignal): Promise<Response> {
  const { version, credentials } = settings
  return settings.fetch(`${settings.baseUrl}/v1/messages`, {
    method: 'POST',
    headers: toHeaders({ version, betas, credentials }),
    body: text,
    signal,
  })
}

async function refusal(response: Response, clock: Clock): Promise<Failure> {
  const headers = Object.fromEntries(response.headers)
  return toFailure({ status: response.status, body: await response.text(), headers, now: clock.now() })
}

function isStream(response: Response): boolean {
  return response.headers.get('content-type')?.includes('text/event-stream') === true
}

async function* streamedEvents(response: Response, deadline: Deadline): AsyncGenerator<ReplyEvent> {
  let state = byteStart
  try {
    for await (const chunk of response.body ?? []) {
      deadline.hold()
      const [next, events] = fromBytes(state, chunk)
      state = next
      yield* events
      if (state.stream.closed) return
      deadline.beat()
    }
    yield* endBytes(state)[1]
  } catch (thrown) {
    yield* endBytes(state, thrownFailure(thrown, deadline))[1]
  }
}

function wholeEvents(text: string): readonly ReplyEvent[] {
  const read = fromResponse(text)
  return read.ok ? eventsOf(read.reply) : [failedWith(read.failure)]
}

function thrownFailure(thrown: unknown, deadline: Deadline): Failure {
  if (deadline.calledOff !== 'too-late') return failureOfThrown(thrown, deadline.calledOff === 'aborted')
  return failureOfThrown(Object.assign(new Error('Nothing came for too long'), { name: 'TimeoutError' }))
}

function failedWith(failure: Failure): ReplyEvent & { readonly type: 'reply-failed' } {
  return { type: 'reply-failed', failure, reply: null }
}

// The body of each call as one string: `fetch` then knows its length, and a retry sends the very same bytes.
// Only the joining grows with the conversation: every message is spelled once and remembered.

export interface RequestBody {
  readonly text: string
  readonly betas: readonly string[]
}

const FIELDS = { stream: true }

/** Goes on from the request before. Sessions that take turns cost a look at each message, no spelling. */
export function createBodyWriter(): (call: ModelCall) => RequestBody {
  let previous: GrowingRequest | undefined
  return (call) => {
    if (call.request === undefined) return plainBody(call)
    previous = growRequest(call.request, { fields: FIELDS, previous })
    return { text: growingText(previous), betas: previous.betas }
  }
}

/** A payload that was made by hand. */
function plainBody({ payload, raw }: ModelCall): RequestBody {
  const options = raw === undefined ? {} : { raw: { messages: raw } }
  const encoded = encodeRequest({ ...payload, ...FIELDS }, options)
  return { text: bodyText(encoded), betas: encoded.betas }
}

// When to try again, and how long to wait first. What a failure means is `wire`'s; this is only the waiting.

type NetworkPolicy = Policy['turn']['network']

export type Retry =
  | { readonly again: true; readonly delayMs: number }
  | { readonly again: false; readonly why: string }

/** `attempt` counts from 0. `chance` is a number from 0 up to 1: waits are shortened by it, so that many clients do not come back at once. */
export function planRetry(failure: Failure, attempt: number, policy: NetworkPolicy, chance: number): Retry {
  if (!failure.retryable) return { again: false, why: 'the same request would be refused again' }
  if (attempt >= policy.retries) return { again: false, why: `tried ${attempt + 1} times` }
  const asked = failure.retryAfterMs
  if (asked !== undefined && asked > policy.longestRetryAfterSeconds * 1000) {
    return { again: false, why: `the provider asks to wait ${Math.ceil(asked / 1000)} s` }
  }
  return { again: true, delayMs: asked ?? backoff(attempt, policy, chance) }
}

function backoff(attempt: number, policy: NetworkPolicy, chance: number): number {
  const full = Math.min(policy.firstDelayMs * 2 ** attempt, policy.maximumDelayMs)
  return Math.round(full * (1 - (policy.jitterPercent / 100) * chance))
}
