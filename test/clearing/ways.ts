/** The ways of clearing, each with a model and a policy that has it in force, and what it is measured by. */
import type { Profile } from '@tidemark/core'
import type { SetUp } from './clearing-host.ts'

/** How large the window and the results are: a test takes less than the real thing, in the same proportions. */
export interface Size {
  readonly window: number
  readonly resultTokens: number
}

export const SMALL: Size = { window: 100_000, resultTokens: 1_500 }
export const FULL: Size = { window: 200_000, resultTokens: 3_000 }

export interface Way {
  readonly name: string
  readonly setUp: SetUp
  /** Requests in a hundred whose earlier messages may be sent other than before, at the most. */
  readonly mostRewrites: number
  readonly leastHitRate: number
}

const PLAIN = 'claude-sonnet-4-5'
/** Binds thinking to all that stands before it, and clears by itself where it is asked to. */
const BINDING = 'claude-sonnet-5-5'

const MINUTE = 60_000
const EDITING = (profile: Profile): Profile => ({
  ...profile,
  capabilities: { ...profile.capabilities, cacheEdits: true },
})

const THINKING = { thinkingTokens: 40, parameters: { thinking: { type: 'adaptive' } } } as const

export const WAYS: readonly Way[] = [
  { name: 'budget', setUp: { model: PLAIN }, mostRewrites: 4, leastHitRate: 0.95 },
  {
    name: 'idle',
    setUp: { model: PLAIN, pause: (prompt) => (prompt % 3 === 2 ? 61 * MINUTE : 45_000) },
    mostRewrites: 4,
    leastHitRate: 0.95,
  },
  {
    name: 'cached',
    setUp: { model: PLAIN, profile: EDITING, simulator: { cachedClearing: true } },
    mostRewrites: 0,
    leastHitRate: 0.95,
  },
  { name: 'native', setUp: { model: BINDING, ...THINKING }, mostRewrites: 4, leastHitRate: 0.95 },
  {
    name: 'budget, thinking bound',
    setUp: { model: BINDING, ...THINKING, policy: { clear: { ways: ['idle', 'budget'] } } },
    mostRewrites: 4,
    leastHitRate: 0.95,
  },
  {
    name: 'budget, old thinking stripped',
    setUp: {
      model: PLAIN,
      thinkingTokens: 40,
      parameters: { thinking: { type: 'enabled', budget_tokens: 1_024 } },
    },
    mostRewrites: 4,
    // Each prompt ends a turn, and its thinking is gone from the prefix.
    leastHitRate: 0.9,
  },
]

export function wayNamed(name: string): Way {
  const way = WAYS.find((each) => each.name === name)
  if (way === undefined) throw new Error(`no such way: ${name}`)
  return way
}

export function sized({ setUp }: Way, size: Size): SetUp {
  return { ...setUp, ...size }
}
