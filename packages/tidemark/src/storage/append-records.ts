/**
 * The writer of one session. Appends that wait together are checked one after the other against the position
 * that the ones before them lead to, written with one write and made durable with one sync.
 */

import { dirname } from 'node:path'
import {
  type AppendOutcome,
  type Clock,
  LOG_VERSION,
  type NewRecord,
  newHeader,
  TidemarkError,
} from '@tidemark/core'
import { appendAll } from './atomic-file.ts'
import { type FileFacts, type FilePort, ioFailed, type OpenFile } from './file-system.ts'
import { type HeldLock, type LockPlace, type Refusal, takeLock } from './journal-lock.ts'
import { type Draft, draftsOf, stamp } from './new-records.ts'
import {
  type LogMark,
  LogMarks,
  type LogPlace,
  type LogState,
  type Reach,
  readLog,
  tailOf,
} from './read-log-file.ts'

export interface WriterPlace extends LockPlace {
  readonly logPath: string
  /** Sees to it that there is a folder to write in. */
  prepare(): Promise<void>
}

interface Waiting {
  readonly after: number
  readonly drafts: readonly Draft[]
  readonly resolve: (outcome: AppendOutcome) => void
  readonly reject: (error: unknown) => void
}

export class SessionWriter {
  readonly #place: WriterPlace
  readonly #log: LogFile
  #lock: HeldLock | null = null
  #waiting: Waiting[] = []
  #turn: Promise<unknown> = Promise.resolve()

  constructor(place: WriterPlace, log: LogFile) {
    this.#place = place
    this.#log = log
  }

  async append(after: number, records: readonly NewRecord[]): Promise<AppendOutcome> {
    const drafts = draftsOf(records)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ after, drafts, resolve, reject })
      // The first to wait calls the flush, which takes all that have come by then.
      if (this.#waiting.length === 1) this.#next(() => this.#flush())
    })
  }

  /** Null once the session is this writer's. */
  acquire(): Promise<Refusal | null> {
    return this.#next(async () => {
      const ready = await this.#ready().catch((error: unknown) => this.#fail('open', error))
      return isRefusal(ready) ? ready : null
    })
  }

  /** After the appends that wait. */
  release(): Promise<void> {
    return this.#next(() => this.#letGo().catch((error: unknown) => this.#fail('close', error)))
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }

  async #flush(): Promise<void> {
    const group = this.#waiting
    this.#waiting = []
    try {
      const ready = await this.#ready()
      const outcomes = isRefusal(ready) ? group.map(() => ready) : await this.#write(group, ready)
      for (const [index, outcome] of outcomes.entries()) group[index]?.resolve(outcome)
    } catch (error) {
      await this.#fail('append to', error).catch((failure) => {
        for (const { reject } of group) reject(failure)
      })
    }
  }

  async #write(group: readonly Waiting[], log: LogState): Promise<readonly AppendOutcome[]> {
    let { position } = log
    const lines: string[] = []
    const outcomes = group.map(({ after, drafts }): AppendOutcome => {
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const { text, records } = stamp(drafts, position)
      lines.push(text)
      position += records.length
      return { ok: true, position, records }
    })
    if (lines.some((text) => text !== '')) await this.#log.append(lines, position)
    return outcomes
  }

  /** Before every write: the lock may have been taken over by another machine while this one slept. */
  async #ready(): Promise<Refusal | LogState> {
    if (this.#lock !== null) {
      const [stands, log] = await Promise.all([this.#lock.stillStands(), this.#log.current()])
      if (stands) {
        this.#lock.beat()
        return log
      }
      await this.#letGo()
    }
    await this.#place.prepare()
    const attempt = await takeLock(this.#place)
    if (!attempt.ok) return attempt
    this.#lock = attempt.lock
    return this.#log.current()
  }

  async #letGo(): Promise<void> {
    const lock = this.#lock
    this.#lock = null
    await this.#log.close()
    await lock?.release()
  }

  /** A log that cannot be written at all is not held either: another program may be able to. */
  async #fail(what: string, error: unknown): Promise<never> {
    await this.#log.forget().catch(() => {})
    if (error instanceof TidemarkError) await this.#letGo().catch(() => {})
    const { session, logPath: path } = this.#place
    throw ioFailed(`${what} session "${session}" (${path})`, error, { session, path })
  }
}

