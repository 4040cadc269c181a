/** Fifty kills at random moments of one task. */
import { expect, it } from 'vitest'
import { killChats } from './killed-chats.ts'

it('a task that is killed fifty times and resumed is done as if it had never been interrupted', async () => {
  const seed = Math.floor(Math.random() * 1e9)
  console.log(`seed ${seed}`)
  const figures = await killChats({
    kills: 50,
    turns: 1_000,
    window: 60_000,
    resultTokens: 2_000,
    seed,
    longestMs: 900,
  })
  console.log(figures)
  expect(figures.interruptedCalls).toBeGreaterThan(0)
})
