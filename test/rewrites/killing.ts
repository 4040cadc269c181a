/** Processes that are killed in the middle of a rewrite, on a real disk, and what is found after each of them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readAll } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { expect } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child.ts'
import type { Doom } from './doomed-writer.ts'
import { compactOnce, nextBody, promptOnce } from './session-work.ts'
import { actHost, type CutAct, replay, type StartedSession } from './started-sessions.ts'
import { SESSION, type WorkHost } from './work-host.ts'

export type Moment = Doom['moment']

export interface Killed {
  readonly isAfter: boolean
  readonly damaged: boolean
  /** Those of a whole act, by name; none where it was killed. */
  readonly operations: readonly string[]
}

interface Killing {
  readonly one: CutAct
  readonly started: StartedSession
  readonly doom: Pick<Doom, 'operations' | 'moment'>
}

/** One process, one kill, one new home; whoever comes after it finds all or nothing of the act. */
export async function killOnce({ one, started, doom }: Killing): Promise<Killed> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-doomed-'))
  try {
    const before = await prepared(home, one, started)
    const child = startChild(
      new URL('./doomed-writer.ts', import.meta.url).href,
      JSON.stringify({ home, act: one.name, at: started.at, ...doom } satisfies Doom),
    )
    const how = await child.ended
    const said = (word: string) => child.said.filter((line) => line.startsWith(word))
    expect(said('refused')).toEqual([])
    if (how !== 'SIGKILL') expect(how).toBe('0')
    const isTold = said('told').length > 0
    const isAfter = await found(home, { one, started, before, isTold })
    return { ...isAfter, operations: (said('operations')[0]?.split(' ')[1] ?? '').split(',') }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** The operations of the act, where nobody is killed. */
export async function operationsOf(one: CutAct, started: StartedSession): Promise<readonly string[]> {
  const { operations } = await killOnce({ one, started, doom: { operations: 1_000_000, moment: 'after' } })
  return operations
}

async function prepared(home: string, one: CutAct, started: StartedSession): Promise<string> {
  const journal = createFileJournal({ home })
  await replay(journal, started)
  await journal.close()
  return (await nextBody(actHost(one, started, createFileJournal({ home })))).body
}

interface Expected {
  readonly one: CutAct
  readonly started: StartedSession
  readonly before: string
  readonly isTold: boolean
}

async function found(
  home: string,
  { one, started, before, isTold }: Expected,
): Promise<Pick<Killed, 'isAfter' | 'damaged'>> {
  const journal = createFileJournal({ home })
  const host = actHost(one, started, journal)
  const { records, damage } = await readAll(journal, SESSION)
  const { body, findings } = await nextBody(host)
  const isAfter = records.length > started.records.length
  expect(findings).toEqual([])
  expect(records.slice(0, started.records.length)).toEqual(started.records)
  expect(body === before).toBe(!isAfter)
  if (isTold) expect(isAfter).toBe(true)
  if (isAfter) expect(body).toBe(await afterWhole(one, started))
  await goesOn({ ...host, ids: { next: (kind) => `late-${host.ids.next(kind)}` } })
  await journal.close()
  return { isAfter, damaged: damage.length > 0 }
}

const wholes = new Map<string, Promise<string>>()

/** The request after the act, where nobody was killed. */
function afterWhole(one: CutAct, started: StartedSession): Promise<string> {
  const known = wholes.get(one.name) ?? undisturbed(one, started)
  wholes.set(one.name, known)
  return known
}

async function undisturbed(one: CutAct, started: StartedSession): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-whole-'))
  const journal = createFileJournal({ home })
  await replay(journal, started)
  const host = actHost(one, started, journal)
  await one.act(host)
  const { body } = await nextBody(host)
  await journal.close()
  await rm(home, { recursive: true, force: true })
  return body
}

/** The lock of the one that was killed is taken over, and an unfinished act blocks no other. */
async function goesOn(host: WorkHost): Promise<void> {
  await promptOnce(host, 'After the kill: read on.')
  expect(await compactOnce(host)).toMatchObject({ ok: true })
}
