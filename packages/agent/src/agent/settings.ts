/**
 * The settings of the agent, read from three files: the user's, the project's, and the project's local one, which is not committed. Later
 * files add to earlier ones. Untrusted parts of a project can forbid things and require questions, but cannot allow or run anything.
 */

import { realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { type PresetName, presets, TidemarkError } from 'tidemark'
import { tidemarkHome } from 'tidemark/logs'
import { findHooksProblem, type HookSettings } from 'tidemark/project'
import { isObject } from '../json-value.ts'
import { findServersProblem } from '../mcp/server-settings.ts'
import { readWholeFile } from '../tools/file-content.ts'
import { parseListedHost } from '../tools/listed-hosts.ts'
import { quoteForShell } from '../tools/shell-process.ts'
import { isPathWithin } from '../tools/tool-access.ts'
import { listAgentTrustItems } from './agent-definitions.ts'
import { findLimitsProblem, type UsageLimits } from './agent-limits.ts'
import { readFolderTrust, type TrustItem } from './folder-trust.ts'
import { listGitTrustItems } from './git-programs.ts'
import {
  createHookFileCheck,
  type HookCommandSettings,
  listHookFiles,
  splitHooksForTrust,
} from './hook-files.ts'
import {
  createServerFileCheck,
  listServerFiles,
  type McpServerMap,
  readProjectServers,
  splitServersForTrust,
} from './mcp-settings.ts'
import {
  findRuleProblem,
  NO_RULES,
  PERMISSION_MODES,
  type PermissionMode,
  type PermissionRules,
} from './permissions.ts'
import { listPromptTrustItems } from './prompt-commands.ts'

/** The settings that apply in one folder, merged from all files, without untrusted parts. */
export interface AgentSettings {
  readonly model?: string
  /** The language of the answers. Default: that of the user's messages. */
  readonly language?: string
  /** How answers should be written, in the user's words. */
  readonly outputStyle?: string
  readonly permissions: PermissionRules
  /** Allow rules of the user's file alone. Only these can make an exception for a protected path. */
  readonly ownRules?: readonly string[]
  readonly permissionMode?: PermissionMode
  /** Overrides of the engine's policy; docs/policy.md lists the fields. Only read from the user's file. */
  readonly policy?: Readonly<Record<string, unknown>>
  /** Environment variables of the commands that the agent runs. Only read from the user's file. */
  readonly env: Readonly<Record<string, string>>
  /** Commands that run at events of the session. */
  readonly hooks?: HookSettings
  /** Real paths of the folder's files that hooks and MCP servers run. */
  readonly hookFiles?: readonly string[]
  /** MCP servers by name. */
  readonly mcpServers?: McpServerMap
  /** Returns a reason not to start an MCP server, because what it runs has changed since the user trusted it. */
  readonly findServerObjection?: (name: string) => Promise<string | null>
  /** Returns a reason not to run a hook, because what it runs has changed since the user trusted it. */
  readonly findHookObjection?: (command: HookCommandSettings) => Promise<string | null>
  /** True if the user trusts the folder: with `tidemark trust`, or in `trustedFolders`. Default: false. */
  readonly isTrusted?: boolean
  /** Returns true if the user trusts this part of the project as it is now. Default: nothing is trusted. */
  readonly isItemTrusted?: (item: TrustItem) => boolean
  /** Returns true if the user trusted a part of the project with this name before its content changed. */
  readonly wasItemTrusted?: (item: TrustItem) => boolean
  /** The parts of the project's settings that need trust. */
  readonly trust?: {
    readonly items: readonly TrustItem[]
    /** The parts that the user has not trusted in their present form. */
    readonly untrusted: readonly TrustItem[]
    /** The untrusted parts that the user is asked about before the agent starts. */
    readonly offered: readonly TrustItem[]
    /** The untrusted parts that the user trusted before they changed. */
    readonly changed: readonly TrustItem[]
  }
  /** Globs of memory files that are not read. */
  readonly memoryExcludes?: readonly string[]
  /** Limits of subagents. Only read from the user's file. */
  readonly subagents?: SubagentLimits
  /** Confines the commands of the model. Only read from the user's file. Default: they are not confined. */
  readonly sandbox?: SandboxSettings
  /** False if prompts are not stored for the arrow keys of later sessions. Only read from the user's file. Default: true. */
  readonly promptHistory?: boolean
  /** Sentences for the user about settings that were not applied. */
  readonly notices: readonly string[]
}

export interface SandboxSettings {
  /** True if commands can reach the network. Default: false. */
  readonly network?: boolean
  /** Hosts that commands can reach through a proxy, such as `registry.npmjs.org` and `*.example.com`. Default: none. */
  readonly domains?: readonly string[]
  /** Further folders that commands may write. */
  readonly writable?: readonly string[]
  /** Further files and folders that commands may not read. */
  readonly hidden?: readonly string[]
  /** True if hooks also run in the sandbox. Default: false. */
  readonly hooks?: boolean
  /** True if MCP servers on standard streams also run in the sandbox. Default: false. */
  readonly mcpServers?: boolean
}

interface SubagentLimits {
  /** Maximum subagents that work at the same time. Default: 10. */
  readonly maxRunning?: number
  /** Maximum depth of subagents. 1: only the main conversation starts them; 0: there are none. Default: 2. */
  readonly maxDepth?: number
  /** Limits of one run of a subagent. Default: 500 turns. */
  readonly limits?: UsageLimits
}

interface SettingsFile {
  readonly model?: string
  readonly language?: string
  readonly outputStyle?: string
  readonly permissions?: Partial<PermissionRules>
  readonly permissionMode?: PermissionMode
  /** Overrides, or the name of a preset. */
  readonly policy?: Readonly<Record<string, unknown>> | PresetName
  readonly env?: Readonly<Record<string, string>>
  readonly hooks?: HookSettings
  readonly trustedFolders?: readonly string[]
  readonly memoryExcludes?: readonly string[]
  readonly mcpServers?: McpServerMap
  readonly subagents?: SubagentLimits
  readonly sandbox?: SandboxSettings | boolean
  readonly promptHistory?: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the path of the user's settings file, which need not exist. */
export function findUserSettingsPath(env: Environment): string {
  const given = env.XDG_CONFIG_HOME
  const base = given !== undefined && isAbsolute(given) ? given : join(env.HOME ?? homedir(), '.config')
  return join(base, 'tidemark', 'settings.json')
}

/** Returns the paths of a project's settings: the shared file and the local one. */
function listProjectSettings(folder: string): readonly string[] {
  return ['settings.json', 'settings.local.json'].map((name) => join(folder, '.tidemark', name))
}

/** Reads all settings that apply in `folder`, and what the user trusts there. Throws `bad-option` if a file cannot be used. */
export async function readSettings(folder: string, env: Environment): Promise<AgentSettings> {
  const user = await readSettingsFile(findUserSettingsPath(env))
  const isInTrusted = await isInTrustedFolder(folder, user.trustedFolders ?? [], env)
  const files = await Promise.all(listProjectSettings(folder).map(readSettingsFile))
  const { servers, notices } = await readProjectServers(folder)
  const project = files.reduce(mergeFiles, { mcpServers: servers })
  // Uses the environment with which MCP servers are started, so that the checked files are those that run.
  const serverEnv = { ...env, ...user.env }
  const userHome = env.HOME ?? homedir()
  const parts = await listParts(project, folder, { serverEnv, userHome })
  const { isTrusted, covers, coveredBefore } = await readFolderTrust(tidemarkHome(env), folder)
  const isItemTrusted = (item: TrustItem): boolean => isInTrusted || covers(item)
  const applied = parts.filter(({ item }) => isItemTrusted(item))
  const untrusted = parts.filter((part) => !applied.includes(part)).map(({ item }) => item)
  const changed = untrusted.filter(coveredBefore)
  const offered = omitUnusedPrograms(untrusted, [user, project])
  const merged = [limitUntrusted(project), ...applied.map(({ settings }) => settings)].reduce(
    mergeFiles,
    user,
  )
  const { hooks = {}, mcpServers = {} } = merged
  const runFiles = [
    ...(await listHookFiles(hooks, folder)),
    ...(await listServerFiles(mcpServers, folder, serverEnv)),
  ]
  // In a folder of `trustedFolders`, everything is trusted, whatever its content.
  const trusted = isInTrusted ? [] : applied.map(({ item }) => item)
  return {
    ...(merged.model === undefined ? {} : { model: merged.model }),
    ...(merged.language === undefined ? {} : { language: merged.language }),
    ...(merged.outputStyle === undefined ? {} : { outputStyle: merged.outputStyle }),
    ...(merged.permissionMode === undefined ? {} : { permissionMode: merged.permissionMode }),
    ...readUsersOwn(user),
    permissions: { ...NO_RULES, ...merged.permissions },
    ...(runFiles.length === 0 ? {} : { hookFiles: runFiles }),
    ...(Object.keys(hooks).length === 0
      ? {}
      : { hooks, findHookObjection: createHookFileCheck(trusted, folder) }),
    ...(Object.keys(mcpServers).length === 0
      ? {}
      : {
          mcpServers,
          findServerObjection: createServerFileCheck(trusted, mcpServers, { folder, env: serverEnv }),
        }),
    isTrusted: isInTrusted || isTrusted,
    isItemTrusted,
    wasItemTrusted: coveredBefore,
    ...(parts.length === 0
      ? {}
      : { trust: { items: parts.map(({ item }) => item), untrusted, offered, changed } }),
    // Excluding a file grants nothing, so untrusted projects may do it, too.
    memoryExcludes: [...(user.memoryExcludes ?? []), ...(project.memoryExcludes ?? [])],
    notices: [
      ...notices,
      ...describeUsersOwn(project, findUserSettingsPath(env)),
      ...describeUntrusted(offered, changed, folder),
    ],
  }
}

/** Returns the settings that are read from the user's file only. */
function readUsersOwn({ policy, subagents, promptHistory, sandbox, permissions, env = {} }: SettingsFile) {
  return {
    ...(policy === undefined ? {} : { policy: typeof policy === 'string' ? presets[policy] : policy }),
    ...(subagents === undefined ? {} : { subagents }),
    ...(promptHistory === undefined ? {} : { promptHistory }),
    ...(sandbox === undefined || sandbox === false ? {} : { sandbox: sandbox === true ? {} : sandbox }),
    ...(permissions?.allow === undefined ? {} : { ownRules: permissions.allow }),
    env,
  }
}

/** Lists everything in a project that needs trust: parts of its settings, and its skills, slash commands and agents. */
async function listParts(
  project: SettingsFile,
  folder: string,
  { serverEnv, userHome }: { readonly serverEnv: Environment; readonly userHome: string },
): Promise<readonly TrustedPart[]> {
  const files = [
    ...(await listPromptTrustItems(folder, userHome)),
    ...(await listAgentTrustItems(folder, userHome)),
    ...listGitTrustItems(folder),
  ]
  return [
    ...(await listTrustedParts(project, folder, serverEnv)),
    ...files.map((item) => ({ item, settings: {} })),
  ]
}

/** Leaves out programs that Git would run, unless an allow rule names Git, so that Git may run without a question. */
function omitUnusedPrograms(
  items: readonly TrustItem[],
  files: readonly SettingsFile[],
): readonly TrustItem[] {
  const rules = files.flatMap(({ permissions }) => permissions?.allow ?? [])
  return rules.some((rule) => /git/i.test(rule)) ? items : items.filter(({ setting }) => setting !== 'git')
}

/** Settings that a project cannot set, whether it is trusted or not. */
const USERS_OWN = ['policy', 'env', 'subagents', 'trustedFolders', 'promptHistory', 'sandbox'] as const

function describeUsersOwn(project: SettingsFile, userFile: string): readonly string[] {
  const names = USERS_OWN.filter((name) => project[name] !== undefined)
  if (names.length === 0) return []
  return [
    `The settings of this project set ${names.join(' and ')}, which has no effect: it is read from ${userFile} only.`,
  ]
}

function describeUntrusted(
  untrusted: readonly TrustItem[],
  changed: readonly TrustItem[],
  folder: string,
): readonly string[] {
  const quoted = quoteForShell(folder)
  const describe = (items: readonly TrustItem[], why: string): readonly string[] => {
    const names = [...new Set(items.map(({ setting }) => setting))].join(' and ')
    return items.length === 0
      ? []
      : [
          `The settings of this project want to set ${names}, which is not applied: ${why}. To see and trust it: tidemark trust ${quoted}`,
        ]
  }
  const isOfGit = ({ setting }: TrustItem): boolean => setting === 'git'
  return [
    ...describe(
      untrusted.filter((item) => !changed.includes(item) && !isOfGit(item)),
      'you have not trusted it',
    ),
    ...describe(
      changed.filter((item) => !isOfGit(item)),
      'it has changed since you trusted it',
    ),
    ...(untrusted.some(isOfGit)
      ? [
          `Git would run programs that this repository names, so that its commands are asked about. To see and trust them: tidemark trust ${quoted}`,
        ]
      : []),
  ]
}

/** Returns the part of a project's settings that can only restrict the agent. */
function limitUntrusted({ permissions }: SettingsFile): SettingsFile {
  const { ask = [], deny = [] } = permissions ?? {}
  return { permissions: { ask, deny } }
}

interface TrustedPart {
  readonly item: TrustItem
  /** The part alone. */
  readonly settings: SettingsFile
}

/** Lists the parts of a project's settings that need trust. Of the others, only ask and deny rules and `memoryExcludes` apply. */
async function listTrustedParts(
  { model, language, outputStyle, permissionMode, permissions, hooks = {}, mcpServers = {} }: SettingsFile,
  folder: string,
  env: Environment,
): Promise<readonly TrustedPart[]> {
  const part = (setting: string, value: string, settings: SettingsFile): TrustedPart => ({
    item: { setting, parts: [value] },
    settings,
  })
  return [
    ...(model === undefined ? [] : [part('model', model, { model })]),
    // Language and output style become part of the system prompt, through which a project could instruct the agent.
    ...(language === undefined ? [] : [part('language', language, { language })]),
    ...(outputStyle === undefined ? [] : [part('outputStyle', outputStyle, { outputStyle })]),
    ...(permissionMode === undefined ? [] : [part('permissionMode', permissionMode, { permissionMode })]),
    ...(permissions?.allow ?? []).map((rule) =>
      part('permissions.allow', rule, { permissions: { allow: [rule] } }),
    ),
    ...(await splitHooksForTrust(hooks, folder)).map(({ item, hooks: own }) => ({
      item,
      settings: { hooks: own },
    })),
    ...(await splitServersForTrust(mcpServers, folder, env)).map(({ item, mcpServers: own }) => ({
      item,
      settings: { mcpServers: own },
    })),
  ]
}

async function isInTrustedFolder(
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
  const hooks = mergeHooks(first.hooks ?? {}, second.hooks ?? {})
  const mcpServers = { ...first.mcpServers, ...second.mcpServers }
  return { ...first, ...second, permissions, hooks, mcpServers }
}

/** Merges the hooks of two files. All of them apply. */
function mergeHooks(first: HookSettings, second: HookSettings): HookSettings {
  const events = new Set([...Object.keys(first), ...Object.keys(second)] as (keyof HookSettings)[])
  return Object.fromEntries(
    [...events].map((event) => [event, [...(first[event] ?? []), ...(second[event] ?? [])]]),
  )
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

/** Matches paths with the same meaning in every folder. */
const ABSOLUTE = /^(?:\/|~(?:\/|$))/

type FieldCheck = (value: unknown) => string | null

/** Each field of a settings file with its check, which returns what was expected; null if the value is valid. */
const FIELDS: Readonly<Record<keyof SettingsFile | '$schema', FieldCheck>> = {
  $schema: () => null,
  model: (value) => (typeof value === 'string' && value !== '' ? null : 'the id of a model'),
  language: (value) => (typeof value === 'string' && value.trim() !== '' ? null : 'the name of a language'),
  outputStyle: (value) =>
    typeof value === 'string' && value.trim() !== '' ? null : 'a text about how answers are to be written',
  permissions: checkRules,
  permissionMode: (value) =>
    PERMISSION_MODES.includes(value as PermissionMode) ? null : `one of ${PERMISSION_MODES.join(', ')}`,
  policy: (value) =>
    isObject(value) || (typeof value === 'string' && Object.hasOwn(presets, value))
      ? null
      : `an object, or one of ${Object.keys(presets).join(', ')}`,
  env: (value) =>
    isObject(value) && Object.values(value).every((each) => typeof each === 'string')
      ? null
      : 'an object of texts',
  hooks: (value) => {
    const problem = findHooksProblem(value)
    return problem === null ? null : `commands by event; ${problem}`
  },
  // A relative path would name a different folder in each project.
  trustedFolders: (value) =>
    Array.isArray(value) && value.every((each) => typeof each === 'string' && ABSOLUTE.test(each))
      ? null
      : 'a list of absolute folders',
  memoryExcludes: (value) =>
    Array.isArray(value) && value.every((each) => typeof each === 'string') ? null : 'a list of globs',
  mcpServers: findServersProblem,
  promptHistory: (value) => (typeof value === 'boolean' ? null : 'true or false'),
  sandbox: (value) => {
    const isPath = (path: unknown): boolean => typeof path === 'string' && ABSOLUTE.test(path)
    const isHost = (host: unknown): boolean => typeof host === 'string' && parseListedHost(host) !== null
    const lists: Readonly<Record<string, (each: unknown) => boolean>> = {
      writable: isPath,
      hidden: isPath,
      domains: isHost,
    }
    const isRight = ([name, given]: [string, unknown]): boolean =>
      Object.hasOwn(lists, name)
        ? Array.isArray(given) && given.every((each) => lists[name]?.(each))
        : ['network', 'hooks', 'mcpServers'].includes(name) && typeof given === 'boolean'
    if (isObject(value) && value.network === true && value.domains !== undefined)
      return 'either network: true or a list of domains'
    return typeof value === 'boolean' || (isObject(value) && Object.entries(value).every(isRight))
      ? null
      : 'true, false, or an object with network, hooks and mcpServers (true or false), writable and hidden (lists of absolute paths), and domains (a list of hosts, such as "example.com", "*.example.com", "localhost:3000")'
  },
  subagents: (value) => {
    const least: Readonly<Record<string, number>> = { maxRunning: 1, maxDepth: 0 }
    const isRight = ([name, count]: [string, unknown]): boolean =>
      name === 'limits'
        ? findLimitsProblem(count) === null
        : Object.hasOwn(least, name) && Number.isInteger(count) && Number(count) >= Number(least[name])
    return isObject(value) && Object.entries(value).every(isRight)
      ? null
      : 'an object with the numbers maxRunning (from 1) and maxDepth (0 for no subagents), and limits ({ turns, tokens, dollars }, each above 0)'
  },
}

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
      throw badSettings(path, `has the unknown field ${name}; known: ${Object.keys(FIELDS).join(', ')}`)
    const expected = check(field)
    if (expected !== null) throw badSettings(path, `${name}: expected ${expected}`)
  }
  return value as SettingsFile
}

function badSettings(path: string, problem: string): TidemarkError {
  return new TidemarkError('bad-option', `The settings file ${path} ${problem}.`)
}
