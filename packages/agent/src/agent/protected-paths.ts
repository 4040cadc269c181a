/**
 * Paths that decide what runs on the user's machine: start-up files of shells, hooks and settings of Git, settings of editors and agents,
 * and files that these refer to. Writing them needs a question in every mode, unless the user's own settings make an exception.
 */
import { type Dirent, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { isFile, isPathWithin, resolveRealPath } from '../tools/tool-access.ts'
import {
  findRepository,
  listGitConfigPaths,
  listGitFolders,
  readGitConfigFiles,
  resolveGitConfigPath,
} from './git-config.ts'

/**
 * Names of files and folders that are protected everywhere, with everything in them, because common tools run or obey them automatically.
 * `.gitattributes` only chooses among programs that are named elsewhere, and a workflow of a CI service runs on another machine, after a
 * push.
 */
const PROTECTED_NAMES: readonly string[] = [
  // Start-up files of shells and sessions.
  ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.profile', '.inputrc'],
  ...['.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.kshrc', '.mkshrc', '.cshrc', '.tcshrc'],
  ...['.login', '.logout', '.xprofile', '.xinitrc', '.xsession', '.xsessionrc', '.pam_environment', '.envrc'],
  ...['.bashrc.d', '.bash_completion', '.oh-my-zsh', '.zfunc'],
  // Version control, and what runs at its events.
  ...['.git', '.gitmodules', '.gitconfig', '.husky', '.hg', '.hgrc', '.svn', '.jj', '.bzr'],
  ...['.pre-commit-config.yaml', '.pre-commit-config.yml', '.overcommit.yml', '.lefthook', 'lefthook.yml'],
  ...['lefthook.yaml', 'lefthook-local.yml', '.lefthook.yml', '.lefthook.yaml', '.lefthook-local.yml'],
  ...[
    'lefthook.toml',
    'lefthook.json',
    '.lefthook.toml',
    '.lefthook.json',
    '.huskyrc',
    '.huskyrc.json',
    '.huskyrc.js',
  ],
  ...['.simple-git-hooks.json', '.simple-git-hooks.js', '.simple-git-hooks.cjs', '.subversion'],
  // Agents and editors.
  ...['.claude', '.claude.json', '.tidemark', '.codex', '.cursor', '.gemini', '.mcp.json', '.aider.conf.yml'],
  ...['.vscode', '.idea', '.zed', '.fleet', '.devcontainer', '.devcontainer.json', '.gdbinit', '.lldbinit'],
  ...['.vimrc', '.exrc', '.nvimrc', '.nvim.lua', '.emacs', '.emacs.d', '.dir-locals.el', '.dir-locals-2.el'],
  ...['.tmux.conf', '.screenrc', '.lessfilter', '.mailcap', '.forward'],
  // Files that interpreters and consoles of languages and databases run when they start.
  ...['.pdbrc', '.pythonrc', '.irbrc', '.pryrc', '.rprofile', '.ghci', '.ocamlinit', '.sqliterc', '.psqlrc'],
  // Files that shells and version managers load when a folder is entered.
  ...['.direnv', '.mise', '.mise.toml', 'mise.toml', 'mise.local.toml', '.mise.local.toml', '.tool-versions'],
  // Files from which package managers and tools read options, some of which name programs to run.
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', '.pnp.cjs', '.pnp.loader.mjs', '.pnpmfile.cjs'],
  ...['.bazelrc', '.ripgreprc', '.curlrc', '.wgetrc', '.netrc', '.pypirc', '.pydistutils.cfg', '.gemrc'],
  // Keys.
  ...['.ssh', '.gnupg'],
]

/** Paths that are protected only below certain folders. */
const PROTECTED_PLACES: readonly string[] = [
  'node_modules/.bin',
  '.cargo/config',
  '.cargo/config.toml',
  '.bundle/config',
  '.docker/config.json',
  '.kube/config',
  '.aws/config',
  '.gradle/init.d',
  '.local/bin',
  '.cargo/bin',
  '.config/gh',
  '.config/zsh',
  '.config/zed',
  '.config/Code/User',
  '.config/mise',
  '.config/direnv',
  '.config/pip',
  '.mvn/extensions.xml',
  '.mvn/jvm.config',
  '.mvn/maven.config',
  '.config/git',
  '.config/fish',
  '.config/autostart',
  '.config/systemd',
  '.config/environment.d',
  '.config/nvim',
  '.config/tidemark',
  '.local/share/systemd',
  'Library/LaunchAgents',
  'Library/LaunchDaemons',
]

interface ProtectedPlace {
  /** The working directory, with symbolic links resolved. For paths in it, names above it are ignored. */
  readonly folder: string
  readonly home: string
  /** Folders of this program. */
  readonly protectedFolders: readonly string[]
}

/** Returns the first path that is protected, by its name or because something protected refers to it; undefined if none is. */
export function findProtectedPath(paths: readonly string[], place: ProtectedPlace): string | undefined {
  const named = paths.find((path) => isProtectedName(path, place) || completesBareRepository(path, place))
  if (named !== undefined) return named
  const targets = listTargets(place)
  return paths.find((path) => targets.some((target) => isPathWithin(path, target)))
}

/**
 * Returns true if something with a protected name refers to the path: a symbolic link, or Git's configuration. Does not check the names in
 * the path itself; `findProtectedPath` checks everything.
 */
export function isReachedByProtectedName(path: string, place: ProtectedPlace): boolean {
  return listTargets(place).some((target) => isPathWithin(path, target))
}

const ROOT_NAMES: readonly string[] = [...PROTECTED_NAMES, ...PROTECTED_PLACES]

function listTargets({ folder, home }: ProtectedPlace): readonly string[] {
  return listProtectedTargets({ folder, home, names: ROOT_NAMES, isProtected: isProtectedEntry })
}

/** Returns true for a protected name. A fast check first rules out most names. */
function isProtectedEntry(name: string): boolean {
  const isPlain = /^[\w@+-][\w@+. -]*$/.test(name) && !/^(?:lefthook|mise)/i.test(name)
  return !isPlain && hasProtectedName(normalizeName(name))
}

/** Returns true if a path, or a pattern for paths, has a protected name or lies in a folder of this program. Reads no disk. */
export function isProtectedName(path: string, { folder, protectedFolders }: ProtectedPlace): boolean {
  if (protectedFolders.some((each) => isPathWithin(path, each))) return true
  const names = listNames(path, folder)
  if (names.some(hasProtectedName)) return true
  const joined = `/${names.join('/')}/`
  return PLACES.some((each) => joined.includes(`/${each}/`))
}

/**
 * Normalizes a name for file systems that ignore case, invisible characters, or dots and blanks at the end. On other file systems, more
 * names than necessary are protected.
 */
function normalizeName(name: string): string {
  return (
    name
      .normalize('NFKC')
      .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
      // Both conversions are needed, because `ß` in capitals is `SS`.
      .toUpperCase()
      .toLowerCase()
      .replace(/(?<=[^. ])[. ]+$/, '')
  )
}

const NAMES: ReadonlySet<string> = new Set(PROTECTED_NAMES.map(normalizeName))
/** Beginnings of the short names that Windows creates for protected names: `GIT~1`. */
const SHORT_NAMES: ReadonlySet<string> = new Set(
  [...NAMES].map((name) => name.replaceAll('.', '').slice(0, 6)),
)

function hasProtectedName(name: string): boolean {
  return NAMES.has(name) || SHORT_NAMES.has(/^([^~]+)~\d+$/.exec(name)?.[1] ?? '')
}

const PLACES: readonly string[] = PROTECTED_PLACES.map((place) => place.toLowerCase())

function listNames(path: string, folder: string): readonly string[] {
  return (isPathWithin(path, folder) ? relative(folder, path) : path).split(sep).map(normalizeName)
}

/** A folder with `HEAD` and one of these is a repository, whose settings name programs that Git runs in it. */
const REPOSITORY_PARTS: readonly string[] = ['objects', 'refs', 'commondir']

/** Returns true if a folder above the path is a bare repository, or would become one with this file. */
function completesBareRepository(path: string, { folder }: ProtectedPlace): boolean {
  for (let child = path; child !== dirname(child) && child !== folder; child = dirname(child)) {
    const parent = dirname(child)
    const own = normalizeName(basename(child))
    const has = (name: string): boolean => own === name.toLowerCase() || existsSync(join(parent, name))
    if (has('HEAD') && REPOSITORY_PARTS.some(has)) return true
  }
  return false
}

// Places that are protected because something protected refers to them: a symbolic link, or Git's configuration, which names hook folders,
// further configuration files, and programs.

interface TargetSearch {
  readonly folder: string
  readonly home: string
  /** Names and paths that are protected in the folder and in the home. */
  readonly names: readonly string[]
  /** Returns true if a name is protected at any depth. */
  readonly isProtected: (name: string) => boolean
}

/** Returns the places to which protected names lead. Places that contain the whole folder are left out. */
function listProtectedTargets(search: TargetSearch): readonly string[] {
  const { folder, home, names } = search
  const roots = [...new Set([folder, home])].flatMap((root) => names.map((name) => join(root, name)))
  const links = [...roots.flatMap(listLinks), ...listNestedLinks(search)]
  return [...links.map((link) => resolveRealPath(link)), ...listPathsInGitConfig(folder, home)].filter(
    (path) => !isPathWithin(folder, path),
  )
}

/** Maximum entries that are read of one folder, and maximum folders of one search: each write of the agent waits for it. */
const MOST_ENTRIES = 300
const MOST_DEPTH = 3
/** Folders of Git that contain only data, and folders of editors with their own programs. */
const DATA_FOLDERS = new Set(['objects', 'refs', 'logs', 'lfs', 'extensions', 'node_modules'])

/** Returns the symbolic links at a protected path and, if it is a folder, in it. */
function listLinks(path: string): readonly string[] {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isSymbolicLink() === true) return [path]
  if (found?.isDirectory() !== true) return []
  const links: string[] = []
  visitNearbyEntries(path, (name, at, isLink) => {
    if (isLink) links.push(join(at, name))
    return !DATA_FOLDERS.has(name)
  })
  return links
}

