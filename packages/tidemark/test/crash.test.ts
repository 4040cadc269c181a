/** Crashes of the process or the machine at any moment, on a file system that keeps what was synced and a random part of the rest. */
import type { Journal, NewRecord } from '@tidemark/core/engine/ports'
import type { SessionRecord } from '@tidemark/core/log/record'
import { readAllRecords } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readFileSnapshot } from '../src/storage/atomic-file.ts'
import { createFileJournal } from '../src/storage/file-journal.ts'
import { createSystemError } from '../src/testing/crash-file-node.ts'
import {
  type CrashFileSystem,
  createCrashFileSystem,
  type SurvivingWrites,
} from '../src/testing/crash-file-system.ts'
import { createFakeProcessTable, type FakeProcessTable } from '../src/testing/fake-machine.ts'
import { findRequestProblems, generateUnits } from './generated-units.ts'

const LOG = '/home/sessions/s.jsonl'

/** What one process does before it crashes, and what the disk has afterwards. */
interface Life {
  /** How many units of the story go into each batch; the batches of one list are appended concurrently. */
  readonly groups: readonly (readonly number[])[]
  /** How many file operations still succeed. */
  readonly operations: number
  /** The most bytes that the system takes per write. */
  readonly mostBytes: number
  /** Otherwise only the process ends, and its writes stay until the next sync. */
  readonly machineGoesDown: boolean
  /** Random numbers, used in turn: how many bytes of a write and which names were kept. */
  readonly chances: readonly number[]
}

const life: fc.Arbitrary<Life> = fc.record({
  groups: fc.array(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 4,
  }),
  operations: fc.integer({ min: 0, max: 130 }),
  mostBytes: fc.constantFrom(40, 150, 1_000_000),
  machineGoesDown: fc.boolean(),
  chances: fc.array(fc.nat({ max: 1_500 }), { minLength: 1, maxLength: 6 }),
})

interface History {
  /** The records to append; a lost one is not appended again. */
  readonly story: Iterator<readonly NewRecord[]>
  /** Batches in the order of their appends, by the marks of their records. */
  readonly tried: string[][]
  readonly acknowledged: string[][]
}

const stories = Array.from({ length: 8 }, (_, seed) => generateUnits(seed, 4_000))

function newHistory(seed: number): History {
  return { story: (stories[seed] ?? []).values(), tried: [], acknowledged: [] }
}

/** The next units of the story. Each record is marked, since uuids may repeat. */
function nextBatch({ story, tried }: History, units: number): readonly NewRecord[] {
  const told = Array.from({ length: units }, () => story.next().value ?? []).flat()
  const batch = told.map((record: NewRecord, index) => ({ ...record, mark: `${tried.length}.${index}` }))
  tried.push(batch.map(({ mark }) => mark))
  return batch
}

function marksOf(records: readonly SessionRecord[]): readonly string[] {
  return records.map((record) => ('mark' in record ? String(record.mark) : ''))
}

async function live(journal: Journal, { groups }: Life, history: History): Promise<void> {
  let { position } = await readAllRecords(journal, 's')
  for (const sizes of groups) {
    const appends = sizes.map(async (units) => {
      const batch = nextBatch(history, units)
      const after = position
      position += batch.length
      const outcome = await journal.append('s', after, batch)
      if (outcome.ok) history.acknowledged.push([...marksOf(outcome.records)])
    })
    await Promise.all(appends)
  }
}

interface World {
  readonly files: CrashFileSystem
  readonly machine: FakeProcessTable
}

function journalOf({ files, machine }: World): Journal {
  return createFileJournal({ home: '/home', files, processes: machine.start() })
}

/** Runs one process until it crashes. */
async function liveAndCrash(world: World, one: Life, history: History): Promise<void> {
  const { files, machine } = world
  const journal = journalOf(world)
  const before = Object.values(files.counts).reduce((sum, count) => sum + count, 0)
  files.interfere(({ kind, path, number, bytes }) => {
    if (number - before > one.operations) return { error: createSystemError('EIO', path), takes: bytes % 7 }
    return kind === 'append' ? { takes: Math.min(bytes, one.mostBytes) } : undefined
  })
  await live(journal, one, history).catch(() => null)
  files.interfere(null)
  if (one.machineGoesDown) files.crash(keptBy(one.chances))
  machine.restart()
}

function keptBy(chances: readonly number[]): SurvivingWrites {
  let turn = 0
  const next = () => chances[turn++ % chances.length] ?? 0
  return { write: ({ bytes }) => Math.min(bytes.length, next()), name: () => next() % 2 === 0 }
}

/** Exactly the appended batches of which anything is left, each complete, in the order of their appends. */
function wholeBatches({ tried }: History, marks: readonly string[]): readonly string[] {
  return tried.filter((batch) => batch.some((mark) => marks.includes(mark))).flat()
}

/** Lines of the log other than headers. */
async function recordLines(files: CrashFileSystem): Promise<number> {
  const text = Buffer.from((await readFileSnapshot(files, LOG))?.bytes ?? []).toString()
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('{"type":"tidemark"')).length
}

/** Without these cases the property would be checked on nothing. */
const seen: Record<string, number> = {}

async function checkLog(world: World, history: History): Promise<void> {
  const { records, damage } = await readAllRecords(journalOf(world), 's')
  const marks = marksOf(records)
  expect(marks).toEqual(wholeBatches(history, marks))
  expect(history.acknowledged.flat().filter((mark) => !marks.includes(mark))).toEqual([])
  if ((await recordLines(world.files)) > records.length) expect(damage).not.toEqual([])
  expect(findRequestProblems(records)).toEqual([])
  const met = [...history.acknowledged.map(() => 'acknowledged'), ...damage.map(({ kind }) => kind)]
  for (const what of met) seen[what] = (seen[what] ?? 0) + 1
}

async function checkGoesOn(world: World, history: History): Promise<void> {
  const journal = journalOf(world)
  const { position, records: before } = await readAllRecords(journal, 's')
  const appended = await journal.append('s', position, nextBatch(history, 3))
  if (!appended.ok) throw new Error(`the append was refused: ${appended.reason}`)
  const { records } = await readAllRecords(journal, 's')
  expect(records).toEqual([...before, ...appended.records])
}

describe('after a crash', () => {
  it('nothing acknowledged is lost, only complete batches count, the rest is reported, the next request is valid, and the session can be appended to', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(life, { minLength: 1, maxLength: 4 }),
        fc.nat({ max: stories.length - 1 }),
        async (lives, seed) => {
          // Long after the crash, so that a lock that lost its content has expired.
          const world = { files: createCrashFileSystem({ now: () => 0 }), machine: createFakeProcessTable() }
          const history = newHistory(seed)
          for (const one of lives) {
            await liveAndCrash(world, one, history)
            await checkLog(world, history)
          }
          await checkGoesOn(world, history)
        },
      ),
      { numRuns: 300 },
    )
    for (const what of ['acknowledged', 'torn-line', 'incomplete-batch', 'bad-json'])
      expect(seen[what]).toBeGreaterThan(20)
  })
})
