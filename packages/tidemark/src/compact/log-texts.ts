/** The files of a session as its log last had them: what was written, what was read, and the edits that followed. */
import { posix } from 'node:path'
import {
  type Block,
  blocksOf,
  isKnown,
  isObject,
  isToolResult,
  isToolUse,
  type SessionRecord,
  type ToolUseBlock,
} from '@tidemark/core'

/** The text of a file, whole or from one line to another. */
export interface LogText {
  readonly text: string
  readonly isWhole: boolean
  /** Number of the first line. */
  readonly from: number
}

/** One spelling for each path. `folder`: what relative ones start from. */
export function placeOf(path: string, folder: string | null): string {
  const given = path.replaceAll('\\', '/')
  const isAbsolute = given.startsWith('/') || /^[A-Za-z]:\//.test(given)
  return isAbsolute || folder === null ? posix.normalize(given) : posix.join(folder, given)
}

/** By place. `records`: of the branch, in order. */
export function logTexts(
  records: Iterable<SessionRecord>,
  folder: string | null,
): ReadonlyMap<string, LogText> {
  const calls = new Map<string, ToolUseBlock>()
  const texts = new Map<string, LogText>()
  for (const record of records) {
    if (!isKnown(record)) continue
    if (record.type === 'assistant')
      for (const block of blocksOf(record.message.content)) if (isToolUse(block)) calls.set(block.id, block)
    if (record.type !== 'user') continue
    const beside = (record as SessionRecord & { readonly toolUseResult?: unknown }).toolUseResult
    for (const block of blocksOf(record.message.content)) {
      const call = isToolResult(block) && block.is_error !== true ? calls.get(block.tool_use_id) : undefined
      if (call !== undefined) take(texts, { call, result: textOf(block), beside: fields(beside), folder })
    }
  }
  return texts
}

interface Done {
  readonly call: ToolUseBlock
  readonly result: string
  /** What the program noted of the result beside what the model was shown. */
  readonly beside: Fields
  readonly folder: string | null
}

type Fields = { readonly [field: string]: unknown }

function take(texts: Map<string, LogText>, done: Done): void {
  const input = fields(done.call.input)
  const given = input.file_path ?? input.path
  if (typeof given !== 'string') return
  const path = placeOf(given, done.folder)
  const next = after(texts.get(path), input, done)
  if (next === undefined) texts.delete(path)
  else texts.set(path, next)
}

/** Undefined: a change was made to what is not known. */
function after(before: LogText | undefined, input: Fields, done: Done): LogText | undefined {
  switch (done.call.name) {
    case 'Write':
      return typeof input.content === 'string' ? whole(input.content) : undefined
    case 'Edit':
      return edited(based(before, done), [input])
    case 'MultiEdit':
      return edited(based(before, done), Array.isArray(input.edits) ? input.edits.map(fields) : [])
    case 'Read':
      return readText(before, done)
    default:
      return done.call.name === 'NotebookEdit' ? undefined : before
  }
}

function based(before: LogText | undefined, { beside }: Done): LogText | undefined {
  return typeof beside.originalFile === 'string' ? whole(beside.originalFile) : before
}

function edited(before: LogText | undefined, edits: readonly Fields[]): LogText | undefined {
  let text = before?.text
  for (const { old_string: old, new_string: put, replace_all: all } of edits) {
    if (typeof old !== 'string' || typeof put !== 'string' || old === '' || text?.includes(old) !== true)
      return undefined
    text = all === true ? text.replaceAll(old, () => put) : text.replace(old, () => put)
  }
  return before === undefined || text === undefined ? undefined : { ...before, text }
}

/** A reading of a part says nothing new of a file that is known as a whole, unless it has lines the whole does not. */
function readText(before: LogText | undefined, { beside, result, call }: Done): LogText | undefined {
  const read = noted(beside) ?? numbered(result, fields(call.input))
  if (read === null) return before
  if (read.isWhole || before?.isWhole !== true) return read
  return before.text.includes(read.text) ? before : read
}

/** As Claude Code notes it. */
function noted({ file }: Fields): LogText | null {
  const { content, startLine, numLines, totalLines } = fields(file)
  if (typeof content !== 'string') return null
  const from = typeof startLine === 'number' ? startLine : 1
  return { text: content, from, isWhole: from <= 1 && numLines === totalLines }
}

const NUMBERED = /^ *(\d+)(?:→|\t)/
const REMINDER = /\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*$/
/** Readings are cut after so many lines. */
const MOST_LINES = 2_000

/** Lines with their numbers, as models are shown them. */
function numbered(result: string, { offset, limit }: Fields): LogText | null {
  const lines = result.replace(REMINDER, '').replace(/\n$/, '').split('\n')
  const first = NUMBERED.exec(lines[0] ?? '')
  if (first === null || !lines.every((line) => NUMBERED.test(line))) return null
  const from = Number(first[1])
  const isWhole = from <= 1 && offset == null && limit == null && lines.length < MOST_LINES
  return { text: lines.map((line) => line.replace(NUMBERED, '')).join('\n'), from, isWhole }
}

function whole(text: string): LogText {
  return { text, isWhole: true, from: 1 }
}

function textOf(block: Block): string {
  const { content } = block as { readonly content?: string | readonly Block[] }
  const blocks = content === undefined ? [] : blocksOf(content)
  return blocks.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n')
}

function fields(value: unknown): Fields {
  return isObject(value) ? value : {}
}
