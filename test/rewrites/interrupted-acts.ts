/** Interrupts an act at each file operation in turn, by an ended process or a crashed machine. */
import type { TurnHost } from '@tidemark/core/engine/host'
import type { SessionRecord } from '@tidemark/core/log/record'
import { readAllRecords } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { expect } from 'vitest'
import { createSystemError } from '../../packages/tidemark/src/testing/crash-file-node.ts'
import {
  type CrashFileSystem,
  createCrashFileSystem,
  type SurvivingWrites,
} from '../../packages/tidemark/src/testing/crash-file-system.ts'
import {
  createFakeProcessTable,
  type FakeProcessTable,
} from '../../packages/tidemark/src/testing/fake-machine.ts'
import {
  appendUserMessage,
  createActHost,
  createStartedSession,
  type InterruptibleAct,
  replay,
  type StartedSession,
} from './interruptible-acts.ts'
import { compactSession, nextBody, promptSession, undoSession } from './rewrite-acts.ts'
import { SESSION } from './rewrite-host.ts'

/** Which unsynced writes survive the crash; null: only the process ends. */
type Ending = SurvivingWrites | null

/** That share of the bytes of each unsynced write survives, and the file's name if it is more than 0. */
export function keepShare(share: number): SurvivingWrites {
  return { write: ({ bytes }) => Math.floor(bytes.length * share), name: () => share > 0 }
}

export interface InterruptCounts {
  before: number
  after: number
  /** Interruptions that left damage in the log. */
  damaged: number
}

export interface InterruptOptions {
  readonly endings: readonly Ending[]
  /** The most bytes that one append takes. */
  readonly mostBytes: number
  /** After one interruption in so many, and after the first of each kind, it is checked that the session goes on. */
  readonly goesOnEvery: number
}

export async function interruptEverywhere(
  one: InterruptibleAct,
  { endings, mostBytes, goesOnEvery }: InterruptOptions,
): Promise<InterruptCounts> {
  const started = await createStartedSession(one)
  const whole = await interruptAct({
    one,
    started,
    operations: Number.POSITIVE_INFINITY,
    mostBytes,
    ending: null,
  })
  const outcomes: Outcomes = {
    before: await readState(started.records, createActHost(one, started, createMemoryJournal()), started),
    after: await readState(whole.records, whole.host, started),
  }
  expect(outcomes.after).not.toEqual(outcomes.before)
  const counts = { before: 0, after: 0, damaged: 0 }
  for (let operations = 0; operations <= whole.operations; operations += 1) {
    for (const ending of endings) {
      const left = await interruptAct({ one, started, operations, mostBytes, ending })
      const isFirst = checkRemains(left, await readSeen(left), { outcomes, counts })
      if (isFirst || (counts.before + counts.after) % goesOnEvery === 0) await expectGoesOn(left.host)
    }
  }
  return counts
}

interface Interrupt {
  readonly one: InterruptibleAct
  readonly started: StartedSession
  readonly operations: number
  readonly mostBytes: number
  readonly ending: Ending
}

interface Remains {
  readonly host: TurnHost
  readonly records: readonly SessionRecord[]
  readonly damage: number
  readonly operations: number
  /** The engine reported success. */
  readonly isTold: boolean
}

async function interruptAct({ one, started, operations, mostBytes, ending }: Interrupt): Promise<Remains> {
  // Long ago, so that a lock that lost its content in the crash has expired.
  const files = createCrashFileSystem({ now: () => 0 })
  const machine = createFakeProcessTable()
  const writer = openJournal(files, machine)
  await replay(writer, started)
  await writer.close()
  const before = countOperations(files)
  files.interfere(({ kind, path, number, bytes }) => {
    if (number - before > operations) return { error: createSystemError('EIO', path), takes: bytes % 7 }
    return kind === 'append' ? { takes: Math.min(bytes, mostBytes) } : undefined
  })
  const host = createActHost(one, started, openJournal(files, machine))
  const isTold = await one.act(host).then(
    (end) => end?.ok ?? true,
    () => false,
  )
  const taken = countOperations(files) - before
  files.interfere(null)
  if (ending !== null) files.crash(ending)
  machine.restart()
  const journal = openJournal(files, machine)
  const { records, damage } = await readAllRecords(journal, SESSION)
  return { host: { ...host, journal }, records, damage: damage.length, operations: taken, isTold }
}

function openJournal(files: CrashFileSystem, machine: FakeProcessTable) {
  return createFileJournal({ home: '/home', files, processes: machine.start() })
}

function countOperations({ counts }: CrashFileSystem): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

interface SeenState {
  readonly records: readonly SessionRecord[]
  readonly body: string
}

interface Outcomes {
  readonly before: SeenState
  readonly after: SeenState
}

/** The records and the next request of a session. */
async function readState(
  records: readonly SessionRecord[],
  host: TurnHost,
  started: StartedSession,
): Promise<SeenState> {
  const { journal } = host
  if ((await readAllRecords(journal, SESSION)).records.length === 0) await replay(journal, started)
  const { body, findings } = await nextBody(host)
  expect(findings).toEqual([])
  return { records, body }
}

async function readSeen({
  host,
  records,
}: Remains): Promise<SeenState & { readonly findings: readonly unknown[] }> {
  return { records, ...(await nextBody(host)) }
}

interface Judging {
  readonly outcomes: Outcomes
  readonly counts: InterruptCounts
}

/** Returns whether this is the first interruption with that result. */
function checkRemains(
  { records, isTold, damage }: Remains,
  seen: SeenState,
  { outcomes, counts }: Judging,
): boolean {
  const which = records.length > outcomes.before.records.length ? 'after' : 'before'
  if (isTold) expect(which).toBe('after')
  expect(seen).toEqual({ ...outcomes[which], findings: [] })
  const isFirst = counts[which] === 0 || (damage > 0 && counts.damaged === 0)
  counts[which] += 1
  counts.damaged += damage > 0 ? 1 : 0
  return isFirst
}

/** The session goes on with a turn, a compaction and its undo. */
async function expectGoesOn(host: TurnHost): Promise<void> {
  await promptSession(host, 'After the crash: read on.')
  await appendUserMessage(host, 'And now?')
  const { body } = await nextBody(host)
  const committed = await compactSession(host)
  expect(committed).toMatchObject({ ok: true })
  expect((await nextBody(host)).findings).toEqual([])
  expect(await undoSession(host)).toMatchObject({ ok: true })
  expect(await nextBody(host)).toEqual({ body, findings: [] })
}
