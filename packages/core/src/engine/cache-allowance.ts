/**
 * Decides how much of a host's request is written to the prompt cache where the host itself would not. A cache write
 * costs more than sending, and pays only if a later request reads it: a run may end, or pause for longer than the cache
 * lives. So the engine writes only what its earlier savings pay for, and a small advance. Whatever the host does, it
 * then pays no more than without the engine, and that advance.
 */
import type { CacheForecast } from '../cache/cache-forecast.ts'
import { findRates } from '../cost/prices.ts'
import { emptySessionCost, sumSessionCost } from '../cost/session-cost.ts'
import { countTotalsThroughBlock } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { OwnMarkers, PlannedMarker } from '../request/cache-markers.ts'
import type { TurnHost } from './host.ts'
import type { SessionState } from './session-state.ts'

/**
 * Shares of what the host would have paid so far that may be lost with cache writes that nothing reads. `bare`: for a
 * host without any cache marker, which has the most to save. `caching`: for one that marks only system prompt or tools.
 */
const ADVANCE = { bare: 0.1, caching: 0.01 }

/** Pauses between requests that tell whether the cache lives until the next one. */
const RECENT_PAUSES = 2

/** Returns which cache markers may be added to a request, in order of preference. */
export function listMarkerChoices({ client, policy }: TurnHost): readonly OwnMarkers[] {
  if (client === undefined || policy.dropIn.cacheMarkers === 'replace') return ['all']
  return policy.dropIn.cacheMarkers === 'keep' ? ['none'] : ['all', 'prefix', 'none']
}

interface CacheWriteInput {
  readonly request: AssembledRequest
  readonly forecast: CacheForecast
  /** Tokens of the whole request, and of its system prompt and tools. */
  readonly tokens: number
  readonly prefixTokens: number
}

/** Returns true if savings and advance pay for what the request would write to the cache. */
export function canAffordCacheWrite(
  { costs }: Pick<SessionState, 'costs'>,
  host: TurnHost,
  question: CacheWriteInput,
): boolean {
  const { request, forecast, tokens } = question
  const last = request.markers.at(-1)
  // What is before a marker of the host is written to the cache in any case.
  if (last === undefined || last.kind === 'host') return true
  // The host's markers may live longer than the one that is added after them.
  const ttl = readMarkerTtl(last, host)
  if (outlastsCache(ttl, host)) return false
  const prices = host.pricesOf(host.modelSettings().model, new Date(host.clock.now()).toISOString())
  const { input, cacheRead, ...rates } = prices === null ? NO_RATES : findRates(prices, tokens)
  const write = ttl === '1h' ? rates.write1h : rates.write5m
  if (input === null || cacheRead === null || write === null) return true
  const totals = sumSessionCost(costs ?? emptySessionCost())
  // What the host caches by itself is not the engine's saving.
  const cached = countTokensToMarker(
    question,
    request.markers.findLast(({ kind }) => kind === 'host'),
  )
  const calls = totals.calls - totals.unpricedCalls
  const read = Math.max(0, totals.tokens.cacheRead - calls * cached)
  const written = totals.tokens.write5m + totals.tokens.write1h - cached
  const saved = (read * (input - cacheRead) - Math.max(0, written) * (write - input)) / 1_000_000
  const direct = totals.spent.priced + saved + (tokens * input) / 1_000_000
  const unread = Math.max(0, countTokensToMarker(question, last) - forecast.read)
  const premium = (unread * (write - input)) / 1_000_000
  return premium <= saved + ADVANCE[host.client?.markers.length === 0 ? 'bare' : 'caching'] * direct
}

/** Estimates the tokens up to a cache marker; those of messages by their share in the bytes. */
function countTokensToMarker(
  { request: { blockIndex }, tokens, prefixTokens }: CacheWriteInput,
  marker: PlannedMarker | undefined,
): number {
  if (marker === undefined) return 0
  const { place } = marker
  if (place.zone !== 'messages') return prefixTokens
  const all = blockIndex.end.bytes
  const { bytes } = countTotalsThroughBlock(blockIndex, place.index, place.block)
  const share = all === null || bytes === null || all === 0 ? 1 : bytes / all
  return prefixTokens + share * Math.max(0, tokens - prefixTokens)
}

const NO_RATES = { input: null, cacheRead: null, write5m: null, write1h: null }

function readMarkerTtl({ control }: PlannedMarker, { profile: { cache } }: TurnHost): string {
  return typeof control.ttl === 'string' ? control.ttl : cache.defaultTtl
}

/** Returns true if the host's last requests came too late for the cache, so that the next one will, too. */
function outlastsCache(ttl: string, { client, profile: { cache } }: TurnHost): boolean {
  const { seconds = 0 } = cache.ttls.find(({ name }) => name === ttl) ?? {}
  const recent = client?.pauses.slice(-RECENT_PAUSES) ?? []
  return recent.length > 0 && recent.every((ms) => ms >= seconds * 1000)
}
