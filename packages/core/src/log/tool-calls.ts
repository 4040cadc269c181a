/**
 * What a tool call read, wrote, edited, ran or searched, for the summary, clearing, the file source and the token
 * breakdown. The input's shape decides, since hosts choose their tool names; a list of names decides only where the
 * shape is ambiguous (`Edit {file_path}`).
 */

import { type Block, isText, isToolResult, isToolUse, type ToolUseBlock, toBlocks } from './block.ts'
import { isObject } from './json.ts'
import { isSyntheticError, type KnownRecord } from './record.ts'

/** `write` writes a whole file, `edit` changes part of one, `search` lists or greps, `run` runs a shell command. */
export type ToolKind = 'read' | 'write' | 'edit' | 'run' | 'search' | 'other'

export interface ToolCallFacts {
  readonly kind: ToolKind
  /** The file read, written or edited; null if there is none or a patch names several. */
  readonly path: string | null
  /** Which part of the file is read; null for all of it. */
  readonly range: string | null
  /** The command of a `run`. */
  readonly command: string | null
  /** Every file the call touches. A patch may name several, also one applied by a shell command. */
  readonly touches: readonly FileTouch[]
  /** The replacements of an edit, in order; empty if the input does not state them. */
  readonly edits: readonly TextReplacement[]
}

/** What a call did to one file. A deletion counts as an edit. */
export interface FileTouch {
  readonly path: string
  readonly action: 'edit' | 'write' | 'read'
  /** The new text; null if the input does not contain it. */
  readonly newText: string | null
}

export interface TextReplacement {
  readonly oldText: string | null
  readonly newText: string | null
  /** Replace every occurrence, not only the first. */
  readonly replaceAll: boolean
}

/** Defaults of `rehydrate.files.readTools`, and of both `writeTools` policy fields. */
export const READ_TOOLS: readonly string[] = ['Read']
export const WRITE_TOOLS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/** Tools known by name; `policy.clear` and `policy.rehydrate.files` both fit. */
export interface FileToolNames {
  readonly readTools?: readonly string[]
  readonly writeTools?: readonly string[]
}

const PATH_FIELDS = ['file_path', 'path', 'filePath', 'notebook_path', 'target_file', 'filename']
const OLD_TEXT_FIELDS = ['old_string', 'old_str', 'oldString', 'oldText']
const NEW_TEXT_FIELDS = [
  ...['new_string', 'new_str', 'newString', 'newText'],
  ...['new_source', 'insert_text', 'replacement'],
]
const CONTENT_FIELDS = ['content', 'contents', 'file_text', 'text']
const QUERY_FIELDS = ['pattern', 'query', 'glob', 'regex']
const COMMAND_FIELDS = ['command', 'cmd', 'script']
const PATCH_FIELDS = ['input', 'patch', 'patchText']
const RANGE_FIELDS = ['offset', 'limit', 'pages', 'view_range', 'start_line', 'end_line']
/** With one of these fields the path is not on this machine. */
const REMOTE_FIELDS = ['url', 'repo', 'bucket', 'host']

/** Anthropic's text editor and memory tools: `command` is a subcommand, not a shell command. */
const EDITOR_COMMANDS: ReadonlyMap<string, 'read' | 'write' | 'edit'> = new Map([
  ['view', 'read'],
  ['create', 'write'],
  ['str_replace', 'edit'],
  ['insert', 'edit'],
  ['undo_edit', 'edit'],
  ['delete', 'edit'],
  ['rename', 'edit'],
])

/** Tools that list a folder: by its path alone such a call would look like a read. */
const LISTING_TOOL_NAME = /^(?:ls|list|list_?(?:dir|directory|files))$/i

const PATCH_FILE_LINE = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

type Input = Readonly<Record<string, unknown>>

/** `tools`: tools that read or write files whatever their input looks like (`policy.rehydrate.files`, `policy.clear`). */
export function describeToolCall(name: string, input: unknown, tools: FileToolNames = {}): ToolCallFacts {
  const fields: Input = isObject(input) ? input : { input }
  const path = findPath(fields)
  const act = path === null ? null : classifyFileCall(name, fields, tools)
  if (path !== null && act !== null) return describeFileCall(path, act, fields)
  const command = findCommand(fields)
  const touches = listPatchedFiles(
    command ?? (path === null ? findTextField(fields, PATCH_FIELDS) : null) ?? '',
  )
  if (command !== null) return { ...NO_FACTS, kind: 'run', command, touches }
  if (touches.length === 0) return { ...NO_FACTS, kind: isSearchCall(name, fields) ? 'search' : 'other' }
  const kind = touches.every((touch) => touch.action === 'write') ? 'write' : 'edit'
  return { ...NO_FACTS, kind, touches, path: touches.length === 1 ? (touches[0]?.path ?? null) : null }
}

