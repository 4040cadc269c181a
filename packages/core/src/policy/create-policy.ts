import { TidemarkError } from '../errors.ts'
import type { DeepPartial } from './field.ts'
import { type Policy, policyFields } from './policy.ts'
import { type Problem, readFields } from './read-fields.ts'
import { brokenRules } from './rules.ts'

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
