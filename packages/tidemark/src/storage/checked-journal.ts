/**
 * Turns any store that keeps lists of lines, such as a database table, into a journal. Like the journal on files, it
 * checks arguments, assigns positions, keeps the order of overlapping appends and reports damage. The lines of a
 * session form a session log.
 */
import type { AppendOutcome, Clock, Journal, JournalReadResult } from '@tidemark/core/engine/ports'
import type { Damage } from '@tidemark/core/log/decode-log'
import {
  createLogHeader,
  createLogLineReader,
  LOG_VERSION,
  type LogResumePoint,
} from '@tidemark/core/log/decode-log'
import type { SessionRecord } from '@tidemark/core/log/record'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { createWriteLock, systemClock } from '../platform/node-ports.ts'
import {
  checkAppendPosition,
  checkReadPosition,
  checkVisitor,
  createGroupedAppend,
  placeAppends,
  type WaitingAppend,
} from './check-records.ts'
import { checkSessionId } from './home-paths.ts'
import type { LockedResult } from './journal-lock.ts'

/** A store of lines. Session ids were checked: letters, digits, `.`, `_` and `-`, at most 128 characters. */
export interface RawJournal {
  /**
   * Returns lines of the session after the first `from`, in order: as many as suit the store, but at least one if there
   * are any. Returns an empty list at the end, and for a session without lines.
   */
  read(session: string, from: number): Promise<readonly string[]>
  /** Number of lines that each read returns unless the log ends, if that is fixed. A shorter result then shows the end. */
  readonly readSize?: number
  /**
   * Stores all lines after the first `after` lines, or none. They are durable when the call returns. Returns false, and
   * stores nothing, if the session does not have exactly `after` lines: another writer was faster.
   */
  append(session: string, after: number, lines: readonly string[]): Promise<boolean>
  /** Returns the ids of the sessions that have lines. */
  list(): Promise<readonly string[]>
  /**
   * Takes or confirms the write lock of the session, before every append. Returns null if this store holds it, otherwise
   * the name of the holder. Without it, writers are distinguished by the number of lines only.
   */
  lock?(session: string): Promise<string | null>
  /** Releases the write lock. Does nothing if this store does not hold it. */
  unlock?(session: string): Promise<void>
}

/** Returns a journal on `store`. `clock` dates the header of a new session. */
export function checkedJournal(store: RawJournal, options: { readonly clock?: Clock } = {}): Journal {
  const clock = options.clock ?? systemClock
  const logs = new Map<string, CheckedLog>()
  const released = new Set<string>()
  function open(session: string): CheckedLog {
    checkSessionId(session)
    const log = logs.get(session) ?? new CheckedLog(store, session, clock)
    logs.set(session, log)
    released.delete(session)
    return log
  }
  return {
    async read(session, visit, from = 0) {
      const log = open(session)
      checkVisitor(visit)
      checkReadPosition(from)
      return log.read(visit, from)
    },
    async append(session, after, records) {
      const log = open(session)
      checkAppendPosition(after)
      return log.append(after, records)
    },
    list: async () => store.list(),
    async release(session) {
      await open(session).release()
      // The end of a released log is remembered, so that the next request of the conversation need not read the whole log again.
      released.add(session)
      for (const oldest of released) {
        if (released.size <= MOST_RELEASED) break
        released.delete(oldest)
        logs.delete(oldest)
      }
    },
  }
}

/** Maximum number of released sessions whose ends are remembered. */
const MOST_RELEASED = 1_000

/** The known end of the log. It is outdated if another writer has appended since. */
interface KnownLog extends LogResumePoint {
  readonly damage: readonly Damage[]
  /** False for a log that ends in half a batch, as an imported one may: it is read from its beginning each time. */
  readonly canResume: boolean
}

const NOTHING_READ: KnownLog = { line: 0, position: 0, version: null, damage: [], canResume: true }

