/** Sessions that something is about to be done to, and the acts that could be cut short. */
import {
  append,
  isKnown,
  type Journal,
  type NewRecord,
  openSession,
  type SessionRecord,
} from '@tidemark/core'
import { createCountingIds, createFakeClock, readAll } from '@tidemark/core/testing'
import { createMemoryJournal } from 'tidemark/testing'
import {
  clearOnce,
  compactOnce,
  endOf,
  MANUAL,
  opened,
  pinOnce,
  promptOnce,
  undoOnce,
} from './session-work.ts'
import { SESSION, type WorkHost, type WorkOptions, workHost } from './work-host.ts'

export interface CutAct {
  readonly name: string
  /** What has happened before it. */
  readonly prepare: (host: WorkHost) => Promise<unknown>
  /** Gives what the engine said; throws where the log cannot be written. */
  readonly act: (host: WorkHost) => Promise<{ readonly ok: boolean } | null>
  readonly options?: Omit<WorkOptions, 'journal'>
}

/** Says something that is not answered. */
export async function say(host: WorkHost, text: string): Promise<void> {
  const halt = await endOf(
    append(await opened(host), [{ type: 'user', message: { role: 'user', content: text } }]),
  )
  if (halt !== null) throw new Error(`it was not said: ${halt.reason}`)
}

/** Four prompts, a pin on the first, and a last one that nobody has answered. */
export async function worked(host: WorkHost): Promise<void> {
  for (let number = 1; number <= 4; number += 1) await promptOnce(host, `Prompt ${number}: read on.`)
  await pinOnce(host, await uuidOfPrompt(host, 'Prompt 1'))
  await say(host, 'Not answered yet: and then?')
}

export async function uuidOfPrompt(host: WorkHost, beginning: string): Promise<string> {
  const { session } = await openSession(host.journal, SESSION)
  for (const record of session.records) if (isSaid(record, beginning)) return record.uuid ?? ''
  throw new Error(`nobody said ${beginning}`)
}

function isSaid(record: SessionRecord, beginning: string): boolean {
  return isKnown(record) && record.type === 'user' && String(record.message.content).startsWith(beginning)
}

async function cleared(host: WorkHost): Promise<null> {
  await clearOnce(host)
  return null
}

/** What the computed section of the prompt says. */
let rules = 'Work with care.'

export const CUT_ACTS: readonly CutAct[] = [
  { name: 'a compaction', prepare: worked, act: (host) => compactOnce(host) },
  {
    name: 'a compaction from a message on',
    prepare: worked,
    act: async (host) =>
      compactOnce(host, { ...MANUAL, form: 'from', pivot: await uuidOfPrompt(host, 'Prompt 2') }),
  },
  {
    name: 'a compaction up to a message',
    prepare: worked,
    act: async (host) =>
      compactOnce(host, { ...MANUAL, form: 'up_to', pivot: await uuidOfPrompt(host, 'Prompt 3') }),
  },
  {
    name: 'a second compaction, what stays cached in front, with a new epoch',
    prepare: async (host) => {
      rules = 'Work with care.'
      await worked(host)
      await compactOnce(host)
      await promptOnce(host, 'Prompt 5: read on.')
      await promptOnce(host, 'Prompt 6: read on.')
      await say(host, 'Not answered either.')
    },
    act: (host) => {
      rules = 'Work with greater care.'
      return compactOnce(host)
    },
    options: { policy: { compact: { carriersFirst: true } }, rules: () => rules },
  },
  { name: 'a clearing', prepare: worked, act: cleared },
  {
    name: 'an undo of a compaction',
    prepare: async (host) => {
      await worked(host)
      await compactOnce(host)
      await promptOnce(host, 'Prompt 5: read on.')
      await say(host, 'Not answered either.')
    },
    act: (host) => undoOnce(host),
  },
  {
    name: 'an undo of a clearing',
    prepare: async (host) => {
      await worked(host)
      await clearOnce(host)
      await promptOnce(host, 'Prompt 5: read on.')
      await say(host, 'Not answered either.')
    },
    act: (host) => undoOnce(host),
  },
]

export interface StartedSession {
  /** As they were appended, one list each. */
  readonly batches: readonly (readonly NewRecord[])[]
  readonly records: readonly SessionRecord[]
  /** When the act begins. */
  readonly at: number
}

export async function startedSession({ prepare, options }: CutAct): Promise<StartedSession> {
  const clock = createFakeClock()
  const host = workHost({ ...options, journal: createMemoryJournal(), clock, ids: createCountingIds() })
  await prepare(host)
  const { records } = await readAll(host.journal, SESSION)
  return { batches: batchesOf(records), records, at: clock.now() }
}

/** The host of the act: whatever is done twice, the records are the same. */
export function actHost({ options }: CutAct, { at }: StartedSession, journal: Journal): WorkHost {
  const ids = createCountingIds()
  return workHost({
    ...options,
    journal,
    clock: createFakeClock(at),
    ids: { next: (kind) => `act-${ids.next(kind)}` },
  })
}

function batchesOf(records: readonly SessionRecord[]): readonly NewRecord[][] {
  const batches: NewRecord[][] = []
  for (const { seq: _seq, batch, ...record } of records) {
    if (batch === undefined || batch.index === 0) batches.push([])
    batches.at(-1)?.push(record as NewRecord)
  }
  return batches
}

export async function replay(journal: Journal, { batches }: StartedSession): Promise<void> {
  let position = 0
  const appends = batches.map((batch) => {
    const after = position
    position += batch.length
    return journal.append(SESSION, after, batch)
  })
  for (const outcome of await Promise.all(appends))
    if (!outcome.ok) throw new Error(`the session was refused: ${outcome.reason}`)
}
