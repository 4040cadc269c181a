/** What goes when a compacted view is above its target, and in which order. Most things never do. */
import type { TargetPolicy } from '../policy/groups/compact-policy.ts'
import type { Carried } from './carrier.ts'

export interface Shedding {
  readonly kept: readonly Carried[]
  readonly shed: readonly Carried[]
  readonly freedTokens: number
  /** Tokens that nothing left to shed can free. */
  readonly stillOver: number
}

/** As little as frees `overBy` tokens, by the policy's order; of a kind the oldest first. */
export function shed(carried: readonly Carried[], overBy: number, policy: TargetPolicy): Shedding {
  const gone = new Set<Carried>()
  let freedTokens = 0
  for (const next of policy.shed.flatMap((kind) => sheddable(carried, kind, policy))) {
    if (freedTokens >= overBy) break
    gone.add(next)
    freedTokens += next.tokens
  }
  return {
    kept: carried.filter((one) => !gone.has(one)),
    shed: [...gone],
    freedTokens,
    stillOver: Math.max(0, overBy - freedTokens),
  }
}

/** Carriers render newest first. */
function sheddable(
  carried: readonly Carried[],
  kind: TargetPolicy['shed'][number],
  { keptSkills }: TargetPolicy,
): readonly Carried[] {
  const ofKind = carried.filter((one) => one.sheddable === kind)
  return ofKind.slice(kind === 'skills' ? keptSkills : 0).reverse()
}
