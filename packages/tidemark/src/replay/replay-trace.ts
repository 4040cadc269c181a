/**
 * A trace told again to the engine, call by call, as its host sent it: append-only, a marker at the end of the system
 * prompt and one at the end of the messages. What the engine's own forecast of the cache says will be read is set
 * beside what the provider says was read. Sizes come from the trace; hits never do, but for the first call: what that
 * one finds was left by others, and nothing in a trace tells of them.
 */
import {
  type AssembledRequest,
  assembleRequest,
  DEFAULT_POLICY,
  type Forecast,
  type ForecastReason,
  type Front,
  forecastRead,
  type Lineage,
  learnFromResponse,
  NO_LINEAGE,
  type Profile,
} from '@tidemark/core'
import { freshTokens, sentTokens, type Trace, type TraceCall } from './trace.ts'
import { frontFor, frontSections, TraceTalk } from './trace-conversation.ts'

export interface TraceReplay {
  readonly lifetime: LifetimeFound
  /** Calls that say what they used. */
  readonly calls: readonly ReplayedCall[]
}

export interface ReplayedCall {
  readonly at: number
  readonly sent: number
  /** By the engine's forecast, and by the provider's usage. */
  readonly foreseen: number
  readonly logged: number
  /** Why so much is foreseen; `given` for the first call. */
  readonly why: ForecastReason | 'given'
}

export function replayTrace(trace: Trace, profile: Profile): TraceReplay {
  const lifetime = lifetimeOfTrace(trace, profile.cache)
  const told = trace.calls.filter((call) => sentTokens(call) > 0)
  const [first] = told
  if (first === undefined) return { lifetime, calls: [] }
  const sections = frontSections(trace.baseTokens, first.usage.read)
  const talk = new TraceTalk(new Map(sections.map(({ text, tokens }) => [text, tokens])))
  const setting = { profile, ttl: lifetime.name, front: frontFor(trace.model, sections), talk }
  const calls: ReplayedCall[] = []
  let state: State = { lineage: NO_LINEAGE, sent: null }
  for (const [index, call] of told.entries()) {
    const before = told[index - 1]
    if (isRewritten(told, index, profile)) talk.startAnew(leftOf(call, trace.baseTokens))
    talk.add(call.added)
    const asked = ask(state, call, setting)
    const foreseen = before === undefined ? call.usage.read : foreseenRead(asked.forecast, call)
    state = answered(state, asked, { call, foreseen })
    const why = before === undefined ? 'given' : asked.forecast.why
    calls.push({ at: call.at, sent: sentTokens(call), foreseen, logged: call.usage.read, why })
    talk.answer(call, told[index + 1])
  }
  return { lifetime, calls }
}

interface State {
  readonly lineage: Lineage
  readonly sent: AssembledRequest | null
}

interface Setting {
  readonly profile: Profile
  readonly ttl: string
  readonly front: Front
  readonly talk: TraceTalk
}

interface AskedCall {
  readonly request: AssembledRequest
  readonly forecast: Forecast
}

function ask({ lineage, sent }: State, { at }: TraceCall, { profile, ttl, front, talk }: Setting): AskedCall {
  const { markers } = DEFAULT_POLICY.cache
  const question = { front, flat: talk.flat, profile, markers, ttl, clears: false }
  const request = assembleRequest(question, sent ?? undefined)
  const forecast = forecastRead(lineage, { request, now: at, profile, weigh: (block) => talk.weigh(block) })
  return { request, forecast }
}

/** What is sent for the first time cannot have been there, nor can more be read than is sent. */
function foreseenRead({ read }: Forecast, call: TraceCall): number {
  const { read: logged, written } = call.usage
  return Math.min(read, Math.max(0, logged + written - freshTokens(call)))
}

/** Of the conversation before this call, behind a rewrite. */
function leftOf(call: TraceCall, baseTokens: number): number {
  return Math.max(0, sentTokens(call) - baseTokens - freshTokens(call))
}

interface Answered {
  readonly call: TraceCall
  readonly foreseen: number
}

