/**
 * Finds the memory files (CLAUDE.md, AGENTS.md, rules) that apply to a folder or to a path, and the files that they
 * import. Reads through the interface `MemoryFileDisk`. Only permitted files are read, even if a file, link or import names
 * others.
 */

import { normalizePath } from '@tidemark/core/facts/tool-calls'
import type { Policy } from '@tidemark/core/policy/policy'
import { type FileReadResult, matchesPathEnding } from '@tidemark/core/sources/file-source'
import { defuseReminderTags } from '@tidemark/core/summary/accept-summary'
import { matchesGlobs } from './path-glob.ts'

/** The disk, as far as memory files need it. */
export interface MemoryFileDisk {
  /** Returns the path with symbolic links resolved; null if there is no such file or folder. May throw. */
  locate(path: string): Promise<string | null>
  /** Reads at most `limitBytes` of a text file. `path` has no symbolic links. */
  read(path: string, limitBytes: number): Promise<FileReadResult>
  /** Returns the names of the files in a folder, in any order; none if there is no such folder. May throw. */
  list(folder: string): Promise<readonly string[]>
  /** Separates the front matter of a rule from its text. */
  parseRule(text: string): Promise<RuleText>
}

type RuleText =
  | {
      readonly ok: true
      /** The text after the front matter. */
      readonly text: string
      /** The paths to which the rule applies; null if it applies to every path. */
      readonly globs: readonly string[] | null
    }
  | { readonly ok: false; readonly why: string }

/** Where memory files are searched for, and which may be read. All folders are absolute and have no symbolic links. */
export interface MemoryFilePlaces {
  readonly cwd: string
  /** The folder of the whole project: `cwd` or a folder above it. */
  readonly project: string
  /** The user's home; null if the user's own memory files are not read. */
  readonly home: string | null
  /** Globs of files that are never read: absolute, or from the project's folder. */
  readonly excludes: readonly string[]
  /** Returns true if a file that the project names may be read. Not called for the user's own files. */
  readonly isPermitted: (path: string) => boolean
  /** False if imports of the project's files are not followed, because nobody has trusted the project yet. */
  readonly followsImports: boolean
}

type Origin = 'user' | 'project'

export interface LoadedMemoryFile {
  readonly path: string
  /** The text without the front matter of a rule. */
  readonly text: string
  /** Identifies the file; equal for two names of one file. */
  readonly fileId: string
  readonly origin: Origin
  readonly importedBy: string | null
  /** True for a rule that applies because its globs match a path that a tool touched. */
  readonly isGlobMatch?: boolean
}

interface UnreadMemoryFile {
  readonly path: string
  readonly why: string
}

/** Memory files in the order in which the model reads them: the nearest to the work last, imports after their importer. */
export interface MemoryFiles {
  readonly files: readonly LoadedMemoryFile[]
  /** Files that exist and could not, or must not, be read, with the reason. */
  readonly unread: readonly UnreadMemoryFile[]
  /** Imports that lead nowhere, or are not followed because nobody has trusted the project. */
  readonly skippedImports?: readonly UnreadMemoryFile[]
}

type MemoryPolicy = Policy['memoryFiles']

/** The user's own memory files, in the home folder. Rules are in the same places as in a project. */
const USER_MEMORY_FILES: readonly string[] = [
  '.claude/CLAUDE.md',
  '.codex/AGENTS.md',
  '.config/tidemark/AGENTS.md',
]

/** Bytes after which a memory file is cut. Memory files are instructions, not data. */
const MAX_BYTES = 500_000
/** Maximum imports that are followed in one memory file. */
const MAX_IMPORTS_PER_FILE = 100
/** Maximum rules that are read from one folder. */
const MAX_RULES_PER_FOLDER = 200
/** Maximum memory files that are read, because imports may not end. */
const MAX_FILES = 200

/**
 * Reads memory files, each only once for the lifetime of the reader. The parameter `seen` of its methods has the ids of
 * files that are not returned again; those that are returned are added to it.
 */
export class MemoryFileReader {
  readonly #disk: MemoryFileDisk
  readonly #places: MemoryFilePlaces
  readonly #policy: MemoryPolicy
  readonly #reads = new Map<string, Promise<ReadMemory>>()
  readonly #lists = new Map<string, Promise<readonly string[]>>()
  readonly #unread = new Map<string, UnreadMemoryFile>()
  readonly #skippedImports = new Map<string, UnreadMemoryFile>()

