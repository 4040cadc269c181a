/**
 * What a tool call does to the world, told by the shape of its input rather than by the tool's name: hosts name
 * their tools as they like, and a path beside a replacement is an edit everywhere.
 */

import { type Block, blocksOf, isText, isToolResult, isToolUse, type ToolUseBlock } from './block.ts'
import { recordAt } from './branches.ts'
import { isObject, type Json } from './json.ts'
import { isKnown, isSyntheticError, type KnownRecord } from './record.ts'
import type { Session } from './session.ts'

export type ToolKind = 'shell' | 'edit' | 'write' | 'read' | 'search' | 'other'

/** What a call did to one file. A deletion counts as an edit: the path is still part of the work. */
export interface FileTouch {
  readonly path: string
  readonly act: 'edit' | 'write' | 'read'
  /** The text the call put there, where it says so. */
  readonly put: string | null
}

const PATHS = ['file_path', 'path', 'filePath', 'notebook_path', 'target_file', 'filename']
const REPLACEMENTS = ['new_string', 'new_str', 'new_source', 'newText', 'insert_text', 'replacement']
const CONTENTS = ['content', 'contents', 'file_text', 'text']
const QUERIES = ['pattern', 'query', 'glob', 'regex']
const COMMANDS = ['command', 'cmd', 'script']

const PATCHED = /^\*\*\* (Update|Add|Delete) File: (.+)$/gm

export function kindOf(input: Json): ToolKind {
  if (!isObject(input)) return 'other'
  if (commandOf(input) !== null) return 'shell'
  const path = textField(input, PATHS)
  if (path !== null && isEdit(input)) return 'edit'
  if (path !== null && textField(input, CONTENTS) !== null) return 'write'
  if (textField(input, QUERIES) !== null) return 'search'
  return path === null ? 'other' : 'read'
}

/** The command of a shell call as one text, or null. */
export function commandOf(input: Json): string | null {
  if (!isObject(input)) return null
  const action = isObject(input.action) ? commandOf(input.action as Json) : null
  for (const name of COMMANDS) {
    const value = input[name]
    if (typeof value === 'string') return value
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value.join(' ')
  }
  return action
}

/** The files a call names as its object; of a patch, every file in it. */
export function touchesOf(input: Json, kind: ToolKind): readonly FileTouch[] {
  const patched = patchedFiles(input)
  if (patched.length > 0) return patched
  const path = isObject(input) ? textField(input, PATHS) : null
  if (path === null || !isObject(input)) return []
  if (kind === 'edit') return [{ path, act: 'edit', put: replacementOf(input) }]
  if (kind === 'write') return [{ path, act: 'write', put: textField(input, CONTENTS) }]
  return kind === 'read' ? [{ path, act: 'read', put: null }] : []
}

function patchedFiles(input: Json): readonly FileTouch[] {
  return stringsIn(input).flatMap((text) => {
    if (!text.includes('*** ')) return []
    const heads = [...text.matchAll(PATCHED)]
    return heads.map((head, index) => {
      const [line, verb, path = ''] = head
      const body = text.slice(head.index + line.length, heads[index + 1]?.index)
      return { path: path.trim(), act: verb === 'Add' ? 'write' : 'edit', put: addedLines(body) }
    })
  })
}

function addedLines(patch: string): string | null {
  const added = patch.split('\n').filter((line) => line.startsWith('+'))
  return added.length === 0 ? null : added.map((line) => line.slice(1)).join('\n')
}

function isEdit(input: Readonly<Record<string, unknown>>): boolean {
  return replacementOf(input) !== null || 'old_string' in input || 'old_str' in input
}

/** Of several edits in one call, the last. */
function replacementOf(input: Readonly<Record<string, unknown>>): string | null {
  const one = textField(input, REPLACEMENTS)
  if (one !== null || !Array.isArray(input.edits)) return one
  const last: unknown = input.edits.at(-1)
  return isObject(last) ? textField(last, REPLACEMENTS) : null
}

function textField(input: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
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

// Tool calls with what came of them, in the order they were made: what most facts of a session are read off.

export interface ToolRun {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly kind: ToolKind
  /** Of a shell call. */
  readonly command: string | null
  readonly touches: readonly FileTouch[]
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
export function toolRunsOf(history: readonly KnownRecord[]): readonly ToolRun[] {
  const runs: ToolRun[] = []
  const byId = new Map<string, number>()
  history.forEach((record, place) => {
    if ((record.type !== 'assistant' && record.type !== 'user') || isSyntheticError(record)) return
    for (const block of blocksOf(record.message.content)) {
      if (record.type === 'assistant') enterCall(runs, byId, { block, record, place })
      else enterResult(runs, byId, { block, record, place })
    }
  })
  return runs
}

interface Found {
  readonly block: Block
  readonly record: KnownRecord
  readonly place: number
}

function enterCall(runs: ToolRun[], byId: Map<string, number>, { block, record, place }: Found): void {
  if (!isToolUse(block) || byId.has(block.id)) return
  const kind = kindOf(block.input)
  byId.set(block.id, runs.length)
  runs.push({
    id: block.id,
    name: typeof block.name === 'string' ? block.name : 'unknown',
    input: block.input,
    kind,
    command: kind === 'shell' ? commandOf(block.input) : null,
    touches: touchesOf(block.input, kind),
    uuid: record.uuid,
    place,
    answeredAt: null,
    resultUuid: null,
    result: '',
    failed: false,
  })
}

function enterResult(runs: ToolRun[], byId: Map<string, number>, { block, record, place }: Found): void {
  if (!isToolResult(block)) return
  const at = byId.get(block.tool_use_id)
  const run = at === undefined ? undefined : runs[at]
  if (at === undefined || run === undefined || run.answeredAt !== null) return
  const result = resultText(block.content)
  const failed = block.is_error === true || (run.kind === 'shell' && exitedBadly(result))
  runs[at] = { ...run, answeredAt: place, resultUuid: record.uuid, result, failed }
}

export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: Block) => (isText(block) ? [block.text] : [])).join('\n')
}

