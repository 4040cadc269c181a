/**
 * Creates a policy: the default settings with the caller's overrides applied. Each field is checked alone, then rules
 * between fields are checked.
 */

import { TidemarkError } from '../errors.ts'
import { type Policy, policyFields, readPolicyValue } from './policy.ts'
import { createFieldProblem, type DeepPartial, type FieldProblem, readFields } from './policy-fields.ts'
import { computeSmallestWindow } from './scale-policy.ts'

/** The policy fields to change, at any depth. An omitted field keeps its default. */
export type PolicyOverrides = DeepPartial<Policy>

/**
 * Returns the default policy with `overrides` applied, checked and frozen. A given list replaces the whole default
 * list; an undefined field counts as omitted. Throws one `bad-policy` error that lists every problem in
 * `details.problems`.
 */
export function createPolicy(overrides: PolicyOverrides = {}): Policy {
  const reading = readFields(policyFields, overrides)
  // The cast is safe: `policy` has every field of `Policy`, and each field either passed its check or has its default.
  const policy = reading.value as Policy
  const problems = [...reading.problems, ...findBrokenRules(policy, reading.problems)]
  if (problems.length === 0) return policy
  const lines = problems.map(({ message }) => `- ${message}`).join('\n')
  const head =
    problems.length === 1 ? 'The policy has a problem' : `The policy has ${problems.length} problems`
  throw new TidemarkError('bad-policy', `${head}:\n${lines}`, { details: { problems } })
}

/** A rule between two or more fields of the policy. */
interface PolicyRule {
  /**
   * Paths of the fields that the rule compares; a violation is reported for the first. The rule is skipped if one of
   * them is invalid.
   */
  readonly fields: readonly string[]
  holds(policy: Policy): boolean
  describeAllowed(policy: Policy): string
}

/** Creates the rule that the number at `low` is at most, or less than, the number at `high`. */
function requireOrder(low: string, order: 'at most' | 'less than', high: string): PolicyRule {
  return {
    fields: [low, high],
    holds: (policy) => {
      const above = readNumber(policy, high) - readNumber(policy, low)
      return order === 'at most' ? above >= 0 : above > 0
    },
    describeAllowed: (policy) => `${order} ${high}, which is ${readPolicyValue(policy, high)}`,
  }
}

function readNumber(policy: Policy, path: string): number {
  return Number(readPolicyValue(policy, path))
}

const RULES: readonly PolicyRule[] = [
  requireOrder('ladder.blocking.tokens', 'less than', 'ladder.autoCompact.tokens'),
  requireOrder('ladder.blocking.maximumPercent', 'less than', 'ladder.autoCompact.maximumPercent'),
  requireOrder('ladder.error.tokens', 'at most', 'ladder.warning.tokens'),
  requireOrder('ladder.error.maximumPercent', 'at most', 'ladder.warning.maximumPercent'),
  {
    fields: ['warning', 'autoCompact', 'reserve'].map((line) => `ladder.${line}.maximumPercent`),
    holds: ({ ladder: { warning, autoCompact, reserve } }) =>
      warning.maximumPercent + autoCompact.maximumPercent + reserve.maximumPercent <= 90,
    describeAllowed: ({ ladder: { autoCompact, reserve } }) =>
      `at most ${90 - autoCompact.maximumPercent - reserve.maximumPercent}: with those of autoCompact and reserve no more than 90, so that a small window has room to work in`,
  },
  requireOrder('clear.cached.keep', 'less than', 'clear.cached.fireAt'),
  requireOrder('clear.native.keepTokens', 'less than', 'clear.native.triggerTokens'),
  {
    fields: ['clear.idle.afterMinutes', 'cache.ttl', 'switches.promptCachingEnabled'],
    holds: ({ clear: { idle }, cache, switches }) =>
      idle.afterMinutes === 'ttl' ||
      idle.afterMinutes >= 60 ||
      cache.ttl === 'short' ||
      cache.ttl === '5m' ||
      !switches.promptCachingEnabled,
    describeAllowed: ({ cache }) =>
      `'ttl', or at least 60 while cache.ttl is '${cache.ttl}': an hour's cache would still be warm`,
  },
  {
    fields: ['spill.thresholdTokens', 'spill.headTokens', 'spill.tailTokens'],
    holds: ({ spill }) => spill.headTokens + spill.tailTokens < spill.thresholdTokens,
    describeAllowed: ({ spill }) =>
      `more than spill.headTokens and spill.tailTokens together, which are ${spill.headTokens + spill.tailTokens}`,
  },
  requireOrder('request.imagesInSmallWindow', 'at most', 'request.images'),
  requireOrder('estimate.narrowestHighFactor', 'at most', 'estimate.highFactor'),
  requireOrder('compact.waiting.keepAliveSeconds', 'less than', 'compact.waiting.attemptSeconds'),
  requireOrder('compact.waiting.stallSeconds', 'at most', 'compact.waiting.attemptSeconds'),
  requireOrder('turn.network.firstDelayMs', 'at most', 'turn.network.maximumDelayMs'),
]

/** Rules for the context window sizes that the policy sets: each must be large enough for the policy's thresholds. */
const WINDOW_RULES: readonly PolicyRule[] = ['window.givenTokens', 'window.capTokens'].map((path) => {
  const smallest = ({ ladder, window }: Policy): number =>
    computeSmallestWindow(ladder, window.givenOutputTokens)
  return {
    fields: [path],
    holds: (policy) => readPolicyValue(policy, path) === null || readNumber(policy, path) >= smallest(policy),
    describeAllowed: (policy) => `at least ${smallest(policy)}, the smallest window this policy works in`,
  }
})

/** Returns the rules between fields that `policy` breaks. Rules that involve an invalid field are skipped. */
function findBrokenRules(policy: Policy, invalid: readonly FieldProblem[]): readonly FieldProblem[] {
  const isInvalid = (path: string): boolean =>
    invalid.some((found) => found.path === '' || `${path}.`.startsWith(`${found.path}.`))
  const isBroken = (rule: PolicyRule): boolean => !rule.fields.some(isInvalid) && !rule.holds(policy)
  const broken = RULES.filter(isBroken)
  // The smallest allowed context window depends on other fields, so it is computed only if all of them are valid.
  const isSound = invalid.length + broken.length === 0
  return [...broken, ...(isSound ? WINDOW_RULES.filter(isBroken) : [])].map((rule) => {
    const [path = ''] = rule.fields
    return createFieldProblem(path, readPolicyValue(policy, path), rule.describeAllowed(policy))
  })
}

/** The policy without overrides. */
export const DEFAULT_POLICY: Policy = createPolicy()
