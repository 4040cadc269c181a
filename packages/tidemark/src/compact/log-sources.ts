/** What comes back when a log's session is compacted without its host: files, from the log or the disk, and the todo list. */

import { posix } from 'node:path'
import {
  type Block,
  blocksOf,
  type Carrier,
  type FileRead,
  type FileReader,
  filesCarrier,
  isKnown,
  isObject,
  isToolResult,
  isToolUse,
  type SessionRecord,
  type SessionState,
  type ToolUseBlock,
  todosCarrier,
} from '@tidemark/core'
import { createDiskReader } from '../sources/disk-sources.ts'

export interface LogCarriersOptions {
  /** The folder the session worked in; null where the log does not say. */
  readonly folder: string | null
  /** The session is this machine's, and as it is now: its files are read from the disk where they are there. */
  readonly fromDisk: boolean
  /** The log, which is never brought back itself. */
  readonly path: string
}

export function logCarriers(state: SessionState, options: LogCarriersOptions): readonly Carrier[] {
  const { folder, path } = options
  const never = (): readonly string[] => [path]
  return [
    filesCarrier({ reader: readerOf(state, options), never, ...(folder === null ? {} : { folder }) }),
    todosCarrier(),
  ]
}

function readerOf({ session }: SessionState, { folder, fromDisk }: LogCarriersOptions): FileReader {
  const records = [...session.branch].flatMap((index) => session.records.at(index) ?? [])
  const log = createLogReader(logTexts(records, folder), folder)
  return fromDisk ? createEitherReader(absoluteOnly(folder), log) : log
}

/** Where nobody knows which folder a relative path starts from, it would be another project's file. */
function absoluteOnly(folder: string | null): FileReader {
  const disk = createDiskReader(folder ?? '/')
  return {
    read: async (path, limitBytes) =>
      folder !== null || placeOf(path, null).startsWith('/')
        ? disk.read(path, limitBytes)
        : { ok: false, why: 'the log does not say which folder it is in' },
  }
}

// Reads files out of a log instead of from the disk: as the session last had them, and marked so.

export function createLogReader(texts: ReadonlyMap<string, LogText>, folder: string | null): FileReader {
  return {
    read: async (path, limitBytes) => {
      const place = placeOf(path, folder)
      return readFrom(texts.get(place), place, limitBytes)
    },
  }
}

/** The disk where the file is there, else the log. */
export function createEitherReader(disk: FileReader, log: FileReader): FileReader {
  return {
    async read(path, limitBytes) {
      const onDisk = await disk.read(path, limitBytes)
      if (onDisk.ok) return onDisk
      const inLog = await log.read(path, limitBytes)
      return inLog.ok ? inLog : onDisk
    },
  }
}

function readFrom(known: LogText | undefined, path: string, limitBytes: number): FileRead {
  if (known === undefined) return { ok: false, why: 'the log does not have its text' }
  const whole = `${noteOn(known)}\n${known.text}`
  const bytes = Buffer.byteLength(whole)
  // No character takes more than three bytes for each of its units.
  const isWhole = bytes <= limitBytes
  const text = isWhole ? whole : whole.slice(0, Math.floor(limitBytes / 3))
  return { ok: true, text, bytes, isWhole, realPath: path }
}

function noteOn({ text, isWhole, from }: LogText): string {
  const last = from + text.replace(/\n$/, '').split('\n').length - 1
  const which = isWhole ? 'as' : `lines ${from} to ${last}, as`
  return `[${which} the log of the session last had it; the file itself was not read again]`
}

// The files of a session as its log last had them: what was written, what was read, and the edits that followed.

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
