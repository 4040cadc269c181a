/**
 * Finds, reads and copies the blobs (large tool results) that a log refers to. A log in `HOME/sessions` has its blobs in
 * `HOME/blobs`, whatever the current home is.
 */
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { type BlobReader, readSpilledParts } from '@tidemark/core/history/spill-results'
import { createBlobFolder } from '../storage/blob-folder.ts'
import type { FileJournal } from '../storage/file-journal.ts'
import type { FileSystem } from '../storage/file-system.ts'
import {
  blobsFolder,
  isSessionId,
  LOCK_EXTENSION,
  resolveHome,
  sessionPaths,
  sessionsFolder,
} from '../storage/home-paths.ts'
import type { SplitLine } from '../storage/split-lines.ts'
import { openFileLines } from './read-lines.ts'

/** Returns the home in whose folder `sessions` a log lies; null if the log lies elsewhere. */
function findHomeOfLog(path: string): string | null {
  const folder = dirname(resolve(path))
  const home = dirname(folder)
  return basename(folder) === basename(sessionsFolder(home)) ? home : null
}

/** Returns the homes that may have the blobs of a log: its own home, then `home` (default: the current home). */
function listBlobHomes(path: string, home: string | undefined): readonly string[] {
  const own = findHomeOfLog(path)
  const current = resolveHome(home)
  return own === null || own === current ? [current] : [own, current]
}

/** Opens the blobs of a log for reading. A blob that is missing, damaged or unreadable gives null. */
export function openLogBlobs(path: string, home?: string): BlobReader {
  const stores = listBlobHomes(path, home).map((folder) => createBlobFolder({ home: folder }))
  return {
    async get(id) {
      for (const store of stores) {
        const bytes = await store.get(id).catch(() => null)
        if (bytes !== null) return bytes
      }
      return null
    },
  }
}

/** Returns the ids of the blobs that records refer to, each once. */
export function listBlobIds(records: Iterable<{ readonly spilled?: unknown }>): readonly string[] {
  const ids = new Set<string>()
  for (const record of records) for (const { blob } of readSpilledParts(record)) ids.add(blob)
  return [...ids]
}

/** What happened to the blobs that a copy of a log refers to. */
export interface BlobCopyReport {
  /** Number of blobs that were copied to the folder `to`. */
  readonly copied: number
  /** The blob folder beside the copy; null if the copy does not lie in a folder `sessions`, where it could be opened. */
  readonly to: string | null
  /** Number of blobs that stay in the folders `from`, because the copy has no blob folder beside it. */
  readonly left: number
  readonly from: readonly string[]
  /** Ids of the blobs that could not be read. Only the beginning and end of these results, which the log has, remain. */
  readonly missing: readonly string[]
}

/**
 * Copies blobs of the log `path` to the blob folder beside its copy `out`, which need not exist yet. Blobs that cannot
 * be read are listed as `missing`.
 */
export async function copyLogBlobs(
  path: string,
  out: string,
  ids: readonly string[],
  { home, files }: { readonly home?: string | undefined; readonly files?: FileSystem } = {},
): Promise<BlobCopyReport> {
  const target = findHomeOfLog(out)
  const missing: string[] = []
  let copied = 0
  let left = 0
  if (ids.length === 0) return { copied, to: null, left, from: [], missing }
  const source = openLogBlobs(path, home)
  const store = target === null ? null : createBlobFolder({ home: target, ...(files ? { files } : {}) })
  for (const id of ids) {
    if ((await store?.get(id).catch(() => null)) != null) continue
    const bytes = await source.get(id)
    if (bytes === null) missing.push(id)
    else if (store === null) left += 1
    else {
      await store.put(bytes)
      copied += 1
    }
  }
  const to = target === null ? null : blobsFolder(target)
  return { copied, to, left, from: listBlobHomes(path, home).map(blobsFolder), missing }
}

// Blobs that are deleted with their session.

/** The blobs of a session that may be deleted with it. If that cannot be decided, `ids` is empty and `why` has the reason. */
interface UnsharedBlobs {
  readonly ids: readonly string[]
  readonly why: string | null
}

/**
 * Finds the blobs that a session of `home` refers to and no other file among the sessions mentions. Other logs are
 * searched as text, so that damaged ones count, too. If a file cannot be read, or another session is open and may be
 * about to refer to a blob, every blob is kept.
 */
export async function findUnsharedBlobs(
  home: string,
  id: string,
  journal: FileJournal,
): Promise<UnsharedBlobs> {
  const { log, folder } = sessionPaths(home, id)
  const ids = new Set<string>()
  const problem = await visitLines(log, (text) => {
    for (const [, blob = ''] of text.matchAll(BLOB_FIELD)) ids.add(blob)
  })
  if (ids.size === 0) return { ids: [], why: problem }
  // The locks are checked before and after the search: a session may refer to a blob once its log has been searched.
  const why =
    problem ??
    (await findOpenSession(home, id, journal)) ??
    (await searchOtherFiles(sessionsFolder(home), [log, folder], (text) => {
      for (const [mentioned] of text.matchAll(BLOB_ID)) ids.delete(mentioned)
    })) ??
    (await findOpenSession(home, id, journal))
  return { ids: why === null ? [...ids] : [], why }
}

/** Returns a sentence if a session other than `id` is open in another process; otherwise null. */
async function findOpenSession(home: string, id: string, journal: FileJournal): Promise<string | null> {
  for (const name of await readdir(sessionsFolder(home))) {
    const other = basename(name, LOCK_EXTENSION)
    if (other === name || other === id || !isSessionId(other)) continue
    // A lock that an ended process left is taken over, and released with the journal.
    const lock = await journal.acquire(other)
    if (!lock.ok) return lock.message
  }
  return null
}

/** Visits the lines of all files in a folder, except locks and `skipped`. Returns a sentence if one cannot be read. */
async function searchOtherFiles(
  folder: string,
  skipped: readonly string[],
  visit: (text: string) => void,
): Promise<string | null> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isSkipped = skipped.some((each) => path === each || path.startsWith(`${each}${sep}`))
    if (entry.isDirectory() || isSkipped || entry.name.endsWith(LOCK_EXTENSION)) continue
    const problem = await visitLines(path, visit)
    if (problem !== null) return problem
  }
  return null
}

/** Matches the field of a record that names a blob. Text inside a record cannot match, because its quotes are escaped. */
const BLOB_FIELD = /"blob":"([0-9a-f]{64})"/g
const BLOB_ID = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g

/**
 * Calls `visit` for every line of a file, compressed or not. Returns a sentence if the file cannot be read whole; null
 * if it could, or if it is not there any more.
 */
async function visitLines(path: string, visit: (text: string) => void): Promise<string | null> {
  const feed = await openFileLines(path)
  if ('ok' in feed) return feed.reason === 'missing' ? null : feed.message
  let problem: string | null = null
  const take = ({ text, problem: flaw }: SplitLine): void => {
    // The text of a line that is too long is empty. Invalid bytes do no harm, because ids are ASCII.
    if (text === '' && flaw !== null) problem = `${path} cannot be read whole: ${flaw}.`
    visit(text)
  }
  try {
    for (let lines = await feed.next(); lines !== null; lines = await feed.next()) lines.forEach(take)
    take(feed.rest())
    return feed.fault === null ? problem : `${path} cannot be read whole: ${feed.fault}.`
  } finally {
    await feed.close()
  }
}
