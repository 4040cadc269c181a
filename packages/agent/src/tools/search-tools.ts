/** The tools Grep and Glob. */
import { lstat, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { formatInteger } from '@tidemark/terminal/render/format-numbers'
import { splitGlob, toFileGlob } from './glob-pattern.ts'
import { runSearchInThread } from './search-thread.ts'
import { type SearchQuery, searchFileTexts } from './text-search.ts'
import { resolveRealPath, resolveToolPath, toShownPath } from './tool-access.ts'
import { type AgentTool, cutText, defineTool, ToolError } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'
import type { WalkedFile } from './walk-files.ts'

interface GrepInput {
  readonly pattern: string
  readonly path?: string
  readonly glob?: string
  readonly output_mode?: SearchQuery['mode']
  readonly '-i'?: boolean
  readonly '-n'?: boolean
  readonly '-A'?: number
  readonly '-B'?: number
  readonly '-C'?: number
  readonly head_limit?: number
  readonly multiline?: boolean
  readonly type?: string
}

const DEFAULT_HEAD_LIMIT = 250
const MAX_RESULT_CHARACTERS = 20_000
const SEARCH_TIMEOUT_MS = 20_000

const GREP_FIELDS = {
  pattern: { type: 'string', description: 'The regular expression.' },
  path: { type: 'string', description: 'The file or folder to search. Default: the working directory.' },
  glob: {
    type: 'string',
    description: 'Search only files that match, such as "*.ts", "src/**/*.{js,ts}" or "!*.test.ts".',
  },
  output_mode: {
    type: 'string',
    enum: ['content', 'files_with_matches', 'count'],
    description:
      'content: the matching lines. files_with_matches (default): the files, newest first. count: matching lines per file.',
  },
  '-i': { type: 'boolean', description: 'Ignore upper and lower case.' },
  '-n': { type: 'boolean', description: 'Show line numbers in content mode. Default: true.' },
  '-A': { type: 'integer', description: 'Lines to show after each match in content mode.' },
  '-B': { type: 'integer', description: 'Lines to show before each match in content mode.' },
  '-C': { type: 'integer', description: 'Lines to show before and after each match in content mode.' },
  head_limit: {
    type: 'integer',
    description: `Show only the first so many lines. Default: ${DEFAULT_HEAD_LIMIT}.`,
  },
  multiline: {
    type: 'boolean',
    description: 'Let a match span lines; "." then matches line ends too. Default: false.',
  },
  type: {
    type: 'string',
    description: 'Search only files of this kind, such as js, ts, py, rust, go or java.',
  },
}

export function createSearchTools(environment: ToolEnvironment): Readonly<Record<string, AgentTool>> {
  return {
    Grep: defineTool<GrepInput>({
      description:
        'Searches the content of files with a regular expression. Leaves out what .gitignore excludes, node_modules and binary files, unless path lies in an ignored folder. Several calls can run at once.',
      fields: GREP_FIELDS,
      required: ['pattern'],
      parallel: true,
      run: (input, { signal }) => grep(input, environment, signal),
    }),
    Glob: defineTool<{ pattern: string; path?: string }>({
      description: `Lists files whose path matches a pattern, newest first, at most ${MAX_LISTED_FILES}. "*.ts" finds names in any folder, "src/**/*.{js,ts}" paths from the folder searched. Leaves out what .gitignore excludes and node_modules, unless path or the beginning of the pattern names an ignored folder. Several calls can run at once.`,
      fields: {
        pattern: { type: 'string', description: 'The pattern: ** for any folders, *, ?, [a-z], {a,b}.' },
        path: { type: 'string', description: 'The folder to search. Default: the working directory.' },
      },
      required: ['pattern'],
      parallel: true,
      run: (input, { signal }) => listMatchingFiles(input, environment, signal),
    }),
  }
}

async function grep(input: GrepInput, environment: ToolEnvironment, signal: AbortSignal): Promise<string> {
  const { cwd, env, now, isHidden } = environment
  const root = resolveRealPath(resolveToolPath(input.path ?? '.', cwd))
  const isFolder = await checkIsFolder(root)
  const mode = input.output_mode ?? 'files_with_matches'
  const context = mode === 'content' ? (input['-C'] ?? 0) : 0
  const query: SearchQuery = {
    ...{ pattern: input.pattern, root, isFolder, mode, signal, now },
    glob: input.glob ?? null,
    type: input.type ?? null,
    ignoreCase: input['-i'] === true,
    multiline: input.multiline === true,
    lineNumbers: input['-n'] !== false,
    linesBefore: mode === 'content' ? (input['-B'] ?? context) : 0,
    linesAfter: mode === 'content' ? (input['-A'] ?? context) : 0,
    deadline: now() + SEARCH_TIMEOUT_MS,
    isHidden: isHidden === undefined ? null : (path) => isHidden('Grep', path, root),
  }
  const { lines, isCut } = await searchFileTexts(query, env)
  // ripgrep and our own search return paths relative to the searched folder, such as `./a/b.ts`.
  const shownRoot = toShownPath(isFolder ? root : join(root, '..'), resolveRealPath(cwd))
  const shown = lines.map((line) => line.replace(/^\.\//, shownRoot === '.' ? '' : `${shownRoot}/`))
  const sorted = mode === 'files_with_matches' ? await sortNewestFirst(shown, cwd) : shown
  return limitLines(sorted, { limit: input.head_limit ?? DEFAULT_HEAD_LIMIT, isCut })
}

async function checkIsFolder(path: string): Promise<boolean> {
  try {
    const facts = await stat(path)
    if (facts.isFile() || facts.isDirectory()) return facts.isDirectory()
  } catch {
    throw new ToolError(`There is no file or folder ${path}.`)
  }
  throw new ToolError(`${path} is a device, a pipe or a socket, which cannot be searched.`)
}

interface ListLimits {
  readonly limit: number
  readonly isCut: boolean
}

/** Joins the first lines, and adds how many are left out. */
function limitLines(lines: readonly string[], { limit, isCut }: ListLimits): string {
  if (lines.length === 0)
    return isCut ? 'No matches found so far; the search took too long. Narrow it.' : 'No matches found.'
  const wanted = limit > 0 ? lines.slice(0, limit) : lines
  const text = cutText(wanted.join('\n'), MAX_RESULT_CHARACTERS)
  // A line that would be cut by the limit of characters is left out, unless it is the only one.
  const whole =
    text.length < wanted.join('\n').length ? text.slice(0, text.lastIndexOf('\n') + 1) || text : text
  const shown = whole.trimEnd().split('\n').length
  if (shown >= lines.length && !isCut) return whole
  const total = isCut ? `more than ${formatInteger(lines.length)}` : formatInteger(lines.length)
  return `${whole.trimEnd()}\n\n[The first ${formatInteger(shown)} of ${total} lines. Narrow the search to see the others.]`
}

/** Sorts paths by modification time. Files that no longer exist come last. */
async function sortNewestFirst(paths: readonly string[], cwd: string): Promise<readonly string[]> {
  const timed = await Promise.all(
    paths.map(async (path) => {
      const facts = await lstat(resolveToolPath(path, cwd)).catch(() => null)
      return { path, modifiedMs: facts?.mtimeMs ?? 0 }
    }),
  )
  return timed.sort((one, other) => other.modifiedMs - one.modifiedMs).map(({ path }) => path)
}

const MAX_LISTED_FILES = 100
/** Maximum files that are sorted by time. */
const MAX_FOUND_FILES = 50_000

async function listMatchingFiles(
  { pattern, path }: { readonly pattern: string; readonly path?: string },
  { cwd, now, isHidden }: ToolEnvironment,
  signal: AbortSignal,
): Promise<string> {
  const { folder, rest } = splitGlob(pattern)
  const base = resolveToolPath(path ?? '.', cwd)
  const root = resolveRealPath(folder === '' ? base : resolveToolPath(folder, base))
  if (!(await checkIsFolder(root))) throw new ToolError(`${root} is a file, not a folder.`)
  const glob = folder === '' ? toFileGlob(rest) : rest
  const realCwd = resolveRealPath(cwd)
  const limits = { signal, now, deadline: now() + SEARCH_TIMEOUT_MS }
  const found: string[] = []
  const { isCut } = await runSearchInThread<WalkedFile>({ kind: 'list', root, glob }, limits, (file) => {
    if (isHidden?.('Glob', file.path, root) !== true) found.push(toShownPath(file.path, realCwd))
    return found.length < MAX_FOUND_FILES
  })
  return limitLines(await sortNewestFirst(found, cwd), { limit: MAX_LISTED_FILES, isCut })
}
