/**
 * Replays a recorded trace through the engine, call by call, and compares the engine's forecast of cache reads with the
 * provider's usage. Requests are built as the recorded host built them: append-only, with one cache marker at the end
 * of the system prompt and one at the end of the messages. The first cache read is taken from the trace, because other
 * sessions wrote that part of the cache.
 */
import {
  type AssembledRequest,
  assembleRequest,
  type CacheForecast,
  DEFAULT_POLICY,
  EMPTY_CACHE_MODEL,
  type ForecastReason,
  forecastCacheRead,
  type ProviderProfile,
  updateCacheFromResponse,
} from '@tidemark/core'
import { createTracePrefix, TraceConversation, toTraceSections } from './trace-conversation.ts'
import { countNewTokens, countSentTokens, type SessionTrace, type TraceCall } from './trace-file.ts'

export interface TraceReplay {
  readonly lifetime: DetectedCacheTtl
  /** The replayed model calls; calls without usage are left out. */
  readonly calls: readonly ReplayedCall[]
}

export interface ReplayedCall {
  readonly at: number
  readonly sent: number
  /** Tokens that the engine predicted to be read from the cache. `logged` is the number that the provider reported. */
  readonly foreseen: number
  readonly logged: number
  /** Reason of the prediction. `given` for the first call, whose cache read is taken from the trace. */
  readonly why: ForecastReason | 'given'
}

/** Replays the model calls of a trace. Calls without provider usage are skipped. */
export function replayTrace(trace: SessionTrace, profile: ProviderProfile): TraceReplay {
  const lifetime = detectCacheTtl(trace, profile.cache)
  const sentCalls = trace.calls.filter((call) => countSentTokens(call) > 0)
  const [first] = sentCalls
  if (first === undefined) return { lifetime, calls: [] }
  const sections = toTraceSections(trace.baseTokens, first.usage.read)
  const front = createTracePrefix(trace.model, sections)
  const conversation = new TraceConversation(new Map(sections.map(({ text, tokens }) => [text, tokens])))
  const rules = { profile, markers: DEFAULT_POLICY.cache.markers, ttl: lifetime.name, clears: false }
  const calls: ReplayedCall[] = []
  let lineage = EMPTY_CACHE_MODEL
  let request: AssembledRequest | undefined
  for (const [index, call] of sentCalls.entries()) {
    const { at, usage, outputTokens } = call
    const sent = countSentTokens(call)
    if (isContextRewritten(sentCalls, index, profile))
      conversation.restart(Math.max(0, sent - trace.baseTokens - countNewTokens(call)))
    conversation.appendInput(call.added)
    request = assembleRequest({ ...rules, front, flat: conversation.flat }, request)
    const forecast = forecastCacheRead(lineage, {
      request,
      now: at,
      profile,
      weigh: (block) => conversation.countBlockTokens(block),
    })
    const foreseen = index === 0 ? usage.read : boundForecast(forecast, call)
    // The engine gets the usage that its own prediction implies, not the recorded usage.
    lineage = updateCacheFromResponse(lineage, forecast, {
      input_tokens: usage.input,
      output_tokens: outputTokens,
      cache_read_input_tokens: foreseen,
      cache_creation_input_tokens: usage.read + usage.written - foreseen,
    })
    const why = index === 0 ? 'given' : forecast.why
    calls.push({ at, sent, foreseen, logged: usage.read, why })
    conversation.appendResponse(call, sentCalls[index + 1])
  }
  return { lifetime, calls }
}

/** Limits a predicted cache read: tokens that are sent for the first time cannot be read from the cache. */
function boundForecast({ read }: CacheForecast, call: TraceCall): number {
  const { read: logged, written } = call.usage
  return Math.min(read, Math.max(0, logged + written - countNewTokens(call)))
}

/**
 * Returns true if content was removed from the context before this call. An append-only conversation never shrinks, so
 * a smaller request shows a removal, even if no event records it. Exception: some providers drop the thinking of the
 * finished turn at a new prompt and still read the rest from the cache. A shrink by no more than the output of that
 * turn is therefore ignored.
 */
export function isContextRewritten(
  calls: readonly TraceCall[],
  index: number,
  { thinking }: Pick<ProviderProfile, 'thinking'>,
): boolean {
  const [before, call] = [calls[index - 1], calls[index]]
  if (before === undefined || call === undefined) return false
  const [sentBefore, sent] = [countSentTokens(before), countSentTokens(call)]
  if (sent >= sentBefore) return false
  const removed = sentBefore + before.outputTokens + countNewTokens(call) - sent
  const isThinkingDropped =
    thinking.stripsFinishedTurns && beginsTurn(call) && removed <= countTurnOutput(calls, index)
  return !isThinkingDropped
}

function beginsTurn({ added }: TraceCall): boolean {
  return added.length > 0 && added.every(({ kind }) => kind !== 'result')
}

/** Returns the output tokens of the turn that ended before this call. */
function countTurnOutput(calls: readonly TraceCall[], index: number): number {
  let output = 0
  for (const call of calls.slice(0, index).toReversed()) {
    output += call.outputTokens
    if (beginsTurn(call)) break
  }
  return output
}

export type DetectedCacheTtl = ProviderProfile['cache']['ttls'][number] & {
  /**
   * Number of pauses after which most of the prefix was still cached; `lost` counts the other pauses. Only pauses
   * longer than the shortest TTL and no longer than the longest TTL are counted.
   */
  readonly survived: number
  readonly lost: number
}

/**
 * Detects which cache TTL the host used, since a trace does not record it. Pauses between the shortest and the longest
 * TTL show it: if the cache survived most of them, the longest TTL is returned, otherwise the default. A single pause
 * proves nothing: only response times are known, and a cache entry may be lost for other reasons.
 */
export function detectCacheTtl(
  { calls }: SessionTrace,
  { ttls, defaultTtl }: ProviderProfile['cache'],
): DetectedCacheTtl {
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

/**
 * Cache hit rates of a replay: the share of sent tokens that were read from the cache, as predicted and as reported.
 */
export interface HitRateComparison {
  /** Hit rate that the engine predicted, from 0 to 1; null if nothing was sent. */
  readonly foreseen: number | null
  readonly logged: number | null
  /** Difference between the predicted and the reported hit rate in percentage points; null if nothing was sent. */
  readonly points: number | null
}

export function compareCacheHitRates(calls: readonly ReplayedCall[]): HitRateComparison {
  const sent = calls.reduce((sum, call) => sum + call.sent, 0)
  if (sent === 0) return { foreseen: null, logged: null, points: null }
  const foreseen = calls.reduce((sum, call) => sum + call.foreseen, 0) / sent
  const logged = calls.reduce((sum, call) => sum + call.logged, 0) / sent
  return { foreseen, logged, points: (foreseen - logged) * 100 }
}