const NO_FACTS = { path: null, range: null, command: null, touches: [], edits: [] } as const

function describeFileCall(path: string, act: FileTouch['action'], input: Input): ToolCallFacts {
  const edits = act === 'edit' ? listReplacements(input) : []
  const puts = {
    read: null,
    write: findTextField(input, CONTENT_FIELDS),
    edit: edits.at(-1)?.newText ?? null,
  }
  const range = act === 'read' ? describeRange(input) : null
  return {
    kind: act,
    path,
    range,
    command: null,
    touches: [{ path, action: act, newText: puts[act] }],
    edits,
  }
}

/** What a call with a path does to that file; null if it runs a command or searches. */
function classifyFileCall(name: string, input: Input, tools: FileToolNames): FileTouch['action'] | null {
  const editor = typeof input.command === 'string' ? EDITOR_COMMANDS.get(input.command) : undefined
  if (editor !== undefined) return editor
  if (findCommand(input) !== null) return null
  const { readTools = READ_TOOLS, writeTools = WRITE_TOOLS } = tools
  if (readTools.includes(name)) return 'read'
  const isWrite = findTextField(input, CONTENT_FIELDS) !== null
  if (writeTools.includes(name)) return isWrite ? 'write' : 'edit'
  if (REMOTE_FIELDS.some((field) => input[field] !== undefined)) return null
  if (listReplacements(input).length > 0) return 'edit'
  if (isWrite) return 'write'
  return isSearchCall(name, input) ? null : 'read'
}

function isSearchCall(name: string, input: Input): boolean {
  return LISTING_TOOL_NAME.test(name) || findTextField(input, QUERY_FIELDS) !== null
}

function findPath(input: Input): string | null {
  const path = findTextField(input, input.command === 'rename' ? ['old_path'] : PATH_FIELDS)
  return path === null || path.trim() === '' ? null : path
}

/** A string or an array of arguments; OpenAI's local shell puts it under `action`. */
function findCommand(input: Input): string | null {
  for (const name of COMMAND_FIELDS) {
    const value = input[name]
    if (typeof value === 'string') return value
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value.join(' ')
  }
  return isObject(input.action) ? findCommand(input.action) : null
}

function describeRange(input: Input): string | null {
  const given = RANGE_FIELDS.filter((field) => input[field] !== undefined && input[field] !== null)
  return given.length === 0 ? null : JSON.stringify(given.map((field) => [field, input[field]]))
}

function listReplacements(input: Input): readonly TextReplacement[] {
  const edits: readonly unknown[] = Array.isArray(input.edits) ? input.edits : [input]
  return edits.filter(isObject).flatMap((edit): readonly TextReplacement[] => {
    const [old, put] = [findTextField(edit, OLD_TEXT_FIELDS), findTextField(edit, NEW_TEXT_FIELDS)]
    if (old === null && put === null) return []
    return [{ oldText: old, newText: put, replaceAll: edit.replace_all === true || edit.replaceAll === true }]
  })
}

/** The files of a patch in Codex's `apply_patch` format. */
function listPatchedFiles(patch: string): readonly FileTouch[] {
  const heads = [...patch.matchAll(PATCH_FILE_LINE)]
  return heads.map((head, index): FileTouch => {
    const [line, verb, path = ''] = head
    const body = patch.slice(head.index + line.length, heads[index + 1]?.index)
    return { path: path.trim(), action: verb === 'Add' ? 'write' : 'edit', newText: collectAddedLines(body) }
  })
}

function collectAddedLines(patch: string): string | null {
  const added = patch.split('\n').filter((line) => line.startsWith('+'))
  return added.length === 0 ? null : added.map((line) => line.slice(1)).join('\n')
}

function findTextField(input: Input, names: readonly string[]): string | null {
  for (const name of names) {
    const value = Object.hasOwn(input, name) ? input[name] : null
    if (typeof value === 'string') return value
  }
  return null
}

