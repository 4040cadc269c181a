/**
 * Does a compaction start now? Hard: from the auto-compact line on, whatever the moment. Soft: where price says
 * so and the moment is a good one. Never where it would wait for itself, fail again, or undo what was just undone.
 */
import { counted } from '../clearing/clear-plan.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { growthPerCall } from '../tokens/context-meter.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import { type OptimalTrigger, optimalTrigger, type PlanContext, usualOutlook } from './plan-input.ts'

export interface CompactVerdict {
  readonly act: 'none' | 'soft' | 'hard'
  readonly optimal: OptimalTrigger | null
  /** Tokens of a request after it. */
  readonly after: number
  readonly why: string
}

/** Sources that carry the whole conversation themselves. */
const SELF = new Set(['compact', 'session_memory'])

export function isSelf(source: string): boolean {
  return SELF.has(source)
}

/** Why nothing may start by itself; null where it may. */
export function autoHeld(context: PlanContext): string | null {
  const { policy, source, tracking, switches = NO_SWITCHES } = context
  const state = mechanismStates(policy, switches).auto
  if (isSelf(source)) return `${source} carries the whole conversation and must not wait for itself`
  if (!state.on) return `compacting by itself is switched off by ${state.because}`
  if (isBroken(context))
    return `${counted(tracking.failures)} compactions in a row have failed; compact by hand, or rewind`
  if (waitsForPrompt(context)) return WAITS_FOR_PROMPT
  if (tracking.openCalls > 0) return 'tool calls are still without their answers'
  return tracking.justCompacted ? 'nothing has come since the last compaction' : null
}

const WAITS_FOR_PROMPT = 'an act was undone, so this waits for the next prompt'

function waitsForPrompt({ tracking, moment }: PlanContext): boolean {
  return tracking.waitsForPrompt && moment !== 'prompt'
}

/**
 * What was undone is not done again before the person has spoken; nor then, before something has been answered,
 * unless the size as expected calls for it or nothing more would fit.
 */
export function heldByUndo(context: PlanContext, { expected, high }: ContextTokens): string | null {
  if (waitsForPrompt(context)) return WAITS_FOR_PROMPT
  const { tracking, scaled } = context
  if (!tracking.justUndone) return null
  const must = scaled.known && (expected >= scaled.lines.autoCompact || high >= scaled.lines.blocking)
  return must ? null : 'an act was undone, and nothing has been answered since'
}

function isBroken({ policy, tracking }: PlanContext): boolean {
  return tracking.failures >= policy.turn.auto.breakerFailures
}

/** Safety goes by the high figure, money by the expected one. */
export function judgeCompaction(context: PlanContext, tokens: ContextTokens): CompactVerdict {
  const { high: used, expected } = tokens
  const optimal = optimalFor(context, expected)
  const after = outlookOf(context).after
  const verdict = (act: CompactVerdict['act'], why: string): CompactVerdict => ({ act, optimal, after, why })
  const held = autoHeld(context) ?? heldByUndo(context, tokens)
  if (held !== null) return verdict('none', held)
  const { scaled } = context
  if (!scaled.known) return verdict('none', scaled.why)
  if (used >= scaled.lines.autoCompact) {
    return verdict(
      'hard',
      `${counted(used)} tokens are in use, and compaction starts at ${counted(scaled.lines.autoCompact)}`,
    )
  }
  return softly(context, expected, verdict)
}

type Verdict = (act: CompactVerdict['act'], why: string) => CompactVerdict

function softly(context: PlanContext, used: number, verdict: Verdict): CompactVerdict {
  const optimal = optimalFor(context, used)
  const line = context.scaled.known ? context.scaled.lines.autoCompact : 0
  const room = `${counted(line - used)} tokens are left before compaction must start`
  if (!context.policy.compact.priceDecides) return verdict('none', room)
  if (optimal === null) return verdict('none', `${room}, and what it would save cannot be told yet`)
  if (used < optimal.tokens)
    return verdict('none', `${room}, and it would pay from ${counted(optimal.tokens)} on`)
  const paid = optimal.breakEvenCalls
  if (paid === null || context.cache.expectedCalls <= paid) {
    return verdict(
      'none',
      `${room}, and it would not pay before the ${counted(context.cache.expectedCalls)} calls expected are over`,
    )
  }
  if (context.moment === 'call')
    return verdict('none', `${room}; it would pay, and waits for the end of the turn`)
  return verdict(
    'soft',
    `from ${counted(optimal.tokens)} tokens on a compaction costs less than going on, and this is a good place for it`,
  )
}

function outlookOf({ outlook, prefixTokens, scaled }: PlanContext) {
  return outlook ?? usualOutlook(prefixTokens, scaled.known ? scaled.lines.target : null)
}

function optimalFor(context: PlanContext, used: number): OptimalTrigger | null {
  const { rates, write, cache, meter } = context
  const growth = context.growthPerCall ?? growthPerCall(meter)
  if (rates === null || growth === null) return null
  const outlook = outlookOf(context)
  return optimalTrigger({ context: used, outlook, growthPerCall: growth, rates, write, isWarm: cache.isWarm })
}