class CheckedLog {
  readonly #store: RawJournal
  readonly #session: string
  readonly #clock: Clock
  #known: KnownLog = NOTHING_READ
  readonly #inOrder = createWriteLock()
  /** Appends records, together with all other appends that wait. */
  readonly append = createGroupedAppend(this.#inOrder, (group) => this.#flush(group))

  constructor(store: RawJournal, session: string, clock: Clock) {
    this.#store = store
    this.#session = session
    this.#clock = clock
  }

  async read(visit: (records: readonly SessionRecord[]) => void, from: number): Promise<JournalReadResult> {
    const { position: end, canResume } = this.#known
    const start = canResume && end <= from ? this.#known : NOTHING_READ
    const { position, line, damage } = await this.#readFrom(start, visit, from)
    return { exists: line > 0, position, damage }
  }

  async release(): Promise<void> {
    await this.#inOrder(async () => this.#store.unlock?.(this.#session))
  }

  async #flush(group: readonly WaitingAppend[]): Promise<readonly AppendOutcome[]> {
    try {
      const owner = (await this.#store.lock?.(this.#session)) ?? null
      return owner === null ? await this.#write(group) : group.map(() => this.#refuseLocked(owner))
    } catch (error) {
      // After a failed write, the content of the store is unknown: the next append reads the log again.
      this.#known = NOTHING_READ
      throw error
    }
  }

  /** Writes the waiting appends. If another writer was faster, reads its lines and places the appends again. */
  async #write(group: readonly WaitingAppend[]): Promise<readonly AppendOutcome[]> {
    if (this.#isBehind(group)) await this.#readOn()
    for (;;) {
      const { outcomes, text, position } = placeAppends(group, this.#known.position)
      if (text === '') return outcomes
      const lines = [...this.#headerLines(), ...text.split('\n').slice(0, -1)]
      const { line, damage } = this.#known
      if (await this.#store.append(this.#session, line, lines)) {
        const end = line + lines.length
        this.#known = { line: end, position, version: LOG_VERSION, damage, canResume: true }
        return outcomes
      }
      await this.#readOn()
      // If the log has become shorter, it was deleted meanwhile.
      if (this.#known.line === line) this.#known = NOTHING_READ
    }
  }

  /** True if the end of the log must be read first: for an unexpected position, or for an append without records. */
  #isBehind(group: readonly WaitingAppend[]): boolean {
    let { position } = this.#known
    return group.some(({ after, drafts }) => {
      const isBehind = after !== position || drafts.length === 0
      position += drafts.length
      return isBehind
    })
  }

  #headerLines(): readonly string[] {
    if (this.#known.version === LOG_VERSION) return []
    return [JSON.stringify(createLogHeader(this.#session, new Date(this.#clock.now()).toISOString()))]
  }

  async #readOn(): Promise<void> {
    const start = this.#known.canResume ? this.#known : NOTHING_READ
    await this.#readFrom(start, () => {}, Number.MAX_SAFE_INTEGER)
  }

  async #readFrom(
    start: KnownLog,
    visit: (records: readonly SessionRecord[]) => void,
    from: number,
  ): Promise<KnownLog> {
    const reader = createLogLineReader({ start, from, readReport: readAnthropicReport })
    let { line } = start
    for (;;) {
      const lines = await this.#store.read(this.#session, line)
      line += lines.length
      const records = lines.flatMap((text) => reader.readLine(text))
      if (records.length > 0) visit(records)
      if (lines.length < (this.#store.readSize ?? 1)) break
    }
    const { records, position, version, damage, resume } = reader.finish()
    if (records.length > 0) visit(records)
    const canResume = resume !== null || line === 0
    const known = { line, position, version, damage: [...start.damage, ...damage], canResume }
    if (line >= this.#known.line) this.#known = known
    return known
  }

  #refuseLocked(owner: string): LockedResult {
    const message = `Session "${this.#session}" is open for writing by ${owner}: close it there first, or work in another session.`
    return { ok: false, reason: 'locked', owner, message }
  }
}
