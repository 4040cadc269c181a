/**
 * Context sources that need no host: the last known files, todo list and plan of a log. Sessions use them by default. So does the
 * compaction of a log without the program that wrote it, which may also read files from the disk.
 */

import type { SessionState } from '@tidemark/core/engine/session-state'
import { describeToolCall, normalizePath, readToolResultText } from '@tidemark/core/facts/tool-calls'
import { listFilesPrintedByCall } from '@tidemark/core/facts/tool-runs'
import { type BlobReader, restoreSpilledResults } from '@tidemark/core/history/spill-results'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord, type SessionRecord, type UserRecord } from '@tidemark/core/log/record'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { planSource, todosSource } from '@tidemark/core/sources/builtin-sources'
import type { ContextSource } from '@tidemark/core/sources/context-source'
import { type FileReader, type FileReadResult, filesSource } from '@tidemark/core/sources/file-source'
import { sliceWholeCharacters } from '@tidemark/core/text/truncate-text'
import { pauseForEvents, runWithPauses } from '../platform/node-ports.ts'
import { createDiskFileReader } from './disk-sources.ts'
import { collectLoggedFileTexts, type LoggedFileText } from './logged-file-texts.ts'

interface LogSourcesOptions {
  /** The working directory of the session; null if the log does not record it. */
  readonly folder: string | null
  /**
   * True if files are read from the disk first. Set if the session ran on this machine and is compacted in its newest
   * state.
   */
  readonly fromDisk: boolean
  /** The path of the session's log, which is never re-attached as a file. */
  readonly path: string
  /** True for a session of Tidemark, whose tools may return the text of a file without line numbers. */
  readonly isOwn: boolean
}

/**
 * Returns the caller's context sources, and each default source whose name the caller does not use. Default sources
 * read the log.
 */
export function withDefaultSources(
  given: readonly ContextSource[],
  log: string | null,
  blobs: BlobReader | null,
): readonly ContextSource[] {
  const names = new Set(given.map(({ name }) => name))
  return [...given, ...createDefaultSources(log, blobs).filter(({ name }) => !names.has(name))]
}

/**
 * Returns the default context sources of a session: the last known texts of its files, its todos and its plan, all from
 * the log. Nothing is read from the disk, except from `blobs`, which have the whole text of large results. `log` is the
 * path of the session's log, which is never attached.
 */
function createDefaultSources(log: string | null, blobs: BlobReader | null): readonly ContextSource[] {
  const never = (): readonly string[] => (log === null ? [] : [log])
  const createFiles = (texts: ReadonlyMap<string, LoggedFileText>): ContextSource =>
    filesSource({ reader: createLoggedFileReader(texts, null), never })
  const files: ContextSource = {
    ...createFiles(new Map()),
    async *render(context) {
      const records = await restoreSpilledReads(listRecords(context.session), blobs)
      const texts = await runWithPauses(collectLoggedFileTexts(records, null, true))
      await pauseForEvents()
      yield* createFiles(texts).render(context)
    },
  }
  return withSourcesFromLog(files)
}

/** The sources of every session, open or compacted from its log: its files, and its todos and plan from the log. */
function withSourcesFromLog(files: ContextSource): readonly ContextSource[] {
  return [files, todosSource(), planSource()]
}

/** Returns the context sources for the compaction of a log, without the program that wrote it. */
export function createLogSources(state: SessionState, options: LogSourcesOptions): readonly ContextSource[] {
  const { folder, path } = options
  const never = (): readonly string[] => [path]
  const reader = createFileReader(state, options)
  return withSourcesFromLog(filesSource({ reader, never, ...(folder === null ? {} : { folder }) }))
}

function createFileReader(
  { session }: SessionState,
  { folder, fromDisk, isOwn }: LogSourcesOptions,
): FileReader {
  const texts = runStepsAtOnce(collectLoggedFileTexts(listRecords(session), folder, isOwn))
  const log = createLoggedFileReader(texts, folder)
  return fromDisk ? createEitherReader(createAbsoluteReader(folder), log) : log
}

