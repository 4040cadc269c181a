/**
 * Adds permission rules that the user has chosen in a question to the project's local settings, which should not be under version control.
 * The user's answer is the trust that a project's rules need.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { TidemarkError } from 'tidemark'
import { writeFileAtomic } from 'tidemark/tools'
import { isObject } from '../json-value.ts'
import { addTrust } from './folder-trust.ts'

/** Adds allow rules to the local settings of the folder, and trusts them. Returns the file's path; throws if it is not usable. */
export async function addLocalAllowRules(
  { folder, home }: { readonly folder: string; readonly home: string },
  rules: readonly string[],
): Promise<string> {
  const path = join(folder, '.tidemark', 'settings.local.json')
  const settings = await readSettings(path)
  const permissions = isObject(settings.permissions) ? settings.permissions : {}
  const known = Array.isArray(permissions.allow) ? permissions.allow : []
  const allow = [...known, ...rules.filter((rule) => !known.includes(rule))]
  const value = { ...settings, permissions: { ...permissions, allow } }
  await mkdir(dirname(path), { recursive: true })
  await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`)
  await addTrust(
    home,
    folder,
    rules.map((rule) => ({ setting: 'permissions.allow', parts: [rule] })),
  )
  return path
}

/** Reads the file unparsed by the settings reader, so that unknown fields are kept. */
async function readSettings(path: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}'
    throw error
  })
  let value: unknown = null
  try {
    value = JSON.parse(text)
  } catch {}
  if (isObject(value)) return value
  throw new TidemarkError('bad-option', `${path} is not a JSON object.`)
}
