/** Searches files for a regular expression, with ripgrep if it is installed, else by reading the files. Both return the same lines. */
import { spawn } from 'node:child_process'
import { basename, dirname } from 'node:path'
import { findProgram } from 'tidemark/tools'
import { type FileMatches, MAX_MATCH_LINE_CHARACTERS, type TextSearchTask } from './search-task.ts'
import { runSearchInThread, type SearchLimits } from './search-thread.ts'
import { cutText, ToolError } from './tool-definition.ts'
import { SKIPPED_FOLDERS } from './walk-files.ts'

/** A search of file contents with its limits. */
export interface SearchQuery extends Omit<TextSearchTask, 'kind'>, SearchLimits {
  /** Returns true if matches in a file must not be shown. Null: all may be shown. */
  readonly isHidden: ((path: string) => boolean) | null
}

interface SearchResult {
  /** Lines as ripgrep prints them: `./path:12:text`, `./path-13-context`, `./path` or `./path:count`, and `--`. */
  readonly lines: readonly string[]
  /** True if the search ended early, so that there may be more matches. */
  readonly isCut: boolean
}

/** A search ends early when it has collected more characters than this. */
const MAX_COLLECTED = 1_000_000

/** Runs a search. Throws a `ToolError` if the expression or another part of the query is invalid. */
export async function searchFileTexts(query: SearchQuery, env: NodeJS.ProcessEnv): Promise<SearchResult> {
  // Options of ripgrep cannot express which files are hidden.
  const ripgrep = query.isHidden === null ? findProgram('rg', env) : null
  if (ripgrep === null) return await searchInThread(query)
  const found = await searchByRipgrep(ripgrep, query, env)
  // ripgrep waits forever if an ignore file is a pipe; our own search reads only regular files.
  return found.isCut && found.lines.length === 0 ? await searchInThread(query) : found
}

function listRipgrepArguments(query: SearchQuery): readonly string[] {
  const { mode, linesBefore, linesAfter } = query
  const content = [
    query.lineNumbers ? '--line-number' : '--no-line-number',
    `--before-context=${linesBefore}`,
    `--after-context=${linesAfter}`,
    `--max-columns=${MAX_MATCH_LINE_CHARACTERS}`,
    '--max-columns-preview',
  ]
  return [
    ...['--no-config', '--color=never', '--no-heading', '--with-filename', '--hidden', '--no-require-git'],
    ...(query.isFolder ? ['--sort=path'] : []),
    ...(mode === 'content' ? content : [mode === 'count' ? '--count' : '--files-with-matches']),
    ...(query.ignoreCase ? ['--ignore-case'] : []),
    ...(query.multiline ? ['--multiline', '--multiline-dotall'] : []),
    ...(query.type === null ? [] : [`--type=${query.type}`]),
    ...(query.glob === null ? [] : [`--glob=${query.glob}`]),
    ...SKIPPED_FOLDERS.map((name) => `--glob=!${name}`),
    ...['--', query.pattern, query.isFolder ? './' : `./${basename(query.root)}`],
  ]
}

/** Runs ripgrep in the searched folder, without a shell, for at most half of the time limit. */
async function searchByRipgrep(
  program: string,
  query: SearchQuery,
  env: NodeJS.ProcessEnv,
): Promise<SearchResult> {
  const cwd = query.isFolder ? query.root : dirname(query.root)
  const timeout = Math.max(1, Math.floor((query.deadline - query.now()) / 2))
  const child = spawn(program, listRipgrepArguments(query), {
    ...{ cwd, env, timeout, killSignal: 'SIGKILL', signal: query.signal },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let problems = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (output.length > MAX_COLLECTED) child.kill('SIGKILL')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problems = cutText(problems + text, 2_000)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  // Exit code 1: no matches. Exit code 2 with output: some files could not be read.
  if (code === 2 && output === '') throw new ToolError(problems.trim() || 'ripgrep failed.')
  const lines = output.split('\n').slice(0, -1)
  return { lines: lines.map((line) => line.replace(/\r$/, '')), isCut: code === null }
}

/** Searches in a separate thread, which the time limit or an abort can end at any point. */
async function searchInThread(query: SearchQuery): Promise<SearchResult> {
  const { signal, deadline, now, isHidden, ...task } = query
  const lines: string[] = []
  let collected = 0
  const { isCut } = await runSearchInThread<FileMatches>({ kind: 'search', ...task }, query, (found) => {
    if (isHidden?.(found.path) === true) return true
    if (task.linesBefore + task.linesAfter > 0 && lines.length > 0 && task.mode === 'content')
      lines.push('--')
    for (const line of found.lines) {
      lines.push(line)
      collected += line.length
    }
    return collected <= MAX_COLLECTED
  })
  return { lines, isCut }
}
