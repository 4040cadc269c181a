/**
 * Runs one attempt to write a summary with a model, within time limits: a fork that shares the conversation's cached
 * prefix, a separate model call, or a request for the provider's compaction block.
 */
import { EMPTY_CACHE_MODEL, findNewestPrefixExpiry } from '../cache/cache-model.ts'
import { listTracedMessages, type TracedMessage } from '../context/flatten-context.ts'
import type { Payload } from '../context/payload.ts'
import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { TurnHost } from '../engine/host.ts'
import type { DeadlineResult, Deadlines, Model, ModelStreamInput, Signal } from '../engine/ports.ts'
import type { Reply, ReplyEvent, ReplyFailed } from '../engine/reply.ts'
import type { SessionState } from '../engine/session-state.ts'
import { type TurnContext, yieldToHost } from '../engine/session-writer.ts'
import {
  buildForkRequest,
  measureForkCacheRead,
  runSideCall,
  type SideCallRequest,
  toUncachedRequest,
  withRestoredRequest,
} from '../engine/side-call.ts'
import { describeThrown } from '../errors.ts'
import { toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { indexBlocks, type MessageList } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import {
  compareMarkerPlaces,
  findLastMarkableBlock,
  findLastResponseIndex,
  type PlannedMarker,
} from '../request/cache-markers.ts'
import type {
  AttemptResult,
  AttemptTimeLimits,
  CompactionBlockAttempt,
  LocalAttempt,
  SummaryAttempt,
} from '../summary/attempt-types.ts'
import { type CompactionPlan, withHost } from './plan-compaction.ts'

/** Query source (label) of calls that write summaries. */
const COMPACT_SOURCE = 'compact'

/** Runs one attempt to write the summary with a model, and emits progress and keep-alive events meanwhile. */
export async function* runSummaryAttempt(
  turn: TurnContext,
  attempt: Exclude<SummaryAttempt, LocalAttempt>,
): AsyncGenerator<TurnEvent, AttemptResult> {
  const call = createAttemptCall(turn, attempt)
  if ('kind' in call) return call
  await yieldToHost(turn)
  const { rung } = attempt
  const since = turn.host.clock.now()
  const { keepAliveMs } = attempt.deadlines
  const events = runSideCall(createSideTurn(turn, attempt), call)
  let characters = 0
  yield { type: 'summary-progress', characters, rung }
  for (;;) {
    const step = yield* waitWithKeepAlive(turn, events.next(), {
      deadlines: turn.host.compaction.deadlines,
      keepAliveMs,
      since,
    })
    if (step.done === true) {
      const { answer } = step.value
      if (attempt.kind === 'fork' && answer.ok)
        yield { type: 'fork', fork: measureForkCacheRead(COMPACT_SOURCE, answer.reply, step.value) }
      return toAttemptResult(answer)
    }
    const { value } = step
    yield value
    if (value.type !== 'side-reply') continue
    if (value.event.type === 'block-grew' && value.event.delta.kind === 'text')
      characters += value.event.delta.text.length
    if (characters > 0) yield { type: 'summary-progress', characters, rung }
  }
}

/**
 * Limits a fork to the records that the conversation had when the compaction was planned. What was appended since stays
 * in the context, and may end in a tool call without a result, which the provider would refuse.
 */
export function limitForkToPlannedRecords<Attempt extends Exclude<SummaryAttempt, LocalAttempt>>(
  attempt: Attempt,
  { entries }: CompactionPlan,
  { view }: SessionState,
): Attempt {
  if (attempt.kind !== 'fork' || attempt.records !== null || view.entries.length === entries.length)
    return attempt
  return { ...attempt, records: new Set(entries.toArray().map(({ record }) => record.uuid)) }
}

/** Creates the turn context of a summary call: its model has time limits and may be a different model. */
function createSideTurn(turn: TurnContext, attempt: Exclude<SummaryAttempt, LocalAttempt>): TurnContext {
  const { host } = turn
  const { deadlines, summaryModel } = host.compaction
  const other =
    attempt.kind === 'direct' && attempt.payload.model !== host.readOfferedPrefix().model
      ? summaryModel
      : undefined
  const model = createTimeLimitedModel(other?.model ?? host.model, { deadlines, limits: attempt.deadlines })
  const profile = other?.summariser.profile ?? host.profile
  return withHost(turn, { ...host, model, profile })
}

type UnavailableAttempt = Extract<AttemptResult, { readonly kind: 'unavailable' }>

/** Returns the request of an attempt; or why it cannot be made, as after a switch of the model. */
function createAttemptCall(
  { state, host }: TurnContext,
  attempt: Exclude<SummaryAttempt, LocalAttempt>,
): SideCallRequest | UnavailableAttempt {
  const source = COMPACT_SOURCE
  const sentTo = withRestoredRequest(state, host).lastRequest?.front.model ?? null
  if (attempt.kind !== 'direct' && sentTo !== null && sentTo !== host.readOfferedPrefix().model)
    return unavailableAttempt(`The last request was made to ${sentTo}, and the model was switched since.`)
  switch (attempt.kind) {
    case 'fork': {
      const part = attempt.records === null ? {} : { records: attempt.records }
      const fork = buildForkRequest(state, { source, messages: [attempt.message], ...part }, host)
      if (fork.ok) return { request: fork.request, source, forkOf: host.source }
      return unavailableAttempt(
        'message' in fork ? fork.message : `There is nothing to fork: ${fork.reason}.`,
      )
    }
    case 'block': {
      const request = createBlockRequest(state, attempt, host)
      return request === null ? unavailableAttempt('There is no request to ask it on.') : { request, source }
    }
    case 'direct':
      return { request: toUncachedRequest(state, attempt.payload as Payload, attempt.raw), source }
  }
}

function unavailableAttempt(message: string): UnavailableAttempt {
  return { kind: 'unavailable', message }
}

function toAttemptResult(answer: TurnFailure | { readonly ok: true; readonly reply: Reply }): AttemptResult {
  if (answer.ok) {
    const { message, stop = null } = answer.reply
    return { kind: 'answer', content: toBlocks(message.content), stop }
  }
  switch (answer.reason) {
    case 'aborted':
      return { kind: 'aborted' }
    case 'failed':
      return answer.failure.kind === 'timeout'
        ? { kind: 'stalled', message: answer.failure.message }
        : { kind: 'failure', failure: answer.failure }
    case 'invalid': {
      const [first] = answer.findings
      return unavailableAttempt(`The provider would refuse the request: ${first?.message ?? 'invalid'}`)
    }
    case 'limit':
      return unavailableAttempt(answer.message)
    default:
      return unavailableAttempt(`The log could not be written: ${answer.reason}.`)
  }
}

/**
 * Builds the API request for the provider's compaction block: the last request, cut after the last message to summarize, with the
 * summary task. Returns null if no request was sent yet, or if no message contains the record `attempt.through`.
 */
function createBlockRequest(
  state: SessionState,
  attempt: CompactionBlockAttempt,
  host: TurnHost,
): AssembledRequest | null {
  const { lastRequest, flat } = state
  if (lastRequest === null) return null
  const messages = listTracedMessages(flat)
  const end = messages.findLastIndex(({ origins }) => origins.includes(attempt.through))
  if (end === -1) return null
  const list = { frozen: AppendList.of<TracedMessage>(), tail: messages.slice(0, end + 1) }
  const { spelling, cache } = host.profile
  const { parameters, extra } = spelling.requestSummary(lastRequest.front.parameters, attempt.instructions)
  return {
    ...lastRequest,
    front: { ...lastRequest.front, parameters: withBeta(parameters, attempt.beta) },
    messages: list,
    blockIndex: indexBlocks(list, lastRequest.blockIndex.collapsesRuns),
    markers: chooseMarkers(lastRequest.markers, list, end, isCacheWarm(state, host) ? cache : null),
    extra,
  }
}

/**
 * Chooses the cache markers of the shortened API request. If the cut removed markers, adds one before the newest
 * response that is left, because a cache entry ends there.
 */
function chooseMarkers(
  markers: readonly PlannedMarker[],
  list: MessageList,
  end: number,
  cache: CacheRules | null,
): readonly PlannedMarker[] {
  const left = markers.filter(({ place }) => place.zone !== 'messages' || place.index <= end)
  const last = markers.at(-1)
  const response = cache === null ? null : findLastResponseIndex(list)
  if (cache === null || last === undefined || response === null || left.length === markers.length) return left
  const place = findLastMarkableBlock(list, cache, { index: response, block: 0 })
  if (place === null || left.some((marker) => compareMarkerPlaces(marker.place, place) === 0)) return left
  return [...left, { ...last, place }].toSorted((one, other) => compareMarkerPlaces(one.place, other.place))
}

function withBeta(parameters: JsonObject, beta: string | null): JsonObject {
  if (beta === null) return parameters
  const betas = Array.isArray(parameters.betas) ? parameters.betas : []
  return betas.includes(beta) ? parameters : { ...parameters, betas: [...betas, beta] }
}

interface ModelBounds {
  readonly deadlines: Deadlines
  readonly limits: AttemptTimeLimits
}

/**
 * Wraps a model with two time limits: for silence and for the whole reply. A reply that exceeds a limit ends with a
 * failure event.
 */
export function createTimeLimitedModel(model: Model, bounds: ModelBounds): Model {
  return { stream: (call, signal) => streamBounded(model, bounds, call, signal) }
}

/**
 * Streams a reply within its time limits: reads the reply in the background and yields its events from a queue. A model
 * that ignores the abort signal is abandoned.
 */
async function* streamBounded(
  model: Model,
  { deadlines, limits }: ModelBounds,
  call: ModelStreamInput,
  signal: Signal | undefined,
): AsyncGenerator<ReplyEvent, void> {
  const queue = createEventQueue()
  const reading = deadlines
    .within(
      limits.attemptMs,
      // When the events are no longer read, the attempt ends, and its model call is aborted.
      async (inner) =>
        await Promise.race([
          queue.closed,
          readReply(model.stream(call, inner), queue.push, (next) =>
            deadlines.within(limits.stallMs, () => next, inner),
          ),
        ]),
      signal,
    )
    .then(
      (end) => queue.close(end.ok ? end.value : createReplyFailure(end.why, LIMIT_MESSAGES[end.why])),
      (thrown: unknown) => queue.close(createReplyFailure('unknown', describeThrown(thrown))),
    )
  try {
    yield* queue.events()
  } finally {
    queue.close(null)
  }
  await reading
}

type NextEvent = IteratorResult<ReplyEvent>

/**
 * Reads a reply into the queue. Returns a failure event if the reply stalls or breaks off; null if the reply sent its
 * own last event or the queue is closed.
 */
async function readReply(
  stream: AsyncIterable<ReplyEvent>,
  push: (event: ReplyEvent) => boolean,
  wait: (next: Promise<NextEvent>) => Promise<DeadlineResult<NextEvent>>,
): Promise<ReplyFailed | null> {
  const events = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await wait(events.next())
      if (!next.ok) return createReplyFailure(next.why, 'Nothing came for too long.')
      if (next.value.done === true)
        return createReplyFailure('bad-reply', 'The reply stopped without an end.')
      const { value } = next.value
      const isHeard = push(value)
      if (!isHeard || value.type === 'reply-ended' || value.type === 'reply-failed') return null
    }
  } finally {
    // Closes the model's stream with its connection and timers. The promise is not awaited because it may never settle.
    events.return?.().catch(() => {})
  }
}

