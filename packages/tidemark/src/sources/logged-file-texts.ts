/**
 * The text of each file as the log last shows it: text that was read, written or printed by a command, with later edits
 * applied.
 */
import type { PrintedFileLines } from '@tidemark/core/facts/shell-commands'
import {
  describeToolCall,
  isFileUnchangedNotice,
  normalizePath,
  readToolResultText,
  type TextReplacement,
} from '@tidemark/core/facts/tool-calls'
import {
  listFilesPrintedByCall,
  readToolRunStatus,
  splitHeaderFromOutput,
} from '@tidemark/core/facts/tool-runs'
import {
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { isKnownRecord, type SessionRecord, type UserRecord } from '@tidemark/core/log/record'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import { type FilePart, splitFileLines } from '@tidemark/core/sources/file-regions'

/** The logged text of a whole file, which is then its only part, or of parts of it, in order. */
export interface LoggedFileText {
  readonly parts: readonly FilePart[]
  readonly isWhole: boolean
}

/**
 * Collects the last known text of each file in steps, keyed by normalized path. `records`: the records of the branch in order.
 * `folder`: the base of relative paths. `trustsPlainText`: the result of a read without line numbers is the file's text,
 * as tools of a library user return it.
 */
export function* collectLoggedFileTexts(
  records: Iterable<SessionRecord>,
  folder: string | null,
  trustsPlainText = false,
): WorkInSteps<ReadonlyMap<string, LoggedFileText>> {
  const calls = new Map<string, ToolUseBlock>()
  const texts = new Map<string, LoggedFileText>()
  for (const record of records) {
    if (!isKnownRecord(record)) continue
    if (record.type === 'assistant')
      for (const block of toBlocks(record.message.content)) if (isToolUse(block)) calls.set(block.id, block)
    if (record.type !== 'user') continue
    const beside = (record as SessionRecord & { readonly toolUseResult?: unknown }).toolUseResult
    for (const block of toBlocks(record.message.content)) {
      const call = isToolResult(block) && block.is_error !== true ? calls.get(block.tool_use_id) : undefined
      if (call === undefined) continue
      // The record of a spilled result has only its beginning and end.
      const result = isSpilled(record, call.id) ? '' : readToolResultText(block.content)
      yield RESULT_WORK + result.length
      applyFileCall(texts, {
        call,
        result,
        hasSucceeded: isToolResult(block) && hasCallSucceeded(call, block, record),
        beside: toFields(beside),
        folder,
        trustsPlainText,
      })
    }
  }
  return texts
}

/** Fixed work for each result, whatever its length, expressed in characters that take the same time to read. */
const RESULT_WORK = 1_000

function isSpilled(record: SessionRecord, callId: string): boolean {
  return isKnownRecord(record) && record.spilled?.some(({ toolUseId }) => toolUseId === callId) === true
}

/** Returns true if neither the program that ran a call nor its output says that it failed. */
function hasCallSucceeded(call: ToolUseBlock, block: ToolResultBlock, record: UserRecord): boolean {
  const { name, input } = call
  return readToolRunStatus({ ...describeToolCall(name, input), name, input }, block, record) === 'ok'
}

interface AnsweredFileCall {
  readonly call: ToolUseBlock
  readonly result: string
  /** False if the text of the result says that the call failed. */
  readonly hasSucceeded: boolean
  /**
   * The field `toolUseResult` of a logged record: structured data that the host logged in addition to the text for the
   * model.
   */
  readonly beside: Fields
  readonly folder: string | null
  readonly trustsPlainText: boolean
}

type Fields = { readonly [field: string]: unknown }

/** Updates the known text of each file that a tool call read, wrote, edited or deleted. */
function applyFileCall(texts: Map<string, LoggedFileText>, done: AnsweredFileCall): void {
  const { touches, edits: all, command } = describeToolCall(done.call.name, done.call.input)
  applyPrintedFiles(texts, done, listFilesPrintedByCall({ command, input: done.call.input }))
  for (const { path: given, action, newText, isDeletion = false, edits } of touches) {
    // The recording program does not log a refused patch as an error.
    if (edits !== undefined && !done.hasSucceeded) continue
    const path = normalizePath(given, done.folder)
    const before = texts.get(path)
    const written = newText === null ? undefined : toWholeText(newText)
    const changed = action === 'write' ? written : applyEdits(findEditBase(before, done), edits ?? all)
    const next = action === 'read' ? applyRead(before, done) : changed
    if (next === undefined || isDeletion) texts.delete(path)
    else texts.set(path, next)
  }
}

/** Updates the known texts of files that a shell command printed. */
function applyPrintedFiles(
  texts: Map<string, LoggedFileText>,
  { result, hasSucceeded, folder }: AnsweredFileCall,
  files: readonly PrintedFileLines[],
): void {
  if (!hasSucceeded || files.length === 0) return
  for (const [index, read] of parsePrintedFiles(result, files).entries()) {
    const path = normalizePath(files[index]?.path ?? '', folder)
    if (read !== null) texts.set(path, withRead(texts.get(path), read))
  }
}

function findEditBase(
  before: LoggedFileText | undefined,
  { beside }: AnsweredFileCall,
): LoggedFileText | undefined {
  return typeof beside.originalFile === 'string' ? toWholeText(beside.originalFile) : before
}

/**
 * Applies edits to the known text of a file. If the old text of an edit is not known, because a formatter or command
 * changed the file, the new text is added as a part with unknown place. If a change is not in the call, the known text
 * may be outdated and no longer counts as whole. Returns undefined if nothing is known.
 */
function applyEdits(
  before: LoggedFileText | undefined,
  edits: readonly TextReplacement[],
): LoggedFileText | undefined {
  if (edits.length === 0) return before === undefined ? undefined : { ...before, isWhole: false }
  let known = before
  for (const edit of edits) known = applyEdit(known, edit) ?? known
  return known
}

function applyEdit(
  before: LoggedFileText | undefined,
  { oldText, newText, replaceAll }: TextReplacement,
): LoggedFileText | undefined {
  if (newText === null) return before
  const old = oldText === null || oldText === '' || before === undefined ? null : findOldText(before, oldText)
  if (old === null) return withPiece(before, newText)
  return {
    ...before,
    isWhole: before?.isWhole === true,
    parts: replaceInParts(before?.parts ?? [], { oldText: old, newText, replaceAll }),
  }
}

/** Returns the old text of an edit as a known part has it, exactly or with other indentation; null if no part has it. */
function findOldText({ parts }: LoggedFileText, oldText: string): string | null {
  if (parts.some(({ text }) => text.includes(oldText))) return oldText
  const wanted = splitFileLines(oldText).map((line) => line.trim())
  if (wanted.every((line) => line === '')) return null
  for (const { text } of parts) {
    const lines = splitFileLines(text)
    for (let at = 0; at + wanted.length <= lines.length; at += 1)
      if (wanted.every((line, index) => lines[at + index]?.trim() === line))
        return lines.slice(at, at + wanted.length).join('\n')
  }
  return null
}

/** Maximum number of parts with unknown place for one file; the newest are kept. */
const MAX_PIECES = 12

/**
 * Adds a text with unknown place in the file, in place of such texts that it contains. Returns `before` if the text is
 * blank or already known.
 */
function withPiece(before: LoggedFileText | undefined, text: string): LoggedFileText | undefined {
  const parts = before?.parts ?? []
  if (text.trim() === '' || parts.some((part) => part.text.includes(text))) return before
  const pieces = parts.filter((part) => part.from === null && !text.includes(part.text))
  const placed = parts.filter((part) => part.from !== null)
  return { parts: [...placed, ...pieces.slice(1 - MAX_PIECES), { from: null, text }], isWhole: false }
}

/** Replaces a text in the parts of a file, and shifts later parts by the number of added or removed lines. */
function replaceInParts(
  parts: readonly FilePart[],
  {
    oldText,
    newText,
    replaceAll,
  }: { readonly [Field in 'oldText' | 'newText']: string } & { replaceAll: boolean },
): readonly FilePart[] {
  let [moved, isDone] = [0, false]
  return parts.map(({ from, text }) => {
    const place = from === null ? null : from + moved
    if (isDone || !text.includes(oldText)) return { from: place, text }
    isDone = !replaceAll
    const next = replaceAll ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText)
    if (from !== null) moved += next.split('\n').length - text.split('\n').length
    return { from: place, text: next }
  })
}

