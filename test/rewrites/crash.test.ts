/** A process or a machine goes down in the middle of a rewrite: the session is as before it, or as after it. */
import { describe, expect, it } from 'vitest'
import { cutEverywhere, keeping } from './crashing.ts'
import { CUT_ACTS } from './started-sessions.ts'

describe('cut short at every operation on the disk, before or after and never between', () => {
  it.each(CUT_ACTS)('$name', async (one) => {
    const endings = [null, keeping(0.5)]
    const counts = await cutEverywhere(one, { endings, mostBytes: 2_000, goesOnEvery: 25 })
    expect(counts.before).toBeGreaterThan(10)
    expect(counts.after).toBeGreaterThan(0)
  })
})
