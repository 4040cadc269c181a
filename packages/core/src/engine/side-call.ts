/**
 * Calls beside the conversation (a fork, a summary): the reply goes to the caller, and the log keeps only the cost. Tools
 * are never run. A call without `forkOf` shares no prefix, so its cache is not watched.
 */

import { forecastRead } from '../cache/cache-forecast.ts'
import { NO_LINEAGE } from '../cache/cache-model.ts'
import type { CacheOutcome } from '../cache/cache-monitor.ts'
import type { FlatMessage } from '../context/flatten.ts'
import type { Payload } from '../context/payload.ts'
import { blocksOf } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import type { StandingEpoch } from '../request/announced-prefix.ts'
import { countMessages } from '../request/block-index.ts'
import { type AssembledRequest, callOf, requestFindings } from '../request/build-request.ts'
import { ttlFor } from '../request/cache-ttl.ts'
import {
  captureParams,
  type ForkMessage,
  type ForkOutcome,
  type ForkRefusal,
  fork,
  messagesSince,
  readShare,
} from '../request/fork.ts'
import type { Front } from '../request/prefix.ts'
import { advanceCheck, startCheck } from '../validate/validate.ts'
import {
  BROKEN_OFF,
  closeCall,
  failedWith,
  type OpenedCall,
  type Responded,
  recordRequest,
} from './call-model.ts'
import type { ForkRead, Halt, TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import { diagnosisAsked } from './next-request.ts'
import type { Signal } from './ports.ts'
import type { Reply, ReplyEnded, ReplyFailed } from './reply.ts'
import type { SessionState } from './session-state.ts'
import type { TurnRun, Unlinked } from './session-writer.ts'

export interface SideCall extends Pick<OpenedCall, 'request' | 'source' | 'forkOf'> {
  /** Appends nothing: the records are returned, for the holder of the log to append. */
  readonly isDeferred?: boolean
}

export interface SideEnd {
  readonly answer: Responded
  /** Forecast and outcome of the cache. */
  readonly expected: number
  readonly outcome: CacheOutcome
  /** Records still to be appended if deferred, also of a failed call. */
  readonly unlogged: readonly Unlinked[]
}

export async function* sideCall(turn: TurnRun, call: SideCall): AsyncGenerator<TurnEvent, SideEnd> {
  const findings = checkCall(turn, call)
  if (findings.length > 0) return { ...NOTHING_TOLD, answer: { ok: false, reason: 'invalid', findings } }
  const { clock, profile, model } = turn.host
  const lineage = turn.state.lineage ?? NO_LINEAGE
  const forecast = forecastRead(lineage, { request: call.request, now: clock.now(), profile })
  const opened = recordRequest(turn, { ...call, forecast, isWatched: call.forkOf !== undefined })
  yield { type: 'side-sent', source: call.source, request: call.request }
  for await (const event of model.stream(callOf(call.request), turn.signal)) {
    yield { type: 'side-reply', source: call.source, event }
    if (event.type === 'reply-ended' || event.type === 'reply-failed')
      return yield* endCall(turn, event, opened, call.isDeferred)
  }
  return { ...NOTHING_TOLD, answer: failedWith(BROKEN_OFF) }
}

const NOTHING_TOLD: Omit<SideEnd, 'answer'> = {
  expected: 0,
  outcome: { kind: 'not-judged', why: 'no-usage' },
  unlogged: [],
}

/** Reuses what was checked of the conversation, as far as the request repeats it. */
function checkCall({ state, host }: TurnRun, { request }: SideCall): ReturnType<typeof requestFindings> {
  const known = state.checked?.state.profile === host.profile ? state.checked : startCheck(host.profile)
  return requestFindings(advanceCheck(known, request.messages), request)
}

async function* endCall(
  turn: TurnRun,
  event: ReplyEnded | ReplyFailed,
  opened: OpenedCall,
  isDeferred = false,
): AsyncGenerator<TurnEvent, SideEnd> {
  const answer = event.type === 'reply-failed' ? failedWith(event) : { ok: true as const, reply: event.reply }
  if (event.reply === null) return { ...NOTHING_TOLD, answer }
  const { message } = event.reply
  const closed = yield* closeCall(turn, opened, { message, bodies: [], isSaid: false, isDeferred })
  const { outcome, unlogged } = closed
  return { answer: closed.halt ?? answer, expected: opened.forecast.read, outcome, unlogged }
}

// Forks: a question on the cache of the request that was sent last.

export interface ForkAsked {
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
export function forkRequest(
  state: SessionState,
  asked: ForkAsked,
  host: TurnHost,
): ForkOutcome | NothingToFork {
  const { sent } = state
  if (sent === null) return { ok: false, reason: 'nothing-sent' }
  const since = asked.asSent === true ? [] : messagesSince(sent, state.flat)
  if (since === null) return { ok: false, reason: 'rewritten' }
  const { overrides } = asked
  const options = {
    ttl: chooseForkTtl(state, asked, host),
    ...(overrides === undefined ? {} : { overrides }),
  }
  const made = fork(captureParams(sent, host.profile), [...since, ...asked.messages], options)
  if (!made.ok) return made
  const extra = { ...made.request.extra, ...diagnosisAsked(state, host) }
  return { ...made, request: { ...made.request, extra } }
}

function chooseForkTtl({ told }: SessionState, { source }: ForkAsked, host: TurnHost): string | null {
  const { policy, profile, switches = NO_SWITCHES } = host
  if (!mechanismStates(policy, switches).caching.on) return null
  return ttlFor(told.standing?.epoch.ttl, source, { policy: policy.cache, cache: profile.cache })
}

export type ForkEnd = (
  | { readonly ok: true; readonly reply: Reply; readonly read: ForkRead }
  | Halt
  | ForkRefusal
  | NothingToFork
) & { readonly state: SessionState }

/**
 * Sends the fork and returns its reply; the caller denies tool calls in it. Not concurrently with a turn: continue from
 * the state it returns.
 */
export async function* runFork(
  state: SessionState,
  asked: ForkAsked,
  host: TurnHost,
): AsyncGenerator<TurnEvent, ForkEnd> {
  const made = forkRequest(state, asked, host)
  if (!made.ok) return { ...made, state }
  const turn: TurnRun = { state, host, signal: asked.signal }
  const call = { request: made.request, source: asked.source, forkOf: host.source }
  const end = yield* sideCall(turn, call)
  const { answer } = end
  if (!answer.ok) return { ...answer, state: turn.state }
  const read = forkRead(asked.source, answer.reply, end)
  yield { type: 'fork', fork: read }
  return { ok: true, reply: answer.reply, read, state: turn.state }
}

/** How well an answered fork read the cache of its parent. */
export function forkRead(
  source: string,
  { message }: Reply,
  { expected, outcome }: Pick<SideEnd, 'expected' | 'outcome'>,
): ForkRead {
  const { usage } = message
  return {
    source,
    expected,
    read: usage?.cache_read_input_tokens ?? 0,
    share: usage === undefined ? null : readShare(usage),
    missed: missedBecause(outcome),
  }
}

function missedBecause(outcome: CacheOutcome): string | null {
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
export function plainRequest({ told }: SessionState, payload: Payload, raw: RawBlocks): AssembledRequest {
  const tail = payload.messages.map((message, index): FlatMessage => {
    const text = raw[index]
    return text === undefined ? { message, origins: [] } : { message, origins: [], raw: text }
  })
  const list = { frozen: List.of<FlatMessage>(), tail }
  return {
    front: toFront({ ...payload, messages: [] }, told.standing ?? NO_EPOCH),
    messages: list,
    counted: countMessages(list, false),
    markers: [],
    ttl: null,
    extra: {},
    refers: false,
  }
}

const NO_EPOCH: StandingEpoch = {
  uuid: '',
  epoch: { sections: [], tools: [], model: '', parameters: {} },
  parameters: {},
  isFresh: true,
}

function toFront(
  { model, system, tools, messages: _, ...parameters }: Payload,
  standing: StandingEpoch,
): Front {
  const blocks = system === undefined ? [] : blocksOf(system)
  return {
    model,
    parameters: JSON.parse(JSON.stringify(parameters)) as JsonObject,
    tools: tools ?? [],
    system: blocks.map((block) => ({ part: 'dynamic', sections: [], block })),
    lastSharedTool: null,
    isShareable: false,
    standing,
  }
}