/** Returns the records of the session's branch, in order. */
function listRecords(session: SessionState['session']): readonly SessionRecord[] {
  return [...session.branch].flatMap((index) => session.records.at(index) ?? [])
}

/** Returns the records with the whole text of file reads that were stored as blobs, if the blobs still exist. */
async function restoreSpilledReads(
  records: readonly SessionRecord[],
  blobs: BlobReader | null,
): Promise<readonly SessionRecord[]> {
  if (blobs === null || !records.some(({ spilled }) => spilled !== undefined)) return records
  const reads = new Set(records.flatMap(listReadCalls))
  return Promise.all(
    records.map((record) => {
      const isRead = record.spilled?.some(({ toolUseId }) => reads.has(toolUseId)) === true
      return isRead && isUserRecord(record) ? restoreRead(record, blobs) : record
    }),
  )
}

function listReadCalls(record: SessionRecord): readonly string[] {
  if (!isKnownRecord(record) || record.type !== 'assistant') return []
  const calls = toBlocks(record.message.content).filter(isToolUse)
  return calls.flatMap(({ id, name, input }) => {
    const { kind, command } = describeToolCall(name, input)
    return kind === 'read' || listFilesPrintedByCall({ command, input }).length > 0 ? [id] : []
  })
}

function isUserRecord(record: SessionRecord): record is UserRecord {
  return isKnownRecord(record) && record.type === 'user'
}

/** Restores the results of a record. A result whose blob is missing or unreadable still counts as spilled. */
async function restoreRead(record: UserRecord, blobs: BlobReader): Promise<UserRecord> {
  const restored = await restoreSpilledResults(record, blobs).catch(() => record)
  const texts = readResultTexts(restored)
  const shown = readResultTexts(record)
  const spilled = record.spilled?.filter(({ toolUseId: id }) => texts.get(id) === shown.get(id)) ?? []
  return { ...restored, spilled }
}

function readResultTexts({ message }: UserRecord): ReadonlyMap<string, string> {
  const results = toBlocks(message.content).filter(isToolResult)
  return new Map(results.map((block) => [block.tool_use_id, readToolResultText(block.content)]))
}

/**
 * Creates a function that reads files from the disk. If the working directory is unknown, it refuses relative paths,
 * which could name a file of another project.
 */
function createAbsoluteReader(folder: string | null): FileReader {
  const disk = createDiskFileReader(folder ?? '/')
  return {
    read: async (path, limitBytes) =>
      folder !== null || normalizePath(path).startsWith('/')
        ? disk.read(path, limitBytes)
        : { ok: false, why: 'the log does not say which folder it is in' },
  }
}

// File readers that return the text of a file from the log instead of the disk. A note at the beginning of the text
// says so.

export function createLoggedFileReader(
  texts: ReadonlyMap<string, LoggedFileText>,
  folder: string | null,
): FileReader {
  return {
    read: async (path, limitBytes) => {
      const place = normalizePath(path, folder)
      return readLogText(texts.get(place), place, limitBytes)
    },
  }
}

/** Creates a file reader that tries the disk first and falls back to the text in the log. */
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

function readLogText(known: LoggedFileText | undefined, path: string, limitBytes: number): FileReadResult {
  if (known === undefined) return { ok: false, why: 'the log does not have its text' }
  const text = known.parts.map((part) => part.text).join('\n')
  const bytes = Buffer.byteLength(text)
  const which = known.isWhole ? 'as' : 'what is known of it, as'
  const note = `[${which} the log of the session last had it; the file itself was not read again]`
  const file = { ok: true, bytes, realPath: path, note } as const
  if (!known.isWhole) return { ...file, text, isWhole: false, parts: known.parts }
  // A UTF-16 code unit takes at most three bytes, so a third of the byte limit always fits.
  const isWhole = bytes <= limitBytes
  return {
    ...file,
    text: isWhole ? text : sliceWholeCharacters(text, 0, Math.floor(limitBytes / 3)),
    isWhole,
  }
}