const LIMIT_MESSAGES = { timeout: 'It took too long.', aborted: 'It was aborted.' } as const

function createReplyFailure(
  kind: 'timeout' | 'bad-reply' | 'aborted' | 'unknown',
  message: string,
): ReplyFailed {
  const retryable = kind === 'timeout' || kind === 'bad-reply'
  return { type: 'reply-failed', failure: { kind, retryable, message }, reply: null }
}

function createEventQueue() {
  const waiting: ReplyEvent[] = []
  let isClosed = false
  let wake = (): void => {}
  let finish = (_: null): void => {}
  const closed = new Promise<null>((resolve) => {
    finish = resolve
  })
  return {
    /** Resolves with null once the queue is closed. */
    closed,
    /** Adds an event to the queue; returns false once the queue is closed. */
    push: (event: ReplyEvent): boolean => {
      if (!isClosed) waiting.push(event)
      wake()
      return !isClosed
    },
    /** Closes the queue. `last`: a failure event to add first; null if the reply already sent its own last event. */
    close: (last: ReplyFailed | null): void => {
      if (last !== null && !isClosed) waiting.push(last)
      isClosed = true
      finish(null)
      wake()
    },
    events: async function* (): AsyncGenerator<ReplyEvent, void> {
      for (;;) {
        for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
        if (isClosed) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

interface KeepAliveOptions {
  readonly deadlines: Deadlines
  readonly keepAliveMs: number
  /** Start of the wait, in milliseconds since 1970; default: now. */
  readonly since?: number
}

/**
 * Waits for `work` and emits `keep-alive` events meanwhile. `work` must have its own time limit and must end by itself
 * after an abort.
 */
export async function* waitWithKeepAlive<Value>(
  { host, signal }: TurnContext,
  work: Promise<Value>,
  { deadlines, keepAliveMs, since = host.clock.now() }: KeepAliveOptions,
): AsyncGenerator<TurnEvent, Value> {
  for (;;) {
    const end = await deadlines.within(keepAliveMs, () => work, signal)
    if (end.ok) return end.value
    if (end.why === 'aborted') return await work
    yield { type: 'keep-alive', waitedMs: host.clock.now() - since }
  }
}

/** Returns true if the cached prefix of the last API request has not expired. */
export function isCacheWarm({ cacheModel }: SessionState, { clock }: TurnHost): boolean {
  const expiry = findNewestPrefixExpiry(cacheModel ?? EMPTY_CACHE_MODEL)
  return expiry !== null && clock.now() < expiry
}
