/** The coder's tools, run against its simulated repository. Output and errors look like those of common coding agents. */
import type { JsonObject } from '../protocol/api.ts'
import { BYTES_PER_TOKEN } from '../protocol/tokenizer.ts'
import { functionName, moduleName, type Repository, sourcePath, testPath } from './coder-repository.ts'
import { prose } from './filler-text.ts'
import type { ToolCall } from './script.ts'

interface ToolRun {
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

// `npm test` in the simulated repository: it compares the limits in the sources with the expectations in the tests.

interface TestRun {
  readonly output: string
  readonly failed: number
}

interface TestRunSize {
  readonly seed: string
  readonly outputTokens: number
}

function runTests(repository: Repository, modules: readonly string[], size: TestRunSize): TestRun {
  const cases = modules.flatMap((module) => casesOf(repository, module))
  const failures = cases.flatMap(({ failure }) => failure ?? [])
  const rest = cases.length - failures.length
  const tally = failures.length === 0 ? `${rest} passed` : `${failures.length} failed | ${rest} passed`
  const rows = cases.map(({ row }) => row)
  const end = [
    ...failures,
    ` Tests  ${tally} (${cases.length})`,
    ...(failures.length > 0 ? ['Exit code 1'] : []),
  ]
  return { output: padded(rows, end, size).join('\n'), failed: failures.length }
}

interface Case {
  readonly row: string
  readonly failure?: string
}

function casesOf(repository: Repository, module: string): readonly Case[] {
  const expected = expectationsIn(repository.get(testPath(module)) ?? '')
  return limitsIn(repository.get(sourcePath(module)) ?? '').map(({ number, written, line }, index) => {
    const name = `${testPath(module)} > ${functionName(module, number)} counts to its limit`
    const error = errorOf(written, expected[index] ?? Number.NaN)
    if (error === null) return { row: ` ✓ ${name}` }
    const place = ` ❯ ${functionName(module, number)} ${sourcePath(module)}:${line}`
    return { row: ` ✗ ${name}`, failure: ` FAIL  ${name}\n${error}\n${place}` }
  })
}

interface WrittenLimit {
  readonly number: number
  /** The text after `=`. */
  readonly written: string
  readonly line: number
}

function limitsIn(source: string): readonly WrittenLimit[] {
  return source.split('\n').flatMap((row, index) => {
    const [, number, written] = /^ {2}const limit(\d+) = (.*)$/.exec(row) ?? []
    return number === undefined || written === undefined
      ? []
      : [{ number: Number(number), written, line: index + 1 }]
  })
}

function expectationsIn(test: string): readonly number[] {
  return [...test.matchAll(/\.toBe\((\d+)\)/g)].map(([, value]) => Number(value))
}

function errorOf(written: string, expected: number): string | null {
  if (!/^\d+$/.test(written)) return `ReferenceError: ${written.split('(')[0]} is not defined`
  const value = 3 * Number(written)
  return value === expected ? null : `AssertionError: expected ${value} to be ${expected}`
}

/** Filler lines come first, so that the result stays at the end. */
function padded(rows: readonly string[], end: readonly string[], size: TestRunSize): readonly string[] {
  const written = Buffer.byteLength([...rows, ...end].join('\n')) / BYTES_PER_TOKEN
  const filler = prose(`${size.seed}/output`, Math.max(0, size.outputTokens - written))
  return [...(filler === '' ? [] : filler.replaceAll('. ', '.\n').split('\n')), ...rows, ...end]
}

// Tool definitions.

const text = { type: 'string' }
const whole = { type: 'integer' }

export const CODER_TOOLS: readonly JsonObject[] = [
  tool('Read', 'Reads a file.', { file_path: text, offset: whole, limit: whole }, ['file_path']),
  tool('Grep', 'Searches files for a regular expression.', { pattern: text, path: text }, ['pattern']),
  tool('Edit', 'Replaces one string in a file.', { file_path: text, old_string: text, new_string: text }),
  tool('Bash', 'Runs a command.', { command: text, description: text }, ['command']),
  tool('TodoWrite', 'Keeps the list of what is to be done.', {
    todos: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          content: text,
          status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
          activeForm: text,
        },
        required: ['content', 'status'],
      },
    },
  }),
]

function tool(
  name: string,
  description: string,
  ...[properties, required]: readonly [JsonObject, (readonly string[])?]
): JsonObject {
  return {
    name,
    description,
    input_schema: { type: 'object', properties, required: required ?? Object.keys(properties) },
  }
}
