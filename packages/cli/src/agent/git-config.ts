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
const VARIABLE = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?)|[#;].*)?\s*$/

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
      const [, name, value = 'true'] = VARIABLE.exec(rest) ?? []
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
  const [bare = ''] = text.includes('"') ? [text] : text.split(/\s*[#;]/)
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
  return ['HEAD', 'objects', 'refs'].every((name) => existsSync(join(folder, name)))
}

/** Returns the folder of Git and, for a linked work tree, the one that it shares. */
export function listGitFolders(path: string): readonly string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return [path]
  const pointer = (readText(path) ?? '').replace(/^gitdir: /, '').trim()
  const linked = resolve(dirname(path), pointer)
  const shared = readText(join(linked, 'commondir'))
  return shared === null ? [linked] : [linked, resolve(linked, shared.trim())]
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
