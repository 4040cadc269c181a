/**
 * The file source: attaches recently touched files, read again from disk, so that the model sees their current content:
 * whole if they are short, else the regions around the last edits and the part last read. A file that cannot be read is
 * skipped and reported.
 */
import { type ContextEntry, formatAttachmentText } from '../context/context-entry.ts'
import {
  type FileTouch,
  isFileUnchangedNotice,
  normalizePath,
  readToolResultText,
} from '../facts/tool-calls.ts'
import {
  hasToolRunSucceeded,
  listFilesPrintedByCall,
  listToolRuns,
  type ToolRun,
} from '../facts/tool-runs.ts'
import { isToolResult, toBlocks } from '../log/block.ts'
import { type Attachment, isCompactBoundary, type KnownRecord } from '../log/record.ts'
import { listBranchRecords, type SessionLog } from '../log/session-log.ts'
import type { ContextSource, SourceContext, SourceItem } from './context-source.ts'
import {
  type FilePart,
  formatRegions,
  type LastFileUse,
  type LineRange,
  splitFileLines,
} from './file-regions.ts'

/** The text of a file, or why it cannot be read. */
export type FileReadResult =
  | {
      readonly ok: true
      readonly text: string
      /** Size of the whole file in bytes; `text` may be only its beginning. */
      readonly bytes: number
      readonly isWhole: boolean
      /** The path with symbolic links resolved, so that two names of one file are recognised. */
      readonly realPath: string
      /** Identifies the file itself, so that hard links are recognised as one file too. Default: `realPath`. */
      readonly fileId?: string
      /** The lines of `text`, if they are not the lines of the file from the first on; lines between them are unknown. */
      readonly parts?: readonly FilePart[]
      /** A note for the model on where the text comes from, shown before it. */
      readonly note?: string
    }
  | { readonly ok: false; readonly why: string }

/** Reads files from disk; need not return more than `limitBytes` of a file. */
export interface FileReader {
  read(path: string, limitBytes: number): Promise<FileReadResult>
}

/** How the host supplies files to the file source. */
export interface FilesSourceOptions {
  readonly reader: FileReader
  /** Folder to which relative paths refer. */
  readonly folder?: string
  /** Returns the host's recently read files, newest first; if omitted, they are taken from the records. */
  readonly recent?: () => readonly string[]
  /** Returns paths of files that are never attached, such as the transcript, the plan file and the host's own files. */
  readonly never?: () => readonly string[]
  /** Returns true if a tool result only says that the file is unchanged, so that it does not show the content. */
  readonly isStub?: (text: string) => boolean
}

/** Maximum number of bytes to read from a file. The region to show may be far from the beginning of the file. */
const MAX_READ_BYTES = 2_000_000

/** Maximum number of files to try to read, since a session from another machine may name thousands that do not exist. */
const MAX_TRIES = 100

/** Creates the context source of files. It is read after compactions only. */
export function filesSource(options: FilesSourceOptions): ContextSource {
  return {
    name: 'files',
    kind: 'files',
    tellsChanges: false,
    isWhole: false,
    limit: ({ budgets, policy }) => ({ ...budgets.files, count: policy.rehydrate.files.count }),
    render: (context) => renderFiles(options, context),
  }
}

async function* renderFiles(options: FilesSourceOptions, context: SourceContext): AsyncGenerator<SourceItem> {
  const { policy } = context
  const seen = new Set<string>()
  let tries = 0
  const history = listBranchRecords(context.session)
  const runs = listToolRuns(history, policy.rehydrate.files).filter(hasToolRunSucceeded)
  const touches = runs.flatMap((run) => listTouches(run, options.folder ?? null)).toReversed()
  const isNever = createExclusion(options, policy.memoryFiles, touches)
  const isUnused = willGoUnused(options, context, { history, runs })
  let rank = 0
  let left = context.budgets.files.total
  const candidates = [...findCandidates(options, context, touches)].filter((path) => !isNever(path))
  for (const path of candidates) {
    tries += 1
    if (tries > MAX_TRIES) return
    if (isUnused) {
      yield { id: path, why: UNUSED_REASON }
      continue
    }
    const read = await options.reader.read(path, MAX_READ_BYTES)
    if (!read.ok) yield { id: path, why: read.why }
    else if (!seen.has(read.realPath) && !isNever(read.realPath)) {
      seen.add(read.realPath)
      rank += 1
      const limit = limitFile(context, { rank, left, candidates: candidates.length })
      const item = toFileItem(path, read, findFocus(touches, path), { limit, measure: context.measure })
      left -= Math.min(limit, context.measure(formatAttachmentText(item.attachment)))
      yield item
    }
  }
}

const UNUSED_REASON = 'the model comes back to too few of its files, or reads them again before it edits them'

