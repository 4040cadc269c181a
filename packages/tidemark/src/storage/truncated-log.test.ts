/**
 * A log cut at every byte, or in a store of lines at every line: it reads as complete batches, the rest is reported,
 * and it can be appended to.
 */
import type { Journal } from '@tidemark/core/engine/ports'
import type { SessionRecord } from '@tidemark/core/log/record'
import { isFullRun, readAllRecords, sampleRecord } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createFakeProcessTable } from '../testing/fake-machine.ts'
import { appendAllBytes, readFileSnapshot } from './atomic-file.ts'
import { checkedJournal } from './checked-journal.ts'
import { createFileJournal } from './file-journal.ts'

const LOG = '/home/sessions/s.jsonl'
/** Sizes of the batches in the log: single records and batches, with a batch at the end. */
const SIZES = [2, 1, 3, 1, 3]

async function journalWith(
  bytes: Uint8Array,
): Promise<{ readonly files: CrashFileSystem; readonly journal: Journal }> {
  const files = createCrashFileSystem({ directories: ['/home', '/home/sessions'] })
  const file = await files.open(LOG, 'create')
  if (file !== null) await appendAllBytes(file, bytes)
  return {
    files,
    journal: createFileJournal({ home: '/home', files, processes: createFakeProcessTable().start() }),
  }
}

/** The log, and the offset at which each batch ends. */
async function writeWhole(): Promise<{
  readonly bytes: Uint8Array
  readonly records: readonly SessionRecord[]
  readonly ends: readonly { readonly offset: number; readonly position: number }[]
}> {
  const { files, journal } = await journalWith(new Uint8Array())
  const ends: { offset: number; position: number }[] = []
  let position = 0
  for (const size of SIZES) {
    const records = Array.from({ length: size }, (_, index) => sampleRecord(`r${position + index}`, 'é\n"🙂'))
    await journal.append('s', position, records)
    position += size
    ends.push({ offset: (await bytesOf(files)).length, position })
  }
  return { bytes: await bytesOf(files), records: (await readAllRecords(journal, 's')).records, ends }
}

async function bytesOf(files: CrashFileSystem): Promise<Uint8Array> {
  return (await readFileSnapshot(files, LOG))?.bytes ?? new Uint8Array()
}

const whole = await writeWhole()
const headerEnd = Buffer.from(whole.bytes).indexOf('\n') + 1
/** The end of the last batch that a cut leaves complete; its newline may be missing. */
function wholeAt(cut: number): { readonly offset: number; readonly position: number } {
  return whole.ends.findLast(({ offset }) => offset - 1 <= cut) ?? { offset: headerEnd, position: 0 }
}

/** All with `npm run test:full`; otherwise a fifth of them, and the last ones. */
const cuts = Array.from({ length: whole.bytes.length + 1 }, (_, cut) => cut).filter(
  (cut) => isFullRun() || cut % 5 === 0 || cut > whole.bytes.length - 50,
)

describe(`a log cut at ${cuts.length} of its bytes`, () => {
  it('reads as its complete batches, and the rest is reported as damage', async () => {
    for (const cut of cuts) {
      const { journal } = await journalWith(whole.bytes.slice(0, cut))
      const { records, position, damage } = await readAllRecords(journal, 's')
      const left = wholeAt(cut)
      expect({ cut, position, records }).toEqual({
        cut,
        position: left.position,
        records: whole.records.slice(0, left.position),
      })
      const isRest = cut > left.offset || (cut < headerEnd - 1 && cut > 0)
      expect({ cut, told: damage.length > 0 }).toEqual({ cut, told: isRest })
    }
  })

  it('can be appended to after the last complete batch, with the cut one in the middle', async () => {
    for (const cut of cuts) {
      const { files, journal } = await journalWith(whole.bytes.slice(0, cut))
      const { position } = wholeAt(cut)
      const added = await journal.append(
        's',
        position,
        ['x', 'y'].map((uuid) => sampleRecord(uuid)),
      )
      const after = await readAllRecords(journal, 's')
      expect({ cut, records: after.records }).toEqual({
        cut,
        records: [...whole.records.slice(0, position), ...(added.ok ? added.records : [])],
      })
      // The existing bytes are unchanged.
      expect(
        Buffer.from(await bytesOf(files))
          .subarray(0, cut)
          .equals(whole.bytes.slice(0, cut)),
      ).toBe(true)
    }
  })
})

it('a log that was put into a store of lines, cut at any line, can be appended to and read on', async () => {
  const all = Buffer.from(whole.bytes).toString().split('\n').slice(0, -1)
  for (let cut = 0; cut <= all.length; cut += 1) {
    const lines = all.slice(0, cut)
    const journal = checkedJournal({
      read: async (_, from) => lines.slice(from),
      append: async (_, after, more) => after === lines.length && lines.push(...more) > 0,
      list: async () => ['s'],
    })
    const position = whole.ends.findLast((end) => cut > end.position)?.position ?? 0
    expect({ cut, position: (await readAllRecords(journal, 's')).position }).toEqual({ cut, position })
    const added = [
      await journal.append('s', position, [sampleRecord('x'), sampleRecord('y')]),
      await journal.append('s', position + 2, [sampleRecord('z')]),
    ]
    const records = added.flatMap((outcome) => (outcome.ok ? outcome.records : []))
    expect({ cut, records: (await readAllRecords(journal, 's')).records }).toEqual({
      cut,
      records: [...whole.records.slice(0, position), ...records],
    })
    expect((await readAllRecords(journal, 's', position)).records).toEqual(records)
    expect(records.length).toBe(3)
  }
})
