/**
 * A copy of the repository to break, so that the work tree is never touched. What is installed is linked, not
 * copied; links to the workspace's own packages are made anew, so that they lead into the copy.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { filesUnder, packageFolders } from '../architecture/tree.ts'

export function copyRepository(root: string): string {
  const real = realpathSync(root)
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-mutant-')))
  for (const path of filesUnder(real)) cpSync(join(real, path), join(copy, path))
  for (const folder of ['', ...packageFolders(real).map((name) => join('packages', name))]) {
    linkInstalled(real, copy, join(folder, 'node_modules'))
  }
  return copy
}

function linkInstalled(root: string, copy: string, folder: string): void {
  if (!existsSync(join(root, folder))) return
  mkdirSync(join(copy, folder), { recursive: true })
  for (const name of readdirSync(join(root, folder))) {
    const path = join(folder, name)
    if (name.startsWith('@')) linkInstalled(root, copy, path)
    else if (isPackage(name)) link(target(root, copy, path), join(copy, path))
  }
}

/** Caches and the like begin with a dot; every copy makes its own. */
function isPackage(name: string): boolean {
  return !name.startsWith('.')
}

/** Where the link in the copy leads: into the copy for what lives in the repository, to the original for the rest. */
function target(root: string, copy: string, path: string): string {
  const original = realpathSync(join(root, path))
  const inside = relative(root, original)
  const own =
    lstatSync(join(root, path)).isSymbolicLink() &&
    !inside.startsWith('..') &&
    !inside.includes(`node_modules${sep}`)
  return own ? join(copy, inside) : original
}

function link(to: string, at: string): void {
  mkdirSync(dirname(at), { recursive: true })
  symlinkSync(to, at, 'junction')
}
