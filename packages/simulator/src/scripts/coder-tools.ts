/**
 * Runs the tools of the coder script against its simulated repository. Output and errors look like those of common
 * coding agents.
 */
import type { JsonObject } from '../protocol/messages-request.ts'
import { BYTES_PER_TOKEN } from '../protocol/tokenizer.ts'
import {
  formatFunctionName,
  formatModuleName,
  type SimulatedRepository,
  toSourcePath,
  toTestPath,
} from './coder-repository.ts'
import { createFillerText } from './filler-text.ts'
import type { ToolCall } from './script.ts'

interface ToolOutcome {
  readonly text: string
  readonly isError: boolean
  readonly repository: SimulatedRepository
}

export function runCoderTool(
  repository: SimulatedRepository,
  call: ToolCall,
  size: TestRunSize,
): ToolOutcome {
  const input = call.input
  switch (call.name) {
    case 'Read':
      return runRead(repository, input)
    case 'Grep':
      return runGrep(repository, input)
    case 'Edit':
      return runEdit(repository, input)
    case 'Write':
      return runWrite(repository, input)
    case 'Bash':
      return runBash(repository, toText(input.command), size)
    case 'TodoWrite':
      return succeed(repository, 'Todos have been updated.')
    default:
      return fail(repository, `There is no tool ${call.name} here.`)
  }
}

function succeed(repository: SimulatedRepository, text: string): ToolOutcome {
  return { text, isError: false, repository }
}

function fail(repository: SimulatedRepository, text: string): ToolOutcome {
  return { text, isError: true, repository }
}

function runRead(repository: SimulatedRepository, { file_path, offset, limit }: JsonObject): ToolOutcome {
  const content = repository.get(toText(file_path))
  if (content === undefined) return fail(repository, `File does not exist: ${toText(file_path)}`)
  const first = typeof offset === 'number' ? Math.max(1, offset) : 1
  const rows = content.split('\n').slice(first - 1)
  const shown = typeof limit === 'number' ? rows.slice(0, limit) : rows
  return succeed(repository, numberLines(shown, first))
}

function numberLines(rows: readonly string[], first: number): string {
  return rows.map((row, index) => `${String(first + index).padStart(6)}\t${row}`).join('\n')
}

function runGrep(repository: SimulatedRepository, { pattern, path }: JsonObject): ToolOutcome {
  const wanted = parsePattern(toText(pattern))
  if (wanted === null) return fail(repository, `Not a regular expression: ${toText(pattern)}`)
  const within = toText(path).replace(/^\.\/?$/, '')
  const found = [...repository]
    .filter(([name]) => name.startsWith(within))
    .flatMap(([name, content]) =>
      content.split('\n').flatMap((row, index) => (wanted.test(row) ? [`${name}:${index + 1}:${row}`] : [])),
    )
  return succeed(repository, found.length === 0 ? 'No matches found' : found.join('\n'))
}

function parsePattern(text: string): RegExp | null {
  try {
    return new RegExp(text)
  } catch {
    return null
  }
}

function runEdit(
  repository: SimulatedRepository,
  { file_path, old_string, new_string }: JsonObject,
): ToolOutcome {
  const path = toText(file_path)
  const content = repository.get(path)
  if (content === undefined) return fail(repository, `File does not exist: ${path}`)
  const [before, after, ...more] = content.split(toText(old_string))
  if (before === undefined || after === undefined || old_string === '')
    return fail(repository, `String to replace not found in file.\nString: ${toText(old_string)}`)
  if (more.length > 0) return fail(repository, `Found ${more.length + 1} matches of the string to replace.`)
  const changed = `${before}${toText(new_string)}${after}`
  const first = Math.max(1, before.split('\n').length - 3)
  const rows = changed.split('\n').slice(first - 1, first + 6)
  const text = `The file ${path} has been updated. Here is a part of it:\n${numberLines(rows, first)}`
  return { text, isError: false, repository: new Map([...repository, [path, changed]]) }
}

function runWrite(repository: SimulatedRepository, { file_path, content }: JsonObject): ToolOutcome {
  const text = `The file ${toText(file_path)} has been written.`
  return { text, isError: false, repository: new Map([...repository, [toText(file_path), toText(content)]]) }
}

function runBash(repository: SimulatedRepository, command: string, size: TestRunSize): ToolOutcome {
  const [, asked] = /^npm test(?: -- (\S+))?$/.exec(command.trim()) ?? []
  if (/^npm test\b/.test(command.trim())) return runTestCommand(repository, asked, size)
  if (/^ls\b/.test(command.trim())) return succeed(repository, [...repository.keys()].join('\n'))
  return fail(repository, `bash: ${command.trim().split(/\s/)[0]}: command not found`)
}

