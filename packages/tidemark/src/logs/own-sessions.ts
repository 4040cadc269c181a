/** Lists, searches and deletes the sessions that Tidemark stores on disk. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readUserTypedText } from '@tidemark/core/facts/user-input'
import {
  type BlobReader,
  readSpilledParts,
  restoreSpilledResults,
} from '@tidemark/core/history/spill-results'
import { isTextBlock, isToolResult, toBlocks } from '@tidemark/core/log/block'
import { isKnownRecord, type SessionRecord, type UserRecord } from '@tidemark/core/log/record'
import { REDACTED, redact } from '@tidemark/core/text/redact'
import { createBlobFolder, toBlobPath } from '../storage/blob-folder.ts'
import { createFileJournal } from '../storage/file-journal.ts'
import { ioError, readErrorCode } from '../storage/file-system.ts'
import {
  type HomeEnvironment,
  isSessionId,
  LOG_EXTENSION,
  sessionPaths,
  sessionsFolder,
  tidemarkHome,
} from '../storage/home-paths.ts'
import { findUnsharedBlobs } from './log-blobs.ts'
import { type LogContents, readLog, summarizeUserPrompts } from './read-log.ts'

export interface SessionInfo {
  readonly id: string
  readonly sizeBytes: number
  readonly modifiedAt: string
  readonly startedAt: string | null
  readonly records: number
  readonly firstPrompt: string | null
  /** Number of damaged places in the log. */
  readonly damaged: number
}

export interface SessionListing<T> {
  readonly found: readonly T[]
  readonly unreadable: readonly { readonly id: string; readonly why: string }[]
}

/** Lists all sessions under `home`, newest first. Reads every log completely. */
export function listSessions(home: string, signal?: AbortSignal): Promise<SessionListing<SessionInfo>> {
  return collectFromSessions(home, signal, async (id, { sizeBytes, modifiedMs, meta, records, damage }) => [
    {
      id,
      sizeBytes,
      modifiedAt: new Date(modifiedMs).toISOString(),
      startedAt: meta.startedAt,
      records: records.length,
      firstPrompt: summarizeUserPrompts(records.map(({ record }) => record)).firstPrompt,
      damaged: damage.length,
    },
  ])
}

/** Reads all sessions, newest first. `found`: what `collect` returns for each, joined; `unreadable`: those that could not be read. */
async function collectFromSessions<T>(
  home: string,
  signal: AbortSignal | undefined,
  collect: (id: string, log: LogContents) => Promise<readonly T[]>,
): Promise<SessionListing<T>> {
  const found: T[] = []
  const unreadable: { id: string; why: string }[] = []
  for (const { id, path } of await listLogs(sessionsFolder(home))) {
    const read = await readLog(path, { withAgents: false, ...(signal === undefined ? {} : { signal }) })
    if (read.ok) found.push(...(await collect(id, read)))
    else unreadable.push({ id, why: read.message })
  }
  return { found, unreadable }
}

interface OwnLog {
  readonly id: string
  readonly path: string
  readonly modifiedMs: number
}

/**
 * Lists the logs in a folder, newest first. Returns an empty list if the folder does not exist; throws if it cannot be
 * read.
 */
async function listLogs(folder: string): Promise<readonly OwnLog[]> {
  const names = await readdir(folder).catch((error: unknown): string[] => {
    if (readErrorCode(error) === 'ENOENT') return []
    throw ioError(`list the sessions in ${folder}`, error, { path: folder })
  })
  const ids = names
    .filter((name) => name.endsWith(LOG_EXTENSION))
    .map((name) => name.slice(0, -LOG_EXTENSION.length))
  const logs = await Promise.all(
    ids.filter(isSessionId).map(async (id): Promise<OwnLog> => {
      const path = join(folder, `${id}${LOG_EXTENSION}`)
      const stats = await stat(path).catch(() => null)
      return { id, path, modifiedMs: stats?.mtimeMs ?? 0 }
    }),
  )
  return logs.sort((one, other) => other.modifiedMs - one.modifiedMs || (one.id < other.id ? -1 : 1))
}

export interface SessionMatch {
  readonly id: string
  readonly line: number
  readonly who: 'person' | 'model' | 'tool' | 'engine'
  /** The found text with some text around it; secrets are removed. */
  readonly text: string
}

/**
 * Searches the texts of all sessions, ignoring case, and the large results that are stored as blobs. Each text of a
 * record gives at most one match. A session with a blob that cannot be read is listed as unreadable, too.
 */
export async function searchSessions(
  home: string,
  wanted: string,
  signal?: AbortSignal,
): Promise<SessionListing<SessionMatch>> {
  const blobs = createBlobFolder({ home })
  const reader: BlobReader = { get: (id) => blobs.get(id).catch(() => null) }
  const unread = new Map<string, number>()
  const { found, unreadable } = await collectFromSessions(home, signal, async (id, { records }) => {
    const matches: SessionMatch[] = []
    for (const { record, line } of records) {
      const whole = isUserRecord(record) ? await restoreSpilledResults(record, reader) : record
      const missing = readSpilledParts(whole).length
      if (missing > 0) unread.set(id, (unread.get(id) ?? 0) + missing)
      for (const { who, text } of listTexts(whole))
        if (indexIgnoringCase(text, wanted) !== -1)
          matches.push({ id, line, who, text: excerptAround(redact(text), wanted) })
    }
    return matches
  })
  return { found, unreadable: [...unreadable, ...[...unread].map(describeUnread)] }
}

