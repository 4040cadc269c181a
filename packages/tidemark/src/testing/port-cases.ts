import assert from 'node:assert/strict'
import type { BlobStore, Clock, Deadlines, IdGenerator } from '@tidemark/core/engine/ports'

/** A case of a conformance suite: a name, and a function that throws if the case fails. Any test runner can run it. */
export interface ConformanceCase {
  readonly name: string
  run(): Promise<void>
}

/**
 * Creates the cases of a conformance suite. `make` creates a new subject (the object under test) for each case, and
 * `end` is called afterwards, even if the case fails.
 */
export function createConformanceCases<Subject>(
  make: () => Subject | Promise<Subject>,
  end: (subject: Subject) => unknown,
  checks: Readonly<Record<string, (subject: Subject) => void | Promise<void>>>,
): readonly ConformanceCase[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    async run() {
      const subject = await make()
      try {
        await check(subject)
      } finally {
        await end(subject)
      }
    },
  }))
}

// Conformance cases for every clock.

interface ClockSubject {
  readonly clock: Clock
  /** Advances the clock under test by this many milliseconds. */
  pass(ms: number): Promise<void>
}

export function clockCases(make: () => ClockSubject | Promise<ClockSubject>): readonly ConformanceCase[] {
  return createConformanceCases(make, () => {}, checks)
}

const checks: Readonly<Record<string, (subject: ClockSubject) => Promise<void>>> = {
  async 'tells the time in milliseconds, and it moves on'({ clock, pass }) {
    const before = clock.now()
    assert.ok(Number.isFinite(before) && before >= 0, `${before} is a time`)
    await pass(3)
    assert.ok(clock.now() > before, 'later is later')
  },

  async 'a sleep ends when its time has passed'({ clock, pass }) {
    let isAwake = false
    const sleep = clock.sleep(5).then(() => {
      isAwake = true
    })
    assert.equal(isAwake, false)
    await Promise.all([sleep, pass(6)])
    assert.equal(isAwake, true)
  },

  async 'those who sleep shorter wake earlier'({ clock, pass }) {
    const woken: number[] = []
    const sleeps = [30, 1].map((ms) => clock.sleep(ms).then(() => woken.push(ms)))
    await Promise.all([...sleeps, pass(31)])
    assert.deepEqual(woken, [1, 30])
  },

  async 'no time, less than none, and no number are no wait'({ clock }) {
    await Promise.all([0, -5, Number.NaN].map((ms) => clock.sleep(ms)))
  },

  async 'a sleep that was called off before it began ends at once'({ clock }) {
    await clock.sleep(1_000_000, { aborted: true })
    await clock.sleep(1_000_000, AbortSignal.abort())
  },

  async 'a sleep that is called off ends early and quietly'({ clock, pass }) {
    const abort = new AbortController()
    const sleep = clock.sleep(1_000_000, abort.signal)
    abort.abort()
    await Promise.all([sleep, pass(1)])
  },

  async 'a sleep of more than a timer can hold does not end at once'({ clock, pass }) {
    const abort = new AbortController()
    let isAwake = false
    const sleep = clock.sleep(2 ** 40, abort.signal).then(() => {
      isAwake = true
    })
    await pass(5)
    assert.equal(isAwake, false)
    abort.abort()
    await Promise.all([sleep, pass(1)])
  },
}

// Conformance cases for every implementation of `Deadlines`, which limits how long asynchronous work may take.

interface DeadlinesSubject {
  readonly deadlines: Deadlines
  /** Advances the clock of the deadlines under test by this many milliseconds. */
  pass(ms: number): Promise<void>
}

export function deadlinesCases(
  make: () => DeadlinesSubject | Promise<DeadlinesSubject>,
): readonly ConformanceCase[] {
  return createConformanceCases(make, () => {}, checksDeadlinesCases)
}

const NEVER = new Promise<never>(() => {})
const LONG = 1_000_000

const checksDeadlinesCases: Readonly<Record<string, (subject: DeadlinesSubject) => Promise<void>>> = {
  async 'work that ends in time gives its value'({ deadlines }) {
    assert.deepEqual(await deadlines.within(LONG, async () => 7), { ok: true, value: 7 })
  },

  async 'what the work throws in time is thrown on'({ deadlines }) {
    const broken = deadlines.within(LONG, async () => {
      throw new RangeError('broken')
    })
    await assert.rejects(broken, { name: 'RangeError', message: 'broken' })
  },

  async 'work that is too late is left, and hears so'({ deadlines, pass }) {
    let heard = false
    const late = deadlines.within(5, (signal) => {
      if (signal instanceof AbortSignal) signal.addEventListener('abort', () => (heard = true))
      return NEVER
    })
    const [end] = await Promise.all([late, pass(6)])
    assert.deepEqual([end, heard], [{ ok: false, why: 'timeout' }, true])
  },

  async 'what a left work throws later is nobody else’s concern'({ deadlines, pass }) {
    const fails = Promise.withResolvers<never>()
    const late = deadlines.within(5, () => fails.promise)
    const [end] = await Promise.all([late, pass(6)])
    fails.reject(new Error('too late to matter'))
    await pass(1)
    assert.deepEqual(end, { ok: false, why: 'timeout' })
  },

  async 'an abort is heard at once, whatever the work does'({ deadlines }) {
    const abort = new AbortController()
    const end = deadlines.within(LONG, () => NEVER, abort.signal)
    abort.abort()
    assert.deepEqual(await end, { ok: false, why: 'aborted' })
  },

  async 'with a signal already aborted the work is not begun'({ deadlines }) {
    let isBegun = false
    const work = async (): Promise<void> => {
      isBegun = true
    }
    for (const signal of [AbortSignal.abort(), { aborted: true }])
      assert.deepEqual(await deadlines.within(LONG, work, signal), { ok: false, why: 'aborted' })
    assert.equal(isBegun, false)
  },

  async 'nothing that the work began outlives it: its signal ends with it'({ deadlines }) {
    let seen: { readonly aborted: boolean } = { aborted: false }
    await deadlines.within(LONG, async (signal) => {
      seen = signal
      assert.equal(signal.aborted, false)
    })
    assert.equal(seen.aborted, true)
  },
}

