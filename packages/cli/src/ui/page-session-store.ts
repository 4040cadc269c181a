/**
 * The sessions that the page shows, kept in memory. Their reports are those of `inspect --json`, created one after the other at
 * the start, and again when a log changes. Logs are checked for changes only while a page is open.
 */
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import {
  answerSessionApiRequest,
  type PageAnswer,
  type PageEvent,
  type PageSessions,
  type SessionApiRequest,
  toListedSession,
} from '@tidemark/page/server/page-routes'
import {
  type NamedLog,
  type PageUndoOutcome,
  redactStrings,
  type SessionList,
  type SessionPageData,
  type UnreadableLog,
} from 'tidemark/internal'
import { inspectFiles, type LogContents, readLog, type SessionReport } from 'tidemark/logs'
import type { PageUndo } from './page-undo.ts'

/** The logs to show, newest first, and those that were left out. */
interface PageLogs {
  readonly logs: readonly NamedLog[]
  readonly unreadable: readonly UnreadableLog[]
  readonly unread: number
}

interface SessionStoreOptions {
  /** Finds the logs. Called repeatedly while a page is open, because new sessions may begin. */
  readonly find: () => Promise<PageLogs>
  readonly undo: PageUndo
  readonly timeZone?: string | undefined
  readonly signal?: AbortSignal | undefined
}

interface KnownSession {
  readonly log: NamedLog
  report: SessionReport | null
  /** Why the log cannot be read; null if it can, or if it was not read yet. */
  why: string | null
  sizeBytes: number
  modifiedMs: number
}

/** A session counts as live for so long after its log was last written. */
const LIVE_MS = 120_000
/** Pause between two checks of the known logs for changes. */
const STAT_MS = 500
/** Pause between two searches for new logs. */
const FIND_MS = 3_000

export class PageSessionStore implements PageSessions {
  readonly #options: SessionStoreOptions
  readonly #sessions = new Map<string, KnownSession>()
  readonly #listeners = new Set<(event: PageEvent) => void>()
  #found: PageLogs = { logs: [], unreadable: [], unread: 0 }
  #newest: { readonly id: string; readonly modifiedMs: number; readonly log: LogContents } | null = null
  #reading: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | null = null
  #foundAt = 0
  #isClosed = false

  constructor(options: SessionStoreOptions) {
    this.#options = options
  }

  /** Finds the logs and starts to read them. Returns their number as soon as they are found. */
  async start(): Promise<number> {
    await this.#findLogs()
    this.#reading = this.#readAll()
    return this.#sessions.size
  }

