/** A few kills; `killed-chats.soak.ts` has fifty. */
import { isFullRun } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { killChats } from './killed-chats.ts'

it('a task that is killed some times and resumed is done as if it had never been interrupted', async () => {
  const kills = isFullRun() ? 6 : 3
  const seed = Math.floor(Math.random() * 1e9)
  console.log(`seed ${seed}`)
  const figures = await killChats({
    kills,
    turns: 10 * kills,
    window: 30_000,
    resultTokens: 800,
    seed,
    longestMs: 250,
  })
  expect(figures.kills).toBe(kills)
})
