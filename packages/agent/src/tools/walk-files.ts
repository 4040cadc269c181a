/**
 * Walks through the files of a folder. Skips files that .gitignore files exclude, `.git` and `node_modules`. Does not follow symbolic
 * links, so that the walk ends and stays in its folder.
 */
import { type Dirent, existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { readWholeFile } from './file-content.ts'
import { decideIgnored, type IgnoreRule, parseIgnoreRules } from './glob-pattern.ts'

export interface WalkedFile {
  readonly path: string
  /** The path from the folder where the walk began, with `/` as separator. */
  readonly relativePath: string
  readonly isLink: boolean
}

/** Folders that no walk enters, unless it begins in them. */
export const SKIPPED_FOLDERS: readonly string[] = ['.git', '.hg', '.svn', 'node_modules']

/** The rules of one .gitignore file. */
interface IgnoreFile {
  readonly folder: string
  readonly rules: readonly IgnoreRule[]
}

/** Yields the files and links below a folder, each folder sorted by name. A folder that cannot be read is skipped. */
export async function* walkFiles(root: string): AsyncGenerator<WalkedFile> {
  const outer = await readOuterIgnoreFiles(root)
  const above = [...outer.map(({ folder }) => folder), root]
  // A search that begins in an ignored folder is intended, so ignore rules from outside are not applied.
  const ignoreFiles = above.some((folder) => isIgnored(folder, true, outer)) ? [] : outer
  yield* walkFolder(root, { root, ignoreFiles })
}

interface Walk {
  readonly root: string
  readonly ignoreFiles: readonly IgnoreFile[]
}

async function* walkFolder(folder: string, walk: Walk): AsyncGenerator<WalkedFile> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((): Dirent[] => [])
  const hasRules = entries.some(({ name }) => name === '.gitignore')
  const ignoreFiles = hasRules ? [...walk.ignoreFiles, await readIgnoreFile(folder)] : walk.ignoreFiles
  entries.sort((one, other) => (one.name < other.name ? -1 : 1))
  for (const entry of entries) {
    const path = join(folder, entry.name)
    const isFolder = entry.isDirectory()
    if (isFolder && SKIPPED_FOLDERS.includes(entry.name)) continue
    if (isIgnored(path, isFolder, ignoreFiles)) continue
    if (isFolder) yield* walkFolder(path, { ...walk, ignoreFiles })
    else if (entry.isFile() || entry.isSymbolicLink())
      yield { path, relativePath: toSlashes(relative(walk.root, path)), isLink: entry.isSymbolicLink() }
  }
}

/** Reads the .gitignore files of the folders above, up to the root of the repository. */
async function readOuterIgnoreFiles(folder: string): Promise<readonly IgnoreFile[]> {
  const folders: string[] = []
  let current = folder
  while (!existsSync(join(current, '.git'))) {
    const parent = dirname(current)
    if (parent === current) return []
    folders.unshift(parent)
    current = parent
  }
  return await Promise.all(folders.map(readIgnoreFile))
}

async function readIgnoreFile(folder: string): Promise<IgnoreFile> {
  const file = await readWholeFile(join(folder, '.gitignore')).catch(() => null)
  return { folder, rules: parseIgnoreRules(file?.bytes.toString('utf8') ?? '') }
}

/** Checks a path against the ignore rules of the folders above it. Inner folders and later rules have precedence. */
function isIgnored(path: string, isFolder: boolean, ignoreFiles: readonly IgnoreFile[]): boolean {
  return ignoreFiles.reduce<boolean>((ignoredSoFar, { folder, rules }) => {
    const names = relative(folder, path).split(sep)
    return decideIgnored(rules, names, isFolder) ?? ignoredSoFar
  }, false)
}

function toSlashes(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/')
}
