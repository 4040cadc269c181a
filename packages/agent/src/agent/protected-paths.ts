/**
 * Paths that decide what runs on the machine of the user: start-up files of shells, hooks and settings of Git, settings of
 * editors and agents. Writing one is asked about in every mode; only the user's own settings can except it.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { isPathWithin } from '../tools/tool-access.ts'
import { listProtectedTargets } from './protected-targets.ts'

/**
 * Names of files and folders that are protected wherever they are, with all that is in them: a usual tool of this machine
 * runs or obeys them without being asked. `.gitattributes` only chooses among programs that are named elsewhere, and a
 * workflow of a CI service runs on another machine, after a push.
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
  // What interpreters and consoles of languages and databases run at their start.
  ...['.pdbrc', '.pythonrc', '.irbrc', '.pryrc', '.rprofile', '.ghci', '.ocamlinit', '.sqliterc', '.psqlrc'],
  // What shells and version managers load on entering a folder.
  ...['.direnv', '.mise', '.mise.toml', 'mise.toml', 'mise.local.toml', '.mise.local.toml', '.tool-versions'],
  // Package managers and tools that read options from files, among them programs to run.
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', '.pnp.cjs', '.pnp.loader.mjs', '.pnpmfile.cjs'],
  ...['.bazelrc', '.ripgreprc', '.curlrc', '.wgetrc', '.netrc', '.pypirc', '.pydistutils.cfg', '.gemrc'],
  // Keys.
  ...['.ssh', '.gnupg'],
]

/** The same for names that mean something only below others. */
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
  /** The working directory, with symbolic links resolved. What is above it does not count for a path in it. */
  readonly folder: string
  readonly home: string
  /** Folders of this program. */
  readonly protectedFolders: readonly string[]
}

/** Returns the first of some absolute paths that is protected; undefined if none is. */
export function findProtectedPath(paths: readonly string[], place: ProtectedPlace): string | undefined {
  const named = paths.find((path) => isProtectedName(path, place) || completesBareRepository(path, place))
  if (named !== undefined) return named
  const targets = listTargets(place)
  return paths.find((path) => targets.some((target) => isPathWithin(path, target)))
}

/** Returns true if a path is one that protected names lead to: by a symbolic link, or by the configuration of Git. */
export function isProtectedTarget(path: string, place: ProtectedPlace): boolean {
  return listTargets(place).some((target) => isPathWithin(path, target))
}

const ROOT_NAMES: readonly string[] = [...PROTECTED_NAMES, ...PROTECTED_PLACES]

function listTargets({ folder, home }: ProtectedPlace): readonly string[] {
  return listProtectedTargets({ folder, home, names: ROOT_NAMES, isProtected: isProtectedEntry })
}

/** Returns true for a protected name. Most names are plain, and tell at once that they are none. */
function isProtectedEntry(name: string): boolean {
  const isPlain = /^[\w@+-][\w@+. -]*$/.test(name) && !/^(?:lefthook|mise)/i.test(name)
  return !isPlain && hasProtectedName(normalizeName(name))
}

/** Returns true if a path, or a pattern for paths, has a protected name in it. */
export function isProtectedName(path: string, { folder, protectedFolders }: ProtectedPlace): boolean {
  if (protectedFolders.some((each) => isPathWithin(path, each))) return true
  const names = listNames(path, folder)
  if (names.some(hasProtectedName)) return true
  const joined = `/${names.join('/')}/`
  return PLACES.some((each) => joined.includes(`/${each}/`))
}

/**
 * Writes a name as file systems compare it that ignore case, invisible characters, and dots and blanks at its end. On
 * others it is stricter than need be.
 */
function normalizeName(name: string): string {
  return (
    name
      .normalize('NFKC')
      .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
      // In both steps, because a sharp s is the capitals SS.
      .toUpperCase()
      .toLowerCase()
      .replace(/(?<=[^. ])[. ]+$/, '')
  )
}

const NAMES: ReadonlySet<string> = new Set(PROTECTED_NAMES.map(normalizeName))
/** The beginnings of the short names that Windows gives them: `GIT~1`. */
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

/** With one of these beside it, `HEAD` makes a folder a repository, whose settings name programs that Git runs in it. */
const REPOSITORY_PARTS: readonly string[] = ['objects', 'refs', 'commondir']

/** Returns true if a folder above the path is a bare repository, or would become one. */
function completesBareRepository(path: string, { folder }: ProtectedPlace): boolean {
  for (let child = path; child !== dirname(child) && child !== folder; child = dirname(child)) {
    const parent = dirname(child)
    const own = normalizeName(basename(child))
    const has = (name: string): boolean => own === name.toLowerCase() || existsSync(join(parent, name))
    if (has('HEAD') && REPOSITORY_PARTS.some(has)) return true
  }
  return false
}
