/** Reads the configuration of Git from its files, as far as that is needed to know what it names. Nothing is run. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

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
  const isPointer = statSync(path, { throwIfNoEntry: false })?.isFile() === true
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
 * Returns the paths of the repositories that the index of a repository holds: Git looks into them, whatever else names
 * them. An index that cannot be read has none, and Git does not read it either.
 */
export function listLinkedRepositories(gitFolder: string): readonly string[] {
  const path = join(gitFolder, 'index')
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true || found.size > 100_000_000) return []
  const version = `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`
  const known = knownLinks.get(path)
  if (known?.version === version) return known.links
  const links = readIndexLinks(readFileSync(path))
  knownLinks.set(path, { version, links })
  return links
}

/** Reads the entries of an index: each has 62 bytes, or 64 with further flags, and a name that ends with a zero. */
function readIndexLinks(bytes: Buffer): readonly string[] {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return []
  const [version, count] = [bytes.readUInt32BE(4), bytes.readUInt32BE(8)]
  const links: string[] = []
  let name = ''
  for (let at = 12, entry = 0; entry < count && at + 62 < bytes.length; entry += 1) {
    const isExtended = (bytes.readUInt16BE(at + 60) & 0x4000) !== 0
    let start = at + (isExtended ? 64 : 62)
    let dropped = version === 4 ? 0 : name.length
    if (version === 4) {
      // The name begins with that of the entry before, without so many characters.
      let byte = bytes[start] ?? 0
      for (dropped = byte & 0x7f; (byte & 0x80) !== 0; dropped = ((dropped + 1) << 7) | (byte & 0x7f))
        byte = bytes[++start] ?? 0
      start += 1
    }
    const end = bytes.indexOf(0, start)
    if (end === -1) break
    name = name.slice(0, name.length - dropped) + bytes.toString('latin1', start, end)
    if (bytes.readUInt32BE(at + 24) === LINKED_COMMIT)
      links.push(Buffer.from(name, 'latin1').toString('utf8'))
    // Up to version 3, entries are padded to a multiple of eight.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7)
  }
  return links
}