/**
 * Returns the known text of a file after a read. Lines that were read replace known lines; the others stay, even if
 * something else has changed the file.
 */
function applyRead(
  before: LoggedFileText | undefined,
  { beside, result, call, trustsPlainText }: AnsweredFileCall,
): LoggedFileText | undefined {
  const read =
    parseLoggedFile(beside) ??
    parseNumberedLines(result, toFields(call.input)) ??
    (trustsPlainText && isReadingTool(call.name) ? parsePlainText(result, call) : null)
  return read === null ? before : withRead(before, read)
}

function withRead(before: LoggedFileText | undefined, read: LoggedFileText): LoggedFileText {
  if (read.isWhole || before === undefined) return read
  if (before.isWhole && before.parts[0]?.text.includes(read.parts[0]?.text ?? '') === true) return before
  return mergeParts(before, read)
}

/** Merges the known lines of two texts of a file. Where they differ, the newer text counts. */
function mergeParts(older: LoggedFileText, newer: LoggedFileText): LoggedFileText {
  const lines = new Map<number, string>()
  const all = [...older.parts, ...newer.parts]
  for (const { from, text } of all)
    if (from !== null)
      for (const [index, line] of splitFileLines(text).entries()) lines.set(from + index, line)
  const parts: { readonly from: number | null; text: string }[] = []
  let next = -1
  for (const [number, line] of [...lines].sort(([a], [b]) => a - b)) {
    const last = parts.at(-1)
    if (last !== undefined && number === next) last.text += `\n${line}`
    else parts.push({ from: number, text: line })
    next = number + 1
  }
  const pieces = all.filter(
    ({ from, text }) => from === null && !parts.some((part) => part.text.includes(text)),
  )
  return { parts: [...parts, ...pieces], isWhole: false }
}

