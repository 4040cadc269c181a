/** Idle: the cache has lapsed, so that rewriting is free. All but the newest results go. */
import { buildProposal } from './build-proposal.ts'
import { candidatesOf } from './candidates.ts'
import type { ClearProposal } from './proposal.ts'
import type { ClearOutcome, ClearQuestion } from './question.ts'
import { SAMPLE_ID, stubOf } from './stub.ts'
import { minutes } from './words.ts'

/** How long an answer must lie back, in milliseconds. */
export function idleAfterMs({ policy, cache }: ClearQuestion): number {
  const { afterMinutes } = policy.clear.idle
  return afterMinutes === 'ttl' ? cache.ttlMs : afterMinutes * 60_000
}

/** Why it is not idle; null where it is. */
export function notIdle(question: ClearQuestion): string | null {
  const { idleMs, cache } = question
  const after = idleAfterMs(question)
  if (idleMs === null) return 'nothing has been answered yet'
  if (idleMs < after)
    return `the newest answer is ${minutes(idleMs)} old, and idle begins after ${minutes(after)}`
  return cache.isWarm ? 'the cache is still warm' : null
}

export function proposeIdle(question: ClearQuestion): ClearOutcome<ClearProposal> {
  const { register, pins, policy, scaled, retrieval, scale } = question
  const minimum = scaled.budgets.clear.idleMinimumFreed
  const because = `the newest answer is ${minutes(question.idleMs ?? 0)} old and the cache has lapsed`
  if (register.active.tokens * scale < minimum) {
    return { proposal: null, why: `${because}, but too little is there to clear` }
  }
  const candidates = candidatesOf({
    register,
    pins,
    keep: policy.clear.idle.keep,
    stub: stubOf(SAMPLE_ID, retrieval),
  })
  return buildProposal(question, { way: 'idle', candidates, minimum, isNeeded: true, because })
}
