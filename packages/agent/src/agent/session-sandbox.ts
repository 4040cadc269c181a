/**
 * Creates the sandbox of a session from its settings, the permission rules and the files that run here. If the sandbox does not work, the
 * user is told once, and commands need permission as without a sandbox.
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { GuardRules } from '../sandbox/guarded-files.ts'
import type { PlaceAccess } from '../sandbox/mount-plan.ts'
import { type OpenSandboxResult, openSandbox } from '../sandbox/sandbox.ts'
import { createHostCheck } from '../tools/listed-hosts.ts'
import { resolveHostBySystem } from '../tools/network-address.ts'
import { isPathWithin } from '../tools/tool-access.ts'
import type { AgentOptions } from './agent-options.ts'
import { decidePermission, isProtectedByName, type PermissionContext } from './permissions.ts'
import { listPathsInGitConfig } from './protected-paths.ts'
import { findUserSettingsPath, type SandboxSettings } from './settings.ts'

/** Files and folders of the home that hold keys, passwords, cookies or typed commands. Commands in the sandbox cannot read them. */
const SECRET_PLACES: readonly string[] = [
  ...[
    '.ssh',
    '.gnupg',
    '.aws',
    '.azure',
    '.kube',
    '.config/gcloud',
    '.oci',
    '.terraform.d/credentials.tfrc.json',
  ],
  ...[
    '.netrc',
    '.pypirc',
    '.npmrc',
    '.git-credentials',
    '.config/git/credentials',
    '.config/gh',
    '.config/hub',
  ],
  ...['.docker/config.json', '.config/containers/auth.json', '.cargo/credentials.toml', '.gem/credentials'],
  ...['.local/share/keyrings', '.local/share/kwalletd', '.password-store', '.config/op', '.config/1Password'],
  ...['Library/Keychains', 'Library/Cookies', '.mozilla', '.config/google-chrome', '.config/chromium'],
  ...['.claude/.credentials.json', '.codex/auth.json', '.bash_history', '.zsh_history', '.python_history'],
]

/**
 * Opens the sandbox of the main conversation; null if the settings do not ask for one. If it does not work, the result says why.
 */
export async function openSessionSandbox(
  options: AgentOptions,
  context: PermissionContext,
  ownFolder: string,
): Promise<OpenSandboxResult | null> {
  const { settings, onNotice } = options
  if (settings.sandbox === undefined) return null
  const { network, domains = [] } = settings.sandbox
  const { places, skipped } = listPlaces(options, settings.sandbox, { context, ownFolder })
  for (const rule of skipped)
    onNotice?.(`The rule ${rule} does not bind commands in the sandbox: it names no folder to hide or keep.`)
  const opened = await openSandbox({
    folder: context.folder,
    ownFolder,
    places,
    guards: createGuards(context),
    hasNetwork: network === true,
    ...(domains.length === 0
      ? {}
      : { hosts: { listed: domains, check: createHostCheck(domains, resolveHostBySystem) } }),
  })
  if (!opened.ok) onNotice?.(`The sandbox cannot be used, so that commands are asked about: ${opened.why}`)
  return opened
}

/** Returns which files of the working directory are guarded: protected names, and files that rules deny to read or edit. */
function createGuards(context: PermissionContext): GuardRules {
  const { deny } = context.rules
  const hasRules = (tool: string): boolean => deny.some((rule) => rule.startsWith(tool))
  const isDenied = (tool: 'Read' | 'Edit', path: string): boolean =>
    decidePermission(tool, { kind: tool === 'Read' ? 'read' : 'write', paths: [path] }, context).decision ===
    'deny'
  const edits = hasRules('Edit')
  return {
    isReadOnly: (path: string) => isProtectedByName(path, context) || (edits && isDenied('Edit', path)),
    ...(hasRules('Read') ? { isHidden: (path: string) => isDenied('Read', path) } : {}),
  }
}

interface PlaceParts {
  readonly context: PermissionContext
  readonly ownFolder: string
}

/** Returns the access to places outside the working directory, and the rules that name no such place. */
function listPlaces(
  { env, home, settings: { hookFiles = [] } }: AgentOptions,
  { writable = [], hidden = [] }: SandboxSettings,
  { context, ownFolder }: PlaceParts,
): { readonly places: ReadonlyMap<string, PlaceAccess>; readonly skipped: readonly string[] } {
  const userHome = env.HOME ?? homedir()
  const toPath = (given: string): string => resolve(userHome, given.replace(/^~(?=\/|$)/, userHome))
  const denied = context.rules.deny.flatMap((rule) => readDeniedPlace(rule, { context, toPath }))
  const places = new Map<string, PlaceAccess>([
    ...writable.map((path) => [toPath(path), 'write'] as const),
    ...SECRET_PLACES.map((path) => [join(userHome, path), 'none'] as const),
    ...hidden.map((path) => [toPath(path), 'none'] as const),
    [findUserSettingsPath(env), 'none'],
    [home, 'none'],
    ...['outputs', 'session-memory'].map((name) => [join(ownFolder, name), 'read'] as const),
    [join(ownFolder, 'scratch'), 'write'],
    ...hookFiles.map((path) => [path, 'read'] as const),
    ...listPathsInGitConfig(context.folder, userHome)
      .filter((path) => isPathWithin(path, context.folder) && existsSync(path))
      .map((path) => [path, 'read'] as const),
    ...denied.flatMap(({ place }) => (place === null ? [] : [place])),
  ])
  return { places, skipped: denied.flatMap(({ rule, place }) => (place === null ? [rule] : [])) }
}

interface DeniedPlace {
  readonly rule: string
  /** Null if the rule names no folder that can be hidden or made read-only as a whole. */
  readonly place: readonly [path: string, access: PlaceAccess] | null
}

/**
 * Reads a deny rule for files outside the working directory. For a pattern, the folder before its first star is used. Rules for the working
 * directory apply to its single files.
 */
function readDeniedPlace(
  rule: string,
  {
    context: { folder },
    toPath,
  }: { readonly context: PermissionContext; readonly toPath: (path: string) => string },
): readonly DeniedPlace[] {
  const [, tool, pattern = ''] = /^(Read|Edit|Write)\((\/.*|~\/.*)\)$/s.exec(rule.trim()) ?? []
  if (tool === undefined) return []
  const fixed = pattern.split(/\/[^/]*[*?[{]/)[0] ?? ''
  const path = toPath(fixed === '' ? '/' : fixed)
  if (isPathWithin(path, folder)) return []
  // A folder that contains the whole working directory cannot be hidden.
  if (isPathWithin(folder, path) || path === toPath('~')) return [{ rule, place: null }]
  return [{ rule, place: [path, tool === 'Read' ? 'none' : 'read'] }]
}
