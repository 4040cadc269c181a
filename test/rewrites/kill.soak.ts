/** Processes killed at every operation of every act. */
import { expect, it } from 'vitest'
import { createStartedSession, INTERRUPTIBLE_ACTS } from './interruptible-acts.ts'
import { killAtRandom, killOnce, listOperations } from './killed-processes.ts'

it.each(INTERRUPTIBLE_ACTS)(
  'killed at every operation of $name, before it, in it and after it',
  async (one) => {
    const started = await createStartedSession(one)
    const operations = await listOperations(one, started)
    const counts = { kills: 0, before: 0, after: 0, damaged: 0 }
    for (let last = 0; last < operations.length; last += 1) {
      for (const moment of ['before', 'within', 'after'] as const) {
        const { isAfter, damaged } = await killOnce({ one, started, doom: { operations: last, moment } })
        counts.kills += 1
        counts[isAfter ? 'after' : 'before'] += 1
        counts.damaged += damaged ? 1 : 0
      }
    }
    console.log(one.name, counts)
    expect([counts.before > 0, counts.after > 0]).toEqual([true, true])
  },
)

it('killed at 100 random moments of endless rewriting', async () => {
  const killed = await killAtRandom(100)
  console.log(killed)
  expect(killed.kills).toBe(100)
})
