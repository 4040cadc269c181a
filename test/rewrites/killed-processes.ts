/** Kills processes in the middle of a rewrite, on a real disk, and checks what each leaves. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { TurnHost } from '@tidemark/core/engine/host'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { createFakeClock, readAllRecords } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { expect } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child-process.ts'
import {
  appendUserMessage,
  buildSession,
  createActHost,
  type InterruptibleAct,
  replay,
  type StartedSession,
} from './interruptible-acts.ts'
import type { KillInput } from './killed-process.ts'
import { compactSession, nextBody, promptSession, undoSession } from './rewrite-acts.ts'
import { createRewriteHost, SESSION } from './rewrite-host.ts'

export type Moment = KillInput['moment']

export interface KillResult {
  readonly isAfter: boolean
  readonly damaged: boolean
  /** File operations of an act that ran to its end; none if it was killed. */
  readonly operations: readonly string[]
}

interface Killing {
  readonly one: InterruptibleAct
  readonly started: StartedSession
  readonly doom: Pick<KillInput, 'operations' | 'moment'>
}

/** Kills one process in a new home folder. The log then has all of the act or nothing of it. */
export async function killOnce({ one, started, doom }: Killing): Promise<KillResult> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-doomed-'))
  try {
    const before = await prepareHome(home, one, started)
    const child = startChild(
      new URL('./killed-process.ts', import.meta.url).href,
      JSON.stringify({ home, act: one.name, at: started.at, ...doom } satisfies KillInput),
    )
    const how = await child.ended
    const said = (word: string) => child.said.filter((line) => line.startsWith(word))
    expect(said('refused')).toEqual([])
    if (how !== 'SIGKILL') expect(how).toBe('0')
    const isTold = said('told').length > 0
    const isAfter = await checkHome(home, { one, started, before, isTold })
    return { ...isAfter, operations: (said('operations')[0]?.split(' ')[1] ?? '').split(',') }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** The file operations of the act when the process is not killed. */
export async function listOperations(
  one: InterruptibleAct,
  started: StartedSession,
): Promise<readonly string[]> {
  const { operations } = await killOnce({ one, started, doom: { operations: 1_000_000, moment: 'after' } })
  return operations
}

async function prepareHome(home: string, one: InterruptibleAct, started: StartedSession): Promise<string> {
  const journal = createFileJournal({ home })
  await replay(journal, started)
  await journal.close()
  return (await nextBody(createActHost(one, started, createFileJournal({ home })))).body
}

interface Expected {
  readonly one: InterruptibleAct
  readonly started: StartedSession
  readonly before: string
  readonly isTold: boolean
}

async function checkHome(
  home: string,
  { one, started, before, isTold }: Expected,
): Promise<Pick<KillResult, 'isAfter' | 'damaged'>> {
  const journal = createFileJournal({ home })
  const host = createActHost(one, started, journal)
  const { records, damage } = await readAllRecords(journal, SESSION)
  const { body, findings } = await nextBody(host)
  const isAfter = records.length > started.records.length
  expect(findings).toEqual([])
  expect(records.slice(0, started.records.length)).toEqual(started.records)
  expect(body === before).toBe(!isAfter)
  if (isTold) expect(isAfter).toBe(true)
  if (isAfter) expect(body).toBe(await bodyAfterWhole(one, started))
  await expectGoesOn({ ...host, ids: { next: (kind) => `late-${host.ids.next(kind)}` } })
  await journal.close()
  return { isAfter, damaged: damage.length > 0 }
}

const wholes = new Map<string, Promise<string>>()

/** The request after the act when the process is not killed. */
function bodyAfterWhole(one: InterruptibleAct, started: StartedSession): Promise<string> {
  const known = wholes.get(one.name) ?? runUndisturbed(one, started)
  wholes.set(one.name, known)
  return known
}

async function runUndisturbed(one: InterruptibleAct, started: StartedSession): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-whole-'))
  const journal = createFileJournal({ home })
  await replay(journal, started)
  const host = createActHost(one, started, journal)
  await one.act(host)
  const { body } = await nextBody(host)
  await journal.close()
  await rm(home, { recursive: true, force: true })
  return body
}

/** The lock of the killed process is taken over, and an unfinished act blocks no other. */
async function expectGoesOn(host: TurnHost): Promise<void> {
  await promptSession(host, 'After the kill: read on.')
  expect(await compactSession(host)).toMatchObject({ ok: true })
}

// Kills, again and again and at random moments, a process that rewrites a session endlessly.

export interface RandomKills {
  readonly kills: number
  readonly records: number
  readonly damaged: number
}

export async function killAtRandom(kills: number): Promise<RandomKills> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-random-'))
  let damaged = 0
  try {
    await startSession(home)
    for (let number = 0; number < kills; number += 1) damaged += (await killOne(home)) ? 1 : 0
    const { records } = await readAllRecords(createFileJournal({ home }), SESSION)
    return { kills, records: records.length, damaged }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function startSession(home: string): Promise<void> {
  const journal = createFileJournal({ home })
  await buildSession(createRewriteHost({ journal }))
  await journal.close()
}

/** Returns whether the log was damaged. */
async function killOne(home: string): Promise<boolean> {
  const file = new URL('./endless-process.ts', import.meta.url).href
  const child = startChild(file, home, String(Date.UTC(2026, 0, 1)))
  await child.heard('ready')
  await wait(Math.random() * 150)
  child.process.kill('SIGKILL')
  expect(await child.ended).toBe('SIGKILL')
  const done = child.said.filter((line) => line.startsWith('done')).map((line) => Number(line.split(' ')[1]))
  const journal = createFileJournal({ home })
  const { position, damage } = await readAllRecords(journal, SESSION)
  expect(position).toBeGreaterThanOrEqual(Math.max(0, ...done))
  const policy = { compact: { maximumPercentOfReplaced: 100 } }
  await expectGoesOnRandomKills(createRewriteHost({ journal, clock: createFakeClock(), policy }))
  await journal.close()
  return damage.length > 0
}

/**
 * The view has no gaps, the request is valid, and a turn, a compaction and an undo succeed. Two prompts: after a kill
 * between a call and its result the model answers the first one without reading a file, and a compaction right after
 * another one would then have nothing to replace.
 */
async function expectGoesOnRandomKills(host: TurnHost): Promise<void> {
  const { view } = await readSessionState(host.journal, SESSION)
  expect([...view.damage]).toEqual([])
  for (const prompt of ['After the kill: read on.', 'And the next file.']) await promptSession(host, prompt)
  await appendUserMessage(host, 'And now?')
  const before = await nextBody(host)
  expect(before.findings).toEqual([])
  const compacted = await compactSession(host)
  expect(compacted, JSON.stringify(compacted).slice(0, 600)).toMatchObject({ ok: true })
  expect((await nextBody(host)).findings).toEqual([])
  expect(await undoSession(host)).toMatchObject({ ok: true })
  expect(await nextBody(host)).toEqual(before)
  await compactSession(host)
}
