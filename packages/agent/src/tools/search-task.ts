/** File searches that run in a separate thread. Their inputs and results are plain data. */
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { decodeFileText } from './file-content.ts'
import { compilePathFilter, toFileGlob } from './glob-pattern.ts'
import { createTimeLimitedSearch, type TimeLimitedSearch } from './time-limited-search.ts'
import { cutText, ToolError } from './tool-definition.ts'
import { type WalkedFile, walkFiles } from './walk-files.ts'

/** Lists the files in a folder whose relative path matches a glob; null for all files. */
interface FileListTask {
  readonly kind: 'list'
  readonly root: string
  readonly glob: string | null
}

/** Searches the text of files for a regular expression. */
export interface TextSearchTask {
  readonly kind: 'search'
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
}

export type SearchTask = FileListTask | TextSearchTask

/** The matches in one file, as lines in the format of ripgrep. */
export interface FileMatches {
  readonly path: string
  readonly lines: readonly string[]
}

/** Longer lines of matches are cut. */
export const MAX_MATCH_LINE_CHARACTERS = 500

/** Runs a task in this thread. Yields a `WalkedFile` for each file of a list, or `FileMatches` for each file with matches. */
export function runSearchTask(task: SearchTask): AsyncGenerator<WalkedFile | FileMatches> {
  return task.kind === 'list' ? listFiles(task) : searchText(task)
}

async function* listFiles({ root, glob }: FileListTask): AsyncGenerator<WalkedFile> {
  const isWanted = glob === null ? () => true : compilePathFilter(glob)
  for await (const file of walkFiles(root)) if (isWanted(file.relativePath)) yield file
}

async function* searchText(task: TextSearchTask): AsyncGenerator<FileMatches> {
  const flags = `${task.ignoreCase ? 'i' : ''}${task.multiline ? 'ms' : ''}`
  const search = createTimeLimitedSearch(task.pattern, flags)
  const isWanted = createFileFilter(task)
  for await (const file of listSearchedFiles(task)) {
    if (file.isLink || !isWanted(file.relativePath)) continue
    const lines = await searchFile(file, task, search)
    if (lines.length > 0) yield { path: file.path, lines }
  }
}

async function* listSearchedFiles({ root, isFolder }: TextSearchTask): AsyncGenerator<WalkedFile> {
  if (isFolder) yield* walkFiles(root)
  else yield { path: root, relativePath: basename(root), isLink: false }
}

/** File extensions by the type names of ripgrep. */
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

function createFileFilter({ glob, type, isFolder }: TextSearchTask): (path: string) => boolean {
  const extensions = type === null ? null : FILE_TYPES[type]?.split(',')
  if (extensions === undefined)
    throw new ToolError(`Unknown type ${type}. Known types: ${Object.keys(FILE_TYPES).join(', ')}.`)
  const isExcluding = glob?.startsWith('!') === true
  const pattern =
    glob === null || !isFolder ? null : compilePathFilter(toFileGlob(isExcluding ? glob.slice(1) : glob))
  return (path) =>
    (pattern === null || pattern(path) !== isExcluding) &&
    (extensions === null || extensions.includes(/[^./]*$/.exec(path)?.[0] ?? ''))
}

/** Files above this size are not searched without ripgrep. */
const MAX_SEARCHED_BYTES = 20_000_000

async function searchFile(
  { path, relativePath }: WalkedFile,
  task: TextSearchTask,
  search: TimeLimitedSearch,
): Promise<readonly string[]> {
  const facts = await stat(path).catch(() => null)
  if (facts === null || !facts.isFile() || facts.size > MAX_SEARCHED_BYTES) return []
  const text = decodeFileText(await readFile(path).catch(() => Buffer.alloc(1)))?.text.replaceAll(
    '\r\n',
    '\n',
  )
  if (text === undefined || text === '') return []
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
  const matches = (task.multiline ? search.findSpannedLines(text) : search.findLines(lines)).filter(
    (index) => index < lines.length,
  )
  if (matches.length === 0) return []
  if (task.mode === 'files_with_matches') return [`./${relativePath}`]
  if (task.mode === 'count') return [`./${relativePath}:${matches.length}`]
  return renderMatches(`./${relativePath}`, lines, matches, task)
}

function renderMatches(
  path: string,
  lines: readonly string[],
  matches: readonly number[],
  { linesBefore, linesAfter, lineNumbers }: TextSearchTask,
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
      line.length > MAX_MATCH_LINE_CHARACTERS
        ? `${cutText(line, MAX_MATCH_LINE_CHARACTERS)} … [line cut]`
        : line
    rows.push(`${path}${mark}${lineNumbers ? `${index + 1}${mark}` : ''}${text}`)
  }
  return rows
}
