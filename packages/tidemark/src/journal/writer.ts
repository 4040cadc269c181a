/**
 * The writer of one session. Appends that wait together are checked one after the other against the position
 * that the ones before them lead to, written with one write and made durable with one sync.
 */
import { type AppendOutcome, type NewRecord, TidemarkError } from '@tidemark/core'
import { ioFailed } from '../files/io-failed.ts'
import { type HeldLock, type Refusal, takeLock } from './lock.ts'
import type { LockPlace } from './lock-file.ts'
import type { LogFile } from './log-file.ts'
import type { LogState } from './read-log.ts'
import { type Draft, draftsOf, stamp } from './stamp.ts'

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
