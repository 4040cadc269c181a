/** Kills a process that rewrites a session without end, at moments that nobody chose, again and again. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { openSession } from '@tidemark/core'
import { createFakeClock, readAll } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { expect } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child.ts'
import { compactOnce, nextBody, promptOnce, undoOnce } from './session-work.ts'
import { say, worked } from './started-sessions.ts'
import { SESSION, type WorkHost, workHost } from './work-host.ts'

export interface RandomKills {
  readonly kills: number
  readonly records: number
  readonly damaged: number
}

export async function killAtRandom(kills: number): Promise<RandomKills> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-random-'))
  let damaged = 0
  try {
    await begun(home)
    for (let number = 0; number < kills; number += 1) damaged += (await killOne(home)) ? 1 : 0
    const { records } = await readAll(createFileJournal({ home }), SESSION)
    return { kills, records: records.length, damaged }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function begun(home: string): Promise<void> {
  const journal = createFileJournal({ home })
  await worked(workHost({ journal }))
  await journal.close()
}

/** Whether something was left that had to be set aside. */
async function killOne(home: string): Promise<boolean> {
  const file = new URL('./endless-writer.ts', import.meta.url).href
  const child = startChild(file, home, String(Date.UTC(2026, 0, 1)))
  await child.heard('ready')
  await wait(Math.random() * 150)
  child.process.kill('SIGKILL')
  expect(await child.ended).toBe('SIGKILL')
  const done = child.said.filter((line) => line.startsWith('done')).map((line) => Number(line.split(' ')[1]))
  const journal = createFileJournal({ home })
  const { position, damage } = await readAll(journal, SESSION)
  expect(position).toBeGreaterThanOrEqual(Math.max(0, ...done))
  await goesOn(workHost({ journal, clock: createFakeClock() }))
  await journal.close()
  return damage.length > 0
}

/** A view without holes, a request that a provider takes, and one more of everything. */
async function goesOn(host: WorkHost): Promise<void> {
  const { view } = await openSession(host.journal, SESSION)
  expect([...view.damage]).toEqual([])
  await promptOnce(host, 'After the kill: read on.')
  await say(host, 'And now?')
  const before = await nextBody(host)
  expect(before.findings).toEqual([])
  expect(await compactOnce(host)).toMatchObject({ ok: true })
  expect((await nextBody(host)).findings).toEqual([])
  expect(await undoOnce(host)).toMatchObject({ ok: true })
  expect(await nextBody(host)).toEqual(before)
  await compactOnce(host)
}