/** Under a client, returns true if the model is expected to use too few of the files that would be attached. */
function willGoUnused(
  { folder }: FilesSourceOptions,
  { policy, isClientLed = false }: SourceContext,
  work: Parameters<typeof measureFileUse>[0],
): boolean {
  if (!isClientLed) return false
  const percent = measureFileUse(work, folder)
  return percent !== null && percent < policy.dropIn.leastUsePercent
}

/** A smaller part of a file is not attached: it would be little more than its heading. */
const LEAST_PART_TOKENS = 200

/**
 * Returns the most tokens of the file of this rank, from 1. Later files get less. If the files that may follow do not all fit
 * into `left`, a file gets at most half of `left`, because the files used last are most likely used next. If `left` exceeds what
 * the others may take, a later file may get as much as the first: after reading several files, a model edits them one by one.
 */
function limitFile(
  { budgets, policy }: SourceContext,
  { rank, left, candidates }: { readonly rank: number; readonly left: number; readonly candidates: number },
): number {
  const { middleRank, lastRank } = policy.rehydrate.files
  const { each, middle, last } = budgets.files
  const own = rank >= lastRank ? last : rank >= middleRank ? middle : each
  const count = Math.min(candidates, policy.rehydrate.files.count)
  const countFrom = (from: number): number => Math.max(0, count - Math.max(rank, from - 1))
  const [lasts, middles] = [countFrom(lastRank), countFrom(middleRank)]
  const firsts = countFrom(0) - Math.max(lasts, middles)
  const free = left - (firsts * each + Math.max(0, middles - lasts) * middle + lasts * last)
  if (free > own) return Math.max(own, Math.min(each, free))
  return Math.min(own, Math.max(left / 2, free, LEAST_PART_TOKENS))
}

/**
 * Returns the paths of files to attach, each once: edited files in the order of their last edit, then files in use that
 * were only read; or the host's list. Without files that kept messages already show. A file that came back at an
 * earlier compaction and was not used since is no longer in use.
 */
function findCandidates(
  { folder, recent, isStub = isFileUnchangedNotice }: FilesSourceOptions,
  { kept, session }: SourceContext,
  touches: readonly FocusedTouch[],
): ReadonlySet<string> {
  const shown = findShownFiles(touches, [...kept], isStub)
  const written = touches.filter(isWrite)
  const paths =
    recent?.().map((path) => normalizePath(path, folder)) ??
    [...written, ...findUsed(session, touches)].map(({ path }) => path)
  return new Set(paths.filter((path) => !shown.has(path)))
}

/** Number of newest reads and writes whose files count as in use, whatever was compacted since. */
const NEWEST_TOUCHES = 10

/** Returns the newest touches, and all since the last compaction. */
function findUsed(session: SessionLog, touches: readonly FocusedTouch[]): readonly FocusedTouch[] {
  const compacted = listBranchRecords(session).findLastIndex(isCompactBoundary)
  return touches.filter(({ index }, age) => age < NEWEST_TOUCHES || index > compacted)
}

/** Excludes memory files, which come back by a source of their own, except those that the model itself has edited. */
function createExclusion(
  { never, folder }: FilesSourceOptions,
  memory: { readonly names: readonly string[]; readonly rules: readonly string[] },
  touches: readonly FocusedTouch[],
): (path: string) => boolean {
  const own = new Set((never?.() ?? []).map((path) => normalizePath(path, folder)))
  const edited = new Set(touches.filter(isWrite).map(({ path }) => path))
  return (path) =>
    own.has(normalizePath(path, folder)) ||
    (!edited.has(normalizePath(path, folder)) &&
      [...memory.names, ...memory.rules].some((name) => matchesPathEnding(path, name)))
}

/** Checks whether `path` ends in `name`, which is a file name or several parts of a path with `*` as a wildcard inside a part. */
export function matchesPathEnding(path: string, name: string): boolean {
  const wanted = name.split('/').filter((part) => part !== '')
  const given = normalizePath(path).split('/').slice(-wanted.length)
  return (
    given.length === wanted.length && wanted.every((part, index) => isWildcardMatch(given[index] ?? '', part))
  )
}