  constructor(disk: MemoryFileDisk, places: MemoryFilePlaces, policy: MemoryPolicy) {
    this.#disk = disk
    this.#places = places
    this.#policy = policy
  }

  /** Returns the files for the whole session: the user's, then those from the project's folder down to `cwd`. */
  async readRoot(seen: Set<string> = new Set()): Promise<MemoryFiles> {
    const { cwd, project, home } = this.#places
    const own = home === null ? [] : USER_MEMORY_FILES.map((name) => `${trimSlash(home)}/${name}`)
    const userRules = home === null ? [] : await this.#listRules(home)
    const user = [...own, ...userRules].map((path) => ({ path, origin: 'user' as const }))
    const folders = await Promise.all(listFolders(project, cwd).map((folder) => this.#listFolder(folder)))
    return this.#collect([...user, ...folders.flat()], seen, (globs) => globs === null)
  }

  /**
   * Returns what applies to a path that a tool touched: rules whose globs match it, and the memory files of the folders
   * between `cwd` and the path. Nothing if the path is outside the project or may not be read.
   */
  async readForPath(touched: string, seen: Set<string> = new Set()): Promise<MemoryFiles> {
    const { cwd, project, home, isPermitted } = this.#places
    const path = normalizePath(touched)
    const real = await this.#locateFolder(path)
    if (real === null || !isInFolder(real, project) || !isPermitted(path))
      return { files: [], unread: [...this.#unread.values()] }
    const whole = `${trimSlash(real)}/${path.slice(path.lastIndexOf('/') + 1)}`
    const isMatch = (globs: readonly string[] | null, folder: string): boolean =>
      globs !== null && isInFolder(whole, folder) && matchesGlobs(globs, toRelative(whole, folder))
    const root = listFolders(project, cwd)
    const below = listFolders(project, real).filter((folder) => !root.includes(folder))
    const userRules = home === null ? [] : await this.#listRules(home)
    const rules = await Promise.all(root.map((folder) => this.#listRules(folder)))
    const nested = await Promise.all(below.map((folder) => this.#listFolder(folder)))
    const candidates = [
      ...userRules.map((rule) => ({ path: rule, origin: 'user' as const, folder: project })),
      ...rules.flatMap((paths, index) =>
        paths.map((rule) => ({ path: rule, origin: 'project' as const, folder: root[index] ?? project })),
      ),
      ...nested.flat(),
    ]
    const isNested = (folder: string): boolean => !root.includes(folder)
    return this.#collect(candidates, seen, (globs, folder) =>
      globs === null ? isNested(folder) : isMatch(globs, folder),
    )
  }

  /** Reads a file again that the context shows. Null if it no longer exists. */
  async readAgain(path: string): Promise<LoadedMemoryFile | UnreadMemoryFile | null> {
    const { home } = this.#places
    const isUsers = home !== null && isInFolder(path, home) && !isInFolder(path, this.#places.project)
    const read = await this.#read(path, isUsers ? 'user' : 'project')
    return read === null || 'why' in read ? read : { ...read.file, importedBy: null }
  }

  /** Returns the possible memory files and rules of one folder. They need not exist. */
  async #listFolder(folder: string): Promise<readonly Candidate[]> {
    const names = this.#policy.names.map((name) => `${trimSlash(folder)}/${name}`)
    const paths = [...names, ...(await this.#listRules(folder))]
    return paths.map((path) => ({ path, origin: 'project', folder }))
  }

  async #listRules(folder: string): Promise<readonly string[]> {
    const found = this.#policy.rules.map(async (pattern) => {
      const cut = pattern.lastIndexOf('/')
      const rulesFolder = normalizePath(cut === -1 ? '.' : pattern.slice(0, cut), folder)
      const names = await this.#list(rulesFolder)
      return names
        .filter((name) => matchesGlobs([pattern.slice(cut + 1)], name))
        .sort()
        .slice(0, MAX_RULES_PER_FOLDER)
        .map((name) => `${rulesFolder}/${name}`)
    })
    return (await Promise.all(found)).flat()
  }

  #list(folder: string): Promise<readonly string[]> {
    const known = this.#lists.get(folder)
    if (known !== undefined) return known
    const names = this.#disk.list(folder).catch((error: unknown) => {
      this.#unread.set(folder, { path: folder, why: describe(error) })
      return []
    })
    this.#lists.set(folder, names)
    return names
  }

  /** Reads those candidates that apply, and their imports. */
  async #collect(
    candidates: readonly Candidate[],
    seen: Set<string>,
    applies: (globs: readonly string[] | null, folder: string) => boolean,
  ): Promise<MemoryFiles> {
    const files: LoadedMemoryFile[] = []
    const reads = await Promise.all(candidates.map(({ path, origin }) => this.#read(path, origin)))
    for (const [index, read] of reads.entries()) {
      const folder = candidates[index]?.folder ?? ''
      if (read === null || 'why' in read || !applies(read.globs, folder)) continue
      await this.#add(read, null, { files, seen, hops: 0 })
    }
    const skippedImports = [...this.#skippedImports.values()]
    return { files, unread: [...this.#unread.values()], skippedImports }
  }

  async #add(read: FoundMemory, importedBy: string | null, into: Collecting): Promise<void> {
    const { file, imports, globs } = read
    const matched = globs === null || importedBy !== null ? {} : { isGlobMatch: true }
    // A copy under another name for the same folder, such as AGENTS.md beside CLAUDE.md, adds nothing. In `.claude`
    // only a file without imports counts as a copy, because imports are relative to the folder of the file.
    const folder = folderOf(file.path)
    const copy = `${imports.length === 0 ? folder.replace(/\/\.claude$/, '') : folder}\n${file.text}`
    const isSeen = into.seen.has(file.fileId) || into.seen.has(copy)
    into.seen.add(file.fileId).add(copy)
    if (isSeen || into.files.length >= MAX_FILES) return
    if (file.text.trim() !== '') into.files.push({ ...file, importedBy, ...matched })
    if (into.hops >= this.#policy.importHops) return
    const isFollowed = file.origin === 'user' || this.#places.followsImports
    for (const named of imports) {
      const path = this.#resolveImport(named, file.path)
      if (path === null) continue
      const imported = isFollowed ? await this.#read(path, file.origin) : null
      if (imported === null) this.#noteSkipped(named, path, { importer: file.path, isFollowed })
      else if (!('why' in imported)) await this.#add(imported, file.path, { ...into, hops: into.hops + 1 })
    }
  }

  /** Records an import that was not read, if it looks like a file. `@ada` and `@types/node` are more often names. */
  #noteSkipped(
    named: string,
    path: string,
    { importer, isFollowed }: { readonly importer: string; readonly isFollowed: boolean },
  ): void {
    if (!/^(?:\.{1,2}\/|~\/|\/)|[^/.]\.\w{1,8}$/.test(named) || this.#isExcluded(path)) return
    const why = isFollowed
      ? `${importer} imports it, and there is no such file`
      : `${importer} imports it, and the folder is not trusted`
    this.#skippedImports.set(path, { path, why })
  }

  #resolveImport(named: string, importer: string): string | null {
    const { home } = this.#places
    if (!named.startsWith('~/')) return normalizePath(named, folderOf(importer))
    return home === null ? null : normalizePath(named.slice(2), home)
  }

  /** Reads one file, once. Null if it does not exist or is excluded; a reason if it cannot or must not be read. */
  #read(path: string, origin: Origin): Promise<ReadMemory> {
    const key = `${origin}:${path}`
    const known = this.#reads.get(key)
    if (known !== undefined) return known
    const read = this.#readFromDisk(path, origin).catch((error: unknown) => ({ path, why: describe(error) }))
    this.#reads.set(
      key,
      read.then((found) => {
        if (found !== null && 'why' in found) this.#unread.set(path, found)
        return found
      }),
    )
    return read
  }

  async #readFromDisk(path: string, origin: Origin): Promise<ReadMemory> {
    const { isPermitted } = this.#places
    const real = await this.#disk.locate(path)
    if (real === null || this.#isExcluded(path) || this.#isExcluded(real)) return null
    // The path is shown above the text, so a reminder tag in it could end the reminder as well.
    if (defuseReminderTags(path) !== path) return { path, why: 'its path contains a reminder tag' }
    if (origin === 'project' && !(isPermitted(path) && isPermitted(real)))
      return { path, why: 'it is outside what may be read' }
    const read = await this.#disk.read(real, MAX_BYTES)
    if (!read.ok) return { path, why: read.why }
    const isRule = this.#policy.rules.some((pattern) => matchesPathEnding(path, pattern))
    const rule: RuleText = isRule
      ? await this.#disk.parseRule(read.text)
      : { ok: true, text: read.text, globs: null }
    if (!rule.ok) return { path, why: rule.why }
    const { text, globs } = rule
    const cut = read.isWhole ? '' : `\n[cut: the file has ${read.bytes} bytes; read ${path} for the rest]`
    const fileId = read.fileId ?? read.realPath
    const file = { path, text: `${defuseReminderTags(text)}${cut}`, fileId, origin, importedBy: null }
    return { file, globs, imports: findMemoryImports(text) }
  }

  #isExcluded(path: string): boolean {
    const { excludes, project } = this.#places
    if (excludes.length === 0) return false
    const inside = isInFolder(path, project) && matchesGlobs(excludes, toRelative(path, project))
    return inside || matchesGlobs(excludes.filter(isAbsoluteGlob), path)
  }

  /** Returns the folder of a path without links; if it does not exist, the nearest existing folder above it. */
  async #locateFolder(path: string): Promise<string | null> {
    for (let folder = folderOf(path); ; folder = folderOf(folder)) {
      const real = await this.#disk.locate(folder).catch(() => null)
      if (real !== null || folder === '/' || !folder.includes('/')) return real
    }
  }
}

interface Candidate {
  readonly path: string
  readonly origin: Origin
  /** The folder to which the globs of a rule are relative. */
  readonly folder?: string
}

interface FoundMemory {
  readonly file: LoadedMemoryFile
  /** The globs of a rule that applies to some paths only; null if the file applies to its whole folder. */
  readonly globs: readonly string[] | null
  readonly imports: readonly string[]
}

type ReadMemory = FoundMemory | UnreadMemoryFile | null

interface Collecting {
  readonly files: LoadedMemoryFile[]
  readonly seen: Set<string>
  /** Length of the chain of imports that led to this file. */
  readonly hops: number
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

// Functions for paths. All paths are absolute, with `/` as separator and without `..`.

function trimSlash(folder: string): string {
  return folder.endsWith('/') ? folder.slice(0, -1) : folder
}

function folderOf(path: string): string {
  const cut = path.lastIndexOf('/')
  return cut <= 0 ? '/' : path.slice(0, cut)
}

/** True for the folder itself and for paths in it. Compares texts, so both paths must be normalized. */
export function isInFolder(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${trimSlash(folder)}/`)
}

function toRelative(path: string, folder: string): string {
  return path.slice(trimSlash(folder).length + 1)
}

function isAbsoluteGlob(glob: string): boolean {
  return /^!?(?:\/|\*\*)/.test(glob)
}

/** Lists the folders from `top` down to `bottom`, both included; only `bottom` if it is not within `top`. */
function listFolders(top: string, bottom: string): readonly string[] {
  if (!isInFolder(bottom, top)) return [bottom]
  const folders = [top]
  for (const name of toRelative(bottom, top).split('/'))
    if (name !== '') folders.push(`${trimSlash(folders.at(-1) ?? '')}/${name}`)
  return folders
}

// The text of memory files.

/** Lists the paths that a memory file imports, as in `See @docs/style.md`, each once and at most 100. Text in code is ignored. */
export function findMemoryImports(text: string): readonly string[] {
  const found: string[] = []
  let fence = ''
  for (const line of text.split('\n')) {
    const mark = /^\s{0,3}(```|~~~)/.exec(line)?.[1] ?? ''
    if (fence === '' && mark !== '') fence = mark
    else if (fence !== '') fence = mark === fence ? '' : fence
    else
      for (const [, path = ''] of line.replace(/``[^`]*``|`[^`]*`/g, ' ').matchAll(/(?:^|\s)@([^\s@]\S*)/g))
        found.push(path.replace(/[.,;:!?)"'\]]+$/, ''))
  }
  return [...new Set(found.filter((path) => path !== ''))].slice(0, MAX_IMPORTS_PER_FILE)
}
