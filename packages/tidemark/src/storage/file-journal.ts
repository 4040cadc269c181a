/** A journal that stores each session in one log file, in the `sessions` folder of the Tidemark home. */

import { basename } from 'node:path'
import type {
  AppendOutcome,
  Clock,
  IdGenerator,
  Journal,
  JournalReadResult,
} from '@tidemark/core/engine/ports'
import type { ProcessPort } from '../platform/processes.ts'
import { LogFile, SessionWriter } from './append-records.ts'
import { removeStaleDrafts } from './atomic-file.ts'
import {
  checkAppendPosition,
  checkProgramName,
  checkReadPosition,
  checkStaleLockMs,
  checkVisitor,
} from './check-records.ts'
import { ensureDirectory, type FileSystem, ioError, syncDirectoryNames } from './file-system.ts'
import { isSessionId, LOG_EXTENSION, resolveHome, sessionPaths, sessionsFolder } from './home-paths.ts'
import { findLockHolder, type LockedResult, SYSTEM_LOCK_OPTIONS } from './journal-lock.ts'
import type { RecordVisitor } from './read-log-file.ts'

export interface FileJournalOptions {
  /** Absolute path of the Tidemark home folder. Default: `tidemarkHome()`. */
  readonly home?: string
  /**
   * Name of this program. Other programs show it when they cannot write a session because this program has it locked.
   */
  readonly program?: string
  /** Milliseconds without a sign of life after which a lock held on another machine may be taken over. */
  readonly staleLockMs?: number
  readonly files?: FileSystem
  readonly clock?: Clock
  readonly ids?: IdGenerator
  readonly processes?: ProcessPort
}

export interface FileJournal extends Journal {
  /** Locks the session for writing. Optional, because the first append also locks it. */
  acquire(session: string): Promise<{ readonly ok: true } | LockedResult>
  /** Releases the write locks of all sessions. Rejects with the first error after all of them were tried. */
  close(): Promise<void>
}

/**
 * Opens the journal in the home. Creates no files before the first append. Throws `bad-option` or `bad-home` for wrong
 * options.
 */
export function createFileJournal(options: FileJournalOptions = {}): FileJournal {
  return new FolderJournal({
    home: resolveHome(options.home),
    program: checkProgramName(options.program ?? 'tidemark'),
    staleLockMs: checkStaleLockMs(options.staleLockMs ?? SYSTEM_LOCK_OPTIONS.staleLockMs),
    files: options.files ?? SYSTEM_LOCK_OPTIONS.files,
    clock: options.clock ?? SYSTEM_LOCK_OPTIONS.clock,
    ids: options.ids ?? SYSTEM_LOCK_OPTIONS.ids,
    processes: options.processes ?? SYSTEM_LOCK_OPTIONS.processes,
  })
}

type Settings = Required<FileJournalOptions>

interface OpenLog {
  readonly log: LogFile
  readonly writer: SessionWriter
}

class FolderJournal implements FileJournal {
  readonly #settings: Settings
  readonly #logs = new Map<string, OpenLog>()
  #isPrepared = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  async read(session: string, visit: RecordVisitor, from = 0): Promise<JournalReadResult> {
    const { log } = this.#open(session)
    checkVisitor(visit)
    checkReadPosition(from)
    return log.read(visit, from)
  }

  async append(...[session, after, records]: Parameters<Journal['append']>): Promise<AppendOutcome> {
    const { writer } = this.#open(session)
    checkAppendPosition(after)
    return writer.append(after, records)
  }

  async acquire(session: string): Promise<{ readonly ok: true } | LockedResult> {
    return (await this.#open(session).writer.acquire()) ?? { ok: true }
  }

  async list(): Promise<readonly string[]> {
    const { files, home } = this.#settings
    const folder = sessionsFolder(home)
    const entries = await files.list(folder).catch((error: unknown) => {
      throw ioError(`list the sessions in ${folder}`, error, { folder })
    })
    return entries
      .filter(({ kind, name }) => kind === 'file' && name.endsWith(LOG_EXTENSION))
      .map(({ name }) => name.slice(0, -LOG_EXTENSION.length))
      .filter(isSessionId)
  }

  async release(session: string): Promise<void> {
    await this.#open(session).writer.release()
  }

  async close(): Promise<void> {
    const releases = await Promise.allSettled([...this.#logs.keys()].map((session) => this.release(session)))
    const failed = releases.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  #open(session: string): OpenLog {
    const { log: path, lock } = sessionPaths(this.#settings.home, session)
    const known = this.#logs.get(session)
    if (known !== undefined) return known
    const log = new LogFile({ ...this.#settings, session, path })
    const place = { ...this.#settings, session, path: lock, logPath: path, prepare: () => this.#prepare() }
    const opened = { log, writer: new SessionWriter(place, log) }
    this.#logs.set(session, opened)
    return opened
  }

  async #prepare(): Promise<void> {
    const { files, home, clock } = this.#settings
    const folder = sessionsFolder(home)
    await ensureDirectory(files, folder)
    if (this.#isPrepared) return
    await syncDirectoryNames(files, folder, home)
    await removeStaleDrafts(files, folder, clock.now())
    this.#isPrepared = true
  }
}

/**
 * Returns the process that has a session of a home open for writing, as in `tidemark (process 12 on host)`; null if there
 * is none. Takes no lock, so that a writer that starts meanwhile is not refused.
 */
export function findSessionWriter(home: string, session: string): Promise<string | null> {
  return findLockHolder({
    session,
    path: sessionPaths(home, session).lock,
    ...SYSTEM_LOCK_OPTIONS,
    program: 'tidemark',
  })
}

/** Returns a journal for one log file outside a Tidemark home, with the same locks. The session id is the file name. */
export function createSingleLogJournal(path: string): Journal {
  const stem = path.endsWith(LOG_EXTENSION) ? path.slice(0, -LOG_EXTENSION.length) : path
  const session = basename(stem)
  const log = new LogFile({ ...SYSTEM_LOCK_OPTIONS, session, path })
  const writer = new SessionWriter(
    {
      ...SYSTEM_LOCK_OPTIONS,
      session,
      program: 'tidemark compact',
      path: `${stem}.lock`,
      logPath: path,
      prepare: async () => {},
    },
    log,
  )
  return {
    read: (_session, visit, from = 0) => log.read(visit, from),
    append: (_session, after, records) => writer.append(after, records),
    list: async () => [session],
    release: () => writer.release(),
  }
}
