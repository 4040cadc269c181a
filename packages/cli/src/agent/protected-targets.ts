/**
 * Places that are protected because something protected leads to them: a symbolic link, or the configuration of Git, which
 * names folders of hooks, further files of configuration, and programs.
 */
import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isFile, isPathWithin, resolveRealPath } from '../tools/tool-access.ts'

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
  const files = [
    ...own.flatMap((each) => [join(each, 'config'), join(each, 'config.worktree')]),
    ...[join(home, '.gitconfig'), join(home, '.config/git/config')],
  ]
  const targets = new Set<string>()
  // Included files are added while the list is read.
  for (let at = 0; at < files.length && at < 20; at += 1) {
    const file = files[at] ?? ''
    for (const { section, name, value } of readGitConfig(readText(file) ?? '')) {
      const key = `${section}.${name}`
      const toPath = (base: string): string =>
        value.startsWith('~/') ? join(home, value.slice(2)) : resolve(base, value)
      if (key === 'include.path' || key === 'includeif.path') {
        const included = toPath(dirname(file))
        files.push(included)
        targets.add(included)
      } else if (key === 'core.hookspath')
        for (const path of listHookPlaces(toPath(root ?? folder), folder)) targets.add(path)
      else for (const path of listProgramFiles(value, root)) targets.add(path)
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

// Reads the configuration of Git from its files, as far as that is needed to know what it names. Nothing is run.

export interface ConfigEntry {
  /** Section and name in lower case, with the subsection between them: `remote.origin.url`. */
  readonly key: string
  readonly section: string
  readonly name: string
  readonly value: string
}

const HEADER = /^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/
const VARIABLE = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*)|[#;].*)?$/

/** Reads a text of configuration. Returns a line that cannot be read as an entry of its own. */
export function readGitConfig(text: string): readonly ConfigEntry[] {
  let section = ''
  let subsection = ''
  return text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line) => {
      let rest = line
      for (let header = HEADER.exec(rest); header !== null; header = HEADER.exec(rest)) {
        const [first = '', ...others] = (header[1] ?? '').toLowerCase().split('.')
        section = first
        subsection = header[2]?.replaceAll(/\\(.)/g, '$1') ?? others.join('.')
        rest = rest.slice(header[0].length)
      }
      if (/^\s*(?:[#;].*)?$/.test(rest)) return []
      const [, name, value = 'true'] = VARIABLE.exec(rest.trim()) ?? []
      const isReadable = name !== undefined && !value.endsWith('\\')
      if (!isReadable)
        return [{ key: 'a line that cannot be read', section: '', name: '', value: rest.trim() }]
      const own = name.toLowerCase()
      const key = [section, ...(subsection === '' ? [] : [subsection]), own].join('.')
      return [{ key, section, name: own, value: readValue(value) }]
    })
}

/** Removes comments and quotes. */
function readValue(text: string): string {
  const [bare = ''] = text.includes('"') ? [text] : text.split(/[#;]/, 1)
  return bare.replaceAll(/\\(.)|"/g, '$1').trim()
}

/** Returns the nearest folder that is, or has, a repository, as Git looks for one. */
export function findRepository(folder: string): string | null {
  for (let each = folder; ; each = dirname(each)) {
    if (existsSync(join(each, '.git')) || isRepository(each)) return each
    if (each === dirname(each)) return null
  }
}

/** Returns true if a folder is a repository itself, without a work tree around it. */
export function isRepository(folder: string): boolean {
  const has = (name: string): boolean => existsSync(join(folder, name))
  return has('HEAD') && (has('commondir') || (has('objects') && has('refs')))
}

/** Returns the folder of Git that a path is or points to, and the one whose configuration it shares. */
export function listGitFolders(path: string): readonly string[] {
  const isPointer = isFile(path)
  const pointer = isPointer ? (readText(path) ?? '').replace(/^gitdir: /, '').trim() : ''
  const own = isPointer ? resolve(dirname(path), pointer) : path
  const shared = readText(join(own, 'commondir'))
  return shared === null ? [own] : [own, resolve(own, shared.trim())]
}

const MOST_CONFIG_BYTES = 1_000_000

/** Returns the text of a file; null if there is none that can be read. */
export function readText(path: string): string | null {
  try {
    const found = statSync(path)
    return found.isFile() && found.size <= MOST_CONFIG_BYTES ? readFileSync(path, 'utf8') : null
  } catch {
    return null
  }
}

/** Mode of an entry of the index that is a commit of another repository. */
const LINKED_COMMIT = 0o160000
const knownLinks = new Map<string, { readonly version: string; readonly links: readonly string[] }>()

/**
 * Returns the paths of the repositories that the index of a repository holds, or a file of entries that it shares: Git looks
 * into them, whatever else names them. An index that cannot be read has none, and Git does not read it either.
 */
export function listLinkedRepositories(gitFolder: string): readonly string[] {
  const names = existsSync(gitFolder) ? readdirSync(gitFolder) : []
  return names
    .filter((name) => /^(?:index$|sharedindex\.)/.test(name))
    .flatMap((name) => readLinks(join(gitFolder, name)))
}

function readLinks(path: string): readonly string[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true || found.size > MOST_INDEX_BYTES) return []
  const version = `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`
  const known = knownLinks.get(path)
  if (known?.version === version) return known.links
  const links = readIndexLinks(readFileSync(path))
  knownLinks.set(path, { version, links })
  return links
}

const MOST_INDEX_BYTES = 200_000_000
const NAME_LENGTH = 0xfff

/**
 * Reads the entries of an index as Git does: each has 62 bytes, or 64 with further flags, and a name whose length is in the
 * flags unless it is too long for that.
 */
function readIndexLinks(bytes: Buffer): readonly string[] {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return []
  const [version, count] = [bytes.readUInt32BE(4), bytes.readUInt32BE(8)]
  const links: string[] = []
  let name = ''
  for (let at = 12, entry = 0; entry < count && at + 62 < bytes.length; entry += 1) {
    const flags = bytes.readUInt16BE(at + 60)
    const { kept, start } = readKeptLength(
      bytes,
      at + ((flags & 0x4000) === 0 ? 62 : 64),
      version === 4 ? name.length : null,
    )
    const isLong = (flags & NAME_LENGTH) === NAME_LENGTH
    const end = isLong ? bytes.indexOf(0, start) : start + (flags & NAME_LENGTH) - kept
    if (end < start || end > bytes.length) break
    name = name.slice(0, kept) + bytes.toString('latin1', start, end)
    if (bytes.readUInt32BE(at + 24) === LINKED_COMMIT)
      links.push(Buffer.from(name, 'latin1').toString('utf8'))
    // Up to version 3, entries are padded to a multiple of eight.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7)
  }
  return links
}

/** Reads how much of the name before an entry of version 4 is also the beginning of its own. `before`: null for others. */
function readKeptLength(
  bytes: Buffer,
  from: number,
  before: number | null,
): { readonly kept: number; readonly start: number } {
  if (before === null) return { kept: 0, start: from }
  let start = from
  let byte = bytes[start] ?? 0
  let dropped = byte & 0x7f
  while ((byte & 0x80) !== 0) {
    start += 1
    byte = bytes[start] ?? 0
    dropped = (dropped + 1) * 128 + (byte & 0x7f)
  }
  return { kept: Math.max(0, before - dropped), start: start + 1 }
}
