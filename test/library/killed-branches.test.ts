/** Rewind, clear, fork and ask, each in a process that is killed as soon as the call has resolved. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child-process.ts'
import { createBranchWorld, say, userTexts } from './branch-world.ts'
import type { KilledBranchInput, KilledBranchReport } from './killed-branch-process.ts'

/** Runs the act in a process that is killed after it, and opens the home again. */
async function killAfter(act: KilledBranchInput['act']) {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-branch-'))
  const file = new URL('./killed-branch-process.ts', import.meta.url).href
  const child = startChild(file, JSON.stringify({ home, act } satisfies KilledBranchInput))
  expect(await child.ended).toBe('SIGKILL')
  const report: KilledBranchReport = JSON.parse(child.said[0] ?? '')
  const world = createBranchWorld(home)
  onTestFinished(async () => {
    await world.tide.close()
    rmSync(home, { recursive: true, force: true, maxRetries: 10 })
  })
  return { ...world, report, session: await world.tide.open('talk') }
}

it('a rewind survives a kill, and so does the way back', async () => {
  const { session, report, simulator } = await killAfter('rewind')
  expect(report.result).toMatchObject({ ok: true })
  expect(JSON.stringify(session.messages())).toBe(report.after)
  expect([session.damage, userTexts(session)]).toEqual([[], ['One']])
  await say(session, 'Four')
  expect(simulator.requests.map(({ status }) => status)).toEqual([200])
  expect(await session.undo()).toMatchObject({ ok: true, kind: 'rewind' })
  expect(JSON.stringify(session.messages())).toBe(report.before)
})

it('a cleared conversation stays cleared after a kill, and the old one can be brought back', async () => {
  const { session, report, simulator } = await killAfter('clear')
  expect([session.damage, session.messages()]).toEqual([[], []])
  await say(session, 'Four')
  expect(userTexts(session)).toEqual(['Four'])
  expect(simulator.requests.map(({ status }) => status)).toEqual([200])
  expect(await session.undo()).toMatchObject({ ok: true, kind: 'rewind' })
  expect(JSON.stringify(session.messages())).toBe(report.before)
})

it('a fork is whole after a kill, and both sessions go on apart', async () => {
  const { session, report, tide, simulator } = await killAfter('fork')
  expect(report.result).toBe('other')
  const fork = await tide.open('other')
  expect([fork.damage, JSON.stringify(fork.messages())]).toEqual([[], report.before])
  expect(JSON.stringify(session.messages())).toBe(report.before)
  await say(fork, 'Four')
  await say(session, 'Five')
  expect([userTexts(fork).at(-1), userTexts(session).at(-1)]).toEqual(['Four', 'Five'])
  expect(simulator.requests.map(({ status }) => status)).toEqual([200, 200])
})

it('a side question leaves nothing in the conversation after a kill, and its price is kept', async () => {
  const { session, report, simulator } = await killAfter('ask')
  expect(report.result).toMatchObject({ ok: true })
  expect(report.after).toBe(report.before)
  expect([session.damage, JSON.stringify(session.messages())]).toEqual([[], report.before])
  expect(session.money().calls).toBe(4)
  await say(session, 'Four')
  expect(userTexts(session)).toEqual(['One', 'Two', 'Three', 'Four'])
  expect(simulator.requests.map(({ status }) => status)).toEqual([200])
})
