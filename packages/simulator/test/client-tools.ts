/**
 * A small coding agent for tests, with real files and a real shell: declares its tools in the style of a known client,
 * runs the calls of the model strictly, and can forget the conversation as a compaction does.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { Block, JsonObject, MessageParam } from '../src/protocol/messages-request.ts'

export type ToolAction = 'read' | 'write' | 'edit' | 'shell' | 'search' | 'todos'

export interface ClientStyle {
  readonly tools: readonly JsonObject[]
  /** What each tool does, by its name. */
  readonly actions: Readonly<Record<string, ToolAction>>
  /** The system prompt for a working directory. */
  readonly system: (directory: string) => string
}

const TEXT = { type: 'string' }
const NUMBER_OR_NULL = { anyOf: [{ type: 'number' }, { type: 'null' }] }

function tool(name: string, properties: JsonObject, required = Object.keys(properties)): JsonObject {
  return { name, input_schema: { type: 'object', properties, required, additionalProperties: false } }
}

function listOf(properties: JsonObject): JsonObject {
  const items = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
  return { type: 'array', items }
}

const CLAUDE_CODE: ClientStyle = {
  tools: [
    tool('Agent', { description: TEXT, prompt: TEXT }),
    tool('Bash', { command: TEXT, timeout: { type: 'number' }, description: TEXT }, ['command']),
    tool('Edit', { file_path: TEXT, old_string: TEXT, new_string: TEXT, replace_all: { type: 'boolean' } }, [
      'file_path',
      'old_string',
      'new_string',
    ]),
    tool('Read', { file_path: TEXT, offset: { type: 'integer' }, limit: { type: 'integer' } }, ['file_path']),
    tool('ToolSearch', { query: TEXT, max_results: { type: 'number' } }),
    tool('Write', { file_path: TEXT, content: TEXT }),
  ],
  actions: { Bash: 'shell', Edit: 'edit', Read: 'read', Write: 'write' },
  system: (directory) => `# Environment\n - Primary working directory: ${directory}\n - Platform: linux`,
}

const OPENCODE: ClientStyle = {
  tools: [
    tool('bash', { command: TEXT, description: TEXT }),
    tool('edit', { filePath: TEXT, oldString: TEXT, newString: TEXT }),
    tool('glob', { pattern: TEXT, path: TEXT }, ['pattern']),
    tool('grep', { pattern: TEXT, path: TEXT, include: TEXT }, ['pattern']),
    tool('read', { filePath: TEXT, limit: { type: 'integer', minimum: 1 } }),
    tool('task', { description: TEXT, prompt: TEXT, command: TEXT }),
    tool('todowrite', { todos: listOf({ content: TEXT, status: TEXT, priority: TEXT }) }),
    tool('write', { content: TEXT, filePath: TEXT }),
  ],
  actions: { bash: 'shell', edit: 'edit', grep: 'search', read: 'read', todowrite: 'todos', write: 'write' },
  system: (directory) => `<env>\n  Working directory: ${directory}\n</env>`,
}

const PI: ClientStyle = {
  tools: [
    tool('read', { path: TEXT, offset: NUMBER_OR_NULL, limit: NUMBER_OR_NULL }),
    tool('bash', { command: TEXT, timeout: NUMBER_OR_NULL }),
    tool('edit', { path: TEXT, edits: listOf({ oldText: TEXT, newText: TEXT }) }),
    tool('write', { path: TEXT, content: TEXT }),
  ],
  actions: { read: 'read', bash: 'shell', edit: 'edit', write: 'write' },
  system: (directory) => `You are a coder.\n<cwd>\n${directory}\n</cwd>`,
}

const SHELL_ONLY: ClientStyle = {
  tools: [tool('run_command', { cmd: TEXT, timeout_ms: { type: 'integer', exclusiveMinimum: 0 } })],
  actions: { run_command: 'shell' },
  system: () => 'You have a shell.',
}

const FILES_ONLY: ClientStyle = {
  tools: [tool('view_file', { file: TEXT }), tool('create_file', { file: TEXT, contents: TEXT })],
  actions: { view_file: 'read', create_file: 'write' },
  system: () => 'You have no shell.',
}

export const CLIENT_STYLES = { CLAUDE_CODE, OPENCODE, PI, SHELL_ONLY, FILES_ONLY } as const

export interface ClientTools {
  /** Runs the calls of a response and returns the message with their results. */
  run(calls: readonly Block[]): MessageParam
  /** Forgets which files were read, so that they must be read again before they are changed. */
  forgetReads(): void
  /** Texts of the results that were errors, each with the name of its tool. */
  readonly errors: readonly string[]
}