/** Returns the protected names below the folder that are links or contain links. */
function listNestedLinks({ folder, isProtected }: TargetSearch): readonly string[] {
  const links: string[] = []
  visitNearbyEntries(folder, (name, at, isLink) => {
    if (!isProtected(name)) return name !== 'node_modules'
    if (isLink) links.push(join(at, name))
    else if (at !== folder) links.push(...listLinks(join(at, name)))
    return false
  })
  return links
}

/**
 * Calls `visit` with each entry below a folder, nearest first. A folder is searched if `visit` returns true for it, down to
 * `MOST_DEPTH` levels and up to `MOST_ENTRIES` folders. Links are not followed.
 */
export function visitNearbyEntries(
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

/** Cached entries of folders. They are valid while the folder is the same one and has not changed. */
const knownEntries = new Map<string, FolderEntries>()
const MOST_KNOWN_FOLDERS = 2_000
/** A folder changed less than this long before it was read may change again without a new modification time. */
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

/** Returns the paths that the user's and the repository's Git configuration names: hook folders, included files, programs. */
export function listPathsInGitConfig(folder: string, home: string): readonly string[] {
  const root = findRepository(folder)
  const own = root === null ? [] : listGitFolders(join(root, '.git'))
  // Each has its own limit, so that a repository cannot keep the user's own configuration from being read.
  const ofUser = [join(home, '.gitconfig'), join(home, '.config/git/config')]
  const ofRepository = own.flatMap(listGitConfigPaths)
  const read = [ofUser, ofRepository].flatMap((files) => [...readGitConfigFiles(files, home)])
  const targets = new Set<string>()
  for (const { file, entries } of read) {
    if (![...ofUser, ...ofRepository].includes(file)) targets.add(file)
    for (const { key, value } of entries ?? []) {
      const hooks = key === 'core.hookspath' ? resolveGitConfigPath(value, root ?? folder, home) : null
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

/** Returns the hooks folder; if it contains the working directory, only the hooks in it. */
function listHookPlaces(path: string, folder: string): readonly string[] {
  return isPathWithin(folder, path) ? USUAL_HOOKS.map((name) => join(path, name)) : [path]
}

/** Returns the files of the work tree that a value names, such as `./tools/pager` in `!./tools/pager -x`. */
function listProgramFiles(value: string, root: string | null): readonly string[] {
  if (root === null || value.length > 1_000) return []
  return value.split(/[\s!;&|()'"]+/).flatMap((word) => {
    const path = word.includes('/') ? resolve(root, word) : root
    const isInTree = path !== root && isPathWithin(path, root) && !isPathWithin(path, join(root, '.git'))
    return isInTree && isFile(path) ? [path] : []
  })
}
