/** The journal in files: one log a session, in the sessions folder of a Tidemark home. */

import { basename } from 'node:path'
import type { AppendOutcome, Clock, Ids, Journal, JournalState } from '@tidemark/core'
import { systemClock, systemIds } from '../platform/node-ports.ts'
import { type Processes, systemProcesses } from '../platform/processes.ts'
import { LogFile, SessionWriter } from './append-records.ts'
import { sweepDrafts } from './atomic-file.ts'
import { ensureDirectory, type FilePort, ioFailed, nodeFiles, syncNames } from './file-system.ts'
import type { Refusal } from './journal-lock.ts'
import { checkAfter, checkFrom, checkProgram, checkStaleLock, checkVisit } from './new-records.ts'
import { homeOr, isSessionId, LOG_ENDING, sessionPaths, sessionsFolder } from './paths.ts'
import { readLog, type Visit } from './read-log-file.ts'

export interface FileJournalOptions {
  /** An absolute path; `tidemarkHome()` unless given. */
  readonly home?: string
  /** How a refused writer is told who holds the session. */
  readonly program?: string
  /** How long a holder on another machine may be silent before its lock can be taken over. */
  readonly staleLockMs?: number
  readonly files?: FilePort
  readonly clock?: Clock
  readonly ids?: Ids
  readonly processes?: Processes
}

export interface FileJournal extends Journal {
  /** Takes the session for writing, as the first append does by itself. */
  acquire(session: string): Promise<{ readonly ok: true } | Refusal>
  /** Releases every session. */
  close(): Promise<void>
}

const TEN_MINUTES_MS = 600_000

export function createFileJournal(options: FileJournalOptions = {}): FileJournal {
  const settings: Settings = {
    home: homeOr(options.home),
    program: checkProgram(options.program ?? 'tidemark'),
    staleLockMs: checkStaleLock(options.staleLockMs ?? TEN_MINUTES_MS),
    files: options.files ?? nodeFiles,
    clock: options.clock ?? systemClock,
    ids: options.ids ?? systemIds,
    processes: options.processes ?? systemProcesses,
  }
  return new SessionsInFiles(settings)
}

type Settings = Required<FileJournalOptions>

interface OpenSession {
  readonly log: LogFile
  readonly path: string
  readonly writer: SessionWriter
}

class SessionsInFiles implements FileJournal {
  readonly #settings: Settings
  readonly #sessions = new Map<string, OpenSession>()
  #isPrepared = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  async read(session: string, visit: Visit, from = 0): Promise<JournalState> {
    const { log, path } = this.#open(session)
    checkVisit(visit)
    checkFrom(from)
    const reach = await log.reachFrom(from)
    const state = await readLog({ files: this.#settings.files, session, path }, visit, reach)
    log.note(state)
    const { exists, position, damage } = state
    return { exists, position, damage }
  }

  async append(...[session, after, records]: Parameters<Journal['append']>): Promise<AppendOutcome> {
    const { writer } = this.#open(session)
    checkAfter(after)
    return writer.append(after, records)
  }

  async acquire(session: string): Promise<{ readonly ok: true } | Refusal> {
    return (await this.#open(session).writer.acquire()) ?? { ok: true }
  }

  async list(): Promise<readonly string[]> {
    const { files, home } = this.#settings
    const folder = sessionsFolder(home)
    const entries = await files.list(folder).catch((error: unknown) => {
      throw ioFailed(`list the sessions in ${folder}`, error, { folder })
    })
    return entries
      .filter(({ kind, name }) => kind === 'file' && name.endsWith(LOG_ENDING))
      .map(({ name }) => name.slice(0, -LOG_ENDING.length))
      .filter(isSessionId)
  }

  async release(session: string): Promise<void> {
    await this.#open(session).writer.release()
  }

  async close(): Promise<void> {
    for (const session of this.#sessions.keys()) await this.release(session)
  }

  #open(session: string): OpenSession {
    const { log: path, lock } = sessionPaths(this.#settings.home, session)
    const known = this.#sessions.get(session)
    if (known !== undefined) return known
    const log = new LogFile({ ...this.#settings, session, path })
    const place = { ...this.#settings, session, path: lock, logPath: path, prepare: () => this.#prepare() }
    const opened = { log, path, writer: new SessionWriter(place, log) }
    this.#sessions.set(session, opened)
    return opened
  }

  async #prepare(): Promise<void> {
    const { files, home, clock } = this.#settings
    const folder = sessionsFolder(home)
    await ensureDirectory(files, folder)
    if (this.#isPrepared) return
    await syncNames(files, folder, home)
    await sweepDrafts(files, folder, clock.now())
    this.#isPrepared = true
  }
}

// The journal of one log of ours, wherever it lies: locked, compared and appended as those in a Tidemark home are.

const TEN_MINUTES_MS_ONE_LOG_JOURNAL = 600_000

export function createOneLogJournal(path: string): Journal {
  const files = nodeFiles
  const stem = path.endsWith(LOG_ENDING) ? path.slice(0, -LOG_ENDING.length) : path
  const session = basename(stem)
  const log = new LogFile({ files, clock: systemClock, session, path })
  const writer = new SessionWriter(
    {
      ...{ files, clock: systemClock, ids: systemIds, processes: systemProcesses, session },
      program: 'tidemark compact',
      staleLockMs: TEN_MINUTES_MS_ONE_LOG_JOURNAL,
      path: `${stem}.lock`,
      logPath: path,
      prepare: async () => {},
    },
    log,
  )
  return {
    async read(_session, visit, from = 0) {
      const reach = await log.reachFrom(from)
      const state = await readLog({ files, session, path }, visit, reach)
      log.note(state)
      const { exists, position, damage } = state
      return { exists, position, damage }
    },
    append: (_session, after, records) => writer.append(after, records),
    list: async () => [session],
    release: () => writer.release(),
  }
}
