/**
 * Conformance cases for journals on any storage: appending, reading in order, batches, conflicts, and reading after a
 * position.
 */
import assert from 'node:assert/strict'
import type { AppendOutcome } from '@tidemark/core/engine/ports'
import { readAllRecords, sampleRecord, sampleRecords } from '@tidemark/core/testing'
import { type JournalSubject, journalRefusalChecks, listUuids } from './journal-refusal-cases.ts'
import { type ConformanceCase, createConformanceCases } from './port-cases.ts'

export function journalCases(
  make: () => JournalSubject | Promise<JournalSubject>,
): readonly ConformanceCase[] {
  return createConformanceCases(make, (subject) => subject.end(), {
    ...checks,
    ...readFromPositionCases,
    ...journalRefusalChecks,
  })
}

function positionOf(outcome: AppendOutcome): number {
  if (!outcome.ok) assert.fail(`the append was refused: ${outcome.reason}`)
  return outcome.position
}

const checks: Readonly<Record<string, (subject: JournalSubject) => Promise<void>>> = {
  async 'a session that nobody wrote is empty'({ open }) {
    const journal = await open()
    const read = await readAllRecords(journal, 'nothing')
    assert.deepEqual(read, { exists: false, position: 0, damage: [], records: [] })
    assert.deepEqual(await journal.list(), [])
  },

  async 'what was appended is read back in order, with its positions'({ open }) {
    const journal = await open()
    const first = await journal.append('s', 0, sampleRecords('a'))
    const second = await journal.append('s', 1, sampleRecords('b', 'c'))
    assert.deepEqual([positionOf(first), positionOf(second)], [1, 3])
    const { records, ...state } = await readAllRecords(await open(), 's')
    assert.deepEqual(state, { exists: true, position: 3, damage: [] })
    assert.deepEqual(
      records,
      [first, second].flatMap((outcome) => (outcome.ok ? outcome.records : [])),
    )
    assert.deepEqual(
      records.map(({ uuid, seq }) => `${uuid}${seq}`),
      ['a1', 'b2', 'c3'],
    )
  },

  async 'records appended together carry their batch, a lone one needs none'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a', 'b', 'c'))
    await journal.append('s', 3, sampleRecords('d'))
    const { records } = await readAllRecords(journal, 's')
    const [a, b, c, d] = records.map(({ batch }) => batch)
    assert.ok(a !== undefined && b !== undefined && c !== undefined, 'each of three has a batch')
    assert.deepEqual([b.id, c.id], [a.id, a.id])
    assert.deepEqual(
      [a, b, c].map(({ index, of }) => [index, of]),
      [
        [0, 3],
        [1, 3],
        [2, 3],
      ],
    )
    assert.equal(d, undefined)
  },

  async 'an append at another position is refused and leaves nothing'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a', 'b'))
    for (const after of [0, 1, 3, -1, 1.5]) {
      const outcome = await journal.append('s', after, sampleRecords('x'))
      assert.deepEqual(outcome, { ok: false, reason: 'conflict', position: 2 }, `after ${after}`)
    }
    assert.deepEqual(await listUuids(journal, 's'), ['a', 'b'])
  },

  async 'appends that overlap are taken in the order of the calls'({ open }) {
    const journal = await open()
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        journal.append('s', index * 2, sampleRecords(`a${index}`, `b${index}`)),
      ),
    )
    assert.deepEqual(
      outcomes.map(positionOf),
      Array.from({ length: 20 }, (_, index) => index * 2 + 2),
    )
    assert.deepEqual(
      await listUuids(journal, 's'),
      Array.from({ length: 20 }, (_, index) => [`a${index}`, `b${index}`]).flat(),
    )
  },

  async 'of overlapping appends that want the same place the first has it'({ open }) {
    const journal = await open()
    const [first, second, third] = await Promise.all([
      journal.append('s', 0, sampleRecords('a')),
      journal.append('s', 0, sampleRecords('b')),
      journal.append('s', 1, sampleRecords('c')),
    ])
    assert.deepEqual([first.ok, third.ok], [true, true])
    assert.deepEqual(second, { ok: false, reason: 'conflict', position: 1 })
    assert.deepEqual(await listUuids(journal, 's'), ['a', 'c'])
  },

  async 'text of any kind comes back as it was'({ open }) {
    const journal = await open()
    const texts = [
      '',
      '\n\r\n',
      '\u2028\u2029',
      '\0',
      '\uFEFFx',
      '\ud800',
      'e\u0301 Ω 漢字 🙂',
      '"\\',
      'x'.repeat(3_000_000),
    ]
    const records = texts.map((text, index) => sampleRecord(`t${index}`, text))
    const outcome = await journal.append('s', 0, records)
    assert.ok(outcome.ok)
    assert.deepEqual((await readAllRecords(journal, 's')).records, outcome.records)
    assert.deepEqual(
      outcome.records.map(({ seq: _seq, batch: _batch, ...record }) => record),
      records,
    )
  },

  async 'positions and batches are the journal’s to give'({ open }) {
    const journal = await open()
    const stamped = { ...sampleRecord('a'), seq: 99, batch: { id: 'x', index: 4, of: 9 } }
    await journal.append('s', 0, [stamped])
    assert.deepEqual((await readAllRecords(journal, 's')).records, [{ ...sampleRecord('a'), seq: 1 }])
  },

  async 'a record that changes after it was handed in does not change in the log'({ open }) {
    const journal = await open()
    const message = { role: 'user' as const, content: 'before' }
    const appended = journal.append('s', 0, [{ ...sampleRecord('a'), type: 'user', message }])
    message.content = 'after'
    await appended
    const { records } = await readAllRecords(journal, 's')
    assert.deepEqual(records, [{ ...sampleRecord('a', 'before'), seq: 1 }])
  },

  async 'an append of nothing only asks for the position'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a'))
    assert.deepEqual(await journal.append('s', 1, []), { ok: true, position: 1, records: [] })
    assert.deepEqual(await journal.append('s', 0, []), { ok: false, reason: 'conflict', position: 1 })
    assert.deepEqual(await listUuids(journal, 's'), ['a'])
  },

  async 'sessions do not mix, and the list has those that were written'({ open }) {
    const journal = await open()
    await journal.append('one', 0, sampleRecords('a'))
    await journal.append('two.2_x-y', 0, sampleRecords('b'))
    await readAllRecords(journal, 'three')
    assert.deepEqual(await listUuids(journal, 'one'), ['a'])
    assert.deepEqual(await listUuids(journal, 'two.2_x-y'), ['b'])
    assert.deepEqual([...(await journal.list())].sort(), ['one', 'two.2_x-y'])
  },

  async 'a long log comes in pieces that follow each other'({ open }) {
    const journal = await open()
    const uuids = Array.from({ length: 3_000 }, (_, index) => `r${index}`)
    await journal.append(
      's',
      0,
      uuids.map((uuid) => sampleRecord(uuid, 'x'.repeat(800))),
    )
    assert.deepEqual(await listUuids(journal, 's'), uuids)
  },

  async 'trouble of the visitor is its own'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a'))
    const mine = new Error('mine')
    const read = journal.read('s', () => {
      throw mine
    })
    await assert.rejects(read, mine)
    assert.deepEqual(await listUuids(journal, 's'), ['a'])
  },
}

