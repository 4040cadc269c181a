/** The same as in the test, in many more orders. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compactionMeanwhile,
  crowds,
  type Happening,
  Met,
  preparedMeanwhile,
  startedStore,
  turnMeanwhile,
} from './meanwhile.ts'

describe('at any wait, in any order', () => {
  it.each<[string, (happening: Happening) => Promise<void>]>([
    ['a compaction', compactionMeanwhile],
    ['a turn that compacts on its way', turnMeanwhile],
    ['a summary prepared while a turn goes on', preparedMeanwhile],
  ])('%s, 1,500 times', async (_, play) => {
    const [started, met] = [await startedStore(), new Met()]
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), crowds, (scheduler, crowd) =>
        play({ started, scheduler, crowd, met }),
      ),
      { numRuns: 1_500 },
    )
    console.log(met.counts)
    expect(Object.keys(met.counts).length).toBeGreaterThan(2)
  })
})
