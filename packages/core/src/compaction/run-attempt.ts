/** One ask of the chain, put to a model: a fork, a call of its own, or the provider's own summary. */

import { cacheExpiry, NO_LINEAGE } from '../cache/cache-model.ts'
import type { FlatMessage } from '../context/flatten.ts'
import { flatMessagesOf } from '../context/flatten.ts'
import type { Payload } from '../context/payload.ts'
import type { Halt, TurnEvent } from '../engine/events.ts'
import type { Room, TurnHost } from '../engine/host.ts'
import { withRoom } from '../engine/measure-context.ts'
import type { Clock, Deadlines, Model, ModelCall, Signal } from '../engine/ports.ts'
import type { FailureKind, Reply, ReplyEvent, ReplyFailed } from '../engine/reply.ts'
import type { SessionState } from '../engine/session-state.ts'
import type { TurnRun } from '../engine/session-writer.ts'
import { forkRead, forkRequest, plainRequest, type SideCall, sideCall } from '../engine/side-call.ts'
import { blocksOf } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { CompactPolicy } from '../policy/policy.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { countMessages, type MessageList } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { comparePlaces, lastMarkable, lastResponse, type PlannedMarker } from '../request/cache-markers.ts'
import type {
  Ask,
  AskDeadlines,
  AskOutcome,
  BlockAsk,
  ChainContext,
  DirectAsk,
  ForkAsk,
  LocalAsk,
} from '../summary/attempt.ts'
import type { Summariser } from '../summary/summary-input.ts'
import { sizeOf } from '../tokens/usage.ts'
import type { CompactionPlan } from './plan-compaction.ts'

const COMPACT_SOURCE = 'compact'

export async function* askModel(
  run: TurnRun,
  room: Room,
  ask: Exclude<Ask, LocalAsk>,
): AsyncGenerator<TurnEvent, AskOutcome> {
  const made = requestFor(run, ask)
  if ('kind' in made) return made
  const side = sideRun(run, room, ask)
  let characters = 0
  const events = sideCall(side, made)
  const waiting = {
    deadlines: room.deadlines,
    keepAliveMs: ask.deadlines.keepAliveMs,
    since: run.host.clock.now(),
  }
  yield { type: 'summary-progress', characters, rung: ask.rung }
  for (;;) {
    const step = yield* keepAlive(run, events.next(), waiting)
    if (step.done === true) {
      const { answer } = step.value
      if (ask.kind === 'fork' && answer.ok)
        yield { type: 'fork', fork: forkRead(COMPACT_SOURCE, answer.reply, step.value) }
      return outcomeOf(answer)
    }
    yield step.value
    characters += charactersIn(step.value)
    if (characters > 0 && step.value.type === 'side-reply') {
      yield { type: 'summary-progress', characters, rung: ask.rung }
    }
  }
}

/** The same session, what others do to it included, on a model that may be another and that cannot take for ever. */
function sideRun(run: TurnRun, room: Room, ask: Exclude<Ask, LocalAsk>): TurnRun {
  const { host } = run
  const other =
    ask.kind === 'direct' && ask.payload.model !== host.offered().model ? room.summariser : undefined
  const bounds = { deadlines: room.deadlines, clock: host.clock, limits: ask.deadlines }
  const model = boundedModel(other?.port ?? host.model, bounds)
  const profile = other?.summariser.profile ?? host.profile
  return {
    get state() {
      return run.state
    },
    set state(next) {
      run.state = next
    },
    host: { ...host, model, profile },
    signal: run.signal,
    ...(run.alone === undefined ? {} : { alone: run.alone }),
  }
}

type Unavailable = Extract<AskOutcome, { readonly kind: 'unavailable' }>

function requestFor(run: TurnRun, ask: Exclude<Ask, LocalAsk>): SideCall | Unavailable {
  switch (ask.kind) {
    case 'fork':
      return forkFor(run, ask)
    case 'block':
      return blockFor(run, ask)
    case 'direct':
      return directFor(run, ask)
  }
}

function forkFor({ state, host }: TurnRun, { message, through }: ForkAsk): SideCall | Unavailable {
  if (through !== null) return unavailable('A fork goes on from all that was sent, not from a part of it.')
  const made = forkRequest(state, { source: COMPACT_SOURCE, messages: [message] }, host)
  if (made.ok) return { request: made.request, source: COMPACT_SOURCE, forkOf: host.source }
  return unavailable('message' in made ? made.message : `There is nothing to fork: ${made.reason}.`)
}

function blockFor({ state, host }: TurnRun, ask: BlockAsk): SideCall | Unavailable {
  const request = blockRequest(state, ask, isWarm(state, host) ? host.profile.cache : null)
  return request === null
    ? unavailable('There is no request to ask it on.')
    : { request, source: COMPACT_SOURCE }
}

