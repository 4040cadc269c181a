/**
 * One request against the cache: what it reads, what it will have written, what that costs. Reading counts at
 * once; what it writes is there for others only when its response begins, which is when `commit` is called.
 */
import type { CacheKey } from './key.ts'
import { findHit, type Hit, keyAt } from './look-up.ts'
import type { Breakpoint, Prompt } from './prompt.ts'
import { type CacheSplit, splitOf, tokensAt } from './split.ts'
import type { CacheStore } from './store.ts'

export interface Consultation {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly minimum: number
  /** The start of the request: lifetimes count from here. */
  readonly now: number
  readonly request: number
  /** References the request wants gone from the cached prefix. */
  readonly deleted?: ReadonlySet<string>
}

export type BreakpointFate = 'read' | 'refreshed' | 'written' | 'below-minimum'

export interface ConsultedBreakpoint extends Breakpoint {
  readonly tokens: number
  readonly fate: BreakpointFate
}

export interface CacheOutcome {
  readonly hit: Hit | null
  readonly split: CacheSplit
  readonly breakpoints: readonly ConsultedBreakpoint[]
  commit(): void
}

const NOTHING: ReadonlySet<string> = new Set()

export function consult(store: CacheStore, asked: Consultation): CacheOutcome {
  const { prompt, key, minimum, now, request, deleted = NOTHING } = asked
  const hit = findHit({ prompt, key, store, now, deleted })
  const breakpoints = prompt.breakpoints.map((breakpoint): ConsultedBreakpoint => {
    const tokens = tokensAt(prompt, breakpoint.position)
    return { ...breakpoint, tokens, fate: fateOf(breakpoint, tokens) }
  })

  function fateOf({ position }: Breakpoint, tokens: number): BreakpointFate {
    if (tokens < minimum) return 'below-minimum'
    if (hit?.position === position) return 'read'
    const there = hit !== null && position < hit.position
    return there && store.read(keyAt(prompt, key, position), now, deleted) !== null ? 'refreshed' : 'written'
  }

  if (hit !== null) store.refresh(keyAt(prompt, key, hit.position), now)
  for (const { position, fate } of breakpoints)
    if (fate === 'refreshed') store.refresh(keyAt(prompt, key, position), now)

  return {
    hit,
    split: splitOf(prompt, hit?.position ?? null, minimum),
    breakpoints,
    commit() {
      for (const { position, ttl, tokens, fate } of breakpoints) {
        if (fate === 'below-minimum') continue
        store.write(keyAt(prompt, key, position), { ttl, tokens, writtenBy: request, deleted }, now)
      }
    },
  }
}