function runTestCommand(
  repository: SimulatedRepository,
  asked: string | undefined,
  size: TestRunSize,
): ToolOutcome {
  const modules = Array.from({ length: repository.size }, (_, index) => formatModuleName(index))
  const there = modules.filter((module) => repository.has(toSourcePath(module)))
  const { output, failed } = runTests(
    repository,
    asked === undefined ? there : there.filter((module) => module === asked),
    size,
  )
  return { text: output, isError: failed > 0, repository }
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

// Simulates `npm test`: compares the limits in the source files with the expectations in the test files.

interface TestRunResult {
  readonly output: string
  readonly failed: number
}

interface TestRunSize {
  readonly seed: string
  readonly outputTokens: number
}

function runTests(
  repository: SimulatedRepository,
  modules: readonly string[],
  size: TestRunSize,
): TestRunResult {
  const cases = modules.flatMap((module) => runTestCases(repository, module))
  const failures = cases.flatMap(({ failure }) => failure ?? [])
  const rest = cases.length - failures.length
  const tally = failures.length === 0 ? `${rest} passed` : `${failures.length} failed | ${rest} passed`
  const rows = cases.map(({ row }) => row)
  const end = [
    ...failures,
    ` Tests  ${tally} (${cases.length})`,
    ...(failures.length > 0 ? ['Exit code 1'] : []),
  ]
  return { output: padOutput(rows, end, size).join('\n'), failed: failures.length }
}

interface TestCase {
  readonly row: string
  readonly failure?: string
}

function runTestCases(repository: SimulatedRepository, module: string): readonly TestCase[] {
  const expected = findExpectations(repository.get(toTestPath(module)) ?? '')
  return findLimits(repository.get(toSourcePath(module)) ?? '').map(({ number, written, line }, index) => {
    const name = `${toTestPath(module)} > ${formatFunctionName(module, number)} counts to its limit`
    const error = findTestError(written, expected[index] ?? Number.NaN)
    if (error === null) return { row: ` ✓ ${name}` }
    const place = ` ❯ ${formatFunctionName(module, number)} ${toSourcePath(module)}:${line}`
    return { row: ` ✗ ${name}`, failure: ` FAIL  ${name}\n${error}\n${place}` }
  })
}

interface LimitInSource {
  readonly number: number
  /** The text after `=` in the source line that defines the limit. */
  readonly written: string
  readonly line: number
}

function findLimits(source: string): readonly LimitInSource[] {
  return source.split('\n').flatMap((row, index) => {
    const [, number, written] = /^ {2}const limit(\d+) = (.*)$/.exec(row) ?? []
    return number === undefined || written === undefined
      ? []
      : [{ number: Number(number), written, line: index + 1 }]
  })
}

function findExpectations(test: string): readonly number[] {
  return [...test.matchAll(/\.toBe\((\d+)\)/g)].map(([, value]) => Number(value))
}

function findTestError(written: string, expected: number): string | null {
  if (!/^\d+$/.test(written)) return `ReferenceError: ${written.split('(')[0]} is not defined`
  const value = 3 * Number(written)
  return value === expected ? null : `AssertionError: expected ${value} to be ${expected}`
}

/**
 * Pads the output of a test run to the requested size. Filler lines come first, so that the result stays at the end.
 */
function padOutput(rows: readonly string[], end: readonly string[], size: TestRunSize): readonly string[] {
  const written = Buffer.byteLength([...rows, ...end].join('\n')) / BYTES_PER_TOKEN
  const filler = createFillerText(`${size.seed}/output`, Math.max(0, size.outputTokens - written))
  return [...(filler === '' ? [] : filler.replaceAll('. ', '.\n').split('\n')), ...rows, ...end]
}

// Definitions of the coder script's tools.

const STRING_SCHEMA = { type: 'string' }
const INTEGER_SCHEMA = { type: 'integer' }

export const CODER_TOOLS: readonly JsonObject[] = [
  toolDefinition(
    'Read',
    'Reads a file.',
    { file_path: STRING_SCHEMA, offset: INTEGER_SCHEMA, limit: INTEGER_SCHEMA },
    ['file_path'],
  ),
  toolDefinition(
    'Grep',
    'Searches files for a regular expression.',
    { pattern: STRING_SCHEMA, path: STRING_SCHEMA },
    ['pattern'],
  ),
  toolDefinition('Edit', 'Replaces one string in a file.', {
    file_path: STRING_SCHEMA,
    old_string: STRING_SCHEMA,
    new_string: STRING_SCHEMA,
  }),
  toolDefinition('Bash', 'Runs a command.', { command: STRING_SCHEMA, description: STRING_SCHEMA }, [
    'command',
  ]),
  toolDefinition('TodoWrite', 'Keeps the list of what is to be done.', {
    todos: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          content: STRING_SCHEMA,
          status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
          activeForm: STRING_SCHEMA,
        },
        required: ['content', 'status'],
      },
    },
  }),
]

function toolDefinition(
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
