/** What comes back when a log's session is compacted without its host: files, from the log or the disk, and the todo list. */

import {
  blocksOf,
  type Carrier,
  describeToolCall,
  type FileRead,
  type FileReader,
  filesCarrier,
  isKnown,
  isObject,
  isToolResult,
  isToolUse,
  plainPath,
  type Replacement,
  resultText,
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
      folder !== null || plainPath(path).startsWith('/')
        ? disk.read(path, limitBytes)
        : { ok: false, why: 'the log does not say which folder it is in' },
  }
}

// Reads files out of a log instead of from the disk: as the session last had them, and marked so.

export function createLogReader(texts: ReadonlyMap<string, LogText>, folder: string | null): FileReader {
  return {
    read: async (path, limitBytes) => {
      const place = plainPath(path, folder)
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

/** By path, in its one spelling. `records`: of the branch, in order. `folder`: what relative paths start from. */
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
      if (call !== undefined)
        applyCall(texts, { call, result: resultText(block.content), beside: fields(beside), folder })
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

/** What is known of each file the call touched. A change made to what is not known leaves nothing. */
function applyCall(texts: Map<string, LogText>, done: Done): void {
  const { touches, edits } = describeToolCall(done.call.name, done.call.input)
  for (const { path: given, act, put } of touches) {
    const path = plainPath(given, done.folder)
    const before = texts.get(path)
    const written = put === null ? undefined : whole(put)
    const changed = act === 'write' ? written : edited(based(before, done), edits)
    const next = act === 'read' ? readText(before, done) : changed
    if (next === undefined) texts.delete(path)
    else texts.set(path, next)
  }
}

function based(before: LogText | undefined, { beside }: Done): LogText | undefined {
  return typeof beside.originalFile === 'string' ? whole(beside.originalFile) : before
}

function edited(before: LogText | undefined, edits: readonly Replacement[]): LogText | undefined {
  let text = before?.text
  for (const { old, put, all } of edits) {
    if (old === null || put === null || old === '' || text?.includes(old) !== true) return undefined
    text = all ? text.replaceAll(old, () => put) : text.replace(old, () => put)
  }
  return before === undefined || text === undefined || edits.length === 0 ? undefined : { ...before, text }
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

function fields(value: unknown): Fields {
  return isObject(value) ? value : {}
}
