/** Two processes update the notes of one session at the same time; or one of them is killed in the middle. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createNotesFolder } from '../../packages/tidemark/src/storage/notes-folder.ts'
import { type Child, startChild } from '../../packages/tidemark/test/child-process.ts'
import { RACE_SESSION, type RaceInput } from './notes-race-process.ts'

async function startTwo() {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-notes-race-'))
  const file = new URL('./notes-race-process.ts', import.meta.url).href
  const children = ['one', 'other'].map((name) =>
    startChild(file, JSON.stringify({ home, name } satisfies RaceInput)),
  )
  onTestFinished(async () => {
    for (const child of children) child.process.kill('SIGKILL')
    await Promise.all(children.map(({ ended }) => ended))
    rmSync(home, { recursive: true, force: true, maxRetries: 10 })
  })
  await Promise.all(children.map((child) => child.heard('ready')))
  const [one, other] = children as [Child, Child]
  const store = createNotesFolder({ home })
  const folder = dirname(store.path(RACE_SESSION))
  return { one, other, store, folder }
}

const OLD_NOTES = '# Current state\n\nAs it was.\n'

const tell = (child: Child, line: string): unknown => child.process.stdin?.write(`${line}\n`)

it('of two processes that update the notes at once, one asks the model, and the other leaves it at that', async () => {
  const { one, other, store, folder } = await startTwo()
  for (const child of [one, other]) tell(child, 'update 60')
  const loser = await Promise.any(
    [one, other].map(async (child) => [child, await child.heard('ended')] as const),
  )
  expect(loser[1]).toBe('ended ')
  const winner = loser[0] === one ? other : one
  await winner.heard('asked')
  expect(loser[0].said).not.toContain('asked')
  tell(winner, 'answer')
  expect(await winner.heard('ended')).toBe('ended notes-updated')
  const name = winner === one ? 'one' : 'other'
  expect((await store.read(RACE_SESSION))?.text).toContain(`Written by ${name}.`)
  expect(readdirSync(folder).toSorted()).toEqual(['coverage.json', 'summary.md'])
})

it('after a process was killed in an update, the old notes are whole, and another process updates them later', async () => {
  const { one, other, store, folder } = await startTwo()
  const old = { text: OLD_NOTES, coveredUuid: null, writtenAt: 0, writtenBy: 'model' as const }
  await store.write(RACE_SESSION, old)
  tell(one, 'update 60')
  await one.heard('asked')
  const claimedAt = (await store.readClaim(RACE_SESSION)) ?? 0
  one.process.kill('SIGKILL')
  expect(await one.ended).toBe('SIGKILL')
  expect(await store.read(RACE_SESSION)).toEqual(old)
  expect(existsSync(join(folder, 'claim.json'))).toBe(true)
  tell(other, 'update 60')
  expect(await other.heard('ended')).toBe('ended ')
  await wait(Math.max(0, claimedAt + 1_000 - Date.now()))
  tell(other, 'update 1')
  await other.heard('asked')
  tell(other, 'answer')
  await other.heard('ended notes-updated')
  expect((await store.read(RACE_SESSION))?.text).toContain('Written by other.')
  expect(readdirSync(folder).toSorted()).toEqual(['coverage.json', 'summary.md'])
})
