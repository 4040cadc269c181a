/**
 * Appends records to the log of one session. Appends that wait at the same time are checked in order and then written
 * together, with one write and one sync. An append succeeds only if the last position in the log is the one that its
 * caller expects.
 */

import { dirname } from 'node:path'
import type { AppendOutcome, Clock, JournalReadResult } from '@tidemark/core/engine/ports'
import { TidemarkError } from '@tidemark/core/errors'
import { createLogHeader, LOG_VERSION } from '@tidemark/core/log/decode-log'
import { createWriteLock } from '../platform/node-ports.ts'
import { appendAllBytes } from './atomic-file.ts'
import { createGroupedAppend, placeAppends, type WaitingAppend } from './check-records.ts'
import { type FileFacts, ioError, type OpenFile } from './file-system.ts'
import { type HeldLock, type LockedResult, type LockOptions, takeLock } from './journal-lock.ts'
import {
  type LogFileLocation,
  type LogFileState,
  type RecordVisitor,
  type ResumeMark,
  ResumeMarks,
  readLogFile,
  sliceLastBytes,
} from './read-log-file.ts'

interface WriterOptions extends LockOptions {
  readonly logPath: string
  /** Creates the folder that contains the log. */
  prepare(): Promise<void>
}

/** The writer of one session in this process. Holds the session's write lock from the first append to `release`. */
export class SessionWriter {
  readonly #place: WriterOptions
  readonly #log: LogFile
  #lock: HeldLock | null = null
  readonly #inOrder = createWriteLock()
  /**
   * Appends records, and takes the session's write lock if this writer does not hold it yet. If the outcome is ok, the
   * records are on disk.
   */
  readonly append = createGroupedAppend(this.#inOrder, (group) =>
    this.#write(group).catch((error: unknown) => this.#fail('append to', error)),
  )

  constructor(place: WriterOptions, log: LogFile) {
    this.#place = place
    this.#log = log
  }

  /** Takes the session's write lock. Returns null on success, otherwise a result that says who holds the lock. */
  acquire(): Promise<LockedResult | null> {
    return this.#inOrder(async () => {
      const log = await this.#lockAndRead().catch((error: unknown) => this.#fail('open', error))
      return isLocked(log) ? log : null
    })
  }

  /** Releases the session's write lock after all waiting appends are written. */
  release(): Promise<void> {
    return this.#inOrder(() => this.#releaseLock().catch((error: unknown) => this.#fail('close', error)))
  }

  async #write(group: readonly WaitingAppend[]): Promise<readonly AppendOutcome[]> {
    const log = await this.#lockAndRead()
    if (isLocked(log)) return group.map(() => log)
    const { outcomes, text, position } = placeAppends(group, log.position)
    if (text !== '') await this.#log.append([text], position)
    return outcomes
  }

  /**
   * Returns the state of the log if this writer holds the lock or can take it, otherwise who holds the lock. Called
   * before every write, because another machine may take the lock over while this machine is suspended.
   */
  async #lockAndRead(): Promise<LockedResult | LogFileState> {
    if (this.#lock !== null) {
      const [isHeld, log] = await Promise.all([this.#lock.isStillHeld(), this.#log.current()])
      if (isHeld) {
        this.#lock.renew()
        return log
      }
      await this.#releaseLock()
    }
    await this.#place.prepare()
    const attempt = await takeLock(this.#place)
    if (!attempt.ok) return attempt
    this.#lock = attempt.lock
    return this.#log.current()
  }

  async #releaseLock(): Promise<void> {
    const lock = this.#lock
    this.#lock = null
    try {
      await this.#log.close()
    } finally {
      await lock?.release()
    }
  }

  /**
   * Throws an `io-failed` error after a failed operation. Also releases the lock if the path is not a session log at
   * all.
   */
  async #fail(what: string, error: unknown): Promise<never> {
    await this.#log.forget().catch(() => {})
    if (error instanceof TidemarkError) await this.#releaseLock().catch(() => {})
    const { session, logPath } = this.#place
    throw ioError(`${what} session "${session}" (${logPath})`, error, { session, path: logPath })
  }
}

function isLocked(log: LockedResult | LogFileState): log is LockedResult {
  return 'reason' in log
}

interface LogFileOptions extends LogFileLocation {
  readonly clock: Clock
}

const ALL = Number.POSITIVE_INFINITY

/**
 * The log file of one session, shared by its readers and its writer. Caches the file's size, last position and damage.
 */
export class LogFile {
  readonly #place: LogFileOptions
  readonly #marks = new ResumeMarks()
  #known: LogFileState | null = null
  #file: OpenFile | null = null
  #isWriting = false
  #writes = 0