/** The engine learns from the usage that its forecast would have led to. */
function answered({ lineage }: State, { request, forecast }: AskedCall, { call, foreseen }: Answered): State {
  const { input, read, written } = call.usage
  const usage = {
    input_tokens: input,
    output_tokens: call.outputTokens,
    cache_read_input_tokens: foreseen,
    cache_creation_input_tokens: read + written - foreseen,
  }
  return { lineage: learnFromResponse(lineage, forecast, usage), sent: request }
}

// Rewrites that no event tells of. A conversation that only grows cannot shrink: where it did, something that had been
// sent was taken out or shortened, and nobody says where.

/**
 * Not where a new prompt goes to a model that is not shown the thinking of finished turns: the provider leaves that
 * out by itself and still finds the rest. More than was said in the turn that ended cannot have been thought in it.
 */
export function isRewritten(
  calls: readonly TraceCall[],
  index: number,
  { thinking }: Pick<Profile, 'thinking'>,
): boolean {
  const [before, call] = [calls[index - 1], calls[index]]
  if (before === undefined || call === undefined || sentTokens(call) >= sentTokens(before)) return false
  const gone = sentTokens(before) + before.outputTokens + freshTokens(call) - sentTokens(call)
  const isStripped = thinking.stripsFinishedTurns && beginsTurn(call) && gone <= saidInTurn(calls, index)
  return !isStripped
}

function beginsTurn({ added }: TraceCall): boolean {
  return added.length > 0 && added.every(({ kind }) => kind !== 'result')
}

/** By the model, in the turn that ended before this call. */
function saidInTurn(calls: readonly TraceCall[], index: number): number {
  let said = 0
  for (const call of calls.slice(0, index).toReversed()) {
    said += call.outputTokens
    if (beginsTurn(call)) break
  }
  return said
}

// How long the entries of a trace's cache lived. A trace does not say which lifetime its host asked for, but its own
// usage does: pauses longer than the shorter lifetime and not longer than the longer one were either survived or not.

export type Lifetime = Profile['cache']['ttls'][number]

export interface LifetimeFound extends Lifetime {
  /** Pauses that tell: behind them most was still read, or it was not. */
  readonly survived: number
  readonly lost: number
}

/**
 * The longer lifetime where more of the telling pauses were survived than not, else the default. One bit a session;
 * a majority, since a clock that counts answers instead of requests may be off by the time an answer took, and a loss
 * may have another cause.
 */
export function lifetimeOfTrace({ calls }: Trace, { ttls, defaultTtl }: Profile['cache']): LifetimeFound {
  const byLength = ttls.toSorted((one, other) => one.seconds - other.seconds)
  const usual = ttls.find(({ name }) => name === defaultTtl) ?? { name: defaultTtl, seconds: 0 }
  const [short = usual, long = usual] = [byLength[0], byLength.at(-1)]
  let [survived, lost] = [0, 0]
  for (const [index, call] of calls.entries()) {
    const before = calls[index - 1]
    const pause = before === undefined ? 0 : call.at - before.at
    if (before === undefined || pause <= short.seconds * 1000 || pause > long.seconds * 1000) continue
    const isRead = call.usage.read * 2 >= before.usage.read + before.usage.written
    if (isRead) survived += 1
    else lost += 1
  }
  return { ...(survived > lost ? long : usual), survived, lost }
}

// How near a replay comes to what was logged: the share of all that was sent which was read from cache.

export interface HitRates {
  /** Null where nothing was sent. */
  readonly foreseen: number | null
  readonly logged: number | null
  /** Foreseen less logged, in points: hundredths of what was sent. */
  readonly points: number | null
}

export function hitRatesOf(calls: readonly ReplayedCall[]): HitRates {
  const sent = calls.reduce((sum, call) => sum + call.sent, 0)
  if (sent === 0) return { foreseen: null, logged: null, points: null }
  const foreseen = calls.reduce((sum, call) => sum + call.foreseen, 0) / sent
  const logged = calls.reduce((sum, call) => sum + call.logged, 0) / sent
  return { foreseen, logged, points: (foreseen - logged) * 100 }
}