function isWildcardMatch(part: string, pattern: string): boolean {
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

/** Creates the item of a file: whole if it fits into `limit` tokens, else its most important lines. */
function toFileItem(
  path: string,
  { text, bytes, isWhole, parts, note }: FileReadResult & { readonly ok: true },
  focus: LastFileUse,
  { measure, limit }: { readonly measure: SourceContext['measure']; readonly limit: number },
): SourceItem & { readonly attachment: Attachment } {
  const create = (body: string, isShort: boolean): Attachment => ({
    type: 'file',
    filename: path,
    content: note === undefined ? body : `${note}\n${body}`,
    ...(isShort ? { truncated: true } : {}),
  })
  const fits = (attachment: Attachment): boolean => measure(formatAttachmentText(attachment)) <= limit
  const whole = create(text, false)
  const isComplete = isWhole && parts === undefined
  const regions =
    isComplete && fits(whole)
      ? null
      : formatRegions(parts ?? [{ from: 1, text }], focus, {
          lastLine: isComplete ? splitFileLines(text).length : null,
          fits: (body) => fits(create(body, true)),
        })
  // A file whose most important line alone is too long is cut at the limit.
  const cutNote = (shown: string): string =>
    `[cut: ${shown.length} characters are shown of a file of ${bytes} bytes; read the file for the rest]`
  const attachment = regions === null ? whole : create(regions, true)
  return { id: path, attachment, source: path, sheddable: 'files', cutNote }
}

// Search for files that tool calls read or wrote, most recent first, and for files that kept messages show.

interface FocusedTouch {
  readonly path: string
  readonly action: FileTouch['action']
  /** uuid of the record with the call. */
  readonly uuid: string
  /** The result of the call: uuid of its record and id of the call, in one text. */
  readonly result: string
  /** Index of the tool call's record in the list of records. */
  readonly index: number
  /** Texts that an edit put into the file, the last one first. */
  readonly newTexts: readonly string[]
  /** The lines that a read asked for; null for the whole file. */
  readonly lines: LineRange | null
}

/** Lists what a call that succeeded did with files. A file that a command printed counts as read. */
function listTouches(run: ToolRun, folder: string | null): readonly FocusedTouch[] {
  const call = { uuid: run.uuid, result: `${run.resultUuid} ${run.id}`, index: run.callIndex }
  return [
    ...run.touches.map(({ path, action, edits = run.edits }) => ({
      ...call,
      path: normalizePath(path, folder),
      action,
      newTexts: action === 'edit' ? edits.flatMap(({ newText }) => newText ?? []).reverse() : [],
      lines: action === 'read' ? readRequestedLines(run.range) : null,
    })),
    ...listFilesPrintedByCall(run).map(({ path, from, to }) => ({
      ...call,
      path: normalizePath(path, folder),
      action: 'read' as const,
      newTexts: [],
      lines: from === 1 && to === null ? null : { from, to: to ?? Number.POSITIVE_INFINITY },
    })),
  ]
}

function isWrite({ action }: FocusedTouch): boolean {
  return action !== 'read'
}

/** Returns the edits and the last read of a file. `touches`: reads and writes, newest first. */
function findFocus(touches: readonly FocusedTouch[], path: string): LastFileUse {
  const own = touches.filter((touch) => touch.path === path)
  return {
    edits: own.flatMap(({ newTexts }) => newTexts),
    read: own.find(({ action }) => action === 'read')?.lines ?? null,
  }
}

/** Reads the lines that a tool call asked for from the fields of its range, as in `[["offset",100],["limit",50]]`. */
function readRequestedLines(range: string | null): LineRange | null {
  if (range === null) return null
  const fields: Readonly<Record<string, unknown>> = Object.fromEntries(
    JSON.parse(range) as readonly (readonly [string, unknown])[],
  )
  const view: readonly unknown[] = Array.isArray(fields.view_range) ? fields.view_range : []
  const [from = 1] = [fields.offset, fields.start_line, view[0]].filter(isLineNumber)
  const count = isLineNumber(fields.limit) ? from + fields.limit - 1 : undefined
  const [to = Number.POSITIVE_INFINITY] = [count, fields.end_line, view[1]].filter(isLineNumber)
  return { from, to }
}

function isLineNumber(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}

/**
 * Finds files whose content the kept messages show: the result of a read of the whole file that was not cleared, and every
 * later write to the file.
 */
function findShownFiles(
  touches: readonly FocusedTouch[],
  kept: readonly ContextEntry[],
  isStub: (text: string) => boolean,
): ReadonlySet<string> {
  const answered = listResultsWithContent(kept, isStub)
  const calls = new Set(kept.map(({ record }) => record.uuid))
  const readAt = new Map<string, number>()
  for (const { path, action, result, index, lines } of touches)
    if (action === 'read' && lines === null && answered.has(result) && !readAt.has(path))
      readAt.set(path, index)
  const isStale = (path: string, at: number): boolean =>
    touches.some(
      (touch) => touch.path === path && isWrite(touch) && touch.index > at && !calls.has(touch.uuid),
    )
  return new Set([...readAt].filter(([path, at]) => !isStale(path, at)).map(([path]) => path))
}

/** Lists results by the uuid of their record and the id of their call, which a provider may give to several calls. */
function listResultsWithContent(
  kept: readonly ContextEntry[],
  isStub: (text: string) => boolean,
): ReadonlySet<string> {
  const ids = kept.flatMap(({ record, cleared }) =>
    record.type !== 'user'
      ? []
      : toBlocks(record.message.content)
          .filter(isToolResult)
          .filter(({ tool_use_id: id }) => !cleared?.results.some((result) => result.id === id))
          .filter(({ content }) => !isStub(readToolResultText(content)))
          .map(({ tool_use_id: id }) => `${record.uuid} ${id}`),
  )
  return new Set(ids)
}

// Computes how much of the text of attached files the model will use. A file was attached for nothing if the model does
// not come back to it before the next compaction, or reads it again first.

/** Tool calls after which the next use of a file counts as coming back to it. */
const PAUSE_CALLS = 20

/** Number of newest returns to a file that are counted, and the smallest number that counts as a habit. */
const [NEWEST_RETURNS, LEAST_RETURNS] = [20, 5]

/** Approximate number of tool calls between two compactions, and number of files that a compaction would have attached first. */
const [SPAN_CALLS, FIRST_FILES] = [30, 5]

/** Number of points, one every ten calls, at which it is computed what a compaction would have attached. */
const [NEWEST_POINTS, POINT_CALLS] = [10, 10]

/**
 * Returns the percentage of attached files that the model is expected to use: to come back to before the next
 * compaction, without reading them again first. Null if there were too few calls to tell. `history`: all records of the
 * branch. `runs`: its tool calls that succeeded.
 */
function measureFileUse(
  { history, runs }: { readonly history: readonly KnownRecord[]; readonly runs: readonly ToolRun[] },
  folder: string | null = null,
): number | null {
  const calls = runs.map((run) => ({ index: run.callIndex, touches: listTouches(run, folder) }))
  const [returned, reread] = [measureReturns(calls), measureRereading(history, calls, folder)]
  if (returned === null && reread === null) return null
  return 100 * (returned ?? 1) * (1 - (reread ?? 0))
}

interface FileCall {
  /** Index of the call's record in the history. */
  readonly index: number
  /** What the call read or wrote; nothing for most commands. */
  readonly touches: readonly FocusedTouch[]
}

/**
 * Returns, as an average over several points of the session, which share of the files used last in the calls before the
 * point was used again in as many calls after it.
 */
function measureReturns(calls: readonly FileCall[]): number | null {
  const used = calls.map(({ touches }) => touches.map(({ path }) => path))
  const shares: number[] = []
  for (let point = calls.length - SPAN_CALLS; point > 0; point -= POINT_CALLS) {
    const files = new Set<string>()
    const recent = used
      .slice(Math.max(0, point - SPAN_CALLS), point)
      .flat()
      .reverse()
    for (const path of recent) if (files.size < FIRST_FILES) files.add(path)
    const later = new Set(used.slice(point, point + SPAN_CALLS).flat())
    if (files.size > 0) shares.push([...files].filter((path) => later.has(path)).length / files.size)
    if (shares.length === NEWEST_POINTS) break
  }
  return shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length
}

/**
 * Returns the share of its newest returns to a file in which the model read the file again; null if there were too few.
 * Counts only files that a compaction had attached, if there were enough of these; otherwise files that the model had
 * last used more than 20 calls before in the same context.
 */
function measureRereading(
  history: readonly KnownRecord[],
  fileCalls: readonly FileCall[],
  folder: string | null,
): number | null {
  const lastUse = new Map<string, number>()
  const returns: Record<'attached' | 'inView', boolean[]> = { attached: [], inView: [] }
  let [calls, next] = [0, 0]
  const addCall = (touches: FileCall['touches']): void => {
    calls += 1
    for (const { path, action } of touches) {
      const pause = calls - (lastUse.get(path) ?? calls)
      const list = pause === Number.POSITIVE_INFINITY ? returns.attached : returns.inView
      if (pause > PAUSE_CALLS && action !== 'write') list.push(action === 'read')
      lastUse.set(path, calls)
    }
  }
  for (const [index, record] of history.entries()) {
    if (isCompactBoundary(record)) lastUse.clear()
    if (record.type === 'attachment' && record.attachment.type === 'file')
      lastUse.set(normalizePath(String(record.attachment.filename), folder), Number.NEGATIVE_INFINITY)
    for (; fileCalls[next]?.index === index; next += 1) addCall(fileCalls[next]?.touches ?? [])
  }
  const isEnough = returns.attached.length >= LEAST_RETURNS
  const newest = (isEnough ? returns.attached : returns.inView).slice(-NEWEST_RETURNS)
  if (newest.length < LEAST_RETURNS) return null
  return newest.filter((isRead) => isRead).length / newest.length
}
