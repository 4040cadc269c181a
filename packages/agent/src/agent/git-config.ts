/**
 * Reads Git's files as far as needed to find what they name: configuration with its includes, Git folders, and the repositories in an
 * index. Runs nothing.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isFile } from '../tools/tool-access.ts'

/** A variable in a Git configuration file. */
export interface GitConfigEntry {
  /** Section and name in lower case, with the subsection between them: `remote.origin.url`. */
  readonly key: string
  readonly section: string
  readonly name: string
  readonly value: string
}

const HEADER = /^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/
const VARIABLE = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*)|[#;].*)?$/

/** Parses configuration text. A line that cannot be read becomes an entry without section and name. */
function readGitConfig(text: string): readonly GitConfigEntry[] {
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

/** Returns the paths of a Git folder's own configuration files, which need not exist. */
export function listGitConfigPaths(gitFolder: string): readonly string[] {
  return [join(gitFolder, 'config'), join(gitFolder, 'config.worktree')]
}

interface ConfigFile {
  readonly file: string
  /** Null if the file cannot be read, or if it exceeds the limit of what is read. */
  readonly entries: readonly GitConfigEntry[] | null
}

/** Maximum characters of configuration that are read. */
const MOST_CHARACTERS = 1_000_000

/** Reads configuration files and those that they include. `home`: null if includes from the home folder are not followed. */
export function* readGitConfigFiles(given: readonly string[], home: string | null): Generator<ConfigFile> {
  const files = new Set(given)
  let characters = 0
  // Included files are added to the list during this loop.
  for (const file of files) {
    const text = readTextIfAny(file)
    characters += 1_000 + (text ?? '').length
    const isRead = characters <= MOST_CHARACTERS && (text !== null || !existsSync(file))
    const entries = isRead ? readGitConfig(text ?? '') : null
    yield { file, entries }
    if (characters > MOST_CHARACTERS) return
    for (const { section, name, value } of entries ?? []) {
      const isInclude = section.startsWith('include') && name === 'path'
      const included = isInclude ? resolveGitConfigPath(value, dirname(file), home) : null
      if (included !== null) files.add(included)
    }
  }
}

/** Returns the path that a value names; null for one that begins with `~/` if `home` is null, and for `~user` and `%(prefix)`. */
export function resolveGitConfigPath(value: string, base: string, home: string | null): string | null {
  if (!/^[~%]/.test(value)) return resolve(base, value)
  return home !== null && value.startsWith('~/') ? join(home, value.slice(2)) : null
}

/** Returns the nearest folder, upwards, that is or contains a repository, as Git searches for one; null if there is none. */
export function findRepository(folder: string): string | null {
  for (let each = folder; ; each = dirname(each)) {
    if (existsSync(join(each, '.git')) || isGitFolder(each)) return each
    if (each === dirname(each)) return null
  }
}

/** Returns true if the folder itself is a Git folder, as `.git` or a bare repository is. */
export function isGitFolder(folder: string): boolean {
  const has = (name: string): boolean => existsSync(join(folder, name))
  return has('HEAD') && (has('commondir') || (has('objects') && has('refs')))
}

/**
 * Returns the Git folder that a path is, or points to as a `.git` file does, and the one whose configuration it shares, if any.
 */
export function listGitFolders(path: string): readonly string[] {
  const isPointer = isFile(path)
  const pointer = isPointer ? (readTextIfAny(path) ?? '').replace(/^gitdir: /, '').trim() : ''
  const own = isPointer ? resolve(dirname(path), pointer) : path
  const shared = readTextIfAny(join(own, 'commondir'))
  return shared === null ? [own] : [own, resolve(own, shared.trim())]
}

const MOST_CONFIG_BYTES = 1_000_000

/** Returns the text of a file; null if there is none that can be read, or if it is too large. */
export function readTextIfAny(path: string): string | null {
  try {
    const found = statSync(path)
    return found.isFile() && found.size <= MOST_CONFIG_BYTES ? readFileSync(path, 'utf8') : null
  } catch {
    return null
  }
}

/** File mode of an index entry that is a commit of another repository. */
const LINKED_COMMIT = 0o160000
const knownLinks = new Map<string, { readonly version: string; readonly links: readonly string[] }>()

/**
 * Returns the paths, relative to the work tree, of the submodules in the index of a repository, or in an index that it shares.
 * Git looks into these, even if nothing else names them. Empty for an unreadable index, because Git cannot read it either. Cached
 * by file version.
 */
export function listSubmodulePaths(gitFolder: string): readonly string[] {
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

/** Returns how much of the previous entry's name an entry of version 4 repeats. `before`: null for other versions. */
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