function describeUnread([id, count]: readonly [string, number]): {
  readonly id: string
  readonly why: string
} {
  const results = count === 1 ? '1 large result' : `${count} large results`
  const why = `Session "${id}": ${results} could not be read from the blobs; only the beginning and end of each was searched.`
  return { id, why }
}

function isUserRecord(record: SessionRecord): record is UserRecord {
  return isKnownRecord(record) && record.type === 'user'
}

type AttributedText = Pick<SessionMatch, 'who' | 'text'>

function listTexts(record: SessionRecord): readonly AttributedText[] {
  if (!isKnownRecord(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  const author =
    record.type === 'assistant' ? 'model' : readUserTypedText(record) === null ? 'engine' : 'person'
  return toBlocks(record.message.content).flatMap((block): readonly AttributedText[] => {
    if (isToolResult(block)) return [{ who: 'tool', text: resultText(block.content) }]
    return isTextBlock(block) ? [{ who: author, text: block.text }] : []
  })
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content)
    ? content.map((block) => (isTextBlock(block) ? block.text : '')).join('\n')
    : ''
}

function indexIgnoringCase(text: string, wanted: string): number {
  return text.toLowerCase().indexOf(wanted.toLowerCase())
}

/** Characters shown before a found text: few, so that a narrow terminal still shows the text itself. */
const EXCERPT_BEFORE = 20
/** Characters shown after a found text. */
const EXCERPT_AFTER = 60

/**
 * Returns the found text with some text around it. Secrets are already removed from `text`; if the found text was part
 * of a secret, returns a placeholder.
 */
function excerptAround(text: string, wanted: string): string {
  const at = indexIgnoringCase(text, wanted)
  if (at === -1) return REDACTED
  const from = Math.max(0, at - EXCERPT_BEFORE)
  const to = Math.min(text.length, at + wanted.length + EXCERPT_AFTER)
  const excerpt = text.slice(from, to).replace(/\s+/g, ' ').trim()
  return `${from > 0 ? '…' : ''}${excerpt}${to < text.length ? '…' : ''}`
}

type DeleteSessionOutcome =
  | {
      readonly ok: true
      /** Number of blobs (large tool results) that were deleted with the session. */
      readonly blobs: number
      /** Why the blobs of the session were all kept, as one sentence; null if only shared ones were kept. */
      readonly blobsKept: string | null
    }
  | {
      readonly ok: false
      /** `missing`: the session does not exist. `held`: another process has it open for writing. */
      readonly reason: 'missing' | 'held'
      /** A sentence for the user; for `held`, it names the process. */
      readonly why: string
    }

/** Returns whether a session of this id exists. Throws if the folder of the sessions cannot be read. */
export async function hasSession(home: string, id: string): Promise<boolean> {
  try {
    await stat(sessionPaths(home, id).log)
    return true
  } catch (error) {
    if (readErrorCode(error) === 'ENOENT') return false
    throw ioError(`find session "${id}"`, error, { session: id })
  }
}

/**
 * Returns the path of a log that a user names: the path itself if there is such a file or folder, otherwise the log of
 * the session of that id in the Tidemark home; the given text if there is neither.
 */
export async function resolveLogPath(given: string, variables: HomeEnvironment): Promise<string> {
  const isThere = await stat(given).then(
    () => true,
    () => false,
  )
  if (isThere || !isSessionId(given)) return given
  const home = tidemarkHome(variables)
  return (await hasSession(home, given).catch(() => false)) ? sessionPaths(home, given).log : given
}

/**
 * Deletes a session permanently: its log, its folder, and the blobs that no other session refers to. Refused while
 * another process has the session open for writing.
 */
export async function deleteSession(home: string, id: string): Promise<DeleteSessionOutcome> {
  const paths = sessionPaths(home, id)
  if (!(await hasSession(home, id)))
    return { ok: false, reason: 'missing', why: `There is no session "${id}".` }
  const journal = createFileJournal({ home })
  const lock = await journal.acquire(id)
  if (!lock.ok) return { ok: false, reason: 'held', why: lock.message }
  try {
    const blobs = await findUnsharedBlobs(home, id, journal)
    // The log is deleted last. If deletion stops halfway, the session can then still be found, and deleted again.
    for (const blob of blobs.ids) await rm(toBlobPath(home, blob), { force: true })
    await rm(paths.folder, { recursive: true, force: true })
    await rm(paths.log, { force: true })
    return { ok: true, blobs: blobs.ids.length, blobsKept: blobs.why }
  } catch (error) {
    throw ioError(`delete session "${id}"`, error, { session: id })
  } finally {
    await journal.close()
  }
}
