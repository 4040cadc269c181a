/** The same cuts as in the test, many more of them. */
import { describe, expect, it } from 'vitest'
import { interruptEverywhere, keepShare } from './interrupted-acts.ts'
import { INTERRUPTIBLE_ACTS } from './interruptible-acts.ts'

describe('cut short at every operation on the disk, with whatever of it was kept', () => {
  it.each(INTERRUPTIBLE_ACTS)('$name', async (one) => {
    const endings = [null, ...[0, 0.1, 0.5, 0.9, 1].map(keepShare)]
    const counts = await interruptEverywhere(one, { endings, mostBytes: 300, goesOnEvery: 1 })
    console.log(one.name, counts)
    expect(counts.damaged).toBeGreaterThan(0)
  })
})
