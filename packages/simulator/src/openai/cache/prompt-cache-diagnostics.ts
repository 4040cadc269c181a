/**
 * Implements `prompt_cache_options.comparison_response_id`: reports whether a request could read what an earlier
 * request wrote to the cache, and if not, why.
 */
import type { UnitPrompt } from './prompt-units.ts'

type MissReason =
  | 'model_changed'
  | 'prompt_cache_key_changed'
  | 'service_tier_changed'
  | 'reasoning_effort_changed'
  | 'verbosity_changed'
  | 'text_format_changed'
  | 'tools_changed'
  | 'context_compacted'
  | 'input_changed'

export type PromptCacheDiagnosis =
  | {
      readonly type: 'cache_miss'
      readonly reason: MissReason
      readonly cache_missed_tokens: number
      readonly comparison_reusable_tokens: number
    }
  | { readonly type: 'cache_hit' | 'comparison_response_not_found' }

/** The data of a request that a comparison needs: hashes and settings, no content. */
export interface PromptFingerprint {
  readonly organization: string
  readonly at: number
  readonly model: string
  readonly key: string
  readonly tier: string
  readonly effort: string
  readonly verbosity: string
  readonly format: string
  /** Ids of the compaction items in the input. */
  readonly compactions: readonly string[]
  /** Number of units that are tools. */
  readonly tools: number
  readonly prompt: Pick<UnitPrompt, 'chains' | 'ends' | 'tokens'>
}

export interface PromptCacheDiagnostics {
  diagnose(comparedId: string, request: PromptFingerprint): PromptCacheDiagnosis
  /** Stores a request under the id of its response, for later comparisons. */
  remember(responseId: string, request: PromptFingerprint): void
}

const MAX_KEPT = 2_000

export function createPromptCacheDiagnostics(): PromptCacheDiagnostics {
  const kept = new Map<string, PromptFingerprint>()
  return {
    diagnose(comparedId, request) {
      const earlier = kept.get(comparedId)
      if (earlier === undefined || earlier.organization !== request.organization)
        return { type: 'comparison_response_not_found' }
      return diagnosePromptChange(earlier, request)
    },
    remember(responseId, request) {
      if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value ?? '')
      kept.set(responseId, request)
    },
  }
}

const COMPARED_SETTINGS = [
  ['model', 'model_changed'],
  ['key', 'prompt_cache_key_changed'],
  ['tier', 'service_tier_changed'],
  ['effort', 'reasoning_effort_changed'],
  ['verbosity', 'verbosity_changed'],
  ['format', 'text_format_changed'],
] as const

/**
 * Returns whether `request` could read what `earlier` left in the cache, and otherwise the first cause. Settings are
 * compared first, because a changed setting changes the whole prefix.
 */
export function diagnosePromptChange(
  earlier: PromptFingerprint,
  request: PromptFingerprint,
): PromptCacheDiagnosis {
  const reusable = earlier.prompt.tokens
  const miss = (reason: MissReason, missed: number): PromptCacheDiagnosis => ({
    type: 'cache_miss',
    reason,
    cache_missed_tokens: missed,
    comparison_reusable_tokens: reusable,
  })
  for (const [setting, reason] of COMPARED_SETTINGS)
    if (earlier[setting] !== request[setting]) return miss(reason, reusable)
  const common = countCommonUnits(earlier.prompt.chains, request.prompt.chains)
  if (common === earlier.prompt.chains.length) return { type: 'cache_hit' }
  const missed = reusable - (earlier.prompt.ends[common - 1] ?? 0)
  if (common < Math.max(earlier.tools, request.tools)) return miss('tools_changed', missed)
  const isCompacted = request.compactions.some((id) => !earlier.compactions.includes(id))
  return miss(isCompacted ? 'context_compacted' : 'input_changed', missed)
}

/** Counts the equal units at the start of two prompts. Binary search works because each hash covers all units before it. */
export function countCommonUnits(one: readonly string[], other: readonly string[]): number {
  let low = 0
  let high = Math.min(one.length, other.length)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (one[middle - 1] === other[middle - 1]) low = middle
    else high = middle - 1
  }
  return low
}