const READING_TOOL_NAME = /(?:^|[^a-z])(?:read|view|open|cat|load|show)|(?:get|fetch)[^a-z]*file/i

/** Returns true if the name of a tool shows that it returns the text of a file, not information about the file. */
function isReadingTool(name: string): boolean {
  return READING_TOOL_NAME.test(name.replaceAll(/([a-z])([A-Z])/g, '$1_$2'))
}

/** Parses the text that Claude Code logs in the `file` field of a file read; null if there is none. */
function parseLoggedFile({ file }: Fields): LoggedFileText | null {
  const { content, startLine, numLines, totalLines } = toFields(file)
  if (typeof content !== 'string') return null
  const from = typeof startLine === 'number' ? startLine : 1
  return { parts: [{ from, text: content }], isWhole: from <= 1 && numLines === totalLines }
}

const LINE_NUMBER = /^ *(\d+)(?:→|\t)/
const TRAILING_REMINDER = /\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*$/
/**
 * Maximum number of lines that file-reading tools return. A result with this many lines may be only a part of the file.
 */
const MAX_READ_LINES = 2_000

/**
 * Parses the result of a file-reading tool, which has a line number before each line. Returns null for any other text.
 */
function parseNumberedLines(result: string, { offset, limit }: Fields): LoggedFileText | null {
  const lines = result.replace(TRAILING_REMINDER, '').replace(/\n$/, '').split('\n')
  const first = LINE_NUMBER.exec(lines[0] ?? '')
  if (first === null || !lines.every((line) => LINE_NUMBER.test(line))) return null
  const from = Number(first[1])
  const isWhole = from <= 1 && offset == null && limit == null && lines.length < MAX_READ_LINES
  const text = lines.map((line) => line.replace(LINE_NUMBER, '')).join('\n')
  return { parts: [{ from, text }], isWhole }
}

