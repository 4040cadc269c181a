/** The journal in files: one log a session, in the sessions folder of a Tidemark home. */
import type { AppendOutcome, Clock, Ids, Journal, JournalState } from '@tidemark/core'
import { ensureDirectory, syncNames } from '../files/directories.ts'
import { sweepDrafts } from '../files/drafts.ts'
import type { FilePort } from '../files/file-port.ts'
import { ioFailed } from '../files/io-failed.ts'
import { nodeFiles } from '../files/node-files.ts'
import { homeOr } from '../home/home.ts'
import { isSessionId } from '../home/session-id.ts'
import { LOG_ENDING, sessionPaths, sessionsFolder } from '../home/session-paths.ts'
import { type Processes, systemProcesses } from '../system/processes.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemIds } from '../system/system-ids.ts'
import { checkAfter, checkFrom, checkProgram, checkStaleLock, checkVisit } from './check-given.ts'
import type { Refusal } from './lock.ts'
import { LogFile } from './log-file.ts'
import { readLog, type Visit } from './read-log.ts'
import { SessionWriter } from './writer.ts'

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