// Conformance cases for reading the records of a session after a given log position.

const readFromPositionCases: Readonly<Record<string, (subject: JournalSubject) => Promise<void>>> = {
  async 'reading on gives what stands behind a position, and the state of the whole'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a'))
    await journal.append('s', 1, sampleRecords('b', 'c'))
    await journal.append('s', 3, sampleRecords('d'))
    for (const reader of [journal, await open()]) {
      const { records: all, ...whole } = await readAllRecords(reader, 's')
      for (const from of [4, 0, 2, 1, 3, 5, 1_000_000]) {
        const { records, ...state } = await readAllRecords(reader, 's', from)
        assert.deepEqual(records, all.slice(from), `from ${from}`)
        assert.deepEqual(state, whole, `from ${from}`)
      }
    }
  },

  async 'a visitor is not called when there is nothing to read on'({ open }) {
    const journal = await open()
    const visit = (): never => assert.fail('there is nothing')
    assert.deepEqual(await journal.read('s', visit, 0), { exists: false, position: 0, damage: [] })
    await journal.append('s', 0, sampleRecords('a'))
    assert.deepEqual(await journal.read('s', visit, 1), { exists: true, position: 1, damage: [] })
  },

  async 'one that reads on after every append misses nothing and gets nothing twice'({ open }) {
    const [writer, reader] = [await open(), await open()]
    const seen: unknown[] = []
    let position = 0
    for (let turn = 0; turn < 21; turn += 1) {
      const outcome = await writer.append('s', turn * 2, sampleRecords(`a${turn}`, `b${turn}`))
      assert.ok(outcome.ok)
      if (turn % 3 === 1) continue
      const read = await readAllRecords(reader, 's', position)
      seen.push(...read.records)
      position = read.position
    }
    assert.deepEqual(seen, (await readAllRecords(await open(), 's')).records)
  },

  async 'after a conflict what one missed is read on from where one was'({ open }) {
    const [first, second] = [await open(), await open()]
    await first.append('s', 0, sampleRecords('a'))
    await first.release('s')
    await second.append('s', 1, sampleRecords('b', 'c'))
    await second.release('s')
    const refused = await first.append('s', 1, sampleRecords('x'))
    assert.deepEqual(refused, { ok: false, reason: 'conflict', position: 3 })
    const { records, position } = await readAllRecords(first, 's', 1)
    assert.deepEqual(
      records.map(({ uuid }) => uuid),
      ['b', 'c'],
    )
    assert.ok((await first.append('s', position, sampleRecords('d'))).ok, 'goes on from there')
  },
}