/** Every string in a JSON value, without field names. Iterative: a model may nest deeper than the stack allows. */
export function collectStrings(value: unknown): readonly string[] {
  const found: string[] = []
  const left: unknown[] = [value]
  while (left.length > 0) {
    const item = left.pop()
    if (typeof item === 'string') found.push(item)
    else if (Array.isArray(item)) for (let at = item.length - 1; at >= 0; at -= 1) left.push(item[at])
    else if (typeof item === 'object' && item !== null) left.push(...Object.values(item).reverse())
  }
  return found
}

/** A tool call with its result. */
export interface ToolRun extends ToolCallFacts {
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** Uuid of the record that made the call. */
  readonly uuid: string
  /** Index of that record in the history, and of the record with the result (null while there is none). */
  readonly callIndex: number
  readonly resultIndex: number | null
  readonly resultUuid: string | null
  readonly result: string
  readonly failed: boolean
}

/** Tool calls with their results, in the order of the calls. `history`: records of the branch, from the first on. */
export function listToolRuns(history: readonly KnownRecord[], tools: FileToolNames = {}): readonly ToolRun[] {
  const runs = new Map<string, ToolRun>()
  history.forEach((record, place) => {
    if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record)) return
    const { uuid } = record
    for (const block of toBlocks(record.message.content)) {
      if (record.type === 'assistant' && isToolUse(block) && !runs.has(block.id)) {
        const { id, input } = block
        const name = readToolName(block)
        const facts = describeToolCall(name, input, tools)
        const call = { id, name, input, uuid, ...facts }
        runs.set(id, {
          ...call,
          callIndex: place,
          resultIndex: null,
          resultUuid: null,
          result: '',
          failed: false,
        })
      }
      const run = record.type === 'user' && isToolResult(block) ? runs.get(block.tool_use_id) : undefined
      if (run === undefined || run.resultIndex !== null) continue
      const result = readResultText(block.content)
      const failed = block.is_error === true || (run.kind === 'run' && hasFailingExitCode(result))
      runs.set(run.id, { ...run, resultIndex: place, resultUuid: uuid, result, failed })
    }
  })
  return [...runs.values()]
}

/** Other programs may log a call without a name. */
export function readToolName({ name }: Block): string {
  return typeof name === 'string' ? name : 'unknown'
}

/** The call has a result that is not a failure. */
export function hasSucceeded({ resultIndex, failed }: ToolRun): boolean {
  return resultIndex !== null && !failed
}

export function readResultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: Block) => (isText(block) ? [block.text] : [])).join('\n')
}

/** How file tools report that a file has not changed since it was last read, instead of returning its text. */
const UNCHANGED_NOTICE = /^\s*(?:<[a-z_-]+>\s*)?(?:file_unchanged|file unchanged since|\[file unchanged)/i

export function isUnchangedNotice(result: string): boolean {
  return UNCHANGED_NOTICE.test(result)
}

/** Programs that do not set `is_error` print the exit code above the output. */
const EXIT_CODE = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** No output after it, as for a search without matches: not a failure. */
const NO_OUTPUT = /(?:^|\n)Output:\s*$/

function hasFailingExitCode(result: string): boolean {
  const code = EXIT_CODE.exec(result.slice(0, 400))?.[1]
  return code !== undefined && Number(code) !== 0 && !NO_OUTPUT.test(result.slice(-200))
}

export interface LargeInput {
  readonly field: string
  /** Estimated. */
  readonly tokens: number
}

/** The string fields of an input with at least `least` tokens. */
export function findLargeInputs(
  block: ToolUseBlock,
  least: number,
  estimate: (text: string) => number,
): readonly LargeInput[] {
  if (!isObject(block.input)) return []
  return Object.entries(block.input).flatMap(([field, value]) => {
    // A token is rarely shorter than one character, so a short text need not be estimated.
    if (typeof value !== 'string' || value.length < least) return []
    const tokens = estimate(value)
    return tokens >= least ? [{ field, tokens }] : []
  })
}

/** One spelling for each path: absolute if `folder` is given, `/` as separator, no `.` or `..`. Does not resolve links. */
export function normalizePath(path: string, folder: string | null = null): string {
  const given = path.replaceAll('\\', '/')
  const isAbsolute = given.startsWith('/') || /^[A-Za-z]:\//.test(given)
  const whole = isAbsolute || folder === null ? given : `${folder.replaceAll('\\', '/')}/${given}`
  const parts: string[] = []
  for (const part of whole.split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `${whole.startsWith('/') ? '/' : ''}${parts.join('/')}`
}
