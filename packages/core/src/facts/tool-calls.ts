/**
 * Classifies tool calls: what a call read, wrote, edited, ran or searched. Hosts choose their own tool names, so the
 * fields of the input decide. Tool names decide only if the input is ambiguous, as in `Edit {file_path}`.
 */

import { type Block, joinTextBlocks, type ToolResultBlock, type ToolUseBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { readRefusalText } from './host-texts.ts'

/** What a tool call does: `write` a whole file, `edit` part of a file, `search` (list or grep), `run` a shell command. */
type ToolCallKind = 'read' | 'write' | 'edit' | 'run' | 'search' | 'other'

export interface ToolCallFacts {
  readonly kind: ToolCallKind
  /** The file that the tool call reads, writes or edits; null if there is none, or if a patch names several. */
  readonly path: string | null
  /** The part of the file that a read call requests, as JSON of the range fields in its input; null for the whole file. */
  readonly range: string | null
  /** The shell command of a `run` call; null for other tool calls. */
  readonly command: string | null
  /** Every file that the tool call reads or changes. A patch may name several files, even if a shell command applies it. */
  readonly touches: readonly FileTouch[]
  /** The text replacements of an edit call, in order; empty if its input does not contain them. */
  readonly edits: readonly TextReplacement[]
}

/** What a tool call did to one file. Deleting a file counts as an edit. */
export interface FileTouch {
  readonly path: string
  readonly action: 'edit' | 'write' | 'read'
  /** True if the call deletes the file. */
  readonly isDeletion?: boolean
  /** The text that the tool call wrote to the file; null if the input does not contain it. */
  readonly newText: string | null
  /** The lines of the file that a patch replaces or names around its changes; absent if there are none. */
  readonly oldText?: string
  /** The replacements that a patch makes in the file, in order; absent for other calls. */
  readonly edits?: readonly TextReplacement[]
}

export interface TextReplacement {
  readonly oldText: string | null
  readonly newText: string | null
  /** True to replace every occurrence of the old text, false to replace only the first. */
  readonly replaceAll: boolean
}

/**
 * Names of tools that read or write files: defaults of `rehydrate.files.readTools` and of both `writeTools` fields of the
 * policy.
 */
export const READ_TOOLS: readonly string[] = ['Read']
export const WRITE_TOOLS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/** Names of tools that read or write files. The policy groups `clear` and `rehydrate.files` both have these fields. */
export interface FileToolNames {
  readonly readTools?: readonly string[]
  readonly writeTools?: readonly string[]
}

const PATH_FIELDS = [
  ...['file_path', 'path', 'filePath', 'notebook_path', 'target_file', 'filename', 'file'],
  ...['filepath', 'file_name', 'fileName', 'absolute_path', 'absolutePath', 'relative_path', 'relativePath'],
]
const OLD_TEXT_FIELDS = ['old_string', 'old_str', 'oldString', 'oldText']
const NEW_TEXT_FIELDS = [
  ...['new_string', 'new_str', 'newString', 'newText'],
  ...['new_source', 'insert_text', 'replacement'],
]
/** Field names of old and new text. Two such fields mean a replacement only if both are present. */
const REPLACEMENT_PAIRS = { old: 'new', search: 'replace', find: 'replace', before: 'after' }
const CONTENT_FIELDS = ['content', 'contents', 'file_text', 'text', 'body', 'file_content', 'fileContent']
const QUERY_FIELDS = ['pattern', 'query', 'glob', 'regex']
const COMMAND_FIELDS = ['command', 'cmd', 'script']
const PATCH_FIELDS = ['input', 'patch', 'patchText']
const RANGE_FIELDS = ['offset', 'limit', 'pages', 'view_range', 'start_line', 'end_line']
/** Input fields of tool calls whose path is on another machine. */
const REMOTE_FIELDS = ['url', 'repo', 'bucket', 'host']

/** Values of the `command` field of Anthropic's text editor and memory tools. They are not shell commands. */
const EDITOR_COMMANDS: ReadonlyMap<string, 'read' | 'write' | 'edit'> = new Map([
  ['view', 'read'],
  ['create', 'write'],
  ['str_replace', 'edit'],
  ['insert', 'edit'],
  ['undo_edit', 'edit'],
  ['delete', 'edit'],
  ['rename', 'edit'],
])

/**
 * Matches names of tools that list a folder. Their input is only a path, which would otherwise be taken for reading a
 * file.
 */
const LISTING_TOOL_NAME = /^(?:ls|list|list_?(?:dir|directory|files))$/i

const PATCH_FILE_LINE = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

type Input = Readonly<Record<string, unknown>>

/**
 * Returns what a tool call does. `tools` has names of tools that always count as reading or writing a file, whatever
 * their input.
 */
export function describeToolCall(name: string, input: unknown, tools: FileToolNames = {}): ToolCallFacts {
  const fields: Input = isObject(input) ? input : { input }
  const path = findPath(fields)
  const act = path === null ? null : classifyFileCall(name, fields, tools)
  if (path !== null && act !== null) return describeFileCall(path, act, fields)
  const command = findCommand(fields)
  const patch = command ?? (path === null ? findTextField(fields, PATCH_FIELDS) : null) ?? ''
  const touches = [...listPatchedFiles(patch), ...(command === null ? listWrittenFiles(fields) : [])]
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

/** Returns what a tool call with a path does to that file; null if the call runs a command or searches. */
function classifyFileCall(name: string, input: Input, tools: FileToolNames): FileTouch['action'] | null {
  const editor = typeof input.command === 'string' ? EDITOR_COMMANDS.get(input.command) : undefined
  if (editor !== undefined) return editor
  if (findCommand(input) !== null) return null
  const { readTools = READ_TOOLS, writeTools = WRITE_TOOLS } = tools
  if (readTools.includes(name)) return 'read'
  const isWrite = findTextField(input, CONTENT_FIELDS) !== null
  if (writeTools.includes(name)) return isWrite ? 'write' : 'edit'
  if (isRemoteCall(input)) return null
  if (listReplacements(input).length > 0) return 'edit'
  if (isWrite) return 'write'
  return isSearchCall(name, input) ? null : 'read'
}

function isRemoteCall(input: Input): boolean {
  return REMOTE_FIELDS.some((field) => input[field] !== undefined)
}

function isSearchCall(name: string, input: Input): boolean {
  return LISTING_TOOL_NAME.test(name) || findTextField(input, QUERY_FIELDS) !== null
}

function findPath(input: Input): string | null {
  const path = findTextField(input, input.command === 'rename' ? ['old_path'] : PATH_FIELDS)
  return path === null || path.trim() === '' ? null : path
}

/**
 * Returns the shell command of a tool call, from a string or an array of arguments. OpenAI's local shell tool puts it
 * under `action`.
 */
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
    if (old === null && put === null) return listPairedReplacement(edit)
    return [{ oldText: old, newText: put, replaceAll: edit.replace_all === true || edit.replaceAll === true }]
  })
}

