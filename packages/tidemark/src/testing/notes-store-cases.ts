/** Conformance cases for every store of notes. */
import assert from 'node:assert/strict'
import type { NotesStore, StoredNotes } from '@tidemark/core/engine/ports'
import { type ConformanceCase, createConformanceCases } from './port-cases.ts'

/** A store of notes to test. It must be empty at first. */
interface NotesStoreSubject {
  /** Opens the store under test. Each call simulates a separate process. */
  open(): Promise<NotesStore>
  end(): Promise<void>
}

export function notesStoreCases(
  make: () => NotesStoreSubject | Promise<NotesStoreSubject>,
): readonly ConformanceCase[] {
  return createConformanceCases(make, (subject) => subject.end(), checks)
}

const NOTES: StoredNotes = {
  text: '# Current state\n_Now._\n\nFixing “login”.\n',
  coveredUuid: 'record-7',
  writtenAt: 1_000,
  writtenBy: 'model',
}
const MINUTE = 60_000

const checks: Readonly<Record<string, (subject: NotesStoreSubject) => Promise<void>>> = {
  async 'a session has no notes, no claim and no overrides at first'({ open }) {
    const store = await open()
    assert.equal(await store.read('one'), null)
    assert.equal(await store.readClaim('one'), null)
    assert.deepEqual(await store.readOverrides('one'), {})
  },

  async 'what was written is read, by every user of the store, and each session has its own'({ open }) {
    await (await open()).write('one', NOTES)
    const other = await open()
    assert.deepEqual(await other.read('one'), NOTES)
    assert.equal(await other.read('two'), null)
    assert.notEqual(other.path('one'), other.path('two'))
  },

  async 'later notes replace earlier ones, as a whole'({ open }) {
    const store = await open()
    await store.write('one', NOTES)
    const next: StoredNotes = { text: '# New\n', coveredUuid: null, writtenAt: 2_000, writtenBy: 'local' }
    await store.write('one', next)
    assert.deepEqual(await store.read('one'), next)
  },

  async 'one update at a time: a second claim gets nothing until the first is released'({ open }) {
    const [one, other] = [await open(), await open()]
    const claim = await one.claim('one', { now: 5_000, deadAfterMs: MINUTE })
    assert.ok(claim)
    assert.equal(await other.claim('one', { now: 6_000, deadAfterMs: MINUTE }), null)
    assert.equal(await other.readClaim('one'), 5_000)
    assert.ok(await other.claim('two', { now: 6_000, deadAfterMs: MINUTE }))
    await claim.release()
    assert.equal(await other.readClaim('one'), null)
    assert.ok(await other.claim('one', { now: 7_000, deadAfterMs: MINUTE }))
  },

  async 'a claim counts as dead after its time, and its late release ends nobody else’s'({ open }) {
    const [one, other] = [await open(), await open()]
    const dead = await one.claim('one', { now: 0, deadAfterMs: MINUTE })
    assert.equal(await other.claim('one', { now: MINUTE - 1, deadAfterMs: MINUTE }), null)
    assert.ok(await other.claim('one', { now: MINUTE, deadAfterMs: MINUTE }))
    await dead?.release()
    assert.equal(await other.readClaim('one'), MINUTE)
  },

  async 'a claim from the future, as after a clock that was set back, counts as dead'({ open }) {
    const [one, other] = [await open(), await open()]
    assert.ok(await one.claim('one', { now: 10 * MINUTE, deadAfterMs: MINUTE }))
    assert.ok(await other.claim('one', { now: MINUTE, deadAfterMs: MINUTE }))
  },

  async 'of many that claim at once, one gets it, also where a dead claim is in the way'({ open }) {
    const stores = await Promise.all(Array.from({ length: 6 }, open))
    for (const now of [0, MINUTE]) {
      const claims = await Promise.all(
        stores.map((store) => store.claim('one', { now, deadAfterMs: MINUTE })),
      )
      assert.equal(claims.filter((claim) => claim !== null).length, 1, `at ${now}`)
    }
  },

  async 'a claim changes no notes'({ open }) {
    const store = await open()
    await store.write('one', NOTES)
    await store.claim('one', { now: 0, deadAfterMs: MINUTE })
    assert.deepEqual(await store.read('one'), NOTES)
  },
}
