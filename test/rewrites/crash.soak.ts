/** The same cuts as in the test, many more of them. */
import { describe, expect, it } from 'vitest'
import { cutEverywhere, keeping } from './crashing.ts'
import { CUT_ACTS } from './started-sessions.ts'

describe('cut short at every operation on the disk, with whatever of it was kept', () => {
  it.each(CUT_ACTS)('$name', async (one) => {
    const endings = [null, ...[0, 0.1, 0.5, 0.9, 1].map(keeping)]
    const counts = await cutEverywhere(one, { endings, mostBytes: 300, goesOnEvery: 1 })
    console.log(one.name, counts)
    expect(counts.damaged).toBeGreaterThan(0)
  })
})
