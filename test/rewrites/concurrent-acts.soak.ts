/** The same as in the test, in many more orders. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ConcurrencyCase,
  checkCompaction,
  checkPreparedDraft,
  checkTurn,
  createStartedStore,
  interferences,
  OutcomeCounts,
} from './concurrent-acts.ts'

describe('at any wait, in any order', () => {
  it.each<[string, (happening: ConcurrencyCase) => Promise<void>]>([
    ['a compaction', checkCompaction],
    ['a turn that compacts on its way', checkTurn],
    ['a summary prepared while a turn goes on', checkPreparedDraft],
  ])('%s, 1,500 times', async (_, play) => {
    const [started, met] = [await createStartedStore(), new OutcomeCounts()]
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), interferences, (scheduler, crowd) =>
        play({ started, scheduler, crowd, met }),
      ),
      { numRuns: 1_500 },
    )
    console.log(met.counts)
    expect(Object.keys(met.counts).length).toBeGreaterThan(2)
  })
})
