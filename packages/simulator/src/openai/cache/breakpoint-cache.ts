/**
 * The prompt cache of GPT-5.6 and later. A request writes up to four breakpoints: the latest four explicit ones, or the
 * latest three and an implicit one at the end of the prompt. It reads the longest prefix that ends at a breakpoint of
 * the conversation. Without such a breakpoint, nothing is read.
 */
import { isObject } from '../../protocol/messages-request.ts'
import type { JsonFields } from '../openai-shape.ts'
import type { BreakpointTtl, OpenaiCacheResult, OpenaiTokenSplit, UnitPrompt } from './prompt-units.ts'

interface CacheOptions {
  readonly mode: 'implicit' | 'explicit'
  readonly ttl: BreakpointTtl
}

/** Returns how a request wants its prompt cached. Defaults: implicit breakpoints, kept for 30 minutes. */
export function readCacheOptions(body: JsonFields): CacheOptions {
  const options = isObject(body.prompt_cache_options) ? body.prompt_cache_options : {}
  return {
    mode: options.mode === 'explicit' ? 'explicit' : 'implicit',
    ttl: options.ttl === '12h' ? '12h' : '30m',
  }
}

/** Fewest tokens of a prefix that is written or read. */
export const MIN_BREAKPOINT_TOKENS = 1_024
const MAX_WRITTEN = 4
const MAX_MATCHED = 80
const TTL_MS: Readonly<Record<BreakpointTtl, number>> = { '30m': 30 * 60_000, '12h': 12 * 3_600_000 }

interface BreakpointEntry {
  readonly ttl: BreakpointTtl
  readonly expiresAt: number
}

interface BreakpointRequest {
  readonly prompt: UnitPrompt
  readonly scope: string
  readonly options: CacheOptions
  readonly now: number
}

export interface BreakpointCache {
  /** Finds what the request reads, refreshes the entries at its breakpoints, and decides what `commit` will write. */
  apply(request: BreakpointRequest): OpenaiCacheResult
  clear(): void
  readonly size: number
}

export function createBreakpointCache(): BreakpointCache {
  const entries = new Map<string, BreakpointEntry>()

  function find(scope: string, chain: string | undefined, now: number): BreakpointEntry | null {
    const entry = entries.get(`${scope}/${chain}`)
    return entry !== undefined && entry.expiresAt > now ? entry : null
  }

  return {
    apply({ prompt, scope, options, now }) {
      const { chains, ends } = prompt
      const has = (position: number): boolean => find(scope, chains[position], now) !== null
      const marked = listMarked(prompt, options)
      const hit = findLongest(prompt, options, marked, has)
      const breakpoints = chooseWritten(prompt, options, marked).map(({ position, ttl }) => {
        const tokens = ends[position] ?? 0
        return { position, ttl, tokens, fate: decideFate(position, tokens, hit, has) }
      })
      const refreshed = breakpoints.filter(({ fate }) => fate !== 'below-minimum' && fate !== 'written')
      for (const position of [...(hit === null ? [] : [hit]), ...refreshed.map((each) => each.position)]) {
        const entry = find(scope, chains[position], now)
        if (entry !== null)
          entries.set(`${scope}/${chains[position]}`, { ...entry, expiresAt: now + TTL_MS[entry.ttl] })
      }
      return {
        hit,
        breakpoints,
        split: splitTokens(prompt, hit, breakpoints),
        commit() {
          for (const { position, ttl, fate } of breakpoints)
            if (fate === 'written')
              entries.set(`${scope}/${chains[position]}`, { ttl, expiresAt: now + TTL_MS[ttl] })
        },
      }
    },
    clear: () => entries.clear(),
    get size() {
      return entries.size
    },
  }
}

interface MarkedPosition {
  readonly position: number
  readonly ttl: BreakpointTtl
}

function listMarked({ units }: UnitPrompt, { ttl }: CacheOptions): readonly MarkedPosition[] {
  return units.flatMap(({ breakpoint }, position) =>
    breakpoint === undefined ? [] : [{ position, ttl: breakpoint.ttl ?? ttl }],
  )
}

/** Returns the breakpoints that the request writes, in order. */
function chooseWritten(
  { units }: UnitPrompt,
  { mode, ttl }: CacheOptions,
  marked: readonly MarkedPosition[],
): readonly MarkedPosition[] {
  if (mode === 'explicit') return marked.slice(-MAX_WRITTEN)
  const last = units.length - 1
  const others = marked.filter(({ position }) => position !== last).slice(-(MAX_WRITTEN - 1))
  return last < 0 ? [] : [...others, { position: last, ttl }]
}

/**
 * Returns the last position that can be read: an explicit breakpoint of this request or, if implicit breakpoints are
 * on, a breakpoint that an earlier request of the conversation wrote. Only the latest 80 are searched.
 */
function findLongest(
  { units, ends }: UnitPrompt,
  { mode }: CacheOptions,
  marked: readonly MarkedPosition[],
  has: (position: number) => boolean,
): number | null {
  const explicit = new Set(marked.map(({ position }) => position))
  let considered = 0
  for (let position = units.length - 1; position >= 0 && considered < MAX_MATCHED; position -= 1) {
    const isWritten = has(position)
    if (!explicit.has(position) && (mode === 'explicit' || !isWritten)) continue
    considered += 1
    if (isWritten && (ends[position] ?? 0) >= MIN_BREAKPOINT_TOKENS) return position
  }
  return null
}

function decideFate(
  position: number,
  tokens: number,
  hit: number | null,
  has: (position: number) => boolean,
): 'read' | 'refreshed' | 'written' | 'below-minimum' {
  if (tokens < MIN_BREAKPOINT_TOKENS) return 'below-minimum'
  if (position === hit) return 'read'
  return has(position) ? 'refreshed' : 'written'
}

function splitTokens(
  { ends, tokens }: UnitPrompt,
  hit: number | null,
  breakpoints: OpenaiCacheResult['breakpoints'],
): OpenaiTokenSplit {
  const read = hit === null ? 0 : (ends[hit] ?? 0)
  const written = { '30m': 0, '12h': 0 }
  let end = read
  for (const each of breakpoints) {
    if (each.fate !== 'written' || each.tokens <= end) continue
    written[each.ttl] += each.tokens - end
    end = each.tokens
  }
  return { read, write30m: written['30m'], write12h: written['12h'], input: tokens - end }
}