/** Programs that do not mark a failed command say its exit code above the output. */
const EXIT = /^(?:Exit code:|Process exited with code) (-?\d+)$/m
/** Nothing said behind that: a search that found nothing, a test that was not true. */
const SILENT = /(?:^|\n)Output:\s*$/

function exitedBadly(result: string): boolean {
  const code = EXIT.exec(result.slice(0, 400))?.[1]
  return code !== undefined && Number(code) !== 0 && !SILENT.test(result.slice(-200))
}

// What a tool call is about: the file it reads or writes, the command it runs, and which of its inputs are large.

/** `write` holds the whole file, `edit` a part of it. */
export type Concern = 'read' | 'write' | 'edit' | 'other'

export interface CallFacts {
  readonly concern: Concern
  /** The file, for reads, writes and edits. */
  readonly path: string | null
  /** Which part of the file is read; null for all of it. */
  readonly range: string | null
  readonly command: string | null
}

/** Fields that say which part of a file is wanted. */
const RANGE = ['offset', 'limit', 'pages', 'view_range', 'start_line', 'end_line']
/** Fields that make a `path` the root of a search. */
const SEARCH = ['pattern', 'query', 'regex', 'command']

export function factsOfCall(block: ToolUseBlock, isWriteTool: boolean): CallFacts {
  const input = isObject(block.input) ? block.input : {}
  const path = pathOf(input, isWriteTool)
  return {
    concern: concernOf(input, path, isWriteTool),
    path,
    range: path === null || isWriteTool ? null : rangeOf(input),
    command: commandOfToolCall(input.command),
  }
}

type Input = Readonly<Record<string, unknown>>

function pathOf(input: Input, isWriteTool: boolean): string | null {
  const isSearch = !isWriteTool && SEARCH.some((field) => input[field] !== undefined)
  const path = input.file_path ?? (isSearch ? undefined : input.path)
  return typeof path === 'string' ? path : null
}

function concernOf(input: Input, path: string | null, isWriteTool: boolean): Concern {
  if (path === null) return 'other'
  if (!isWriteTool) return 'read'
  return typeof input.content === 'string' || typeof input.file_text === 'string' ? 'write' : 'edit'
}

function rangeOf(input: Input): string | null {
  const given = RANGE.filter((field) => input[field] !== undefined && input[field] !== null)
  return given.length === 0 ? null : JSON.stringify(given.map((field) => [field, input[field]]))
}

/** A shell takes its command as one text, or as a list of words. */
function commandOfToolCall(command: unknown): string | null {
  if (typeof command === 'string') return command
  return Array.isArray(command) ? command.map(String).join(' ') : null
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

// The calls of a conversation that went well, newest first: what carriers learn from its records.

export interface WalkedCall {
  readonly call: ToolUseBlock
  /** Of the record that holds the call. */
  readonly index: number
}

/** Along the branch that counts. Calls that failed or have no answer are left out. */
export function* callsNewestFirst(session: Session, tools: ReadonlySet<string>): Generator<WalkedCall> {
  const answered = new Set<string>()
  for (let position = session.branch.length - 1; position >= 0; position -= 1) {
    const index = session.branch.at(position) ?? 0
    const blocks = blocksAt(session, index)
    for (const block of blocks)
      if (isToolResult(block) && block.is_error !== true) answered.add(block.tool_use_id)
    for (const call of blocks.filter(isToolUse).reverse())
      if (tools.has(call.name) && answered.has(call.id)) yield { call, index }
  }
}

function blocksAt(session: Session, index: number): readonly Block[] {
  const record = recordAt(session, index)
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  return blocksOf(record.message.content)
}

// Paths as text: one spelling for each, and whether one is a memory file.

/** Absolute where `folder` is given, `/` between the parts, no `.` or `..`. Links are the disk's to follow. */
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

/** Does `path` end in `name`: a name, several parts of a path, or with `*` for any part of one? */
export function endsIn(path: string, name: string): boolean {
  const wanted = name.split('/').filter((part) => part !== '')
  const given = plainPath(path).split('/').slice(-wanted.length)
  return given.length === wanted.length && wanted.every((part, index) => isLike(given[index] ?? '', part))
}

function isLike(part: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return part === pattern
  if (!part.startsWith(first)) return false
  const last = rest.at(-1) ?? ''
  let at = first.length
  for (const piece of rest.slice(0, -1)) {
    const found = part.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return part.endsWith(last) && part.length - last.length >= at
}
