import { TidemarkError } from '../errors.ts'
import { smallestWindow } from './limits.ts'
import { type Policy, policyFields, policyValue } from './policy.ts'
import { type DeepPartial, type Problem, problem, readFields } from './policy-fields.ts'

// What no field can say alone: rules that hold between two or more of them.

interface Rule {
  /** The fields it speaks of, the one to blame first. A rule over a field that is itself wrong is not tried. */
  readonly fields: readonly string[]
  holds(policy: Policy): boolean
  allowed(policy: Policy): string
}

type Pair = (policy: Policy) => readonly [low: number, high: number]

function atMost(low: string, high: string, pair: Pair): Rule {
  const holds = (policy: Policy): boolean => pair(policy)[0] <= pair(policy)[1]
  return { fields: [low, high], holds, allowed: (policy) => `at most ${named(policy, high)}` }
}

function below(low: string, high: string, pair: Pair): Rule {
  const holds = (policy: Policy): boolean => pair(policy)[0] < pair(policy)[1]
  return { fields: [low, high], holds, allowed: (policy) => `less than ${named(policy, high)}` }
}

function named(policy: Policy, path: string): string {
  return `${path}, which is ${policyValue(policy, path)}`
}

const ladder: readonly Rule[] = [
  below('ladder.blocking.tokens', 'ladder.autoCompact.tokens', ({ ladder: { blocking, autoCompact } }) => [
    blocking.tokens,
    autoCompact.tokens,
  ]),
  below(
    'ladder.blocking.maximumPercent',
    'ladder.autoCompact.maximumPercent',
    ({ ladder: { blocking, autoCompact } }) => [blocking.maximumPercent, autoCompact.maximumPercent],
  ),
  atMost('ladder.error.tokens', 'ladder.warning.tokens', ({ ladder: { error, warning } }) => [
    error.tokens,
    warning.tokens,
  ]),
  atMost('ladder.error.maximumPercent', 'ladder.warning.maximumPercent', ({ ladder: { error, warning } }) => [
    error.maximumPercent,
    warning.maximumPercent,
  ]),
  {
    fields: ['warning', 'autoCompact', 'reserve'].map((line) => `ladder.${line}.maximumPercent`),
    holds: ({ ladder: { warning, autoCompact, reserve } }) =>
      warning.maximumPercent + autoCompact.maximumPercent + reserve.maximumPercent <= 90,
    allowed: ({ ladder: { autoCompact, reserve } }) =>
      `at most ${90 - autoCompact.maximumPercent - reserve.maximumPercent}: with those of autoCompact and reserve no more than 90, so that a small window has room to work in`,
  },
]

const clearing: readonly Rule[] = [
  below('clear.cached.keep', 'clear.cached.fireAt', ({ clear: { cached } }) => [cached.keep, cached.fireAt]),
  below('clear.native.keepTokens', 'clear.native.triggerTokens', ({ clear: { native } }) => [
    native.keepTokens,
    native.triggerTokens,
  ]),
  {
    fields: ['clear.idle.afterMinutes', 'cache.ttl', 'switches.promptCachingEnabled'],
    holds: ({ clear: { idle }, cache, switches }) =>
      idle.afterMinutes === 'ttl' ||
      idle.afterMinutes >= 60 ||
      cache.ttl === '5m' ||
      !switches.promptCachingEnabled,
    allowed: ({ cache }) =>
      `'ttl', or at least 60 while cache.ttl is '${cache.ttl}': an hour's cache would still be warm`,
  },
]

