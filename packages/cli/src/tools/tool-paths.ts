/** Resolves the paths in tool inputs. The tools and the permission rules use the same functions, so they agree. */
import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'

/** Returns the absolute path. `~` is the home directory; other relative paths start from `cwd`. */
export function resolveToolPath(path: string, cwd: string): string {
  if (path === '~' || path.startsWith('~/')) return resolve(homedir(), path.slice(2))
  return resolve(cwd, path)
}

const MAX_LINKS = 40
/** No file of Linux or macOS has a longer path. */
export const MAX_PATH_CHARACTERS = 4_096

/**
 * Returns the place that an absolute path leads to, without symbolic links, even if nothing exists there yet: links in
 * the folders above are followed, and so is a link whose target is missing, because writing to it creates the target.
 * A path that is too long for any file is returned as it is.
 */
export function resolveRealPath(path: string, linksLeft: number = MAX_LINKS): string {
  if (path.length > MAX_PATH_CHARACTERS) return path
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    if (parent === path) return path
    const target = linksLeft > 0 ? readLink(path) : null
    if (target !== null)
      return resolveRealPath(resolve(resolveRealPath(parent, linksLeft), target), linksLeft - 1)
    return join(resolveRealPath(parent, linksLeft), basename(path))
  }
}

function readLink(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null
  } catch {
    return null
  }
}

/** Returns true if `path` is `folder` or lies in it. Both must be absolute and without symbolic links. */
export function isPathWithin(path: string, folder: string): boolean {
  const between = relative(folder, path)
  return between === '' || (between !== '..' && !between.startsWith(`..${sep}`) && !isAbsolute(between))
}

/** Returns the path as shown to the model: relative if it lies in `cwd`, else absolute. */
export function toShownPath(path: string, cwd: string): string {
  return isPathWithin(path, cwd) ? relative(cwd, path) || '.' : path
}
