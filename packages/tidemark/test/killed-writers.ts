/** Kills writers of the same session at random moments and checks what they leave. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { NewRecord } from '@tidemark/core/engine/ports'
import { readAllRecords, sampleRecord } from '@tidemark/core/testing'
import { expect } from 'vitest'
import { createFileJournal } from '../src/storage/file-journal.ts'
import { type Child, startChild } from './child-process.ts'
import { findRequestProblems, generateUnits, withoutStamps } from './generated-units.ts'

export interface KillCounts {
  readonly kills: number
  /** Kills that left damage in the log. */
  readonly damaged: number
  /** Kills between the start of an append and its acknowledgement. */
  readonly interrupted: number
  /** Acknowledged records of all processes. */
  readonly acknowledged: number
}

const KILLS_A_SESSION = 10

export async function killWriters(kills: number): Promise<KillCounts> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-kill-'))
  const totals = { kills: 0, damaged: 0, interrupted: 0, acknowledged: 0 }
  try {
    for (let number = 0; totals.kills < kills; number += 1) {
      const turns = Math.min(KILLS_A_SESSION, kills - totals.kills)
      await killOnOneSession(await createScene(home, number), turns, totals)
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
  return totals
}

async function createScene(home: string, number: number): Promise<Scene> {
  const storyFile = join(home, 'story.json')
  const units = generateUnits(number, 12_000)
  await writeFile(storyFile, JSON.stringify(units))
  return { home, session: `s${number}`, storyFile, units, ends: new Set([0]), safe: 0 }
}

async function killOnOneSession(scene: Scene, turns: number, totals: Totals): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    const child = startChild('./writer-process.ts', scene.home, scene.session, scene.storyFile)
    await killAtRandomTime(child)
    if ((await child.ended) !== 'SIGKILL') break
    const before = scene.safe
    const { interrupted, damaged } = await checkRemains(scene, child)
    totals.kills += 1
    totals.interrupted += interrupted ? 1 : 0
    totals.damaged += damaged ? 1 : 0
    totals.acknowledged += scene.safe - before
  }
  await expectGoesOn(scene)
}

type Totals = { -readonly [Key in keyof KillCounts]: KillCounts[Key] }

interface Scene {
  readonly home: string
  readonly session: string
  readonly storyFile: string
  readonly units: readonly (readonly NewRecord[])[]
  /** Positions at which an appended batch ends. */
  readonly ends: Set<number>
  /** The last acknowledged position. */
  safe: number
}

/**
 * Mostly while it appends, sometimes before its first append, sometimes while it starts and takes over the lock of the previous process.
 * Waits for its lines and not for a time in which they should come, so that a busy machine sees the same moments.
 */
async function killAtRandomTime(child: Child): Promise<void> {
  const moment = Math.random()
  if (moment < 0.2) await wait(80 + Math.random() * 120)
  else {
    await child.heard('ready')
    if (moment > 0.35) await hearAcknowledged(child, 1 + Math.floor(Math.random() * 6))
    await wait(Math.random() * 40)
  }
  child.process.kill('SIGKILL')
}

/** Waits until the process has printed so many acknowledged appends, or has ended. */
async function hearAcknowledged(child: Child, count: number): Promise<void> {
  let hasEnded = false
  child.ended.then(() => {
    hasEnded = true
  })
  while (!hasEnded && child.said.filter((line) => line.startsWith('acknowledged')).length < count)
    await wait(5)
}

async function checkRemains(
  scene: Scene,
  child: Child,
): Promise<{ readonly interrupted: boolean; readonly damaged: boolean }> {
  const said = (word: string) =>
    child.said.filter((line) => line.startsWith(word)).map((line) => Number(line.split(' ')[1]))
  expect(child.said.filter((line) => line.startsWith('refused'))).toEqual([])
  for (const end of said('tried')) scene.ends.add(end)
  scene.safe = Math.max(scene.safe, ...said('acknowledged'))
  const { records, position, damage } = await readAllRecords(
    createFileJournal({ home: scene.home }),
    scene.session,
  )
  expect(position).toBeGreaterThanOrEqual(scene.safe)
  expect(scene.ends).toContain(position)
  expect(withoutStamps(records)).toEqual(scene.units.flat().slice(0, position))
  expect(findRequestProblems(records)).toEqual([])
  return { interrupted: said('tried').length > said('acknowledged').length, damaged: damage.length > 0 }
}

/** The lock of the last killed process is taken over, and the session can be appended to. */
async function expectGoesOn({ home, session }: Scene): Promise<void> {
  const journal = createFileJournal({ home })
  const { position } = await readAllRecords(journal, session)
  expect(await journal.append(session, position, [sampleRecord('last')])).toMatchObject({ ok: true })
  await journal.close()
}
