/**
 * Fakes for tests: a clock that moves only when advanced, an id counter, and an in-memory journal (log store) and blob
 * store.
 */
import type {
  AppendOutcome,
  BlobStore,
  Clock,
  IdGenerator,
  Journal,
  JournalReadResult,
  NewRecord,
  Signal,
} from '../src/engine/ports.ts'
import type { SessionRecord } from '../src/log/record.ts'

export interface FakeClock extends Clock {
  /**
   * Advances the fake time by `ms`. Resolves each `sleep` that is due or whose signal was aborted, the earliest first.
   */
  advance(ms: number): Promise<void>
  /** Sets the fake time, forwards or backwards. No `sleep` resolves: sleeps count only the time passed to `advance`. */
  set(ms: number): void
}

interface Sleeper {
  readonly until: number
  readonly signal: Signal | undefined
  readonly wake: () => void
}

/** Creates a clock that moves only when a test advances or sets it. */
export function createFakeClock(startMs: number = Date.UTC(2026, 0, 1)): FakeClock {
  let time = startMs
  let passed = 0
  let sleepers: Sleeper[] = []
  return {
    now: () => time,
    sleep(ms, signal) {
      if (!(ms > 0) || signal?.aborted === true) return Promise.resolve()
      return new Promise((wake) => {
        sleepers.push({ until: passed + ms, signal, wake })
      })
    },
    async advance(ms) {
      time += ms
      passed += ms
      const due = sleepers.filter(({ until, signal }) => until <= passed || signal?.aborted === true)
      sleepers = sleepers.filter((sleeper) => !due.includes(sleeper))
      for (const { wake } of due.sort((one, other) => one.until - other.until)) wake()
      await settle()
    },
    set(ms) {
      time = ms
    },
  }
}

/** Lets promise callbacks run after a `sleep` was resolved. Fifty microtask steps are more than any test needs. */
async function settle(): Promise<void> {
  for (let step = 0; step < 50; step += 1) await null
}

/** Creates a generator of ids such as `record-1`, `record-2`. Each kind of id has its own counter. */
export function createCountingIds(): IdGenerator {
  const counts = new Map<string, number>()
  return {
    next(kind) {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}-${count}`
    },
  }
}

/**
 * In-memory logs keyed by session id, each with the journal that holds its write lock. Several journals that share one
 * store behave like several processes.
 */
export type FakeJournalStore = Map<string, { readonly lines: string[]; holder: Journal | null }>

/**
 * Creates an in-memory journal (log store) for tests. It has positions, write conflicts and locks like the journal on
 * disk, but it does not check its arguments.
 */
export function createFakeJournal(store: FakeJournalStore = new Map()): Journal {
  const journal: Journal = {
    async read(session, visit, from = 0) {
      const lines = store.get(session)?.lines ?? []
      if (lines.length > from) visit(lines.slice(from).map((line): SessionRecord => JSON.parse(line)))
      return { exists: lines.length > 0, position: lines.length, damage: [] }
    },
    append: async (session, after, records) => {
      const stored = store.get(session) ?? { lines: [], holder: null }
      if (stored.holder !== null && stored.holder !== journal) return lockedOutcome(session)
      store.set(session, stored)
      stored.holder = journal
      const position = stored.lines.length
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const lines = records.map((record, index) => toLine(record, { position, index, records }))
      stored.lines.push(...lines)
      return { ok: true, position: stored.lines.length, records: lines.map((line) => JSON.parse(line)) }
    },
    list: async () => [...store].filter(([, { lines }]) => lines.length > 0).map(([session]) => session),
    async release(session) {
      const stored = store.get(session)
      if (stored?.holder === journal) stored.holder = null
    },
  }
  return journal
}

function toLine(
  record: NewRecord,
  place: { readonly position: number; readonly index: number; readonly records: readonly NewRecord[] },
): string {
  const { position, index, records } = place
  const id = records.find(({ uuid }) => uuid !== undefined)?.uuid ?? `batch-${position + 1}`
  const batch = records.length === 1 ? {} : { batch: { id, index, of: records.length } }
  return JSON.stringify({ seq: position + index + 1, ...batch, ...record })
}

function lockedOutcome(session: string): AppendOutcome {
  const owner = 'another journal'
  return { ok: false, reason: 'locked', owner, message: `Session "${session}" is held by ${owner}.` }
}

/**
 * Creates an in-memory blob store. The id of a blob is a hash of its content with 64 hexadecimal digits, like a
 * SHA-256.
 */
export function createFakeBlobs(): BlobStore {
  const blobs = new Map<string, Uint8Array>()
  return {
    async put(bytes) {
      const id = hashText(bytes)
      blobs.set(id, Uint8Array.from(bytes))
      return id
    },
    get: async (id) => blobs.get(id) ?? null,
    has: async (id) => blobs.has(id),
  }
}

/**
 * Joins eight FNV-1a hashes of the bytes, each with another seed. This is enough to distinguish the blobs of a test.
 */
function hashText(bytes: Uint8Array): string {
  const hashes = Array.from({ length: 8 }, (_, seed) =>
    bytes.reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5 ^ seed),
  )
  return hashes.map((hash) => hash.toString(16).padStart(8, '0')).join('')
}

/**
 * Reads all records of a session after log position `from`, by default all. Also returns the position and damage of the
 * log.
 */
export async function readAllRecords(
  journal: Journal,
  session: string,
  from?: number,
): Promise<JournalReadResult & { readonly records: readonly SessionRecord[] }> {
  const records: SessionRecord[] = []
  const state = await journal.read(session, (piece) => records.push(...piece), from)
  return { ...state, records }
}

/** Creates a record with a user message, to append to a log. */
export function sampleRecord(
  uuid: string,
  content = `message ${uuid}`,
  parentUuid: string | null = null,
): NewRecord {
  return {
    type: 'user',
    uuid,
    parentUuid,
    timestamp: '2026-01-01T00:00:00.000Z',
    sessionId: 'sample',
    message: { role: 'user', content },
  }
}

/** Creates one record with a user message for each uuid. Each record has the previous one as its parent. */
export function sampleRecords(...uuids: readonly string[]): readonly NewRecord[] {
  return uuids.map((uuid, index) => sampleRecord(uuid, undefined, uuids[index - 1] ?? null))
}
