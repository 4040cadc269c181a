/** The coder's tools, run against its make-believe repository. They look and fail the way people know them. */
import type { JsonObject } from '../../api.ts'
import type { ToolCall } from '../said.ts'
import { moduleName, type Repository, sourcePath } from './repository.ts'
import { runTests, type TestRunSize } from './run-tests.ts'

export interface ToolRun {
  readonly text: string
  readonly isError: boolean
  readonly repository: Repository
}

export function runTool(repository: Repository, call: ToolCall, size: TestRunSize): ToolRun {
  const input = call.input
  switch (call.name) {
    case 'Read':
      return read(repository, input)
    case 'Grep':
      return grep(repository, input)
    case 'Edit':
      return edit(repository, input)
    case 'Bash':
      return bash(repository, textOf(input.command), size)
    case 'TodoWrite':
      return said(repository, 'Todos have been updated.')
    default:
      return failed(repository, `There is no tool ${call.name} here.`)
  }
}

function said(repository: Repository, text: string): ToolRun {
  return { text, isError: false, repository }
}

function failed(repository: Repository, text: string): ToolRun {
  return { text, isError: true, repository }
}

function read(repository: Repository, { file_path, offset, limit }: JsonObject): ToolRun {
  const content = repository.get(textOf(file_path))
  if (content === undefined) return failed(repository, `File does not exist: ${textOf(file_path)}`)
  const first = typeof offset === 'number' ? Math.max(1, offset) : 1
  const rows = content.split('\n').slice(first - 1)
  const shown = typeof limit === 'number' ? rows.slice(0, limit) : rows
  return said(repository, numbered(shown, first))
}

function numbered(rows: readonly string[], first: number): string {
  return rows.map((row, index) => `${String(first + index).padStart(6)}\t${row}`).join('\n')
}

function grep(repository: Repository, { pattern, path }: JsonObject): ToolRun {
  const wanted = patternOf(textOf(pattern))
  if (wanted === null) return failed(repository, `Not a regular expression: ${textOf(pattern)}`)
  const within = textOf(path).replace(/^\.\/?$/, '')
  const found = [...repository]
    .filter(([name]) => name.startsWith(within))
    .flatMap(([name, content]) =>
      content.split('\n').flatMap((row, index) => (wanted.test(row) ? [`${name}:${index + 1}:${row}`] : [])),
    )
  return said(repository, found.length === 0 ? 'No matches found' : found.join('\n'))
}

function patternOf(text: string): RegExp | null {
  try {
    return new RegExp(text)
  } catch {
    return null
  }
}

function edit(repository: Repository, { file_path, old_string, new_string }: JsonObject): ToolRun {
  const path = textOf(file_path)
  const content = repository.get(path)
  if (content === undefined) return failed(repository, `File does not exist: ${path}`)
  const [before, after, ...more] = content.split(textOf(old_string))
  if (before === undefined || after === undefined || old_string === '')
    return failed(repository, `String to replace not found in file.\nString: ${textOf(old_string)}`)
  if (more.length > 0) return failed(repository, `Found ${more.length + 1} matches of the string to replace.`)
  const changed = `${before}${textOf(new_string)}${after}`
  const first = Math.max(1, before.split('\n').length - 3)
  const rows = changed.split('\n').slice(first - 1, first + 6)
  const text = `The file ${path} has been updated. Here is a part of it:\n${numbered(rows, first)}`
  return { text, isError: false, repository: new Map([...repository, [path, changed]]) }
}

function bash(repository: Repository, command: string, size: TestRunSize): ToolRun {
  const [, asked] = /^npm test(?: -- (\S+))?$/.exec(command.trim()) ?? []
  if (/^npm test\b/.test(command.trim())) return test(repository, asked, size)
  if (/^ls\b/.test(command.trim())) return said(repository, [...repository.keys()].join('\n'))
  return failed(repository, `bash: ${command.trim().split(/\s/)[0]}: command not found`)
}

function test(repository: Repository, asked: string | undefined, size: TestRunSize): ToolRun {
  const modules = Array.from({ length: repository.size }, (_, index) => moduleName(index))
  const there = modules.filter((module) => repository.has(sourcePath(module)))
  const { output, failed: count } = runTests(
    repository,
    asked === undefined ? there : there.filter((module) => module === asked),
    size,
  )
  return { text: output, isError: count > 0, repository }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
