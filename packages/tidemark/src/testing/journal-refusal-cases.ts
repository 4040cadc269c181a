/**
 * Conformance cases for input that every journal refuses: invalid session ids, records that JSON would change, a second
 * writer.
 */
import assert from 'node:assert/strict'
import type { Journal } from '@tidemark/core/engine/ports'
import { readAllRecords, sampleRecord, sampleRecords } from '@tidemark/core/testing'
import { isSessionId } from '../storage/home-paths.ts'

const BAD_IDS = [
  '',
  '.',
  '..',
  '../up',
  'a/b',
  'a\\b',
  '/etc/passwd',
  '.hidden',
  '-x',
  'a..b',
  'a.',
  'x\0',
  'ü',
  'con',
  'NUL.x',
  'a\n',
  'a.jsonl',
  'a.lock',
  'x'.repeat(129),
]

const NOTHING = { exists: false, position: 0, damage: [], records: [] }

export const journalRefusalChecks: Readonly<Record<string, (subject: JournalSubject) => Promise<void>>> = {
  async 'ids that could lead elsewhere are refused, in every call'({ open }) {
    const journal = await open()
    const expected = { name: 'TidemarkError', code: 'bad-session-id' }
    for (const id of BAD_IDS) {
      assert.equal(isSessionId(id), false, JSON.stringify(id))
      await assert.rejects(() => journal.read(id, () => {}), expected, `read ${JSON.stringify(id)}`)
      await assert.rejects(
        () => journal.append(id, 0, sampleRecords('a')),
        expected,
        `append ${JSON.stringify(id)}`,
      )
      await assert.rejects(() => journal.release(id), expected, `release ${JSON.stringify(id)}`)
    }
    assert.deepEqual(await journal.list(), [])
  },

  async 'a record that would not come back as it is is refused, and its batch with it'({ open }) {
    const journal = await open()
    const extras = [
      { extra: undefined },
      { extra: Number.NaN },
      { extra: new Date(0) },
      { extra: () => 0 },
      { extra: new Array(2) },
      { extra: JSON.parse('['.repeat(20_000) + ']'.repeat(20_000)) },
      { type: 'tidemark' },
      { uuid: 7 },
      { parentUuid: undefined },
      { timestamp: undefined },
      { timestamp: 0 },
      { sessionId: '' },
      { rawBlocks: [{ index: 0 }] },
    ]
    for (const extra of extras) {
      const bad = Object.assign({}, sampleRecord('bad'), extra)
      const append = () => journal.append('s', 0, [sampleRecord('a'), bad])
      await assert.rejects(append, { name: 'TidemarkError', code: 'bad-record' }, Object.keys(extra).join())
    }
    assert.deepEqual(await readAllRecords(journal, 's'), NOTHING)
  },

  async 'arguments of another kind are refused in words'({ open }) {
    const journal = await open()
    const refuses = (code: string, act: () => Promise<unknown>, what: string) =>
      assert.rejects(act, { name: 'TidemarkError', code }, what)
    for (const id of [123, null, undefined, {}] as unknown[] as string[]) {
      await refuses('bad-session-id', () => journal.read(id, () => {}), `read ${id}`)
      await refuses('bad-session-id', () => journal.append(id, 0, []), `append ${id}`)
      await refuses('bad-session-id', () => journal.release(id), `release ${id}`)
    }
    for (const records of [undefined, null, 'text', {}, [null], [undefined], [7], new Array(1)] as never[])
      await refuses('bad-record', () => journal.append('s', 0, records), `append ${records}`)
    for (const after of [undefined, null, '0'] as never[])
      await refuses('bad-option', () => journal.append('s', after, sampleRecords('a')), `after ${after}`)
    for (const from of [null, '0', -1, 0.5, Number.NaN] as never[])
      await refuses('bad-option', () => journal.read('s', () => {}, from), `from ${from}`)
    await refuses('bad-option', () => journal.read('s', undefined as never), 'no visitor')
    assert.deepEqual(await readAllRecords(journal, 's'), NOTHING)
  },

  async 'a second writer is refused while the first has the session'({ open, locks }) {
    if (!locks) return
    const [first, second] = [await open(), await open()]
    await first.append('s', 0, sampleRecords('a'))
    const refused = await second.append('s', 1, sampleRecords('b'))
    assert.ok(!refused.ok && refused.reason === 'locked', 'refused as locked')
    assert.ok(refused.owner.length > 0, 'says who')
    assert.match(refused.message, /^Session "s" is open for writing by [^\n]+$/)
    assert.ok((await second.append('t', 0, sampleRecords('c'))).ok, 'another session is free')
    assert.ok((await first.append('s', 1, sampleRecords('d'))).ok, 'the first goes on')
    assert.deepEqual(await listUuids(second, 's'), ['a', 'd'])
  },

  async 'a session that was let go is for the next writer'({ open }) {
    const [first, second] = [await open(), await open()]
    await first.append('s', 0, sampleRecords('a'))
    await first.release('s')
    assert.ok((await second.append('s', 1, sampleRecords('b'))).ok, 'the second writes')
    await second.release('s')
    assert.deepEqual(await first.append('s', 1, sampleRecords('x')), {
      ok: false,
      reason: 'conflict',
      position: 2,
    })
    assert.ok((await first.append('s', 2, sampleRecords('c'))).ok, 'the first writes again')
    assert.deepEqual(await listUuids(second, 's'), ['a', 'b', 'c'])
  },

  async 'letting go of a session that one does not have changes nothing'({ open, locks }) {
    const [first, second] = [await open(), await open()]
    await first.release('s')
    await first.append('s', 0, sampleRecords('a'))
    await second.release('s')
    const outcome = await second.append('s', 1, sampleRecords('b'))
    assert.equal(outcome.ok, !locks)
    assert.deepEqual(await first.list(), ['s'])
  },

  async 'letting go waits for the appends before it'({ open }) {
    const [first, second] = [await open(), await open()]
    const appended = first.append('s', 0, sampleRecords('a'))
    await first.release('s')
    assert.ok((await appended).ok, 'the append went through')
    assert.ok((await second.append('s', 1, sampleRecords('b'))).ok, 'and the session is free')
  },
}

// What a journal's conformance suite needs from the journal under test.

/** A journal store to test. It must be empty at first. */
export interface JournalSubject {
  /** Opens a journal on the store. Each call simulates a separate process. */
  open(): Promise<Journal>
  /** False for a store without locks. Conflicts between writers are then detected by log positions only. */
  readonly locks: boolean
  end(): Promise<void>
}

/** Returns the uuids of the records of a session, in order. */
export async function listUuids(journal: Journal, session: string): Promise<readonly (string | undefined)[]> {
  return (await readAllRecords(journal, session)).records.map(({ uuid }) => uuid)
}