  constructor(place: LogFileOptions) {
    this.#place = place
  }

  /** Passes the records after position `from` to `visit`. Records that this process is still writing are left out. */
  async read(visit: RecordVisitor, from: number): Promise<JournalReadResult> {
    const limit = await this.#settledBytes()
    const state = await readLogFile(this.#place, visit, { limit, from, marks: this.#marks })
    this.#marks.add(state.mark)
    // The state of the log is cached here, so that the first append does not have to read the file again.
    if (this.#file === null && !this.#isWriting) this.#known = state
    const { exists, position, damage } = state
    return { exists, position, damage }
  }

  /**
   * Returns the number of bytes that can be read safely: those before a write of this process that is still in
   * progress.
   */
  async #settledBytes(): Promise<number> {
    const writes = this.#writes
    const facts = await this.#facts()
    const isOurs = this.#isWriting || writes !== this.#writes
    return (isOurs ? this.#known : facts)?.sizeBytes ?? ALL
  }

  /** Returns the current state of the log. Reads the file again only if another process has changed it. */
  async current(): Promise<LogFileState> {
    if (this.#known !== null && isUnchanged(this.#known, await this.#facts())) return this.#known
    await this.close()
    this.#known = await readLogFile(this.#place, () => {}, { limit: ALL, from: ALL, marks: this.#marks })
    this.#marks.add(this.#known.mark)
    return this.#known
  }

  /** Appends complete lines and syncs them to disk. `position` is the log position of the last of these lines. */
  async append(lines: readonly string[], position: number): Promise<void> {
    const state = this.#known ?? (await this.current())
    const bytes = Buffer.concat([textBefore(this.#place, state), ...lines].map((text) => Buffer.from(text)))
    this.#isWriting = true
    try {
      const identity = await this.#write(bytes)
      const sizeBytes = state.sizeBytes + bytes.length
      const mark = markAfter(state, bytes, { position, sizeBytes, identity })
      const end = { exists: true, version: LOG_VERSION, endsInNewline: true, mark }
      this.#known = { ...state, ...end, position, sizeBytes, identity }
      this.#marks.add(mark)
    } finally {
      this.#writes += 1
      this.#isWriting = false
    }
  }

  async #write(bytes: Uint8Array): Promise<string> {
    const { files, path } = this.#place
    const isNew = this.#file === null
    this.#file ??= await this.#open()
    await appendAllBytes(this.#file, bytes)
    // The folder is synced too, because the process that created the file may have died before it synced the file's
    // name.
    await Promise.all([this.#file.sync(), isNew ? files.syncDirectory(dirname(path)) : null])
    return this.#known?.identity ?? (await this.#file.facts()).identity
  }

  async #open(): Promise<OpenFile> {
    const { files, path } = this.#place
    const file = await files.open(path, this.#known?.exists === true ? 'append' : 'create')
    if (file === null) throw new Error('the file was created or removed while it was being opened')
    return file
  }

  /** Drops the cached state of the log after a failed write, so that the file is read again. */
  async forget(): Promise<void> {
    this.#known = null
    await this.close()
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = null
    await file?.close()
  }

  #facts(): Promise<FileFacts | null> {
    return this.#place.files.facts(this.#place.path)
  }
}

function isUnchanged(state: LogFileState, facts: FileFacts | null): boolean {
  if (facts === null) return !state.exists
  return facts.identity === state.identity && facts.sizeBytes === state.sizeBytes
}

/**
 * Returns the text to write before the first new line: a newline if the file does not end in one, and a header if the
 * log has no header of the current format version.
 */
function textBefore({ session, clock }: LogFileOptions, state: LogFileState): string {
  const newline = state.endsInNewline ? '' : '\n'
  if (state.version === LOG_VERSION) return newline
  return `${newline}${JSON.stringify(createLogHeader(session, new Date(clock.now()).toISOString()))}\n`
}

const NEWLINE = 10

/**
 * Returns a mark from which a later read can resume after the appended `bytes`. Returns null if reading cannot resume
 * there.
 */
function markAfter(
  { mark, sizeBytes, damage }: LogFileState,
  bytes: Buffer,
  end: Pick<ResumeMark, 'position' | 'sizeBytes' | 'identity'>,
): ResumeMark | null {
  // The log ended in an incomplete line. The append changes how that line is parsed, so a read cannot resume after it.
  if (mark === null && sizeBytes > 0) return null
  let line = mark?.line ?? 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) line += 1
  return { ...end, line, version: LOG_VERSION, damage, tail: sliceLastBytes(bytes) }
}
