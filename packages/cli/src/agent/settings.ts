/**
 * The settings of the agent, read from three files: the user's, the project's, and the project's local one, which is
 * not committed. Later files add to earlier ones. A project that the user has not trusted can forbid and ask, and
 * cannot allow anything.
 */
import { realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { isObject } from '@tidemark/core'
import { TidemarkError } from 'tidemark'
import { readWholeFile } from '../tools/file-content.ts'
import { isPathWithin } from '../tools/tool-paths.ts'
import {
  findRuleProblem,
  NO_RULES,
  PERMISSION_MODES,
  type PermissionMode,
  type PermissionRules,
} from './permissions.ts'

export interface AgentSettings {
  readonly model?: string
  readonly permissions: PermissionRules
  readonly permissionMode?: PermissionMode
  /** Overrides of the engine's policy; docs/policy.md lists the fields. Only read from the user's file. */
  readonly policy?: Readonly<Record<string, unknown>>
  /** Environment variables of the commands that the agent runs. Only read from the user's file. */
  readonly env: Readonly<Record<string, string>>
  /** Sentences for the user about settings that were not applied. */
  readonly notices: readonly string[]
}

interface SettingsFile {
  readonly model?: string
  readonly permissions?: Partial<PermissionRules>
  readonly permissionMode?: PermissionMode
  readonly policy?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  readonly trustedFolders?: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the path of the user's settings. */
export function findUserSettings(env: Environment): string {
  const given = env.XDG_CONFIG_HOME
  const base = given !== undefined && isAbsolute(given) ? given : join(env.HOME ?? homedir(), '.config')
  return join(base, 'tidemark', 'settings.json')
}

/** Returns the paths of a project's settings: the shared file and the local one. */
function listProjectSettings(folder: string): readonly string[] {
  return ['settings.json', 'settings.local.json'].map((name) => join(folder, '.tidemark', name))
}

/** Reads all settings that apply in `folder`. Throws `bad-option` if a file cannot be used. */
export async function readSettings(folder: string, env: Environment): Promise<AgentSettings> {
  const user = await readSettingsFile(findUserSettings(env))
  const isTrusted = await isFolderTrusted(folder, user.trustedFolders ?? [], env)
  const files = await Promise.all(listProjectSettings(folder).map(readSettingsFile))
  const project = files.reduce(mergeFiles, {})
  const ignored = isTrusted ? [] : listIgnored(project)
  const merged = mergeFiles(user, isTrusted ? project : limitUntrusted(project))
  return {
    ...(merged.model === undefined ? {} : { model: merged.model }),
    ...(merged.permissionMode === undefined ? {} : { permissionMode: merged.permissionMode }),
    ...(user.policy === undefined ? {} : { policy: user.policy }),
    permissions: { ...NO_RULES, ...merged.permissions },
    env: user.env ?? {},
    notices:
      ignored.length === 0
        ? []
        : [
            `The settings of this project want to set ${ignored.join(' and ')}, which is not applied: the folder is not trusted. To trust it, add it to trustedFolders in ${findUserSettings(env)}.`,
          ],
  }
}

/** Returns the part of a project's settings that can only restrict the agent. */
function limitUntrusted({ permissions }: SettingsFile): SettingsFile {
  const { ask = [], deny = [] } = permissions ?? {}
  return { permissions: { ask, deny } }
}

function listIgnored({ model, permissionMode, permissions }: SettingsFile): readonly string[] {
  return [
    ...(model === undefined ? [] : ['model']),
    ...(permissionMode === undefined ? [] : ['permissionMode']),
    ...((permissions?.allow ?? []).length === 0 ? [] : ['permissions.allow']),
  ]
}

async function isFolderTrusted(
  folder: string,
  trusted: readonly string[],
  env: Environment,
): Promise<boolean> {
  const real = await resolveLinks(folder)
  const roots = await Promise.all(
    trusted.map((path) => resolveLinks(resolve(path.replace(/^~(?=\/|$)/, env.HOME ?? homedir())))),
  )
  return roots.some((root) => isPathWithin(real, root))
}

async function resolveLinks(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    return resolve(path)
  }
}

function mergeFiles(first: SettingsFile, second: SettingsFile): SettingsFile {
  const names = ['allow', 'ask', 'deny'] as const
  const permissions = Object.fromEntries(
    names.map((name) => [
      name,
      [...(first.permissions?.[name] ?? []), ...(second.permissions?.[name] ?? [])],
    ]),
  )
  return { ...first, ...second, permissions }
}

async function readSettingsFile(path: string): Promise<SettingsFile> {
  let text: string
  try {
    text = (await readWholeFile(path))?.bytes.toString('utf8') ?? '{}'
  } catch (error) {
    if (
      (error as NodeJS.ErrnoException).code === 'ENOENT' ||
      (error as NodeJS.ErrnoException).code === 'ENOTDIR'
    )
      return {}
    throw badSettings(path, `cannot be read: ${(error as Error).message}`)
  }
  return checkSettings(path, parseJson(path, text))
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badSettings(path, `is not JSON: ${(error as Error).message}`)
  }
}

type FieldCheck = (value: unknown) => string | null

/** Each field of a settings file, with a check that returns what was expected; null if the value is right. */
const FIELDS: Readonly<Record<keyof SettingsFile | 'hooks' | '$schema', FieldCheck>> = {
  $schema: () => null,
  model: (value) => (typeof value === 'string' && value !== '' ? null : 'the id of a model'),
  permissions: checkRules,
  permissionMode: (value) =>
    PERMISSION_MODES.includes(value as PermissionMode) ? null : `one of ${PERMISSION_MODES.join(', ')}`,
  policy: (value) => (isObject(value) ? null : 'an object'),
  env: (value) =>
    isObject(value) && Object.values(value).every((each) => typeof each === 'string')
      ? null
      : 'an object of texts',
  trustedFolders: (value) =>
    Array.isArray(value) && value.every((each) => typeof each === 'string') ? null : 'a list of folders',
  hooks: () => 'nothing: hooks from settings are not supported yet',
}

/** The fields that a message about a wrong name offers. */
const KNOWN_FIELDS = Object.keys(FIELDS).filter((name) => name !== 'hooks')

function checkRules(value: unknown): string | null {
  if (!isObject(value)) return 'an object with allow, ask and deny'
  for (const [name, rules] of Object.entries(value)) {
    if (!Object.hasOwn(NO_RULES, name)) return `allow, ask and deny, not ${name}`
    if (!Array.isArray(rules)) return `a list of rules in ${name}`
    const problem = rules.map(findRuleProblem).find((found) => found !== null)
    if (problem !== undefined) return `rules in ${name}; ${problem}`
  }
  return null
}

function checkSettings(path: string, value: unknown): SettingsFile {
  if (!isObject(value)) throw badSettings(path, 'must contain one JSON object')
  for (const [name, field] of Object.entries(value)) {
    const check = Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof typeof FIELDS] : undefined
    if (check === undefined)
      throw badSettings(path, `has the unknown field ${name}; known: ${KNOWN_FIELDS.join(', ')}`)
    const expected = check(field)
    if (expected !== null) throw badSettings(path, `${name}: expected ${expected}`)
  }
  return value as SettingsFile
}

function badSettings(path: string, problem: string): TidemarkError {
  return new TidemarkError('bad-option', `The settings file ${path} ${problem}.`)
}
