/** A few kills; `killed-chats.soak.ts` has fifty. */
import { expect, it } from 'vitest'
import { killChats } from './killed-chats.ts'

it('a task that is killed six times and resumed is done as if it had never been interrupted', async () => {
  const seed = Math.floor(Math.random() * 1e9)
  console.log(`seed ${seed}`)
  const figures = await killChats({
    kills: 6,
    turns: 60,
    window: 30_000,
    resultTokens: 800,
    seed,
    longestMs: 250,
  })
  expect(figures.kills).toBe(6)
})