// Conformance cases for every id generator.

export function idsCases(make: () => IdGenerator | Promise<IdGenerator>): readonly ConformanceCase[] {
  return createConformanceCases(make, () => {}, checksIdsCases)
}

const KINDS = ['record', 'message', 'batch', 'lock']

const checksIdsCases: Readonly<Record<string, (ids: IdGenerator) => void>> = {
  'never gives an id twice, to whatever kind'(ids) {
    const given = Array.from({ length: 4_000 }, (_, index) => ids.next(KINDS[index % KINDS.length] ?? ''))
    assert.equal(new Set(given).size, given.length)
  },

  'gives ids that can stand in a file name and in JSON'(ids) {
    for (const kind of KINDS) assert.match(ids.next(kind), /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/)
  },
}

// Conformance cases for every blob store.

/** A blob store to test. It must be empty at first. */
interface BlobStoreSubject {
  /** Opens the blob store under test. Each call simulates a separate process. */
  open(): Promise<BlobStore>
  end(): Promise<void>
}

export function blobStoreCases(
  make: () => BlobStoreSubject | Promise<BlobStoreSubject>,
): readonly ConformanceCase[] {
  return createConformanceCases(make, (subject) => subject.end(), checksBlobStoreCases)
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text))
}

async function textOf(store: BlobStore, id: string): Promise<string | null> {
  const bytes = await store.get(id)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

/** SHA-256 of zero bytes, in hexadecimal. */
const NO_BYTES = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const NO_IDS = ['', '..', '../../etc/passwd', 'abc', 'G'.repeat(64), '0'.repeat(64), '0'.repeat(63)]

const checksBlobStoreCases: Readonly<Record<string, (subject: BlobStoreSubject) => Promise<void>>> = {
  async 'what was put can be got, by every user of the store'({ open }) {
    const id = await (await open()).put(bytesOf('hello'))
    const other = await open()
    assert.equal(await textOf(other, id), 'hello')
    assert.equal(await other.has(id), true)
  },

  async 'the same bytes have the same id, others another'({ open }) {
    const store = await open()
    const [one, same, other] = [
      await store.put(bytesOf('a')),
      await store.put(bytesOf('a')),
      await store.put(bytesOf('b')),
    ]
    assert.equal(one, same)
    assert.notEqual(one, other)
    assert.match(one, /^[0-9a-f]{64}$/)
  },

  async 'what is not there is null, whatever its id looks like'({ open }) {
    const store = await open()
    for (const id of NO_IDS) {
      assert.equal(await store.get(id), null, id)
      assert.equal(await store.has(id), false, id)
    }
  },

  async 'what is no Uint8Array is refused, and nothing stored'({ open }) {
    const store = await open()
    for (const given of ['text', [1, 2], 7, null, undefined, { length: 1 }, new Uint16Array(2)] as never[])
      await assert.rejects(
        () => store.put(given),
        { name: 'TidemarkError', code: 'bad-blob' },
        `put ${given}`,
      )
    assert.equal(await store.has(NO_BYTES), false)
    assert.equal(await textOf(store, await store.put(Buffer.from('a Buffer is one'))), 'a Buffer is one')
  },

  async 'nothing at all is a blob too'({ open }) {
    const store = await open()
    const id = await store.put(new Uint8Array())
    assert.deepEqual(await store.get(id), new Uint8Array())
  },

  async 'large ones, and every byte there is'({ open }) {
    const store = await open()
    const bytes = Uint8Array.from({ length: 1_000_003 }, (_, index) => (index * 7) % 256)
    assert.deepEqual(Buffer.from((await store.get(await store.put(bytes))) ?? []).equals(bytes), true)
  },

  async 'the same blob put by many at once is there once, whole'({ open }) {
    const stores = await Promise.all(Array.from({ length: 8 }, open))
    const ids = await Promise.all(stores.map((store) => store.put(bytesOf('shared'))))
    assert.equal(new Set(ids).size, 1)
    for (const [index, store] of stores.entries())
      assert.equal(await textOf(store, ids[index] ?? ''), 'shared')
  },

  async 'bytes that change after they were handed in, or out, change nothing stored'({ open }) {
    const store = await open()
    const bytes = bytesOf('before')
    const putting = store.put(bytes)
    bytes.fill(0)
    const id = await putting
    const got = await store.get(id)
    got?.fill(0)
    assert.equal(await textOf(store, id), 'before')
  },
}
