/** Sessions whose world changes while they run: commits are made, tools are connected, the user pauses. */

import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { findModel } from '../support/simulated-host.ts'
import type { SimulatedSessionOptions } from '../support/simulated-session.ts'

export interface ChangingWorldOptions {
  readonly ttl: '5m' | '1h'
  readonly model?: string
  /** From the fourth prompt on, a parameter differs that is part of the cache key. */
  readonly breaks?: boolean
  /** The world changes only when the test changes it. */
  readonly isStill?: boolean
}

export function changingWorld(options: ChangingWorldOptions): SimulatedSessionOptions {
  const { ttl, model = 'claude-opus-5', breaks = false, isStill = false } = options
  const isAdaptive = createProviderProfile(findModel(model)).thinking.modes.includes('adaptive')
  return {
    model,
    policy: { cache: { ttl, tailTtl: 'same' } },
    coder: { turns: 9, resultTokens: 300, thinkingTokens: 30 },
    parameters: { thinking: isAdaptive ? { type: 'adaptive' } : { type: 'enabled', budget_tokens: 1_024 } },
    world: { commits: 0, extraTools: 0, hasToolChoice: false },
    isStill,
    promptText: (prompt) => `Go on with part ${prompt}. ${'please '.repeat(prompt * 7)}`,
    pause: (prompt) => (prompt % 3 === 2 ? 420_000 : 45_000),
    beforePrompt: (prompt, world) => {
      if (!isStill) world.extraTools = prompt >> 1
      world.hasToolChoice = breaks && prompt >= 3
    },
  }
}
