/**
 * Places that are protected because something protected leads to them: a symbolic link, or the configuration of Git, which
 * names folders of hooks, further files of configuration, and programs.
 */
import { type Dirent, lstatSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isFile, isPathWithin, resolveRealPath } from '../tools/tool-access.ts'
import {
  findRepository,
  followGitConfig,
  listConfigFiles,
  listGitFolders,
  resolveConfigPath,
} from './git-config.ts'

interface TargetSearch {
  readonly folder: string
  readonly home: string
  /** Names and paths that are protected in the folder and in the home. */
  readonly names: readonly string[]
  /** Returns true if a name is protected at any depth. */
  readonly isProtected: (name: string) => boolean
}

/** Returns the places outside protected names that protected names lead to. None of them holds the whole folder. */
export function listProtectedTargets(search: TargetSearch): readonly string[] {
  const { folder, home, names } = search
  const roots = [...new Set([folder, home])].flatMap((root) => names.map((name) => join(root, name)))
  const links = [...roots.flatMap(listLinks), ...listNestedLinks(search)]
  return [...links.map((link) => resolveRealPath(link)), ...listGitTargets(folder, home)].filter(
    (path) => !isPathWithin(folder, path),
  )
}

/** Most entries of a protected folder, and most folders of the project, that are searched for links. */
const MOST_ENTRIES = 300
const MOST_DEPTH = 3
/** Folders of Git that hold data, and of editors that hold programs of their own. */
const DATA_FOLDERS = new Set(['objects', 'refs', 'logs', 'lfs', 'extensions', 'node_modules'])

/** Returns the symbolic links at a protected path, and in the folder that it is. */
function listLinks(path: string): readonly string[] {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isSymbolicLink() === true) return [path]
  if (found?.isDirectory() !== true) return []
  const links: string[] = []
  walkFolders(path, (name, at, isLink) => {
    if (isLink) links.push(join(at, name))
    return !DATA_FOLDERS.has(name)
  })
  return links
}

/** Returns the protected names below the folder that are links, or hold some. */
function listNestedLinks({ folder, isProtected }: TargetSearch): readonly string[] {
  const links: string[] = []
  walkFolders(folder, (name, at, isLink) => {
    if (!isProtected(name)) return name !== 'node_modules'
    if (isLink) links.push(join(at, name))
    else if (at !== folder) links.push(...listLinks(join(at, name)))
    return false
  })
  return links
}

/** Calls `visit` with each entry, nearest first; it returns true if a folder is to be searched too. */
export function walkFolders(
  root: string,
  visit: (name: string, at: string, isLink: boolean) => boolean,
): void {
  const folders = [{ path: root, depth: 0 }]
  for (let at = 0; at < folders.length; at += 1) {
    const { path, depth } = folders[at] ?? { path: root, depth: 0 }
    for (const entry of readEntries(path)) {
      const isSearched = visit(entry.name, path, entry.isSymbolicLink())
      if (!isSearched || !entry.isDirectory() || depth + 1 >= MOST_DEPTH) continue
      if (folders.length < MOST_ENTRIES) folders.push({ path: join(path, entry.name), depth: depth + 1 })
    }
  }
}

interface FolderEntries {
  readonly changedAt: bigint
  readonly inode: bigint
  readonly entries: readonly Dirent[]
}

/** Entries of folders that were read before. A folder's time of change tells whether they still hold. */
const knownEntries = new Map<string, FolderEntries>()
const MOST_KNOWN_FOLDERS = 2_000
/** A folder that changed so shortly before it was read may change again without another time. */
const CLOCK_STEP_MS = 100

/** Returns the first entries of a folder; none if it cannot be read. */
function readEntries(path: string): readonly Dirent[] {
  try {
    const { ctimeNs: changedAt, ctimeMs, ino: inode } = statSync(path, { bigint: true })
    const known = knownEntries.get(path)
    if (known?.changedAt === changedAt && known.inode === inode) return known.entries
    const isSettled = Date.now() - Number(ctimeMs) > CLOCK_STEP_MS
    const entries = readdirSync(path, { withFileTypes: true }).slice(0, MOST_ENTRIES)
    if (knownEntries.size >= MOST_KNOWN_FOLDERS) knownEntries.clear()
    if (isSettled) knownEntries.set(path, { changedAt, inode, entries })
    else knownEntries.delete(path)
    return entries
  } catch {
    return []
  }
}

/** Returns what the configuration of Git names: folders of hooks, included files, and programs of the project. */
export function listGitTargets(folder: string, home: string): readonly string[] {
  const root = findRepository(folder)
  const own = root === null ? [] : listGitFolders(join(root, '.git'))
  // Each has a limit of its own: a repository must not keep the user's own configuration from being read.
  const ofUser = [join(home, '.gitconfig'), join(home, '.config/git/config')]
  const ofRepository = own.flatMap(listConfigFiles)
  const read = [ofUser, ofRepository].flatMap((files) => [...followGitConfig(files, home)])
  const targets = new Set<string>()
  for (const { file, entries } of read) {
    if (![...ofUser, ...ofRepository].includes(file)) targets.add(file)
    for (const { key, value } of entries ?? []) {
      const hooks = key === 'core.hookspath' ? resolveConfigPath(value, root ?? folder, home) : null
      const paths = hooks === null ? listProgramFiles(value, root) : listHookPlaces(hooks, folder)
      for (const path of paths) targets.add(path)
    }
  }
  return [...targets].flatMap((path) => [path, resolveRealPath(path)])
}

const USUAL_HOOKS = [
  ...['applypatch-msg', 'commit-msg', 'fsmonitor-watchman', 'post-checkout', 'post-commit', 'post-merge'],
  ...[
    'post-rewrite',
    'pre-applypatch',
    'pre-auto-gc',
    'pre-commit',
    'pre-merge-commit',
    'pre-push',
    'pre-rebase',
  ],
  ...[
    'prepare-commit-msg',
    'push-to-checkout',
    'reference-transaction',
    'sendemail-validate',
    'post-index-change',
  ],
]

/** Returns the folder of hooks, or the hooks in it if it holds the working directory. */
function listHookPlaces(path: string, folder: string): readonly string[] {
  return isPathWithin(folder, path) ? USUAL_HOOKS.map((name) => join(path, name)) : [path]
}

/** Returns the files of the work tree that a value names, as `./tools/pager` in `!./tools/pager -x`. */
function listProgramFiles(value: string, root: string | null): readonly string[] {
  if (root === null || value.length > 1_000) return []
  return value.split(/[\s!;&|()'"]+/).flatMap((word) => {
    const path = word.includes('/') ? resolve(root, word) : root
    const isInTree = path !== root && isPathWithin(path, root) && !isPathWithin(path, join(root, '.git'))
    return isInTree && isFile(path) ? [path] : []
  })
}
