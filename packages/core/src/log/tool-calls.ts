/**
 * What a tool call read, wrote, edited, ran or searched. The one answer for the summary, clearing and the file
 * source. The input's shape decides, since hosts name their tools as they like; a list of names decides only where
 * the shape cannot tell (`Edit {file_path}`).
 */

import { type Block, blocksOf, isText, isToolResult, isToolUse, type ToolUseBlock } from './block.ts'
import { isObject } from './json.ts'
import { isSyntheticError, type KnownRecord } from './record.ts'

/** `write` puts a whole file in place, `edit` changes a part of it, `search` lists or greps, `run` is a shell. */
export type ToolKind = 'read' | 'write' | 'edit' | 'run' | 'search' | 'other'

export interface ToolCallFacts {
  readonly kind: ToolKind
  /** The file read, written or edited; null where there is none, or a patch names several. */
  readonly path: string | null
  /** Which part of the file is read; null for all of it. */
  readonly range: string | null
  /** The command of a `run`. */
  readonly command: string | null
  /** Every file the call acts on. A patch names several, also one that a shell applies. */
  readonly touches: readonly FileTouch[]
  /** The replacements of an edit, in order; empty where the input does not spell them out. */
  readonly edits: readonly Replacement[]
}

/** What a call did to one file. A deletion counts as an edit: the path is still part of the work. */
export interface FileTouch {
  readonly path: string
  readonly act: 'edit' | 'write' | 'read'
  /** The text the call put there; null where the input does not say. */
  readonly put: string | null
}

export interface Replacement {
  readonly old: string | null
  readonly put: string | null
  /** Every occurrence, not only the first. */
  readonly all: boolean
}

/** Tools known by name: the defaults of `rehydrate.files.readTools`, and of both lists of write tools. */
export const READ_TOOLS: readonly string[] = ['Read']
export const WRITE_TOOLS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/** Both policy tables fit: `policy.clear` and `policy.rehydrate.files`. */
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
/** Beside one of these a path is not on this machine. */
const REMOTES = ['url', 'repo', 'bucket', 'host']

/** Anthropic's text editor and memory tools: a subcommand where a shell has its command. */
const EDITOR_COMMANDS: ReadonlyMap<string, 'read' | 'write' | 'edit'> = new Map([
  ['view', 'read'],
  ['create', 'write'],
  ['str_replace', 'edit'],
  ['insert', 'edit'],
  ['undo_edit', 'edit'],
  ['delete', 'edit'],
  ['rename', 'edit'],
])

/** Tools that list a folder: their path alone would look like a read. */
const LISTING = /^(?:ls|list|list_?(?:dir|directory|files))$/i

const PATCHED_FILE = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

type Input = Readonly<Record<string, unknown>>

/** `tools`: tools that read or write files whatever their input looks like, as `rehydrate.files` or `clear` of the policy. */
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

/** What a call with a path does to that file; null where it runs or searches something else. */
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

/** One text, or a list of words; OpenAI's local shell puts it under `action`. */
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
  return edits.filter(isObject).flatMap((edit) => {
    const [old, put] = [textField(edit, OLD_TEXTS), textField(edit, NEW_TEXTS)]
    if (old === null && put === null) return []
    return [{ old, put, all: edit.replace_all === true || edit.replaceAll === true }]
  })
}

/** The files of a patch in Codex's format. */
function patchedFiles(patch: string): readonly FileTouch[] {
  const heads = [...patch.matchAll(PATCHED_FILE)]
  return heads.map((head, index) => {
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

/** Every text in a value, decoded, without the names of its fields. */
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

// Tool calls with their results, in the order of the calls.

export interface ToolRun extends ToolCallFacts {
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** Uuid of the record that made the call. */
  readonly uuid: string
  /** Place of that record in the history, and of the one with the result; null while it has none. */
  readonly place: number
  readonly answeredAt: number | null
  readonly resultUuid: string | null
  readonly result: string
  readonly failed: boolean
}

/** `history`: the records of the branch in order, from the first to the last one that counts. */
export function toolRunsOf(history: readonly KnownRecord[], tools: FileTools = {}): readonly ToolRun[] {
  const runs: ToolRun[] = []
  const byId = new Map<string, number>()
  history.forEach((record, place) => {
    if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record)) return
    for (const block of blocksOf(record.message.content)) {
      if (record.type === 'user') enterResult(runs, byId, { block, record, place })
      else if (isToolUse(block) && !byId.has(block.id)) {
        byId.set(block.id, runs.length)
        runs.push(startRun(block, { uuid: record.uuid, place }, tools))
      }
    }
  })
  return runs
}

/** Has its result, and that is no failure. */
export function hasSucceeded({ answeredAt, failed }: ToolRun): boolean {
  return answeredAt !== null && !failed
}

function startRun(block: ToolUseBlock, at: Pick<ToolRun, 'uuid' | 'place'>, tools: FileTools): ToolRun {
  const name = typeof block.name === 'string' ? block.name : 'unknown'
  const facts = describeToolCall(name, block.input, tools)
  const open = { answeredAt: null, resultUuid: null, result: '', failed: false }
  return { id: block.id, name, input: block.input, ...facts, ...at, ...open }
}

interface FoundResult {
  readonly block: Block
  readonly record: KnownRecord
  readonly place: number
}

function enterResult(runs: ToolRun[], byId: Map<string, number>, found: FoundResult): void {
  const { block, record, place } = found
  if (!isToolResult(block)) return
  const at = byId.get(block.tool_use_id)
  const run = at === undefined ? undefined : runs[at]
  if (at === undefined || run === undefined || run.answeredAt !== null) return
  const result = resultText(block.content)
  const failed = block.is_error === true || (run.kind === 'run' && exitedBadly(result))
  runs[at] = { ...run, answeredAt: place, resultUuid: record.uuid, result, failed }
}

export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: Block) => (isText(block) ? [block.text] : [])).join('\n')
}

/** How file tools say that a file is as it was read before, instead of giving its text. */
const UNCHANGED = /^\s*(?:<[a-z_-]+>\s*)?(?:file_unchanged|file unchanged since|\[file unchanged)/i

export function isUnchangedNotice(result: string): boolean {
  return UNCHANGED.test(result)
}

/** Programs that do not mark a failed command give its exit code above the output. */
const EXIT = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** No output below it: a search that found nothing, a test that was false. */
const SILENT = /(?:^|\n)Output:\s*$/

function exitedBadly(result: string): boolean {
  const code = EXIT.exec(result.slice(0, 400))?.[1]
  return code !== undefined && Number(code) !== 0 && !SILENT.test(result.slice(-200))
}

export interface LargeInput {
  readonly field: string
  /** Tokens, as estimated. */
  readonly tokens: number
}

/** Texts of an input that are at least `least` tokens long. */
export function largeInputs(
  block: ToolUseBlock,
  least: number,
  estimate: (text: string) => number,
): readonly LargeInput[] {
  if (!isObject(block.input)) return []
  return Object.entries(block.input).flatMap(([field, value]) => {
    // A token is rarely less than a byte of text, so a short text need not be weighed.
    if (typeof value !== 'string' || value.length < least) return []
    const tokens = estimate(value)
    return tokens >= least ? [{ field, tokens }] : []
  })
}

/** One spelling for each path: absolute where `folder` is given, `/` between the parts, no `.` or `..`. Follows no links. */
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