/** Takes the result of a read as the file's text. Null if it is empty, only a part, or only says that nothing changed. */
function parsePlainText(result: string, { name, input }: ToolUseBlock): LoggedFileText | null {
  const isPart = describeToolCall(name, input).range !== null
  return result === '' || isPart || isFileUnchangedNotice(result) ? null : toWholeText(result)
}

/** Matches the lines that Codex puts before an output whose middle it left out. */
const CUT_WARNING = /^Warning: truncated output[^\n]*\n(?:Total output lines:[^\n]*\n)?\n?/
/** Matches the beginning of the mark that a program puts where it left out part of a long output. */
const CUT_MARK = /…|\.{3}/
/** Matches the notice that replaces an output which a program has stored elsewhere. */
const STORED_OUTPUT = /^\s*<persisted-output>/

/** Parses the text that a command printed of each file, up to where its output was cut. Null where that is not certain. */
function parsePrintedFiles(
  result: string,
  files: readonly PrintedFileLines[],
): readonly (LoggedFileText | null)[] {
  const output = splitHeaderFromOutput(result)[1].replace(CUT_WARNING, '').replace(/\n$/, '')
  const all = output.split('\n')
  const cut = all.findIndex(isCutLine)
  const lines = cut === -1 ? all : all.slice(0, cut)
  const starts = findFileStarts(lines, files, cut !== -1)
  return files.map(({ from, to, isNumbered }, index) => {
    const next = starts[index + 1]
    const end = next === undefined || files[index + 1]?.heading === null ? next : next - 1
    // An empty line before a heading may belong to the printing command and not to the file.
    const text = lines.slice(starts[index], end).join('\n').replace(/\n$/, '')
    if (starts[index] === undefined || text.trim() === '' || STORED_OUTPUT.test(text)) return null
    const isWhole = from === 1 && to === null && (cut === -1 || next !== undefined)
    if (isNumbered) return parseNumberedLines(text, isWhole ? {} : { offset: from })
    return { parts: [{ from, text }], isWhole }
  })
}

/**
 * Returns the index of the first line of each file, found by its heading or first line number. Empty if one is
 * uncertain; for an output that was cut, only those before the cut.
 */
function findFileStarts(
  lines: readonly string[],
  files: readonly PrintedFileLines[],
  isCut: boolean,
): readonly number[] {
  const starts: number[] = []
  const readNumber = (line = ''): number => Number(LINE_NUMBER.exec(line)?.[1] ?? Number.NaN)
  for (const { heading, from } of files) {
    const before = starts.at(-1) ?? -1
    const isFirst = (line: string, at: number): boolean =>
      before === -1 || (at > before && readNumber(line) === from && readNumber(lines[at - 1]) !== from - 1)
    const isStart = heading === null ? isFirst : (line: string): boolean => line.trim() === heading
    // A line of a file may look like a heading.
    const headings = files.filter((file) => file.heading === heading).length
    if (heading !== null && lines.filter(isStart).length > headings) return []
    const at = lines.findIndex((line, place) => place >= before && isStart(line, place))
    if (at === -1) return isCut ? starts : []
    starts.push(heading === null ? at : at + 1)
  }
  return starts
}

/** Checks in two steps whether a line says that lines were left out: a single pattern takes minutes on a long line of code. */
function isCutLine(line: string): boolean {
  const mark = line.search(CUT_MARK)
  return mark !== -1 && /\btruncated\b/.test(line.slice(mark))
}

function toWholeText(text: string): LoggedFileText {
  return { parts: [{ from: 1, text }], isWhole: true }
}

function toFields(value: unknown): Fields {
  return isObject(value) ? value : {}
}
