/** Acts that a crash may interrupt, and the sessions they start from. */
import type { TurnHost } from '@tidemark/core/engine/host'
import type { Journal, NewRecord } from '@tidemark/core/engine/ports'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { appendUnlinkedRecords } from '@tidemark/core/engine/session-writer'
import { isKnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import { createCountingIds, createFakeClock, readAllRecords, runToEnd } from '@tidemark/core/testing'
import { createMemoryJournal } from 'tidemark/testing'
import {
  clearSession,
  compactSession,
  MANUAL,
  openRun,
  pinRecordOf,
  promptSession,
  undoSession,
} from './rewrite-acts.ts'
import { createRewriteHost, type RewriteHostOptions, SESSION } from './rewrite-host.ts'

export interface InterruptibleAct {
  readonly name: string
  /** Brings the session to where the act starts. */
  readonly prepare: (host: TurnHost) => Promise<unknown>
  /** Returns the engine's outcome; throws if the log cannot be written. */
  readonly act: (host: TurnHost) => Promise<{ readonly ok: boolean } | null>
  readonly options?: Omit<RewriteHostOptions, 'journal'>
}

/** Appends a user message without running a turn. */
export async function appendUserMessage(host: TurnHost, text: string): Promise<void> {
  const halt = await runToEnd(
    appendUnlinkedRecords(await openRun(host), [{ type: 'user', message: { role: 'user', content: text } }]),
  )
  if (halt !== null) throw new Error(`it was not said: ${halt.reason}`)
}

/** Four turns, a pin on the first prompt, and an unanswered message. */
export async function buildSession(host: TurnHost): Promise<void> {
  for (let number = 1; number <= 4; number += 1) await promptSession(host, `Prompt ${number}: read on.`)
  await pinRecordOf(host, await findPrompt(host, 'Prompt 1'))
  await appendUserMessage(host, 'Not answered yet: and then?')
}

export async function findPrompt(host: TurnHost, beginning: string): Promise<string> {
  const { session } = await readSessionState(host.journal, SESSION)
  for (const record of session.records) if (isUserMessage(record, beginning)) return record.uuid ?? ''
  throw new Error(`nobody said ${beginning}`)
}

function isUserMessage(record: SessionRecord, beginning: string): boolean {
  return (
    isKnownRecord(record) && record.type === 'user' && String(record.message.content).startsWith(beginning)
  )
}

async function clearAct(host: TurnHost): Promise<null> {
  await clearSession(host)
  return null
}

/** Text of the computed section of the system prompt. */
let rules = 'Work with care.'

export const INTERRUPTIBLE_ACTS: readonly InterruptibleAct[] = [
  { name: 'a compaction', prepare: buildSession, act: (host) => compactSession(host) },
  {
    name: 'a compaction from a message on',
    prepare: buildSession,
    act: async (host) =>
      compactSession(host, { ...MANUAL, form: 'from', pivot: await findPrompt(host, 'Prompt 2') }),
  },
  {
    name: 'a compaction up to a message',
    prepare: buildSession,
    act: async (host) =>
      compactSession(host, { ...MANUAL, form: 'up_to', pivot: await findPrompt(host, 'Prompt 3') }),
  },
  {
    name: 'a second compaction, what stays cached in front, with a new epoch',
    prepare: async (host) => {
      rules = 'Work with care.'
      await buildSession(host)
      await compactSession(host)
      await promptSession(host, 'Prompt 5: read on.')
      await promptSession(host, 'Prompt 6: read on.')
      await appendUserMessage(host, 'Not answered either.')
    },
    act: (host) => {
      rules = 'Work with greater care.'
      return compactSession(host)
    },
    options: { policy: { compact: { carriersFirst: true } }, rules: () => rules },
  },
  { name: 'a clearing', prepare: buildSession, act: clearAct },
  {
    name: 'an undo of a compaction',
    prepare: async (host) => {
      await buildSession(host)
      await compactSession(host)
      await promptSession(host, 'Prompt 5: read on.')
      await appendUserMessage(host, 'Not answered either.')
    },
    act: (host) => undoSession(host),
  },
  {
    name: 'an undo of a clearing',
    prepare: async (host) => {
      await buildSession(host)
      await clearSession(host)
      await promptSession(host, 'Prompt 5: read on.')
      await appendUserMessage(host, 'Not answered either.')
    },
    act: (host) => undoSession(host),
  },
]

export interface StartedSession {
  /** The batches as they were appended. */
  readonly batches: readonly (readonly NewRecord[])[]
  readonly records: readonly SessionRecord[]
  /** Time at which the act starts. */
  readonly at: number
}

export async function createStartedSession({ prepare, options }: InterruptibleAct): Promise<StartedSession> {
  const clock = createFakeClock()
  const host = createRewriteHost({
    ...options,
    journal: createMemoryJournal(),
    clock,
    ids: createCountingIds(),
  })
  await prepare(host)
  const { records } = await readAllRecords(host.journal, SESSION)
  return { batches: toBatches(records), records, at: clock.now() }
}

/** The host of the act. Ids and time are fixed, so that the act always writes the same records. */
export function createActHost(
  { options }: InterruptibleAct,
  { at }: StartedSession,
  journal: Journal,
): TurnHost {
  const ids = createCountingIds()
  return createRewriteHost({
    ...options,
    journal,
    clock: createFakeClock(at),
    ids: { next: (kind) => `act-${ids.next(kind)}` },
  })
}

function toBatches(records: readonly SessionRecord[]): readonly NewRecord[][] {
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