function listPairedReplacement(edit: Input): readonly TextReplacement[] {
  for (const [oldField, newField] of Object.entries(REPLACEMENT_PAIRS)) {
    const [oldText, newText] = [edit[oldField], edit[newField]]
    if (typeof oldText === 'string' && typeof newText === 'string')
      return [{ oldText, newText, replaceAll: edit.all === true }]
  }
  return []
}

/** Returns the files that a tool call writes as a list of paths with texts. */
function listWrittenFiles(input: Input): readonly FileTouch[] {
  const { files } = input
  if (!Array.isArray(files) || isRemoteCall(input)) return []
  return files.filter(isObject).flatMap((file): readonly FileTouch[] => {
    const [path, newText] = [findPath(file), findTextField(file, CONTENT_FIELDS)]
    return path === null || newText === null ? [] : [{ path, action: 'write', newText }]
  })
}

/** Returns the files that are named in a patch in the format of Codex's `apply_patch`. */
function listPatchedFiles(patch: string): readonly FileTouch[] {
  const heads = [...patch.matchAll(PATCH_FILE_LINE)]
  return heads.map((head, index): FileTouch => {
    const [line, verb, path = ''] = head
    const body = patch.slice(head.index + line.length, heads[index + 1]?.index)
    const oldText = collectPatchLines(body, ['-', ' '])
    const touch = {
      path: path.trim(),
      newText: collectPatchLines(body, ['+']),
      ...(oldText === null ? {} : { oldText }),
    }
    if (verb === 'Delete') return { ...touch, action: 'edit', isDeletion: true }
    return verb === 'Add'
      ? { ...touch, action: 'write' }
      : { ...touch, action: 'edit', edits: listHunks(body) }
  })
}

/** Matches the line before each part of a file that a patch changes. */
const HUNK_LINE = /^@@.*$/m