export function createClientTools(style: ClientStyle, directory: string): ClientTools {
  const known = new Set<string>()
  const errors: string[] = []

  function runCall({ id, name, input }: Block): Block {
    const { text, isError } = runStrictly(String(name), input as JsonObject)
    if (isError) errors.push(`${String(name)}: ${text}`)
    return {
      type: 'tool_result',
      tool_use_id: String(id),
      content: text,
      ...(isError ? { is_error: true } : {}),
    }
  }

  function runStrictly(name: string, input: JsonObject): { text: string; isError: boolean } {
    const schema = style.tools.find((each) => each.name === name)?.input_schema
    const problem = schema === undefined ? 'no such tool' : findProblem(schema, input)
    if (problem !== null) return { text: `Invalid input: ${problem}`, isError: true }
    try {
      return { text: runAction(style.actions[name], input), isError: false }
    } catch (error) {
      return { text: error instanceof Error ? error.message : String(error), isError: true }
    }
  }

  function runAction(action: ToolAction | undefined, input: JsonObject): string {
    const [path = '', content = ''] = [
      readAny(input, 'path', 'file_path', 'filePath', 'file'),
      readAny(input, 'content', 'contents'),
    ]
    const file = resolve(directory, path)
    if (action === 'shell') return runShell(readAny(input, 'command', 'cmd') ?? '', directory)
    if (action === 'todos') return 'Todos have been updated.'
    if (action === 'search') return runShell(`grep -rnE '${String(input.pattern)}' '${file}'`, directory)
    if (style.system(directory).includes(directory) && !isAbsolute(path))
      throw new Error('The path must be absolute.')
    if (action === 'read') {
      if (!existsSync(file)) throw new Error(`File does not exist: ${path}`)
      known.add(file)
      return readFileSync(file, 'utf8')
    }
    if (existsSync(file) && !known.has(file)) throw new Error('File has not been read yet. Read it first.')
    known.add(file)
    if (action === 'write') return saveFile(file, content)
    const { oldText, newText } = readEdit(input)
    const parts = readFileSync(file, 'utf8').split(oldText)
    if (parts.length !== 2) throw new Error(`Found ${parts.length - 1} matches of the text.`)
    return saveFile(file, parts.join(newText))
  }

  return {
    run: (calls) => ({ role: 'user', content: calls.map(runCall) }),
    forgetReads: () => known.clear(),
    errors,
  }
}

function runShell(command: string, cwd: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`Exit code ${status}\n${stdout}${stderr}`)
  return stdout
}

function saveFile(file: string, content: string): string {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  return 'The file has been saved.'
}

function readAny(input: JsonObject, ...names: readonly string[]): string | undefined {
  return names.map((name) => input[name]).find((value) => typeof value === 'string')
}

function readEdit(input: JsonObject): { readonly oldText: string; readonly newText: string } {
  const [edit = input] = (input.edits ?? []) as readonly JsonObject[]
  const oldText = readAny(edit, 'old_string', 'oldString', 'oldText') ?? ''
  return { oldText, newText: readAny(edit, 'new_string', 'newString', 'newText') ?? '' }
}

/** Checks an input against the few parts of JSON Schema that the styles use. */
export function findProblem(schema: unknown, value: unknown, path = 'input'): string | null {
  const { type, properties, required, items, anyOf, exclusiveMinimum, minimum } = schema as JsonObject
  if (Array.isArray(anyOf))
    return anyOf.some((each) => findProblem(each, value) === null) ? null : `${path}: none fits`
  const actual = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  if (actual !== (type === 'integer' ? 'number' : type)) return `${path}: ${actual} is not ${String(type)}`
  if (
    typeof value === 'number' &&
    !(value >= Number(minimum ?? value) && value > Number(exclusiveMinimum ?? value - 1))
  )
    return `${path}: ${value} is too small`
  if (Array.isArray(value))
    return value.map((each) => findProblem(items, each, `${path}[]`)).find((each) => each !== null) ?? null
  if (actual !== 'object') return null
  const fields = value as JsonObject
  const missing = ((required ?? []) as readonly string[]).find((name) => fields[name] === undefined)
  if (missing !== undefined) return `${path}.${missing} is missing`
  for (const [name, each] of Object.entries(fields)) {
    const field = (properties as JsonObject)[name]
    const problem =
      field === undefined ? `${path}.${name} is unknown` : findProblem(field, each, `${path}.${name}`)
    if (problem !== null) return problem
  }
  return null
}