  async list(): Promise<SessionList> {
    const known = [...this.#sessions]
    const failed = known.flatMap(([, { log, why }]) => (why === null ? [] : [{ file: log.file, why }]))
    return redactStrings({
      sessions: known.flatMap(([id, session]) =>
        session.report === null ? [] : [toListedSession(id, session.report, isLive(session))],
      ),
      pending: known.filter(([, { report, why }]) => report === null && why === null).length,
      notRead: this.#found.unread,
      unreadable: [...this.#found.unreadable, ...failed],
    })
  }

  /** Returns a session's report and undo state, after reading its log if necessary; null if there is no such session or no readable log. */
  async readPage(id: string): Promise<SessionPageData | null> {
    const session = this.#sessions.get(id)
    if (session === undefined) return null
    if (session.report === null) await this.#inspect(session)
    const { report } = session
    if (report === null) return null
    return {
      id,
      report: redactStrings(report),
      isLive: isLive(session),
      undo: await this.#options.undo.findState(report),
    }
  }

  /** Returns the contents of a log; null if it cannot be read. Those of the last session read are kept until its log changes. */
  async readContents(id: string): Promise<LogContents | null> {
    const session = this.#sessions.get(id)
    if (session === undefined) return null
    const { modifiedMs } = await stat(session.log.path).then(
      ({ mtimeMs }) => ({ modifiedMs: mtimeMs }),
      () => ({ modifiedMs: 0 }),
    )
    if (this.#newest?.id === id && this.#newest.modifiedMs === modifiedMs) return this.#newest.log
    const log = await readLog(session.log, { keepsRawBlocks: false })
    if (!log.ok) return null
    this.#newest = { id, modifiedMs, log }
    return log
  }

  async answer(id: string, question: SessionApiRequest): Promise<PageAnswer | null> {
    if (!this.#sessions.has(id)) return null
    const session = { readPage: () => this.readPage(id), readContents: () => this.readContents(id) }
    return answerSessionApiRequest(session, question)
  }

  /** Undoes a compaction or clearing, then reads the session again; null if there is no such session or it was not read yet. */
  async undo(id: string, target: string): Promise<PageUndoOutcome | null> {
    const session = this.#sessions.get(id)
    if (session?.report == null) return null
    const outcome = await this.#options.undo.undo(session.report, target)
    await this.#inspect(session)
    this.#emit({ type: 'changed', id })
    return outcome
  }

  listen(listener: (event: PageEvent) => void): () => void {
    this.#listeners.add(listener)
    this.#follow(STAT_MS)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#reading.catch(() => {})
  }

  async #findLogs(): Promise<boolean> {
    this.#found = await this.#options.find()
    this.#foundAt = performance.now()
    let isNew = false
    for (const log of this.#found.logs) {
      const id = toSessionKey(log.path)
      if (this.#sessions.has(id)) continue
      isNew = true
      this.#sessions.set(id, { log, report: null, why: null, sizeBytes: -1, modifiedMs: log.modifiedMs })
    }
    return isNew
  }

  async #readAll(): Promise<void> {
    const unread = [...this.#sessions.values()].filter(({ report, why }) => report === null && why === null)
    await this.#inspectLogs(unread.map(({ log }) => log))
  }

  async #inspect({ log }: KnownSession): Promise<void> {
    const { size, mtimeMs } = await stat(log.path).catch(() => ({ size: 0, mtimeMs: 0 }))
    await this.#inspectLogs([{ ...log, sizeBytes: size, modifiedMs: mtimeMs }])
  }

  async #inspectLogs(logs: readonly NamedLog[]): Promise<void> {
    const { timeZone, signal } = this.#options
    await inspectFiles(logs, {
      ...(timeZone === undefined ? {} : { timeZone }),
      ...(signal === undefined ? {} : { signal }),
      onReport: (log, report) => {
        if (this.#isClosed) throw new Error('The page was closed.')
        const session = this.#sessions.get(toSessionKey(log.path))
        if (session === undefined) return
        session.sizeBytes = log.sizeBytes
        session.modifiedMs = log.modifiedMs
        if ('why' in report) session.why = report.why
        else session.report = report
        this.#emit({ type: 'list' })
      },
    })
  }

  #emit(event: PageEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  /** Checks for changed logs after a pause, and again while pages are open. Does nothing if a check is already scheduled. */
  #follow(afterMs: number): void {
    if (this.#timer !== null || this.#isClosed) return
    this.#timer = setTimeout(async () => {
      const started = performance.now()
      await this.#reading.catch(() => {})
      await this.#readChanged().catch(() => {})
      this.#timer = null
      // The pause is at least as long as the check took, so that reading a long log leaves time for open pages.
      if (this.#listeners.size > 0) this.#follow(Math.max(STAT_MS, performance.now() - started))
    }, afterMs)
    this.#timer.unref()
  }

  async #readChanged(): Promise<void> {
    if (performance.now() - this.#foundAt > FIND_MS && (await this.#findLogs())) await this.#readAll()
    for (const [id, session] of this.#sessions) {
      const { size, mtimeMs } = await stat(session.log.path).catch(() => ({ size: -1, mtimeMs: 0 }))
      if (size === -1 || (size === session.sizeBytes && mtimeMs === session.modifiedMs)) continue
      await this.#inspect(session)
      this.#emit({ type: 'changed', id })
    }
  }
}

/** Returns the id of a session in addresses of the page: a hash of the path of its log. */
function toSessionKey(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 12)
}

function isLive({ modifiedMs }: KnownSession): boolean {
  return Date.now() - modifiedMs < LIVE_MS
}