/** Returns what each part of a patch replaces, with the unchanged lines around it. */
function listHunks(patch: string): readonly TextReplacement[] {
  return patch.split(HUNK_LINE).flatMap((hunk): readonly TextReplacement[] => {
    const [oldText, newText] = [collectPatchLines(hunk, ['-', ' ']), collectPatchLines(hunk, ['+', ' '])]
    return oldText === null && newText === null
      ? []
      : [{ oldText, newText: newText ?? '', replaceAll: false }]
  })
}

/** Returns the lines of a patch with one of these marks, without the mark; null if there is none. */
function collectPatchLines(patch: string, marks: readonly string[]): string | null {
  const lines = patch.split('\n').filter(([mark = '']) => marks.includes(mark))
  return lines.length === 0 ? null : lines.map((line) => line.slice(1)).join('\n')
}

function findTextField(input: Input, names: readonly string[]): string | null {
  for (const name of names) {
    const value = Object.hasOwn(input, name) ? input[name] : null
    if (typeof value === 'string') return value
  }
  return null
}

/**
 * Returns every string value in a JSON value, without field names. Does not recurse, because a model may nest values
 * too deep for the stack.
 */
export function collectJsonStrings(value: unknown): readonly string[] {
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

/** Matches the types of Anthropic's own shell and text editor, whose definitions have no schema. */
const FILE_READING_TYPE = /^(?:bash|text_editor)_/

/** Checks whether a tool, judged by its definition, can read any file: a file reader, a text editor or a shell. */
export function canToolReadFiles({ name, type, input_schema: schema }: Input): boolean {
  if (typeof type === 'string' && FILE_READING_TYPE.test(type)) return true
  const properties = isObject(schema) && isObject(schema.properties) ? Object.keys(schema.properties) : []
  const required = isObject(schema) && Array.isArray(schema.required) ? schema.required : []
  const needed = properties.filter((field) => required.length === 0 || required.includes(field))
  const { kind } = describeToolCall(String(name), Object.fromEntries(needed.map((field) => [field, '/file'])))
  return kind === 'read' || kind === 'run'
}

/** Returns the tool name of a tool call, or `unknown` if it has none, as in the logs of some other programs. */
export function readToolName({ name }: Block): string {
  return typeof name === 'string' ? name : 'unknown'
}

/** Returns the text blocks of a tool result's content, joined; empty if it has none. */
export function readToolResultText(content: unknown): string {
  return typeof content === 'string' || Array.isArray(content) ? joinTextBlocks(content) : ''
}

/**
 * Checks whether the name of a tool begins with that of a server, as in `mcp__ui__ask_user`: such a result counts as a text
 * of the server, whatever it says. Tools that the provider runs are another thing (`isServerToolUse`).
 */
export function hasServerPrefix(name: string): boolean {
  return /__|[./:]/.test(name)
}

/**
 * Returns what the user typed when refusing a tool call, empty for no words; null if the result is no refusal. Reads the form
 * of the result, which a tool can imitate: use it only for records without `userInputs`.
 */
export function readRefusalFromResult({ content, is_error }: ToolResultBlock): string | null {
  return readRefusalText(readToolResultText(content), is_error === true)
}

/**
 * Matches the notice that some file tools return instead of a file's text if the file has not changed since it was last
 * read.
 */
const UNCHANGED_NOTICE = /^\s*(?:<[a-z_-]+>\s*)?(?:file_unchanged|file unchanged since|\[file unchanged)/i

/** True for a result that only says that the file is as when it was last read. */
export function isFileUnchangedNotice(result: string): boolean {
  return UNCHANGED_NOTICE.test(result)
}

/** A string field of a tool call's input with many tokens. */
export interface LargeInputField {
  readonly field: string
  /** Estimated tokens of the field's value. */
  readonly tokens: number
}

/** Returns the string fields in the input of a tool call whose value has at least `least` estimated tokens. */
export function findLargeInputFields(
  block: ToolUseBlock,
  least: number,
  estimate: (text: string) => number,
): readonly LargeInputField[] {
  if (!isObject(block.input)) return []
  return Object.entries(block.input).flatMap(([field, value]) => {
    // A token has rarely less than one character. So a text with fewer characters than `least` has too few tokens.
    if (typeof value !== 'string' || value.length < least) return []
    const tokens = estimate(value)
    return tokens >= least ? [{ field, tokens }] : []
  })
}

/**
 * Returns the same spelling for all paths to one file: `/` as separator, `.` and `..` resolved, and absolute if
 * `folder` is given. Symbolic links are not followed.
 */
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
