/**
 * What a tool call read, wrote, edited, ran or searched, for the summary, clearing, the file source and the token
 * breakdown. The input's shape decides, since hosts choose their tool names; a list of names decides only where the
 * shape is ambiguous (`Edit {file_path}`).
 */

import { type Block, blocksOf, isText, isToolResult, isToolUse, type ToolUseBlock } from './block.ts'
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
  readonly edits: readonly Replacement[]
}

/** What a call did to one file. A deletion counts as an edit. */
export interface FileTouch {
  readonly path: string
  readonly act: 'edit' | 'write' | 'read'
  /** The new text; null if the input does not contain it. */
  readonly put: string | null
}

export interface Replacement {
  readonly old: string | null
  readonly put: string | null
  /** Replace every occurrence, not only the first. */
  readonly all: boolean
}

/** Defaults of `rehydrate.files.readTools`, and of both `writeTools` policy fields. */
export const READ_TOOLS: readonly string[] = ['Read']
export const WRITE_TOOLS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/** Tools known by name; `policy.clear` and `policy.rehydrate.files` both fit. */
export interface FileTools {
  readonly readTools?: readonly string[]
  readonly writeTools?: readonly string[]
}

const PATHS = ['file_path', 'path', 'filePath', 'notebook_path', 'target_file', 'filename']
const OLD_TEXTS = ['old_string', 'old_str', 'oldString', 'oldText']
const NEW_TEXTS = [
  ...['new_string', 'new_str', 'newString', 'newText'],
  ...['new_source', 'insert_text', 'replacement'],
]
const CONTENTS = ['content', 'contents', 'file_text', 'text']
const QUERIES = ['pattern', 'query', 'glob', 'regex']
const COMMANDS = ['command', 'cmd', 'script']
const PATCHES = ['input', 'patch', 'patchText']
const RANGES = ['offset', 'limit', 'pages', 'view_range', 'start_line', 'end_line']
/** With one of these fields the path is not on this machine. */
const REMOTES = ['url', 'repo', 'bucket', 'host']

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
const LISTING = /^(?:ls|list|list_?(?:dir|directory|files))$/i

const PATCHED_FILE = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

type Input = Readonly<Record<string, unknown>>

/** `tools`: tools that read or write files whatever their input looks like (`policy.rehydrate.files`, `policy.clear`). */
export function describeToolCall(name: string, input: unknown, tools: FileTools = {}): ToolCallFacts {
  const fields: Input = isObject(input) ? input : { input }
  const path = pathIn(fields)
  const act = path === null ? null : fileAct(name, fields, tools)
  if (path !== null && act !== null) return describeFileCall(path, act, fields)
  const command = commandIn(fields)
  const touches = patchedFiles(command ?? (path === null ? textField(fields, PATCHES) : null) ?? '')
  if (command !== null) return { ...NOTHING, kind: 'run', command, touches }
  if (touches.length === 0) return { ...NOTHING, kind: isSearch(name, fields) ? 'search' : 'other' }
  const kind = touches.every((touch) => touch.act === 'write') ? 'write' : 'edit'
  return { ...NOTHING, kind, touches, path: touches.length === 1 ? (touches[0]?.path ?? null) : null }
}

const NOTHING = { path: null, range: null, command: null, touches: [], edits: [] } as const

function describeFileCall(path: string, act: FileTouch['act'], input: Input): ToolCallFacts {
  const edits = act === 'edit' ? replacementsIn(input) : []
  const puts = { read: null, write: textField(input, CONTENTS), edit: edits.at(-1)?.put ?? null }
  const range = act === 'read' ? rangeIn(input) : null
  return { kind: act, path, range, command: null, touches: [{ path, act, put: puts[act] }], edits }
}

/** What a call with a path does to that file; null if it runs a command or searches. */
function fileAct(name: string, input: Input, tools: FileTools): FileTouch['act'] | null {
  const editor = typeof input.command === 'string' ? EDITOR_COMMANDS.get(input.command) : undefined
  if (editor !== undefined) return editor
  if (commandIn(input) !== null) return null
  const { readTools = READ_TOOLS, writeTools = WRITE_TOOLS } = tools
  if (readTools.includes(name)) return 'read'
  const isWrite = textField(input, CONTENTS) !== null
  if (writeTools.includes(name)) return isWrite ? 'write' : 'edit'
  if (REMOTES.some((field) => input[field] !== undefined)) return null
  if (replacementsIn(input).length > 0) return 'edit'
  if (isWrite) return 'write'
  return isSearch(name, input) ? null : 'read'
}

function isSearch(name: string, input: Input): boolean {
  return LISTING.test(name) || textField(input, QUERIES) !== null
}

function pathIn(input: Input): string | null {
  const path = textField(input, input.command === 'rename' ? ['old_path'] : PATHS)
  return path === null || path.trim() === '' ? null : path
}

