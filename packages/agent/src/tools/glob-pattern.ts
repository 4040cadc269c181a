/** Globs of the tools Glob and Grep, and the rules of .gitignore files. */
import { compileGlob, compileIgnorePattern, type Glob } from 'tidemark/tools'
import { ToolError } from './tool-definition.ts'

type PathFilter = (path: string) => boolean

/** Compiles a glob for paths with `/` as separator. Throws a `ToolError` if it is too long or has too many alternatives. */
export function compilePathFilter(pattern: string): PathFilter {
  const glob = compileGlob(pattern)
  if (glob === null) throw new ToolError('The glob is too long, or its braces list too many alternatives.')
  return (path) => glob(path.split('/'))
}

/** Returns the glob for paths relative to the searched folder. A pattern without a slash matches names in any folder. */
export function toFileGlob(pattern: string): string {
  return pattern.includes('/') ? pattern : `**/${pattern}`
}

/**
 * Separates the folders at the beginning of a glob that are plain names: `src/a/*.ts` → `src/a` and `*.ts`. Without
 * such folders, `folder` is empty.
 */
export function splitGlob(pattern: string): { readonly folder: string; readonly rest: string } {
  const parts = pattern.split('/')
  const special = parts.findIndex((part) => /[*?[\]{}\\]/.test(part))
  const count = special === -1 ? parts.length - 1 : special
  const folder = parts.slice(0, count).join('/')
  return { folder: count > 0 && folder === '' ? '/' : folder, rest: parts.slice(count).join('/') }
}

export interface IgnoreRule {
  /** Matches paths relative to the folder of the .gitignore file. */
  readonly pattern: Glob
  /** True if the rule (`!name`) includes again what an earlier rule ignores. */
  readonly includes: boolean
  readonly onlyFolders: boolean
}

/** Parses a .gitignore file as Git does. The last rule that matches a path decides. */
export function parseIgnoreRules(text: string): readonly IgnoreRule[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n|\r$/)
  return lines.flatMap((line): readonly IgnoreRule[] => {
    const rule = line.startsWith('#') ? '' : trimSpaces(line)
    const includes = rule.startsWith('!')
    const onlyFolders = rule.endsWith('/')
    const pattern = compileIgnorePattern(rule.slice(includes ? 1 : 0, onlyFolders ? -1 : undefined))
    return pattern === null ? [] : [{ pattern, includes, onlyFolders }]
  })
}

/** Removes the spaces at the end of a line, except one after a backslash. */
function trimSpaces(line: string): string {
  let end = 0
  for (let at = 0; at < line.length; at += 1) {
    const isEscaped = line[at] === '\\'
    if (isEscaped) at += 1
    if (isEscaped || line[at] !== ' ') end = at + 1
  }
  return line.slice(0, end)
}

/**
 * Returns true if rules ignore a path, and false if they include it again; null if none matches. `names`: the parts of the path.
 */
export function decideIgnored(
  rules: readonly IgnoreRule[],
  names: readonly string[],
  isFolder: boolean,
): boolean | null {
  const rule = rules.findLast(({ pattern, onlyFolders }) => (isFolder || !onlyFolders) && pattern(names))
  return rule === undefined ? null : !rule.includes
}
