/**
 * Calls beside the conversation (a fork, a summary): the reply goes to the caller, and the log keeps only the cost. Tools
 * are never run. A call without `forkOf` shares no prefix, so its cache is not watched.
 */

import { forecastCacheRead } from '../cache/cache-forecast.ts'
import { EMPTY_CACHE_MODEL } from '../cache/cache-model.ts'
import type { CacheCheckOutcome } from '../cache/cache-monitor.ts'
import type { TracedMessage } from '../context/flatten.ts'
import type { Payload } from '../context/payload.ts'
import { toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import type { CurrentPrefix } from '../request/announced-prefix.ts'
import { indexBlocks } from '../request/block-index.ts'
import { type AssembledRequest, findRequestProblems, toModelCall } from '../request/build-request.ts'
import { chooseRequestTtl } from '../request/cache-ttl.ts'
import {
  cacheReadShare,
  captureCacheSafeParams,
  createFork,
  type ForkMessage,
  type ForkOutcome,
  type ForkRefusal,
  messagesAfterRequest,
} from '../request/fork.ts'
import type { RequestPrefix } from '../request/prefix.ts'
import { startValidation, updateValidation } from '../validate/validate.ts'
import {
  finishCall,
  INCOMPLETE_REPLY,
  monitorRequest,
  type PendingCall,
  type ResponseResult,
  toTurnFailure,
} from './call-model.ts'
import type { ForkCacheRead, TurnEvent, TurnFailure } from './events.ts'
import type { TurnHost } from './host.ts'
import { diagnosticsField } from './next-request.ts'
import type { Signal } from './ports.ts'
import type { Reply, ReplyEnded, ReplyFailed } from './reply.ts'
import type { SessionState } from './session-state.ts'
import type { TurnContext, UnlinkedRecord } from './session-writer.ts'

export interface SideCall extends Pick<PendingCall, 'request' | 'source' | 'forkOf'> {
  /** Appends nothing: the records are returned, for the holder of the log to append. */
  readonly isDeferred?: boolean
}

export interface SideCallResult {
  readonly answer: ResponseResult
  /** Forecast and outcome of the cache. */
  readonly expected: number
  readonly outcome: CacheCheckOutcome
  /** Records still to be appended if deferred, also of a failed call. */
  readonly unlogged: readonly UnlinkedRecord[]
}

export async function* runSideCall(
  turn: TurnContext,
  call: SideCall,
): AsyncGenerator<TurnEvent, SideCallResult> {
  const findings = checkCall(turn, call)
  if (findings.length > 0) return { ...NO_CACHE_RESULT, answer: { ok: false, reason: 'invalid', findings } }
  const { clock, profile, model } = turn.host
  const lineage = turn.state.cacheModel ?? EMPTY_CACHE_MODEL
  const forecast = forecastCacheRead(lineage, { request: call.request, now: clock.now(), profile })
  const opened = monitorRequest(turn, { ...call, forecast, isMonitored: call.forkOf !== undefined })
  yield { type: 'side-sent', source: call.source, request: call.request }
  for await (const event of model.stream(toModelCall(call.request), turn.signal)) {
    yield { type: 'side-reply', source: call.source, event }
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* finishSideCall(turn, event, opened, call.isDeferred)
  }
  return { ...NO_CACHE_RESULT, answer: toTurnFailure(INCOMPLETE_REPLY) }
}

const NO_CACHE_RESULT: Omit<SideCallResult, 'answer'> = {
  expected: 0,
  outcome: { kind: 'not-judged', why: 'no-usage' },
  unlogged: [],
}

/** Reuses what was checked of the conversation, as far as the request repeats it. */
function checkCall(
  { state, host }: TurnContext,
  { request }: SideCall,
): ReturnType<typeof findRequestProblems> {
  const known =
    state.checkedMessages?.state.profile === host.profile
      ? state.checkedMessages
      : startValidation(host.profile)
  return findRequestProblems(updateValidation(known, request.messages), request)
}

async function* finishSideCall(
  turn: TurnContext,
  event: ReplyEnded | ReplyFailed,
  opened: PendingCall,
  isDeferred = false,
): AsyncGenerator<TurnEvent, SideCallResult> {
  const answer =
    event.type === 'reply-failed' ? toTurnFailure(event) : { ok: true as const, reply: event.reply }
  if (event.reply === null) return { ...NO_CACHE_RESULT, answer }
  const { message } = event.reply
  const closed = yield* finishCall(turn, opened, { message, bodies: [], isInConversation: false, isDeferred })
  const { outcome, unlogged } = closed
  return { answer: closed.failure ?? answer, expected: opened.forecast.read, outcome, unlogged }
}

// Forks: a question on the cache of the request that was sent last.

export interface ForkRequestOptions {
  /** `compact`, `session_memory`, `prompt_suggestion` … */
  readonly source: string
  /** Follow all that was sent and, unless `asSent`, all that was added since. */
  readonly messages: readonly ForkMessage[]
  /** Continues the last request itself, without what was added since. */
  readonly asSent?: boolean
  /** Request fields to change. All are refused, with the reason. */
  readonly overrides?: Readonly<Record<string, unknown>>
  readonly signal?: Signal
}

/** No request to share a prefix with: none was sent yet, or the conversation was rewritten since. */
interface NothingToFork {
  readonly ok: false
  readonly reason: 'nothing-sent' | 'rewritten'
}

/** Builds the request of a fork from the one that was sent. Sends nothing. */
export function buildForkRequest(
  state: SessionState,
  asked: ForkRequestOptions,
  host: TurnHost,
): ForkOutcome | NothingToFork {
  const { lastRequest } = state
  if (lastRequest === null) return { ok: false, reason: 'nothing-sent' }
  const since = asked.asSent === true ? [] : messagesAfterRequest(lastRequest, state.flat)
  if (since === null) return { ok: false, reason: 'rewritten' }
  const { overrides } = asked
  const options = {
    ttl: chooseForkTtl(state, asked, host),
    ...(overrides === undefined ? {} : { overrides }),
  }
  const made = createFork(
    captureCacheSafeParams(lastRequest, host.profile),
    [...since, ...asked.messages],
    options,
  )
  if (!made.ok) return made
  const extra = { ...made.request.extra, ...diagnosticsField(state, host) }
  return { ...made, request: { ...made.request, extra } }
}

function chooseForkTtl(
  { prefix }: SessionState,
  { source }: ForkRequestOptions,
  host: TurnHost,
): string | null {
  const { policy, profile, switches = NO_SWITCHES } = host
  if (!findMechanismStates(policy, switches).caching.on) return null
  return chooseRequestTtl(prefix.current?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
}

export type ForkResult = (
  | { readonly ok: true; readonly reply: Reply; readonly read: ForkCacheRead }
  | TurnFailure
  | ForkRefusal
  | NothingToFork
) & { readonly state: SessionState }

/**
 * Sends the fork and returns its reply; the caller denies tool calls in it. Not concurrently with a turn: continue from
 * the state it returns.
 */
export async function* runFork(
  state: SessionState,
  asked: ForkRequestOptions,
  host: TurnHost,
): AsyncGenerator<TurnEvent, ForkResult> {
  const made = buildForkRequest(state, asked, host)
  if (!made.ok) return { ...made, state }
  const turn: TurnContext = { state, host, signal: asked.signal }
  const call = { request: made.request, source: asked.source, forkOf: host.source }
  const end = yield* runSideCall(turn, call)
  const { answer } = end
  if (!answer.ok) return { ...answer, state: turn.state }
  const read = describeForkRead(asked.source, answer.reply, end)
  yield { type: 'fork', fork: read }
  return { ok: true, reply: answer.reply, read, state: turn.state }
}

/** How well an answered fork read the cache of its parent. */
export function describeForkRead(
  source: string,
  { message }: Reply,
  { expected, outcome }: Pick<SideCallResult, 'expected' | 'outcome'>,
): ForkCacheRead {
  const { usage } = message
  return {
    source,
    expected,
    read: usage?.cache_read_input_tokens ?? 0,
    share: usage === undefined ? null : cacheReadShare(usage),
    missed: describeMiss(outcome),
  }
}

function describeMiss(outcome: CacheCheckOutcome): string | null {
  switch (outcome.kind) {
    case 'broke':
      return outcome.event.sentence
    case 'first':
      return 'Nothing of the conversation was in the cache yet, as far as is known.'
    case 'not-judged':
      return `It could not be judged: ${outcome.why}.`
    default:
      return null
  }
}

type RawBlocks = readonly (ReadonlyMap<number, string> | undefined)[]

/** A payload as a request without cache markers. */
export function toPlainRequest({ prefix }: SessionState, payload: Payload, raw: RawBlocks): AssembledRequest {
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
    addsCacheReferences: false,
  }
}

const EMPTY_PREFIX: CurrentPrefix = {
  uuid: '',
  epoch: { sections: [], tools: [], model: '', parameters: {} },
  parameters: {},
  isFresh: true,
}

function toFront(
  { model, system, tools, messages: _, ...parameters }: Payload,
  standing: CurrentPrefix,
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