function isRefusal(ready: Refusal | LogState): ready is Refusal {
  return 'reason' in ready
}

// The log of one session as its writer holds it: what is known of its end, and the open file.

export interface LogFilePlace extends LogPlace {
  readonly files: FilePort
  readonly clock: Clock
}

const ALL = Number.POSITIVE_INFINITY

export class LogFile {
  readonly #place: LogFilePlace
  readonly #marks = new LogMarks()
  #known: LogState | null = null
  #file: OpenFile | null = null
  #isWriting = false
  #writes = 0

  constructor(place: LogFilePlace) {
    this.#place = place
  }

  /** The log as it is now. Read again only if it is not as this writer left it. */
  async current(): Promise<LogState> {
    if (this.#known !== null && matches(this.#known, await this.#facts())) return this.#known
    await this.close()
    this.#known = await readLog(this.#place, () => {}, { limit: ALL, from: ALL, marks: this.#marks })
    this.#marks.add(this.#known.mark)
    return this.#known
  }

  /** What somebody else just read, so that the first append need not read it again. */
  note(state: LogState): void {
    this.#marks.add(state.mark)
    if (this.#file === null && !this.#isWriting) this.#known = state
  }

  /** What has to be read to know what stands behind the position `from`. */
  async reachFrom(from: number): Promise<Reach> {
    return { limit: await this.#settledBytes(), from, marks: this.#marks }
  }

  /** How far the file can be read without meeting a write of ours that is under way. */
  async #settledBytes(): Promise<number> {
    const writes = this.#writes
    const facts = await this.#facts()
    const isOurs = this.#isWriting || writes !== this.#writes
    return (isOurs ? this.#known : facts)?.sizeBytes ?? ALL
  }

  /** Puts whole lines behind the last one, durable when it returns. They lead to `position`. */
  async append(lines: readonly string[], position: number): Promise<void> {
    const state = await this.#stateToWrite()
    const bytes = Buffer.concat([opening(this.#place, state), ...lines].map((text) => Buffer.from(text)))
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

  /** After a failure only the file itself can tell what it holds. */
  async forget(): Promise<void> {
    this.#known = null
    await this.close()
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = null
    await file?.close()
  }

  async #stateToWrite(): Promise<LogState> {
    return this.#known ?? (await this.current())
  }

  async #write(bytes: Uint8Array): Promise<string> {
    const { files, path } = this.#place
    const isNew = this.#file === null
    this.#file ??= await this.#open()
    await appendAll(this.#file, bytes)
    // Whoever created the file may have gone down before its name was on the disk.
    await Promise.all([this.#file.sync(), isNew ? files.syncDirectory(dirname(path)) : null])
    return this.#known?.identity ?? (await this.#file.facts()).identity
  }

  async #open(): Promise<OpenFile> {
    const { files, path } = this.#place
    const file = await files.open(path, this.#known?.exists === true ? 'append' : 'create')
    if (file === null) throw new Error('the file came or went while it was being opened')
    return file
  }

  #facts(): Promise<FileFacts | null> {
    return this.#place.files.facts(this.#place.path)
  }
}

function matches(state: LogState, facts: FileFacts | null): boolean {
  if (facts === null) return !state.exists
  return facts.identity === state.identity && facts.sizeBytes === state.sizeBytes
}

/** The end of the log once `bytes`, which are whole lines, stand behind `state`. */
function markAfter(
  { mark, sizeBytes, damage }: LogState,
  bytes: Buffer,
  end: Pick<LogMark, 'position' | 'sizeBytes' | 'identity'>,
): LogMark | null {
  // Behind a torn end the lines before mean something else than they did.
  if (mark === null && sizeBytes > 0) return null
  const line = (mark?.line ?? 0) + linesIn(bytes)
  return { ...end, line, version: LOG_VERSION, damage, tail: tailOf(bytes) }
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1
  return count
}

const NEWLINE = 10

/** What has to stand before the first new line: the end of a line without one, and a header if none counts. */
function opening({ session, clock }: LogFilePlace, state: LogState): string {
  const newline = state.endsInNewline ? '' : '\n'
  if (state.version === LOG_VERSION) return newline
  return `${newline}${JSON.stringify(newHeader(session, new Date(clock.now()).toISOString()))}\n`
}
