/** What is re-attached when a log is compacted without its host: files, from the log or the disk, and the todo list. */

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

interface LogCarriersOptions {
  /** The working directory of the session; null if the log does not give it. */
  readonly folder: string | null
  /** The session ran on this machine and is compacted as it is now: files that exist are read from the disk. */
  readonly fromDisk: boolean
  /** The log, which is never re-attached itself. */
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

/** Without a working directory a relative path could name a file of another project, so it is not read. */
function absoluteOnly(folder: string | null): FileReader {
  const disk = createDiskReader(folder ?? '/')
  return {
    read: async (path, limitBytes) =>
      folder !== null || plainPath(path).startsWith('/')
        ? disk.read(path, limitBytes)
        : { ok: false, why: 'the log does not say which folder it is in' },
  }
}

// Files read from the log instead of the disk: as the session last had them, and marked as such.

function createLogReader(texts: ReadonlyMap<string, LogText>, folder: string | null): FileReader {
  return {
    read: async (path, limitBytes) => {
      const place = plainPath(path, folder)
      return readFrom(texts.get(place), place, limitBytes)
    },
  }
}

/** Reads from the disk if the file exists, else from the log. */
function createEitherReader(disk: FileReader, log: FileReader): FileReader {
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
  // A UTF-16 unit takes at most three bytes.
  const isWhole = bytes <= limitBytes
  const text = isWhole ? whole : whole.slice(0, Math.floor(limitBytes / 3))
  return { ok: true, text, bytes, isWhole, realPath: path }
}

function noteOn({ text, isWhole, from }: LogText): string {
  const last = from + text.replace(/\n$/, '').split('\n').length - 1
  const which = isWhole ? 'as' : `lines ${from} to ${last}, as`
  return `[${which} the log of the session last had it; the file itself was not read again]`
}

// The files of a session as its log last had them: text written or read, with the edits that followed.

/** The text of a file, or of some of its lines. */
export interface LogText {
  readonly text: string
  readonly isWhole: boolean
  /** Number of the first line. */
  readonly from: number
}

/** By normalised path. `records`: of the branch, in order. `folder`: base of relative paths. */
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
  /** Field `toolUseResult` of the record: what the program logged beside the text for the model. */
  readonly beside: Fields
  readonly folder: string | null
}

type Fields = { readonly [field: string]: unknown }

/** Updates the text of each file the call touched. A change to unknown text makes the text unknown. */
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

/** A partial read adds nothing to a file that is known as a whole, unless it has lines that the whole lacks. */
function readText(before: LogText | undefined, { beside, result, call }: Done): LogText | undefined {
  const read = noted(beside) ?? numbered(result, fields(call.input))
  if (read === null) return before
  if (read.isWhole || before?.isWhole !== true) return read
  return before.text.includes(read.text) ? before : read
}

/** As Claude Code logs it. */
function noted({ file }: Fields): LogText | null {
  const { content, startLine, numLines, totalLines } = fields(file)
  if (typeof content !== 'string') return null
  const from = typeof startLine === 'number' ? startLine : 1
  return { text: content, from, isWhole: from <= 1 && numLines === totalLines }
}

const NUMBERED = /^ *(\d+)(?:→|\t)/
const REMINDER = /\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*$/
/** Reads are cut after this many lines. */
const MOST_LINES = 2_000

/** Lines with numbers, as shown to models. */
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
