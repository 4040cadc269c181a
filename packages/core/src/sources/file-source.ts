/**
 * The file source: attaches recently touched files, read again from disk, so that the model sees their current
 * content. A file that cannot be read is skipped and reported.
 */

import type { ContextEntry } from '../context/context-entry.ts'
import { isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { listBranchRecords, type SessionLog } from '../log/session-log.ts'
import {
  type FileToolNames,
  hasToolRunSucceeded,
  isFileUnchangedNotice,
  listToolRuns,
  normalizePath,
  readToolResultText,
} from '../log/tool-calls.ts'
import type { ContextSource, SourceContext, SourceItem } from './context-source.ts'

export type FileReadResult =
  | {
      readonly ok: true
      readonly text: string
      /** Size of the whole file in bytes; `text` may be only its beginning. */
      readonly bytes: number
      readonly isWhole: boolean
      /** The path with symbolic links resolved, so that two names of one file are recognised. */
      readonly realPath: string
    }
  | { readonly ok: false; readonly why: string }

/** Reads files from disk; need not return more than `limitBytes` of a file. */
export interface FileReader {
  read(path: string, limitBytes: number): Promise<FileReadResult>
}

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

/**
 * Bytes to read from a file for each token of the limit. Hardly any token is longer. The text is then cut to the exact
 * number of tokens.
 */
const BYTES_PER_TOKEN = 24

/**
 * Maximum number of files to try to read, since a session from another machine may name thousands that do not exist.
 */
const MAX_TRIES = 100

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
  const { budgets, policy } = context
  const seen = new Set<string>()
  let tries = 0
  const isNever = createExclusion(options, policy.memoryFiles)
  for (const path of findCandidates(options, context)) {
    if (isNever(path)) continue
    tries += 1
    if (tries > MAX_TRIES) return
    const read = await options.reader.read(path, budgets.files.each * BYTES_PER_TOKEN)
    if (!read.ok) yield { id: path, why: read.why }
    else if (!seen.has(read.realPath) && !isNever(read.realPath)) {
      seen.add(read.realPath)
      yield toFileItem(path, read)
    }
  }
}

/** Returns the paths of files to attach, newest first, each once, without files that kept messages already show. */
function findCandidates(
  options: FilesSourceOptions,
  { session, kept, policy }: SourceContext,
): ReadonlySet<string> {
  const { folder = null, recent, isStub = isFileUnchangedNotice } = options
  const touches = findTouches(session, policy.rehydrate.files, folder)
  const shown = findShownFiles(touches, [...kept], isStub)
  const paths = recent?.().map((path) => normalizePath(path, folder)) ?? touches.map(({ path }) => path)
  return new Set(paths.filter((path) => !shown.has(path)))
}

function createExclusion(
  { never, folder }: FilesSourceOptions,
  memory: { readonly names: readonly string[]; readonly rules: readonly string[] },
): (path: string) => boolean {
  const own = new Set((never?.() ?? []).map((path) => normalizePath(path, folder)))
  return (path) =>
    own.has(normalizePath(path, folder)) ||
    [...memory.names, ...memory.rules].some((name) => hasPathEnding(path, name))
}

/** Checks whether `path` ends in `name`, which is a file name or several parts of a path with `*` as a wildcard inside a part. */
function hasPathEnding(path: string, name: string): boolean {
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

function toFileItem(
  path: string,
  { text, bytes, isWhole }: FileReadResult & { readonly ok: true },
): SourceItem {
  const cutNote = (shown: string): string =>
    `[cut: ${shown.length} characters are shown of a file of ${bytes} bytes; read the file for the rest]`
  const content = isWhole ? text : `${text}\n${cutNote(text)}`
  const attachment = { type: 'file', filename: path, content, ...(isWhole ? {} : { truncated: true }) }
  return { id: path, attachment, source: path, sheddable: 'files', cutNote }
}

// Search for files that tool calls read or wrote, most recent first, and for files that kept messages show.

export interface SourceFileTouch {
  readonly path: string
  readonly isWrite: boolean
  readonly callId: string
  /** Index of the tool call's record in the list of records. */
  readonly index: number
}

/** Lists each read or write of a file, newest first. Tool calls that failed or have no result are left out. */
function findTouches(
  session: SessionLog,
  tools: FileToolNames,
  folder: string | null,
): readonly SourceFileTouch[] {
  const runs = listToolRuns(listBranchRecords(session), tools).filter(hasToolRunSucceeded)
  const touches = runs.flatMap((run) =>
    run.touches.map(({ path, action }) => ({
      path: normalizePath(path, folder),
      isWrite: action !== 'read',
      callId: run.id,
      index: run.callIndex,
    })),
  )
  return touches.toReversed()
}

/**
 * Finds files whose content the kept messages show: the result of a read that was not cleared, and every later write to
 * the file.
 */
export function findShownFiles(
  touches: readonly SourceFileTouch[],
  kept: readonly ContextEntry[],
  isStub: (text: string) => boolean,
): ReadonlySet<string> {
  const answered = listCallsWithContent(kept, isStub)
  const calls = listCallIds(kept)
  const readAt = new Map<string, number>()
  for (const { path, isWrite, callId, index } of touches)
    if (!isWrite && answered.has(callId) && !readAt.has(path)) readAt.set(path, index)
  const isStale = (path: string, at: number): boolean =>
    touches.some(
      (touch) => touch.path === path && touch.isWrite && touch.index > at && !calls.has(touch.callId),
    )
  return new Set([...readAt].filter(([path, at]) => !isStale(path, at)).map(([path]) => path))
}

function listCallsWithContent(
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
          .map(({ tool_use_id: id }) => id),
  )
  return new Set(ids)
}

function listCallIds(kept: readonly ContextEntry[]): ReadonlySet<string> {
  const ids = kept.flatMap(({ record }) =>
    record.type === 'assistant'
      ? toBlocks(record.message.content)
          .filter(isToolUse)
          .map(({ id }) => id)
      : [],
  )
  return new Set(ids)
}
