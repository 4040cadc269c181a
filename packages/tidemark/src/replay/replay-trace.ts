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
import { isRewritten } from './rewritten.ts'
import { freshTokens, sentTokens, type Trace, type TraceCall } from './trace.ts'
import { frontFor, frontSections } from './trace-front.ts'
import { type LifetimeFound, lifetimeOfTrace } from './trace-lifetime.ts'
import { TraceTalk } from './trace-talk.ts'

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