function directFor(run: TurnRun, { payload, raw }: DirectAsk): SideCall {
  const request: AssembledRequest = plainRequest(run.state, payload as Payload, raw)
  return { request, source: COMPACT_SOURCE }
}

function unavailable(message: string): Unavailable {
  return { kind: 'unavailable', message }
}

function charactersIn(event: TurnEvent): number {
  if (event.type !== 'side-reply' || event.event.type !== 'block-grew') return 0
  const { delta } = event.event
  return delta.kind === 'text' ? delta.text.length : 0
}

function outcomeOf(answer: Halt | { readonly ok: true; readonly reply: Reply }): AskOutcome {
  if (answer.ok) {
    const { message } = answer.reply
    return { kind: 'answer', content: blocksOf(message.content), stopReason: message.stop_reason ?? null }
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
      return unavailable(`The provider would refuse the request: ${first?.message ?? 'invalid'}`)
    }
    default:
      return unavailable(`The log could not be written: ${answer.reason}.`)
  }
}

// The request for the provider's own summary: what was sent last, as far as the summary goes, with the task in its
// field. It carries no edits of the context, which the provider refuses beside it.

/** `cache` is null where it is cold. Null where nothing was sent yet, or the record is nowhere among the messages. */
function blockRequest(
  { sent, flat }: SessionState,
  ask: BlockAsk,
  cache: CacheRules | null,
): AssembledRequest | null {
  if (sent === null) return null
  const messages = flatMessagesOf(flat)
  const end = messages.findLastIndex(({ origins }) => origins.includes(ask.through))
  if (end === -1) return null
  const list = { frozen: List.of<FlatMessage>(), tail: messages.slice(0, end + 1) }
  const { parameters } = sent.front
  return {
    ...sent,
    front: { ...sent.front, parameters: withBeta(parameters, ask.beta) },
    messages: list,
    counted: countMessages(list, sent.counted.collapses),
    markers: markersFor(sent, { list, end, cache }),
    extra: { compaction: { type: 'summarize', instructions: ask.instructions } },
  }
}

interface Cut {
  readonly list: MessageList
  /** Index of its last message. */
  readonly end: number
  readonly cache: CacheRules | null
}

/** Those that still have a place; in that of the last, one where the request ended that the newest response answered. */
function markersFor({ markers }: AssembledRequest, { list, end, cache }: Cut): readonly PlannedMarker[] {
  const left = markers.filter(({ place }) => place.zone !== 'messages' || place.index <= end)
  const last = markers.at(-1)
  const response = cache === null ? null : lastResponse(list)
  if (cache === null || last === undefined || response === null || left.length === markers.length) return left
  const place = lastMarkable(list, cache, { index: response, block: 0 })
  if (place === null || left.some((marker) => comparePlaces(marker.place, place) === 0)) return left
  return [...left, { ...last, place }].toSorted((one, other) => comparePlaces(one.place, other.place))
}

function withBeta(parameters: AssembledRequest['front']['parameters'], beta: string | null) {
  const { context_management: _, ...rest } = parameters
  if (beta === null || !isObject(rest)) return rest
  const betas = Array.isArray(rest.betas) ? rest.betas : []
  return betas.includes(beta) ? rest : { ...rest, betas: [...betas, beta] }
}

// A model whose replies cannot take for ever: silence that is too long, or too long in all, ends them as a failure.

interface Bounds {
  readonly deadlines: Deadlines
  readonly clock: Clock
  readonly limits: AskDeadlines
}

export function boundedModel(model: Model, bounds: Bounds): Model {
  return { stream: (call, signal) => boundedStream(model, { call, signal }, bounds) }
}

interface Asked {
  readonly call: ModelCall
  readonly signal: Signal | undefined
}

/**
 * The reply is read inside one bounded piece of work, so that whatever the model began ends with it, and handed out
 * through a queue. A model that never comes back is left where it is.
 */
async function* boundedStream(
  model: Model,
  { call, signal }: Asked,
  { deadlines, limits }: Bounds,
): AsyncGenerator<ReplyEvent, void> {
  const queue = eventQueue()
  const reading = deadlines
    .within(
      limits.attemptMs,
      async (inner) => {
        const wait: Waiting['wait'] = (next) => deadlines.within(limits.stallMs, () => next, inner)
        return await readThrough(model.stream(call, inner), queue.push, { wait })
      },
      signal,
    )
    .then(
      (end) => queue.close(end.ok ? end.value : failure(end.why, TOO_LONG[end.why])),
      (thrown: unknown) =>
        queue.close(failure('timeout', thrown instanceof Error ? thrown.message : String(thrown))),
    )
  try {
    yield* queue.events()
  } finally {
    queue.close(null)
  }
  await reading
}

