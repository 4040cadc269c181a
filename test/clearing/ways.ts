/** The ways of clearing, each with a model and a policy that uses it, and the limits it is held to. */
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { SimulatedSessionOptions } from '../support/simulated-session.ts'

/** Size of the window and of tool results: tests use a smaller one, in the same proportions. */
export interface Size {
  readonly window: number
  readonly resultTokens: number
}

export const SMALL: Size = { window: 100_000, resultTokens: 1_500 }
export const FULL: Size = { window: 200_000, resultTokens: 3_000 }

export interface Way {
  readonly name: string
  readonly options: SimulatedSessionOptions
  readonly thinkingTokens?: number
  /** The most requests in a hundred that may rewrite earlier messages. */
  readonly mostRewrites: number
  readonly leastHitRate: number
  /** Calls that `npm test` makes; the hit rate has settled by then. */
  readonly quickCalls?: number
}

const PLAIN = 'claude-sonnet-4-5'
/** Binds thinking to everything before it, and clears by itself where a request asks for it. */
const BINDING = 'claude-sonnet-5-5'

const MINUTE = 60_000
const EDITING = (profile: ProviderProfile): ProviderProfile => ({
  ...profile,
  capabilities: { ...profile.capabilities, cacheEdits: true },
})

const ADAPTIVE = { parameters: { thinking: { type: 'adaptive' } } } as const

export const WAYS: readonly Way[] = [
  { name: 'budget', options: { model: PLAIN }, mostRewrites: 4, leastHitRate: 0.95 },
  {
    name: 'idle',
    options: { model: PLAIN, pause: (prompt) => (prompt % 3 === 2 ? 61 * MINUTE : 45_000) },
    mostRewrites: 4,
    // What a clearing leaves for edits (clear.keptFiles) is written again after each pause.
    leastHitRate: 0.94,
  },
  {
    name: 'cached',
    options: { model: PLAIN, profile: EDITING, simulator: { cachedClearing: true } },
    mostRewrites: 0,
    leastHitRate: 0.95,
    quickCalls: 300,
  },
  {
    name: 'native',
    options: { model: BINDING, ...ADAPTIVE },
    thinkingTokens: 40,
    mostRewrites: 4,
    leastHitRate: 0.95,
  },
  {
    name: 'budget, thinking bound',
    options: { model: BINDING, ...ADAPTIVE, policy: { clear: { ways: ['idle', 'budget'] } } },
    thinkingTokens: 40,
    mostRewrites: 4,
    leastHitRate: 0.95,
  },
  {
    name: 'budget, old thinking stripped',
    options: {
      model: PLAIN,
      parameters: { thinking: { type: 'enabled', budget_tokens: 1_024 } },
    },
    thinkingTokens: 40,
    mostRewrites: 4,
    // Each prompt ends a turn, which removes its thinking from the prefix.
    leastHitRate: 0.9,
  },
]

export function wayNamed(name: string): Way {
  const way = WAYS.find((each) => each.name === name)
  if (way === undefined) throw new Error(`no such way: ${name}`)
  return way
}

export function sized(
  { options, thinkingTokens = 0 }: Way,
  { window, resultTokens }: Size,
): SimulatedSessionOptions {
  return {
    ...options,
    window,
    policy: { ...options.policy },
    coder: { turns: 14, resultTokens, thinkingTokens, textTokens: 30 },
    simulator: { keepRequests: 4, deltaSize: 4_000, ...options.simulator },
  }
}