/** A string or an array of arguments; OpenAI's local shell puts it under `action`. */
function commandIn(input: Input): string | null {
  for (const name of COMMANDS) {
    const value = input[name]
    if (typeof value === 'string') return value
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value.join(' ')
  }
  return isObject(input.action) ? commandIn(input.action) : null
}

function rangeIn(input: Input): string | null {
  const given = RANGES.filter((field) => input[field] !== undefined && input[field] !== null)
  return given.length === 0 ? null : JSON.stringify(given.map((field) => [field, input[field]]))
}

function replacementsIn(input: Input): readonly Replacement[] {
  const edits: readonly unknown[] = Array.isArray(input.edits) ? input.edits : [input]
  return edits.filter(isObject).flatMap((edit): readonly Replacement[] => {
    const [old, put] = [textField(edit, OLD_TEXTS), textField(edit, NEW_TEXTS)]
    if (old === null && put === null) return []
    return [{ old, put, all: edit.replace_all === true || edit.replaceAll === true }]
  })
}

/** The files of a patch in Codex's `apply_patch` format. */
function patchedFiles(patch: string): readonly FileTouch[] {
  const heads = [...patch.matchAll(PATCHED_FILE)]
  return heads.map((head, index): FileTouch => {
    const [line, verb, path = ''] = head
    const body = patch.slice(head.index + line.length, heads[index + 1]?.index)
    return { path: path.trim(), act: verb === 'Add' ? 'write' : 'edit', put: addedLines(body) }
  })
}

function addedLines(patch: string): string | null {
  const added = patch.split('\n').filter((line) => line.startsWith('+'))
  return added.length === 0 ? null : added.map((line) => line.slice(1)).join('\n')
}

function textField(input: Input, names: readonly string[]): string | null {
  for (const name of names) {
    const value = Object.hasOwn(input, name) ? input[name] : null
    if (typeof value === 'string') return value
  }
  return null
}

/** Every string in a JSON value, without field names. Iterative: a model may nest deeper than the stack allows. */
export function stringsIn(value: unknown): readonly string[] {
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
  readonly place: number
  readonly answeredAt: number | null
  readonly resultUuid: string | null
  readonly result: string
  readonly failed: boolean
}

/** Tool calls with their results, in the order of the calls. `history`: records of the branch, from the first on. */
export function toolRunsOf(history: readonly KnownRecord[], tools: FileTools = {}): readonly ToolRun[] {
  const runs = new Map<string, ToolRun>()
  history.forEach((record, place) => {
    if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record)) return
    const { uuid } = record
    for (const block of blocksOf(record.message.content)) {
      if (record.type === 'assistant' && isToolUse(block) && !runs.has(block.id)) {
        const { id, input } = block
        const name = toolName(block)
        const facts = describeToolCall(name, input, tools)
        const call = { id, name, input, uuid, ...facts }
        runs.set(id, { ...call, place, answeredAt: null, resultUuid: null, result: '', failed: false })
      }
      const run = record.type === 'user' && isToolResult(block) ? runs.get(block.tool_use_id) : undefined
      if (run === undefined || run.answeredAt !== null) continue
      const result = resultText(block.content)
      const failed = block.is_error === true || (run.kind === 'run' && exitedBadly(result))
      runs.set(run.id, { ...run, answeredAt: place, resultUuid: uuid, result, failed })
    }
  })
  return [...runs.values()]
}

/** Other programs may log a call without a name. */
export function toolName({ name }: Block): string {
  return typeof name === 'string' ? name : 'unknown'
}

/** The call has a result that is not a failure. */
export function hasSucceeded({ answeredAt, failed }: ToolRun): boolean {
  return answeredAt !== null && !failed
}

export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: Block) => (isText(block) ? [block.text] : [])).join('\n')
}

/** How file tools report that a file has not changed since it was last read, instead of returning its text. */
const UNCHANGED = /^\s*(?:<[a-z_-]+>\s*)?(?:file_unchanged|file unchanged since|\[file unchanged)/i

export function isUnchangedNotice(result: string): boolean {
  return UNCHANGED.test(result)
}

/** Programs that do not set `is_error` print the exit code above the output. */
const EXIT = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** No output after it, as for a search without matches: not a failure. */
const SILENT = /(?:^|\n)Output:\s*$/

function exitedBadly(result: string): boolean {
  const code = EXIT.exec(result.slice(0, 400))?.[1]
  return code !== undefined && Number(code) !== 0 && !SILENT.test(result.slice(-200))
}

export interface LargeInput {
  readonly field: string
  /** Estimated. */
  readonly tokens: number
}

/** The string fields of an input with at least `least` tokens. */
export function largeInputs(
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
export function plainPath(path: string, folder: string | null = null): string {
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
