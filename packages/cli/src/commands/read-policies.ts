/** Reads a policy as users name it: the name of a preset, or a JSON file. */
import { readFile } from 'node:fs/promises'
import { createPolicy, type PolicyOverrides } from '@tidemark/core/policy/create-policy'
import { presets } from '@tidemark/core/policy/presets'
import { isPresetName, type NamedPolicy } from 'tidemark/internal'

/** Reads policies, separated by commas, each once. Returns an error text instead if one is unknown or invalid. */
export async function readPolicies(given: string): Promise<readonly NamedPolicy[] | string> {
  const names = given.split(',').map((name) => name.trim())
  const policies: NamedPolicy[] = []
  for (const name of new Set(names.filter((each) => each !== ''))) {
    const policy = await readPolicy(name)
    if (typeof policy === 'string') return policy
    policies.push(policy)
  }
  return policies.length === 0 ? `option '--policy': expected ${POLICY_CHOICES}.` : policies
}

/** Reads one policy: a preset by its name, else a JSON file. Returns an error text instead if there is none or it is invalid. */
export async function readPolicy(name: string): Promise<NamedPolicy | string> {
  return isPresetName(name) ? { name, policy: presets[name] } : readPolicyFile(name)
}

async function readPolicyFile(path: string): Promise<NamedPolicy | string> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return isMissing
      ? `there is no policy ${path}: expected ${POLICY_CHOICES}.`
      : `the policy ${path} cannot be read: ${toErrorClause(error)}.`
  }
  try {
    const policy: PolicyOverrides = JSON.parse(text)
    createPolicy(policy)
    return { name: path, policy }
  } catch (error) {
    return `${path} is not a policy: ${toErrorClause(error)}.`
  }
}

const POLICY_CHOICES = `${Object.keys(presets).join(', ')}, or a JSON file of settings`

/** Returns the message of an error without its full stop, for the middle of a sentence. */
export function toErrorClause(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
}
