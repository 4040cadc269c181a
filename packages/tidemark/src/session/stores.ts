/** The stores of `createTidemark`: files under the home, or in memory. */

import { statSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobStore, Journal, NotesStore } from '@tidemark/core/engine/ports'
import { TidemarkError } from '@tidemark/core/errors'
import { isObject } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { withNeutralRecords } from '../platform/checked-ports.ts'
import { createBlobFolder } from '../storage/blob-folder.ts'
import { createFileJournal } from '../storage/file-journal.ts'
import { resolveHome, sessionPaths, tidemarkHome } from '../storage/home-paths.ts'
import { createMemoryBlobs, createMemoryJournal, createMemoryNotesStore } from '../storage/memory-stores.ts'
import { createNotesFolder } from '../storage/notes-folder.ts'
import { findRecentSessionsWithText } from '../storage/recent-logs.ts'

/** Where a Tidemark object keeps its sessions. */
export interface SessionStores {
  readonly journal: Journal
  /** True if the first write to a session locks it: no other process can write until this process releases the session. */
  readonly locksSessions: boolean
  /** Closes the journal if `createTidemark` opened it. */
  readonly close: () => Promise<void>
  readonly blobs: BlobStore | null
  readonly notes: NotesStore
  /** Returns the path of a session's log; null if logs are not files. */
  readonly logPath: (session: string) => string | null
  /** Returns the sessions whose logs have one of these texts near the end, newest first; none if the store cannot search. */
  readonly findRecent: (texts: readonly string[]) => Promise<readonly string[]>
  /** Saves the diff of a cache break beside the session's log; null if logs are not files. */
  readonly saveDiff: ((session: string, diff: string, at: number) => Promise<void>) | null
}

/** The options that choose the stores. */
interface StoreOptions {
  readonly home?: string
  readonly memory?: boolean
  readonly journal?: Journal
  readonly blobs?: BlobStore | null
  readonly notesStore?: NotesStore
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Creates the stores: in memory, or files under the home, except for those that the caller gives. Throws `bad-home` if
 * the home cannot be a folder.
 */
export function createSessionStores(options: StoreOptions): SessionStores {
  const { journal, blobs, notesStore, memory = false } = options
  if (memory) {
    return {
      journal: createMemoryJournal(),
      locksSessions: true,
      blobs: blobs === undefined ? createMemoryBlobs() : blobs,
      notes: notesStore ?? createMemoryNotesStore(),
      ...NO_FILES,
    }
  }
  const home = findHome(options)
  const folder = blobs === undefined ? createBlobFolder({ home }) : blobs
  if (journal !== undefined)
    return {
      journal: withNeutralRecords(journal),
      locksSessions: false,
      blobs: folder,
      notes: notesStore ?? createMemoryNotesStore(),
      ...NO_FILES,
      ...(journal.findRecent === undefined ? {} : { findRecent: (texts) => findIn(journal, texts) }),
    }
  const files = createFileJournal({ home })
  return {
    journal: files,
    locksSessions: true,
    blobs: folder,
    notes: notesStore ?? createNotesFolder({ home }),
    logPath: (session) => sessionPaths(home, session).log,
    findRecent: (texts) => findRecentSessionsWithText(home, texts),
    saveDiff: (session, diff, at) => writeDiffFile(sessionPaths(home, session).folder, diff, at),
    close: () => files.close(),
  }
}

async function findIn(journal: Journal, texts: readonly string[]): Promise<readonly string[]> {
  return texts.length === 0 ? [] : ((await journal.findRecent?.(texts)) ?? [])
}

const NO_FILES: Pick<SessionStores, 'logPath' | 'findRecent' | 'saveDiff' | 'close'> = {
  logPath: () => null,
  findRecent: async () => [],
  saveDiff: null,
  close: async () => {},
}

/** Number of diffs of cache breaks that are kept for one session; older ones are deleted. */
const KEPT_DIFFS = 20

/** Writes the diff of a cache break into the session's folder, readable only by the user. */
async function writeDiffFile(folder: string, diff: string, at: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const name = `cache-break-${new Date(at).toISOString().replaceAll(':', '-')}.diff`
  await writeFile(join(folder, name), diff, { mode: 0o600 })
  const diffs = (await readdir(folder)).filter((file) => file.startsWith('cache-break-')).sort()
  await Promise.all(diffs.slice(0, -KEPT_DIFFS).map((file) => rm(join(folder, file), { force: true })))
}

function findHome({ home, env }: StoreOptions): string {
  const found = home === undefined ? tidemarkHome(env ?? process.env) : resolveHome(home)
  if (isUsable(found)) return found
  const name = home === undefined && (env ?? process.env).TIDEMARK_HOME ? 'TIDEMARK_HOME' : 'The home'
  const message = `${name} is ${formatErrorValue(found)}, which is a file or is below a file. Name a folder; it is created if it does not exist.`
  throw new TidemarkError('bad-home', message, { details: { name, value: found } })
}

/**
 * Checks whether a path is a folder or does not exist yet. A path that cannot be examined is accepted: the first write
 * will report the problem.
 */
function isUsable(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch (thrown) {
    return !(isObject(thrown) && thrown.code === 'ENOTDIR')
  }
}
