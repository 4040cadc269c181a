/** What every journal does for those who know the beginning of a session and want the rest. */
import assert from 'node:assert/strict'
import { type JournalSubject, readAll } from './journal-subject.ts'
import { sampleRecords } from './sample-records.ts'

export const readingOnChecks: Readonly<Record<string, (subject: JournalSubject) => Promise<void>>> = {
  async 'reading on gives what stands behind a position, and the state of the whole'({ open }) {
    const journal = await open()
    await journal.append('s', 0, sampleRecords('a'))
    await journal.append('s', 1, sampleRecords('b', 'c'))
    await journal.append('s', 3, sampleRecords('d'))
    for (const reader of [journal, await open()]) {
      const { records: all, ...whole } = await readAll(reader, 's')
      for (const from of [4, 0, 2, 1, 3, 5, 1_000_000]) {
        const { records, ...state } = await readAll(reader, 's', from)
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
      const read = await readAll(reader, 's', position)
      seen.push(...read.records)
      position = read.position
    }
    assert.deepEqual(seen, (await readAll(await open(), 's')).records)
  },

  async 'after a conflict what one missed is read on from where one was'({ open }) {
    const [first, second] = [await open(), await open()]
    await first.append('s', 0, sampleRecords('a'))
    await first.release('s')
    await second.append('s', 1, sampleRecords('b', 'c'))
    await second.release('s')
    const refused = await first.append('s', 1, sampleRecords('x'))
    assert.deepEqual(refused, { ok: false, reason: 'conflict', position: 3 })
    const { records, position } = await readAll(first, 's', 1)
    assert.deepEqual(
      records.map(({ uuid }) => uuid),
      ['b', 'c'],
    )
    assert.ok((await first.append('s', position, sampleRecords('d'))).ok, 'goes on from there')
  },
}
