/**
 * Side calls: model calls outside the conversation, such as a fork or a summary request. The caller gets the reply, the
 * log records only the cost, and tools never run. A call without `forkOf` does not use the conversation's cached
 * prefix, so its cache read is not checked.
 */

import { type CacheForecast, forecastCacheRead } from '../cache/cache-forecast.ts'
import { EMPTY_CACHE_MODEL, estimatePrefixSize, isPrefixLive } from '../cache/cache-model.ts'
import { type CacheCheckOutcome, countKeptInFork } from '../cache/cache-monitor.ts'
import { isProviderClearing } from '../context/context-entry.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import type { Payload } from '../context/payload.ts'
import { toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { runStepsAtOnce } from '../log/work-steps.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import {
  type BlockIndex,
  findMessageIndexOfBlock,
  indexBlocks,
  readTotalsBeforeMessage,
} from '../request/block-index.ts'
import { type AssembledRequest, findRequestProblems } from '../request/build-request.ts'
import type { MessageBlockPlace } from '../request/cache-markers.ts'
import { chooseRequestTtl } from '../request/cache-ttl.ts'
import {
  computeCacheReadShare,
  createForkRequest,
  cutRequestToRecords,
  type ForkMessage,
  listMessagesAfterRequest,
} from '../request/fork-request.ts'
import type { CurrentSnapshot, RequestPrefix } from '../request/prefix-snapshot.ts'
import { replaceLoneSurrogates } from '../text/truncate-text.ts'
import { startValidation, updateValidation } from '../validate/validate-request.ts'
import { admitCall } from './call-limits.ts'
import {
  addRequestToCacheMonitor,
  finishModelCall,
  isReplyEnd,
  type ModelCallResult,
  type PendingModelCall,
  recordLostReplyCost,
  streamReply,
  toTurnFailure,
} from './call-model.ts'
import type { ForkCacheRead, TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import {
  buildNextRequest,
  createCacheDiagnosisFields,
  findNewestResponse,
  listMessagesToSend,
  omitClientFindings,
} from './next-request.ts'
import type { Reply, ReplyEnded, ReplyFailed } from './reply.ts'
import type { SessionState } from './session-state.ts'
import { type TurnContext, yieldToHost } from './session-writer.ts'

/** A request to send as a side call. With `forkOf`, it is a fork of that conversation. */
export type SideCallRequest = Pick<PendingModelCall, 'request' | 'source' | 'forkOf'>

export interface SideCallResult {
  readonly answer: ModelCallResult
  /** Tokens that were expected to be read from the cache; `outcome` tells whether they were. */
  readonly expected: number
  readonly outcome: CacheCheckOutcome
}

/** Sends one side call, unless a limit is reached or the request breaks a rule of the provider. Appends what it cost. */
export async function* runSideCall(
  turn: TurnContext,
  call: SideCallRequest,
): AsyncGenerator<TurnEvent, SideCallResult> {
  const findings = checkCall(turn, call)
  if (findings.length > 0) return { ...NO_CACHE_RESULT, answer: { ok: false, reason: 'invalid', findings } }
  await yieldToHost(turn)
  if (turn.host.limits === undefined) return yield* sendSideCall(turn, call)
  const admitted = await admitCall(turn)
  if ('ok' in admitted) return { ...NO_CACHE_RESULT, answer: admitted }
  try {
    return yield* sendSideCall(turn, call)
  } finally {
    admitted.end()
  }
}

async function* sendSideCall(
  turn: TurnContext,
  call: SideCallRequest,
): AsyncGenerator<TurnEvent, SideCallResult> {
  const { clock, profile } = turn.host
  const lineage = turn.state.cacheModel ?? EMPTY_CACHE_MODEL
  const forecast = forecastCacheRead(lineage, { request: call.request, now: clock.now(), profile })
  const isMonitored = call.forkOf !== undefined
  const opened = addRequestToCacheMonitor(turn, { ...call, state: turn.state, forecast, isMonitored })
  yield { type: 'side-sent', source: call.source, request: call.request }
  for await (const event of streamReply(turn, call.request)) {
    if (event.type === 'reply-lost') {
      // Only a fork has a prompt of known size: it repeats the conversation. If appending fails, the end of the call reports it.
      if (call.forkOf !== undefined) yield* recordLostReplyCost(turn, opened)
      continue
    }
    yield { type: 'side-reply', source: call.source, event }
    if (isReplyEnd(event)) return yield* finishSideCall(turn, event, opened)
  }
  throw new RangeError('expected the last event of a reply')
}

const NO_CACHE_RESULT: Omit<SideCallResult, 'answer'> = {
  expected: 0,
  outcome: { kind: 'not-judged', why: 'no-usage' },
}

/** Validates the request. Messages that were validated as part of the conversation are not checked again. */
function checkCall(
  { state, host }: TurnContext,
  { request }: SideCallRequest,
): ReturnType<typeof findRequestProblems> {
  const known =
    state.checkedMessages?.state.profile === host.profile
      ? state.checkedMessages
      : startValidation(host.profile)
  return omitClientFindings(
    findRequestProblems(runStepsAtOnce(updateValidation(known, request.messages)), request),
    host,
  )
}

async function* finishSideCall(
  turn: TurnContext,
  event: ReplyEnded | ReplyFailed,
  opened: PendingModelCall,
): AsyncGenerator<TurnEvent, SideCallResult> {
  const answer =
    event.type === 'reply-failed' ? toTurnFailure(event) : { ok: true as const, reply: event.reply }
  if (event.reply === null) return { ...NO_CACHE_RESULT, answer }
  const closed = yield* finishModelCall(turn, opened, {
    reply: event.reply,
    bodies: [],
    isInConversation: false,
    ...(event.type === 'reply-failed' ? { cutBy: event.failure } : {}),
  })
  return { answer: closed.failure ?? answer, expected: opened.forecast.read, outcome: closed.outcome }
}

// A fork continues from the last request of the conversation and reads the cached prefix of that request.

/** What a fork adds to the conversation, and how much of the conversation it continues. */
export interface ForkRequestOptions {
  /** Query source of the fork, such as `compact`, `session_memory` or `prompt_suggestion`. */
  readonly source: string
  /** Messages to append to the conversation or, with `asSent`, to the last request. */
  readonly messages: readonly ForkMessage[]
  /** True to continue from the last request as it was sent, without messages appended since. */
  readonly asSent?: boolean
  /**
   * uuids of the records to continue from, which must be the first ones of the conversation. Default: all records. With
   * fewer, the fork is refused unless a prefix that ends near the last of them is still cached.
   */
  readonly records?: ReadonlySet<string>
}

interface BuiltFork {
  readonly ok: true
  readonly request: AssembledRequest
}

/** The fork has no cached prefix to share: no request was sent yet, or the conversation was rewritten since the last request. */
interface NothingToFork {
  readonly ok: false
  readonly reason: 'nothing-sent' | 'rewritten'
}

/** The part of the conversation to continue from would not be read from the cache. */
interface NoCachedPart {
  readonly ok: false
  readonly reason: 'not-cached'
  readonly message: string
}

/**
 * Returns the state with the last request and the model of the cache. In a reopened session, both are restored from the
 * log: the last request is then the one that would be sent next, whose beginning may still be cached.
 */
export function withRestoredRequest(state: SessionState, host: TurnHost): SessionState {
  const { lastRequest, cacheModel, prefix } = state
  if (lastRequest !== null || cacheModel !== null || prefix.current === null) return state
  const next = buildNextRequest(state, prefix.current, host)
  return { ...next.state, lastRequest: next.request }
}

/** Builds the request of a fork from the last request of the conversation. Sends nothing. */
export function buildForkRequest(
  given: SessionState,
  asked: ForkRequestOptions,
  host: TurnHost,
): BuiltFork | NothingToFork | NoCachedPart {
  const state = withRestoredRequest(given, host)
  const { lastRequest } = state
  if (lastRequest === null) return { ok: false, reason: 'nothing-sent' }
  const since =
    asked.asSent === true ? [] : listMessagesAfterRequest(lastRequest, listMessagesToSend(state, host))
  if (since === null) return { ok: false, reason: 'rewritten' }
  const options = { profile: host.profile, ttl: chooseForkTtl(state, asked, host) }
  const made =
    asked.records === undefined
      ? createForkRequest(lastRequest, [...since, ...asked.messages], options)
      : createPartialFork(state, asked, host, createForkRequest(lastRequest, since, options))
  if ('ok' in made) return made
  const extra = {
    ...made.extra,
    ...forkEditFields(state, lastRequest, made, host),
    ...createCacheDiagnosisFields(state, host),
  }
  return { ok: true, request: { ...made, extra } }
}

/** Returns the context edits of a fork, which keep the cached prefix readable; empty without context edits. */
function forkEditFields(
  state: SessionState,
  parent: AssembledRequest,
  { front, extra, messages }: AssembledRequest,
  { profile }: TurnHost,
): JsonObject {
  const { spelling } = profile
  const { results = 0, thinkingTurns = 0 } =
    spelling.readEdits(findNewestResponse(state) ?? {}, profile) ?? {}
  const isCleared = { results: results > 0, thinking: thinkingTurns > 0 }
  const input = { parent: parent.messages, fork: messages, isCleared }
  const asked = { ...front.parameters, ...extra }
  return spelling.changeKept(asked, (act, kept) => countKeptInFork(act, kept, input), profile)
}

/**
 * Creates a fork that continues from the first records of the conversation only. Its one cache marker is where the
 * longest cached prefix of that part ends, so that the fork reads this prefix and writes nothing.
 */
function createPartialFork(
  state: SessionState,
  { records = new Set(), messages }: ForkRequestOptions,
  { profile, clock }: TurnHost,
  whole: AssembledRequest,
): AssembledRequest | NoCachedPart {
  if (state.view.entries.toArray().some(({ record }) => isProviderClearing(record)))
    return refusePartialFork('The provider has cleared tool results, and clears others in a shorter request.')
  const part = cutRequestToRecords(whole, records, profile)
  if (part === null) return refusePartialFork('The messages to send are not the first of the last request.')
  const options = { profile, ttl: whole.ttl }
  const { basis } = forecastCacheRead(state.cacheModel ?? EMPTY_CACHE_MODEL, {
    request: createForkRequest(part, messages, options),
    now: clock.now(),
    profile,
  })
  const place = findCachedEnd(basis, part.blockIndex)
  if (place === null)
    return refusePartialFork('Nothing near the end of the messages to send is still cached.')
  const markers = [{ kind: 'last-message' as const, place, ttl: null, control: {} }]
  return createForkRequest({ ...part, markers }, messages, options)
}

function refusePartialFork(message: string): NoCachedPart {
  return { ok: false, reason: 'not-cached', message }
}

/** Share of the messages that must be read from the cache. With less, a separate request is cheaper than a fork. */
const MIN_CACHED_SHARE = 0.5

/** Returns the last block of the longest cached prefix of the messages; null if most of the messages are not cached. */
function findCachedEnd(
  { request, sizes, prefixes, now }: CacheForecast['basis'],
  part: BlockIndex,
): MessageBlockPlace | null {
  const front = request.front.length
  const cached = prefixes.findLast((prefix) => prefix.level === 'messages' && isPrefixLive(prefix, now))
  if (cached === undefined) return null
  const countMessageTokens = (blocks: number): number =>
    estimatePrefixSize(request, sizes, blocks).tokens - estimatePrefixSize(request, sizes, front).tokens
  const all = countMessageTokens(front + part.end.blocks)
  if (countMessageTokens(cached.blocks) < MIN_CACHED_SHARE * all) return null
  const index = findMessageIndexOfBlock(part, cached.blocks - front)
  const block = cached.blocks - front - readTotalsBeforeMessage(part, index).blocks - 1
  return { zone: 'messages', index, block }
}

function chooseForkTtl(
  { prefix }: SessionState,
  { source }: ForkRequestOptions,
  host: TurnHost,
): string | null {
  const { policy, profile, switches = NO_SWITCHES } = host
  if (!findFeatureStates(policy, switches).caching.on) return null
  return chooseRequestTtl(prefix.current?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
    .name
}

/** Returns how much of the conversation's cached prefix a fork read, compared with what was expected. */
export function measureForkCacheRead(
  source: string,
  { usage }: Reply,
  { expected, outcome }: Pick<SideCallResult, 'expected' | 'outcome'>,
): ForkCacheRead {
  const read = usage?.read ?? 0
  const missed = expected > 0 && read >= expected * FULL_READ_SHARE ? null : describeMiss(outcome)
  return { source, expected, read, share: usage === undefined ? null : computeCacheReadShare(usage), missed }
}

/** A fork that read at least this share of the expected tokens counts as having read all of them. */
const FULL_READ_SHARE = 0.95

function describeMiss(outcome: CacheCheckOutcome): string | null {
  switch (outcome.kind) {
    case 'broke':
      return outcome.event.sentence
    case 'ours':
      return outcome.act.sentence
    case 'first':
      return 'Nothing of the conversation was in the cache yet, as far as is known.'
    case 'not-judged':
      return `It could not be judged: ${outcome.why}.`
    default:
      return null
  }
}

type RawBlocks = readonly (ReadonlyMap<number, string> | undefined)[]

/** Converts a payload to a request without cache markers. */
export function toUncachedRequest(
  { prefix }: SessionState,
  given: Payload,
  raw: RawBlocks,
): AssembledRequest {
  const payload = replaceLoneSurrogates(given)
  const tail = payload.messages.map((message, index): TracedMessage => {
    const text = raw[index]
    return text === undefined ? { message, origins: [] } : { message, origins: [], raw: text }
  })
  const list = { frozen: AppendList.of<TracedMessage>(), tail }
  return {
    front: toFront({ ...payload, messages: [] }, prefix.current ?? EMPTY_PREFIX),
    messages: list,
    blockIndex: indexBlocks(list, false),
    markers: [],
    ttl: null,
    extra: {},
    addReference: null,
  }
}

const EMPTY_PREFIX: CurrentSnapshot = {
  uuid: '',
  epoch: { sections: [], tools: [], model: '', parameters: {} },
  parameters: {},
  isFresh: true,
}

function toFront(
  { model, system, tools, messages: _, ...parameters }: Payload,
  standing: CurrentSnapshot,
): RequestPrefix {
  const blocks = system === undefined ? [] : toBlocks(system)
  return {
    model,
    parameters: JSON.parse(JSON.stringify(parameters)) as JsonObject,
    tools: tools ?? [],
    system: blocks.map((block) => ({ part: 'dynamic', sections: [], block })),
    lastSharedTool: null,
    isShareable: false,
    current: standing,
  }
}