interface Waiting {
  readonly wait: (
    next: Promise<IteratorResult<ReplyEvent>>,
  ) => Promise<{ ok: true; value: IteratorResult<ReplyEvent> } | { ok: false; why: 'timeout' | 'aborted' }>
}

/** Null where the reply told its own end. */
async function readThrough(
  stream: AsyncIterable<ReplyEvent>,
  push: (event: ReplyEvent) => boolean,
  { wait }: Waiting,
): Promise<ReplyFailed | null> {
  const events = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await wait(events.next())
      if (!next.ok) return failure(next.why, 'Nothing came for too long.')
      if (next.value.done === true) return failure('timeout', 'The reply stopped without an end.')
      const { value } = next.value
      const isHeard = push(value)
      if (!isHeard || value.type === 'reply-ended' || value.type === 'reply-failed') return null
    }
  } finally {
    // Whoever reads no further says so: a connection and its timers end with it. Not waited for: it may hang.
    events.return?.().catch(() => {})
  }
}

const TOO_LONG = { timeout: 'It took too long.', aborted: 'It was called off.' } as const

function failure(why: 'timeout' | 'aborted', message: string): ReplyFailed {
  const kind: FailureKind = why
  return { type: 'reply-failed', failure: { kind, retryable: why === 'timeout', message }, reply: null }
}

interface EventQueue {
  /** False where nobody listens any more. */
  readonly push: (event: ReplyEvent) => boolean
  /** With a last event, where the reply did not tell its own. */
  readonly close: (last: ReplyFailed | null) => void
  readonly events: () => AsyncGenerator<ReplyEvent, void>
}

function eventQueue(): EventQueue {
  const waiting: ReplyEvent[] = []
  let isClosed = false
  let wake = (): void => {}
  return {
    push: (event) => {
      if (!isClosed) waiting.push(event)
      wake()
      return !isClosed
    },
    close: (last) => {
      if (last !== null && !isClosed) waiting.push(last)
      isClosed = true
      wake()
    },
    events: async function* () {
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

// Signs of life while something takes long, so that nobody who watches thinks that it hangs.

interface KeepAlive {
  readonly deadlines: Deadlines
  readonly keepAliveMs: number
  /** When it began, in milliseconds since 1970; now unless told. */
  readonly since?: number
}

/** Waits for `work`, which bounds itself: an abort is its business, and only ends the signs of life. */
export async function* keepAlive<Value>(
  { host, signal }: TurnRun,
  work: Promise<Value>,
  { deadlines, keepAliveMs, since = host.clock.now() }: KeepAlive,
): AsyncGenerator<TurnEvent, Value> {
  for (;;) {
    const end = await deadlines.within(keepAliveMs, () => work, signal)
    if (end.ok) return end.value
    if (end.why === 'aborted') return await work
    yield { type: 'keep-alive', waitedMs: host.clock.now() - since }
  }
}

// What the chain of asking is told of the session.

export interface SummaryAsked {
  readonly plan: CompactionPlan
  /** Composed and bounded; null where nobody wants anything. */
  readonly instructions: string | null
}

export function chainContext({ state, host }: TurnRun, room: Room, asked: SummaryAsked): ChainContext {
  const { estimator } = room
  const { meter, register } = withRoom(state, room).room
  const { calibration } = meter
  const calibrated = (tokens: number): number => sizeOf(calibration, tokens, host.policy.estimate).expected
  const own = ownSummariser(host, room)
  const { before, span } = asked.plan
  return {
    span,
    policy: policyFor(host.policy.compact, asked.plan),
    instructions: asked.instructions,
    own,
    direct: room.summariser?.summariser ?? own,
    parent: state.sent === null ? null : { tokens: before.expected },
    isWarm: isWarm(state, host),
    // What the provider measured lacks what it cleared by itself; an estimate of the view does not.
    unclearedTokens: before.expected + (meter.anchor === null ? 0 : (register.native?.tokens ?? 0)),
    tools: host.offered().tools,
    tokensOf: (entry) => calibrated(estimator.entry(entry)),
    tokensOfText: (text) => calibrated(estimator.text(text)),
  }
}

function policyFor(policy: CompactPolicy, { asked }: CompactionPlan): CompactPolicy {
  return asked.summarizer === 'local' ? { ...policy, chain: { ...policy.chain, local: 'only' } } : policy
}

function ownSummariser({ profile, offered, policy }: TurnHost, { scaled }: Room): Summariser {
  return {
    model: offered().model,
    profile,
    window: profile.window,
    outputTokens: scaled.known ? scaled.summaryOutput : policy.compact.direct.outputTokens,
  }
}

/** What was sent last can still be read from the provider's cache. */
function isWarm({ lineage }: SessionState, { clock }: TurnHost): boolean {
  const expiry = cacheExpiry(lineage ?? NO_LINEAGE)
  return expiry !== null && clock.now() < expiry
}
