/**
 * Searches files for a regular expression: with ripgrep where it is installed, else by walking through the files. Both
 * give the same lines.
 */
import { spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { findProgram } from 'tidemark/internal'
import { decodeFileText } from './file-content.ts'
import { compileFileFilter } from './glob-pattern.ts'
import { createGuardedSearch, type GuardedSearch } from './guarded-search.ts'
import { cutText, ToolError } from './tool-definition.ts'
import { SKIPPED_FOLDERS, type WalkedFile, walkFiles } from './walk-files.ts'

export interface SearchQuery {
  readonly pattern: string
  /** The file or folder to search, without symbolic links. */
  readonly root: string
  readonly isFolder: boolean
  readonly mode: 'content' | 'files_with_matches' | 'count'
  readonly glob: string | null
  readonly type: string | null
  readonly ignoreCase: boolean
  readonly multiline: boolean
  readonly lineNumbers: boolean
  readonly linesBefore: number
  readonly linesAfter: number
  readonly signal: AbortSignal
  /** The search ends at this time, in milliseconds as `now` returns them. */
  readonly deadline: number
  readonly now: () => number
  /** Returns true if a file must not be searched. Null: all may be. */
  readonly isHidden: ((path: string) => boolean) | null
}

export interface SearchResult {
  /** Lines as ripgrep prints them: `./path:12:text`, `./path-13-context`, `./path` or `./path:count`, and `--`. */
  readonly lines: readonly string[]
  /** True if the search ended early, so that there may be more. */
  readonly isCut: boolean
}

/** Most characters that a search collects. */
const MAX_COLLECTED = 1_000_000
const MAX_LINE_CHARACTERS = 500

export async function searchFiles(query: SearchQuery, env: NodeJS.ProcessEnv): Promise<SearchResult> {
  // Which files are hidden cannot be said in the options of ripgrep.
  const ripgrep = query.isHidden === null ? findProgram('rg', env) : null
  if (ripgrep === null) return await searchByWalking(query)
  const found = await searchByRipgrep(ripgrep, query, env)
  // ripgrep waits for ever where an ignore file is a pipe; our own walk reads regular files only.
  return found.isCut && found.lines.length === 0 ? await searchByWalking(query) : found
}

function listRipgrepArguments(query: SearchQuery): readonly string[] {
  const { mode, linesBefore, linesAfter } = query
  const content = [
    query.lineNumbers ? '--line-number' : '--no-line-number',
    `--before-context=${linesBefore}`,
    `--after-context=${linesAfter}`,
    `--max-columns=${MAX_LINE_CHARACTERS}`,
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

/** Runs ripgrep in the folder that is searched, without a shell, for at most half of the time. */
async function searchByRipgrep(
  program: string,
  query: SearchQuery,
  env: NodeJS.ProcessEnv,
): Promise<SearchResult> {
  const cwd = query.isFolder ? query.root : dirname(query.root)
  const timeout = Math.max(1, (query.deadline - query.now()) / 2)
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

async function searchByWalking(query: SearchQuery): Promise<SearchResult> {
  const flags = `${query.ignoreCase ? 'i' : ''}${query.multiline ? 'ms' : ''}`
  const search = createGuardedSearch(query.pattern, flags)
  const isWanted = createFileFilter(query)
  const lines: string[] = []
  let collected = 0
  for await (const file of listSearchedFiles(query)) {
    if (file.isLink || !isWanted(file.relativePath) || query.isHidden?.(file.path) === true) continue
    if (collected > MAX_COLLECTED || query.now() > query.deadline) return { lines, isCut: true }
    const found = await searchFile(file, query, search)
    if (
      query.linesBefore + query.linesAfter > 0 &&
      found.length > 0 &&
      lines.length > 0 &&
      query.mode === 'content'
    )
      lines.push('--')
    for (const line of found) {
      lines.push(line)
      collected += line.length
    }
  }
  return { lines, isCut: false }
}

async function* listSearchedFiles({ root, isFolder, signal }: SearchQuery): AsyncGenerator<WalkedFile> {
  if (isFolder) yield* walkFiles(root, signal)
  else yield { path: root, relativePath: basename(root), isLink: false }
}

/** Extensions of the usual kinds of files, under ripgrep's names. */
const FILE_TYPES: Readonly<Record<string, string>> = {
  c: 'c,h',
  cpp: 'cpp,cc,cxx,hpp,hh,hxx,h',
  cs: 'cs',
  css: 'css,scss',
  go: 'go',
  html: 'html,htm',
  java: 'java',
  js: 'js,jsx,mjs,cjs,vue',
  json: 'json',
  kotlin: 'kt,kts',
  lua: 'lua',
  md: 'md,markdown,mdx',
  php: 'php',
  py: 'py,pyi',
  ruby: 'rb,gemspec',
  rust: 'rs',
  sh: 'sh,bash,zsh',
  sql: 'sql',
  swift: 'swift',
  toml: 'toml',
  ts: 'ts,tsx,mts,cts',
  txt: 'txt',
  xml: 'xml',
  yaml: 'yaml,yml',
}

function createFileFilter({ glob, type, isFolder }: SearchQuery): (path: string) => boolean {
  const extensions = type === null ? null : FILE_TYPES[type]?.split(',')
  if (extensions === undefined)
    throw new ToolError(`Unknown type ${type}. Known types: ${Object.keys(FILE_TYPES).join(', ')}.`)
  const isExcluding = glob?.startsWith('!') === true
  const pattern = glob === null || !isFolder ? null : compileFileFilter(isExcluding ? glob.slice(1) : glob)
  return (path) =>
    (pattern === null || pattern(path) !== isExcluding) &&
    (extensions === null || extensions.includes(/[^./]*$/.exec(path)?.[0] ?? ''))
}

/** Files above this size are not searched without ripgrep. */
const MAX_SEARCHED_BYTES = 20_000_000

async function searchFile(
  { path, relativePath }: WalkedFile,
  query: SearchQuery,
  search: GuardedSearch,
): Promise<readonly string[]> {
  const facts = await stat(path).catch(() => null)
  if (facts === null || !facts.isFile() || facts.size > MAX_SEARCHED_BYTES) return []
  const text = decodeFileText(await readFile(path).catch(() => Buffer.alloc(1)))?.text.replaceAll(
    '\r\n',
    '\n',
  )
  if (text === undefined || text === '') return []
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
  const matches = (query.multiline ? search.findSpannedLines(text) : search.findLines(lines)).filter(
    (index) => index < lines.length,
  )
  if (matches.length === 0) return []
  if (query.mode === 'files_with_matches') return [`./${relativePath}`]
  if (query.mode === 'count') return [`./${relativePath}:${matches.length}`]
  return renderMatches(`./${relativePath}`, lines, matches, query)
}

function renderMatches(
  path: string,
  lines: readonly string[],
  matches: readonly number[],
  { linesBefore, linesAfter, lineNumbers }: SearchQuery,
): readonly string[] {
  const matching = new Set(matches)
  const shown = new Set<number>()
  for (const match of matches) {
    const last = Math.min(lines.length - 1, match + linesAfter)
    for (let index = Math.max(0, match - linesBefore); index <= last; index += 1) shown.add(index)
  }
  const rows: string[] = []
  let previous: number | null = null
  for (const index of [...shown].sort((one, other) => one - other)) {
    if (linesBefore + linesAfter > 0 && previous !== null && previous !== index - 1) rows.push('--')
    previous = index
    const mark = matching.has(index) ? ':' : '-'
    const line = lines[index] ?? ''
    const text =
      line.length > MAX_LINE_CHARACTERS ? `${cutText(line, MAX_LINE_CHARACTERS)} … [line cut]` : line
    rows.push(`${path}${mark}${lineNumbers ? `${index + 1}${mark}` : ''}${text}`)
  }
  return rows
}
