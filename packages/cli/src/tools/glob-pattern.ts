/** Compiles glob patterns, and the patterns of .gitignore files, to regular expressions. */
import picomatch from 'picomatch'

/**
 * Compiles a glob to an expression that matches whole paths with `/` as separator. `**` stands for any folders, `*` and
 * `?` for characters of one name, `[a-z]` for a set, `{a,b}` for alternatives. Names that begin with a dot match too.
 */
export function compileGlob(pattern: string): RegExp {
  return picomatch.makeRe(toPicomatch(pattern), { dot: true, nonegate: true, strictSlashes: true })
}

/** Parentheses and bars stand for themselves, `[!a]` is a set too, and `src/**` is what is in `src`, without `src`. */
function toPicomatch(pattern: string): string {
  return pattern
    .replace(/(?<!\\)[()|]/g, '\\$&')
    .replaceAll('[!', '[^')
    .replace(/(^|\/)\*\*$/, '$1**/*')
}

/**
 * Compiles a glob that selects files. One without a slash matches names in any folder, others match the path from the
 * folder that is searched.
 */
export function compileFileGlob(pattern: string): RegExp {
  return compileGlob(pattern.includes('/') ? pattern.replace(/^\.?\//, '') : `**/${pattern}`)
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
  readonly pattern: RegExp
  /** True if the rule (`!name`) includes again what an earlier rule ignores. */
  readonly includes: boolean
  readonly onlyFolders: boolean
}

/** Parses a .gitignore file. The last rule that matches a path decides. */
export function parseIgnoreRules(text: string): readonly IgnoreRule[] {
  return text.split(/\r?\n/).flatMap((line): readonly IgnoreRule[] => {
    const rule = line.startsWith('#') ? '' : line.replace(/(?<!\\)\s+$/, '')
    const includes = rule.startsWith('!')
    const path = rule.replace(/^!/, '').replace(/\/$/, '')
    if (path === '') return []
    // A pattern with a slash counts from the folder of the file; any other matches a name at any depth.
    const anchored = path.includes('/') ? path.replace(/^\//, '') : `**/${path}`
    try {
      // Braces have no meaning in a .gitignore file.
      const pattern = compileGlob(anchored.replace(/(?<!\\)[{}]/g, '\\$&'))
      return [{ pattern, includes, onlyFolders: rule.endsWith('/') }]
    } catch {
      return []
    }
  })
}
