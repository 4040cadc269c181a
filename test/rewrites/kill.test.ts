/** Processes that are killed while they commit a rewrite. */
import { expect, it } from 'vitest'
import { createStartedSession, INTERRUPTIBLE_ACTS } from './interruptible-acts.ts'
import { killAtRandom, killOnce, listOperations, type Moment } from './killed-processes.ts'

it('a process killed at a write of its commit leaves the session as before or as after, and another goes on', async () => {
  const [one] = INTERRUPTIBLE_ACTS
  if (one === undefined) throw new Error('there is no act')
  const started = await createStartedSession(one)
  const operations = await listOperations(one, started)
  const write = operations.lastIndexOf('append')
  const kills: readonly (readonly [operations: number, moment: Moment, isAfter: boolean])[] = [
    [write, 'before', false],
    [write, 'within', false],
    [write, 'after', true],
    [operations.indexOf('sync', write), 'after', true],
  ]
  for (const [last, moment, isAfter] of kills) {
    const killed = await killOnce({ one, started, doom: { operations: last, moment } })
    expect([last, moment, killed.isAfter]).toEqual([last, moment, isAfter])
    expect(killed.damaged).toBe(moment === 'within')
  }
})

it('a process killed at random moments of endless rewriting leaves a session that goes on', async () => {
  const { kills, records } = await killAtRandom(4)
  expect(kills).toBe(4)
  expect(records).toBeGreaterThan(60)
})
