/** Creates a policy: overrides on top of the defaults, checked field by field and by the rules between fields. */
import { TidemarkError } from '../errors.ts'
import { smallestWindow } from './limits.ts'
import { type Policy, policyFields, policyValue } from './policy.ts'
import { type DeepPartial, type Problem, problem, readFields } from './policy-fields.ts'

/**
 * The defaults with `overrides` applied, checked and frozen. A list replaces the default list; a field that is
 * undefined counts as omitted. Throws one `bad-policy` error that names every problem, with the list as
 * `details.problems`.
 */
export function createPolicy(overrides: DeepPartial<Policy> = {}): Policy {
  const reading = readFields(policyFields, overrides)
  // The tables are typed as Fields<Policy>, and every field passed its check or has its default.
  const policy = reading.value as Policy
  const problems = [...reading.problems, ...brokenRules(policy, reading.problems)]
  if (problems.length === 0) return policy
  const lines = problems.map(({ message }) => `- ${message}`).join('\n')
  const head =
    problems.length === 1 ? 'The policy has a problem' : `The policy has ${problems.length} problems`
  throw new TidemarkError('bad-policy', `${head}:\n${lines}`, { details: { problems } })
}

/** A rule between two or more fields. */
interface Rule {
  /** The fields it concerns, the one to report first. A rule over an invalid field is not checked. */
  readonly fields: readonly string[]
  holds(policy: Policy): boolean
  describeAllowed(policy: Policy): string
}

function atMost(low: string, high: string): Rule {
  return {
    fields: [low, high],
    holds: (policy) => numberAt(policy, low) <= numberAt(policy, high),
    describeAllowed: (policy) => `at most ${high}, which is ${policyValue(policy, high)}`,
  }
}

function below(low: string, high: string): Rule {
  return {
    fields: [low, high],
    holds: (policy) => numberAt(policy, low) < numberAt(policy, high),
    describeAllowed: (policy) => `less than ${high}, which is ${policyValue(policy, high)}`,
  }
}

function numberAt(policy: Policy, path: string): number {
  return Number(policyValue(policy, path))
}

const rules: readonly Rule[] = [
  below('ladder.blocking.tokens', 'ladder.autoCompact.tokens'),
  below('ladder.blocking.maximumPercent', 'ladder.autoCompact.maximumPercent'),
  atMost('ladder.error.tokens', 'ladder.warning.tokens'),
  atMost('ladder.error.maximumPercent', 'ladder.warning.maximumPercent'),
  {
    fields: ['warning', 'autoCompact', 'reserve'].map((line) => `ladder.${line}.maximumPercent`),
    holds: ({ ladder: { warning, autoCompact, reserve } }) =>
      warning.maximumPercent + autoCompact.maximumPercent + reserve.maximumPercent <= 90,
    describeAllowed: ({ ladder: { autoCompact, reserve } }) =>
      `at most ${90 - autoCompact.maximumPercent - reserve.maximumPercent}: with those of autoCompact and reserve no more than 90, so that a small window has room to work in`,
  },
  below('clear.cached.keep', 'clear.cached.fireAt'),
  below('clear.native.keepTokens', 'clear.native.triggerTokens'),
  {
    fields: ['clear.idle.afterMinutes', 'cache.ttl', 'switches.promptCachingEnabled'],
    holds: ({ clear: { idle }, cache, switches }) =>
      idle.afterMinutes === 'ttl' ||
      idle.afterMinutes >= 60 ||
      cache.ttl === '5m' ||
      !switches.promptCachingEnabled,
    describeAllowed: ({ cache }) =>
      `'ttl', or at least 60 while cache.ttl is '${cache.ttl}': an hour's cache would still be warm`,
  },
  atMost('notes.sectionTokens', 'notes.totalTokens'),
  atMost('notes.titleMinimumWords', 'notes.titleMaximumWords'),
  atMost('notes.waitSeconds', 'notes.deadAfterSeconds'),
  atMost('notes.kept.minimumTokens', 'notes.kept.maximumTokens'),
  {
    fields: ['spill.thresholdTokens', 'spill.headTokens', 'spill.tailTokens'],
    holds: ({ spill }) => spill.headTokens + spill.tailTokens < spill.thresholdTokens,
    describeAllowed: ({ spill }) =>
      `more than spill.headTokens and spill.tailTokens together, which are ${spill.headTokens + spill.tailTokens}`,
  },
  atMost('request.imagesInSmallWindow', 'request.images'),
  atMost('estimate.narrowestHighFactor', 'estimate.highFactor'),
  below('compact.waiting.keepAliveSeconds', 'compact.waiting.attemptSeconds'),
  atMost('compact.waiting.stallSeconds', 'compact.waiting.attemptSeconds'),
  atMost('turn.network.firstDelayMs', 'turn.network.maximumDelayMs'),
]

/** A window given in the policy must be large enough for that policy. */
const windowRules: readonly Rule[] = ['window.givenTokens', 'window.capTokens'].map((path) => {
  const smallest = ({ ladder, window }: Policy): number => smallestWindow(ladder, window.givenOutputTokens)
  return {
    fields: [path],
    holds: (policy) => policyValue(policy, path) === null || numberAt(policy, path) >= smallest(policy),
    describeAllowed: (policy) => `at least ${smallest(policy)}, the smallest window this policy works in`,
  }
})

/** The rules that `policy` breaks, except those over a field or group that is already invalid. */
function brokenRules(policy: Policy, invalid: readonly Problem[]): readonly Problem[] {
  const isInvalid = (path: string): boolean =>
    invalid.some((found) => found.path === '' || `${path}.`.startsWith(`${found.path}.`))
  const isBroken = (rule: Rule): boolean => !rule.fields.some(isInvalid) && !rule.holds(policy)
  const broken = rules.filter(isBroken)
  // The smallest window can only be computed for a valid ladder.
  const isSound = invalid.length + broken.length === 0
  return [...broken, ...(isSound ? windowRules.filter(isBroken) : [])].map((rule) => {
    const [path = ''] = rule.fields
    return problem(path, policyValue(policy, path), rule.describeAllowed(policy))
  })
}

export const DEFAULT_POLICY: Policy = createPolicy()
