/** Idle: the cache has lapsed, so that rewriting is free. All but the newest results go. */
import { buildProposal, type ClearOutcome, type ClearQuestion, counted, minutes } from './clear-plan.ts'
import { SAMPLE_ID, stubOf } from './placeholder.ts'
import {
  type Candidate,
  type ClearProposal,
  candidatesOf,
  inOrder,
  sizeOfCandidate,
} from './select-results.ts'

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

// Budget: usage is above the warning line. The oldest results go, worthless ones first, until what is left of
// them fits the low-water mark, well below what started it: the prefix is rewritten once in many turns.

/** Is so much of the window used that budget acts? A person who names a target needs no line. */
export function isOverBudget({ scaled, context, target }: ClearQuestion): boolean {
  return target !== undefined || (scaled.known && context.high >= scaled.lines.warning)
}

/** From the auto-compact line on need overrides price, and so does a person's word. */
export function isNeeded({ scaled, context, target }: ClearQuestion): boolean {
  return target !== undefined || (scaled.known && context.high >= scaled.lines.autoCompact)
}

export function proposeBudget(question: ClearQuestion): ClearOutcome<ClearProposal> {
  const because = becauseOf(question)
  const refusal = tooLittle(question)
  if (refusal !== null) return { proposal: null, why: `${because}, but ${refusal}` }
  const { policy, register, pins, retrieval } = question
  const stub = stubOf(SAMPLE_ID, retrieval)
  const candidates = candidatesOf({ register, pins, keep: policy.clear.budget.keep, stub })
  const chosen = untilTarget(inOrder(candidates, policy.clear.supersededFirst), question)
  return buildProposal(question, {
    way: 'budget',
    candidates: chosen,
    minimum: minimumOf(question),
    isNeeded: isNeeded(question),
    because,
  })
}

function targetOf({ scaled, target }: ClearQuestion): number {
  return target ?? scaled.budgets.clear.target
}

function minimumOf({ scaled }: ClearQuestion): number {
  return scaled.budgets.clear.minimumFreed
}

/** What tells at once that there is nothing to do, without a look at any result. */
function tooLittle(question: ClearQuestion): string | null {
  const { register, scale } = question
  const total = register.active.tokens * scale
  const target = targetOf(question)
  const minimum = minimumOf(question)
  if (total <= target) {
    return `the ${counted(total)} tokens of clearable results are within the ${counted(target)} that stay`
  }
  if (total < minimum)
    return `only ${counted(total)} tokens could be freed, and a rewrite must be worth ${counted(minimum)}`
  const isFirst = register.fresh.count === register.active.count
  if (isFirst || isNeeded(question) || register.fresh.tokens * scale >= minimum) return null
  return `only ${counted(register.fresh.tokens * scale)} tokens have come since the last clearing`
}

/** Oldest first, as far as it takes to come within the target. */
function untilTarget(candidates: readonly Candidate[], question: ClearQuestion): readonly Candidate[] {
  const { register, scale } = question
  const target = targetOf(question) / scale
  let left = register.active.tokens
  const chosen: Candidate[] = []
  for (const candidate of candidates) {
    if (left <= target) break
    chosen.push(candidate)
    left -= sizeOfCandidate(candidate)
  }
  return chosen
}

function becauseOf({ context, scaled, target }: ClearQuestion): string {
  if (target !== undefined) return 'a person asked for it'
  const line = scaled.known ? ` of ${counted(scaled.lines.limit)}` : ''
  return `${counted(context.high)}${line} tokens are in use, above the warning line`
}
