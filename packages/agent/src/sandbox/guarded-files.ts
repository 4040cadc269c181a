/**
 * Guards files in the working directory against a sandboxed command. Before the command, finds the files that it must not change or read.
 * After it, renames guarded files that it has created, because a file that does not exist cannot be mounted read-only.
 */
import { existsSync, readlinkSync } from 'node:fs'
import { readdir, realpath, rename } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

/** Which files of the working directory are guarded. Paths are absolute. */
export interface GuardRules {
  /** Returns true if a file or folder must not be changed or created. */
  readonly isReadOnly: (path: string) => boolean
  /** Returns true if a file or folder must not be read. If omitted, all may be read. */
  readonly isHidden?: (path: string) => boolean
}

/** The guarded files and folders that exist, with absolute paths. */
export interface GuardedFiles {
  readonly readOnly: readonly string[]
  readonly hidden: readonly string[]
  /** Guarded symbolic links with their targets. Links cannot be mounted, so they are compared after the command. */
  readonly links: ReadonlyMap<string, string>
}

/** Maximum entries that are searched. */
const MAX_ENTRIES = 300_000

/** Names by which Git recognizes a repository. The settings of a repository name programs that Git runs. */
const REPOSITORY_PARTS: readonly string[] = ['objects', 'refs', 'commondir']

/**
 * Searches the working directory for guarded files. Everything in a guarded folder is guarded. In `node_modules`, only the folder
 * of programs is checked. Rejects if there are more than `MAX_ENTRIES` files.
 */
export async function findGuardedFiles(folder: string, rules: GuardRules): Promise<GuardedFiles> {
  const found = { readOnly: [] as string[], hidden: [] as string[], links: new Map<string, string>() }
  const left = [folder]
  let entriesLeft = MAX_ENTRIES
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const parent = next
    const entries = await readdir(parent, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      // A folder that cannot be searched is guarded as a whole. A folder that was just removed contains nothing.
      if (error.code !== 'ENOENT' && parent !== folder) found.readOnly.push(parent)
      return []
    })
    entriesLeft -= entries.length
    if (entriesLeft < 0)
      throw new Error(`${folder} has more than ${MAX_ENTRIES} files, so that the sandbox cannot guard them.`)
    const isRepository = completesRepository(entries.map(({ name }) => name))
    for (const entry of entries) {
      const path = join(parent, entry.name)
      const isReadOnly = (isRepository && entry.name === 'HEAD') || rules.isReadOnly(path)
      const isHidden = rules.isHidden?.(path) === true
      if (isReadOnly && entry.isSymbolicLink()) found.links.set(path, readTarget(path))
      else if (isReadOnly) found.readOnly.push(path)
      if (isHidden) found.hidden.push(entry.isSymbolicLink() ? await realpath(path).catch(() => path) : path)
      if (isReadOnly || isHidden || !entry.isDirectory()) continue
      if (entry.name === 'node_modules') found.readOnly.push(...listPrograms(path, rules))
      else left.push(path)
    }
  }
  return found
}

function completesRepository(names: readonly string[]): boolean {
  return names.includes('HEAD') && REPOSITORY_PARTS.some((part) => names.includes(part))
}

/** Returns the guarded folder of programs in a folder `node_modules`. */
function listPrograms(path: string, rules: GuardRules): readonly string[] {
  const programs = join(path, '.bin')
  return rules.isReadOnly(programs) && existsSync(programs) ? [programs] : []
}

function readTarget(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Added to the name of a file that a sandboxed command has created and must not create. */
const PUT_ASIDE = '.from-sandbox'

/**
 * Renames guarded files that did not exist before, so that nothing runs or reads them under their names. Returns their original paths,
 * relative to the folder.
 */
export async function renameNewGuardedFiles(
  folder: string,
  before: GuardedFiles,
  rules: GuardRules,
): Promise<readonly string[]> {
  const after = await findGuardedFiles(folder, rules)
  const known = new Set(before.readOnly)
  const isNewLink = ([path, target]: readonly [string, string]): boolean => before.links.get(path) !== target
  const created = [
    ...after.readOnly.filter((path) => !known.has(path)),
    ...[...after.links].filter(isNewLink).map(([path]) => path),
  ]
  const moved: string[] = []
  for (const path of created) if (await putAside(path, folder)) moved.push(relative(folder, path))
  return moved
}

async function putAside(path: string, folder: string): Promise<boolean> {
  // A folder in the path may have been replaced by a link that leads elsewhere.
  const parent = await realpath(dirname(path)).catch(() => '')
  if (parent !== folder && !parent.startsWith(`${folder}${sep}`)) return false
  let target = `${path}${PUT_ASIDE}`
  for (let number = 2; existsSync(target); number += 1) target = `${path}${PUT_ASIDE}-${number}`
  return await rename(path, target).then(
    () => true,
    () => false,
  )
}
