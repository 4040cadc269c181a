/** A process or a machine goes down in the middle of a rewrite: the session is as before it, or as after it. */
import { describe, expect, it } from 'vitest'
import { interruptEverywhere, keepShare } from './interrupted-acts.ts'
import { INTERRUPTIBLE_ACTS } from './interruptible-acts.ts'

describe('cut short at every operation on the disk, before or after and never between', () => {
  it.each(INTERRUPTIBLE_ACTS)('$name', async (one) => {
    const endings = [null, keepShare(0.5)]
    const counts = await interruptEverywhere(one, { endings, mostBytes: 2_000, goesOnEvery: 25 })
    expect(counts.before).toBeGreaterThan(10)
    expect(counts.after).toBeGreaterThan(0)
  })
})