const content: readonly Rule[] = [
  atMost('notes.sectionTokens', 'notes.totalTokens', ({ notes }) => [notes.sectionTokens, notes.totalTokens]),
  atMost('notes.titleMinimumWords', 'notes.titleMaximumWords', ({ notes }) => [
    notes.titleMinimumWords,
    notes.titleMaximumWords,
  ]),
  atMost('notes.waitSeconds', 'notes.deadAfterSeconds', ({ notes }) => [
    notes.waitSeconds,
    notes.deadAfterSeconds,
  ]),
  atMost('notes.kept.minimumTokens', 'notes.kept.maximumTokens', ({ notes: { kept } }) => [
    kept.minimumTokens,
    kept.maximumTokens,
  ]),
  {
    fields: ['spill.thresholdTokens', 'spill.headTokens', 'spill.tailTokens'],
    holds: ({ spill }) => spill.headTokens + spill.tailTokens < spill.thresholdTokens,
    allowed: ({ spill }) =>
      `more than spill.headTokens and spill.tailTokens together, which are ${spill.headTokens + spill.tailTokens}`,
  },
  atMost('request.imagesInSmallWindow', 'request.images', ({ request }) => [
    request.imagesInSmallWindow,
    request.images,
  ]),
  atMost('estimate.narrowestHighFactor', 'estimate.highFactor', ({ estimate }) => [
    estimate.narrowestHighFactor,
    estimate.highFactor,
  ]),
]

const waiting: readonly Rule[] = [
  below(
    'compact.waiting.keepAliveSeconds',
    'compact.waiting.attemptSeconds',
    ({ compact: { waiting: times } }) => [times.keepAliveSeconds, times.attemptSeconds],
  ),
  atMost('compact.waiting.stallSeconds', 'compact.waiting.attemptSeconds', ({ compact }) => [
    compact.waiting.stallSeconds,
    compact.waiting.attemptSeconds,
  ]),
  atMost('turn.network.firstDelayMs', 'turn.network.maximumDelayMs', ({ turn: { network } }) => [
    network.firstDelayMs,
    network.maximumDelayMs,
  ]),
]

const rules: readonly Rule[] = [...ladder, ...clearing, ...content, ...waiting]

const windows: readonly Rule[] = [
  bigEnough('window.givenTokens', ({ window }) => window.givenTokens),
  bigEnough('window.capTokens', ({ window }) => window.capTokens),
]

/** A window that the policy names must be one that the policy works in. */
function bigEnough(path: string, tokens: (policy: Policy) => number | null): Rule {
  const smallest = ({ ladder, window }: Policy): number => smallestWindow(ladder, window.givenOutputTokens)
  return {
    fields: [path],
    holds: (policy) => (tokens(policy) ?? Number.POSITIVE_INFINITY) >= smallest(policy),
    allowed: (policy) => `at least ${smallest(policy)}, the smallest window this policy works in`,
  }
}

/** Every rule that `policy` breaks, but for those over a field that is wrong already, or in a group that is. */
function brokenRules(policy: Policy, wrong: readonly Problem[]): readonly Problem[] {
  const isWrong = (path: string): boolean =>
    wrong.some((found) => found.path === '' || `${path}.`.startsWith(`${found.path}.`))
  const isBroken = (rule: Rule): boolean => !rule.fields.some(isWrong) && !rule.holds(policy)
  const broken = rules.filter(isBroken)
  // Which window is too small can be asked only of a ladder that is sound.
  const sound = wrong.length + broken.length === 0
  return [...broken, ...(sound ? windows.filter(isBroken) : [])].map((rule) => blame(policy, rule))
}

function blame(policy: Policy, rule: Rule): Problem {
  const [path = ''] = rule.fields
  return problem(path, policyValue(policy, path), rule.allowed(policy))
}

/**
 * The defaults with `overrides` laid over them, checked and frozen. A list replaces the default one; a field
 * that is undefined counts as left out. Throws one `bad-policy` error that names everything wrong, with the
 * list as `details.problems`.
 */
export function createPolicy(overrides: DeepPartial<Policy> = {}): Policy {
  const reading = readFields(policyFields, overrides)
  // The tables are typed as Fields<Policy>, and every leaf passed its check or has its default.
  const policy = reading.value as Policy
  const problems = [...reading.problems, ...brokenRules(policy, reading.problems)]
  if (problems.length > 0) throw badPolicy(problems)
  return policy
}

function badPolicy(problems: readonly Problem[]): TidemarkError {
  const lines = problems.map(({ message }) => `- ${message}`).join('\n')
  const head =
    problems.length === 1 ? 'The policy has a problem' : `The policy has ${problems.length} problems`
  return new TidemarkError('bad-policy', `${head}:\n${lines}`, { details: { problems } })
}

export const DEFAULT_POLICY: Policy = createPolicy()
