/** Calling off, and words that come meanwhile, at every moment at which a session waits for something. */
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkCompaction,
  checkPreparedDraft,
  checkTurn,
  createStartedStore,
  interferences,
  OutcomeCounts,
} from './concurrent-acts.ts'

describe('at any wait, in any order', () => {
  it('a compaction that is called off leaves log and request as they were, and words stand behind the summary, in order and verbatim', async () => {
    const [started, met] = [await createStartedStore(), new OutcomeCounts()]
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), interferences, (scheduler, crowd) =>
        checkCompaction({ started, scheduler, crowd, met }),
      ),
      { numRuns: countPropertyRuns(60, 12) },
    )
    for (const what of ['committed behind words', 'aborted'])
      expect(met.counts[what], what).toBeGreaterThan(0)
  })

  it('a turn that compacts on its way loses no word, however it ends', async () => {
    const [started, met] = [await createStartedStore(), new OutcomeCounts()]
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), interferences, (scheduler, crowd) =>
        checkTurn({ started, scheduler, crowd, met }),
      ),
      { numRuns: countPropertyRuns(60, 12) },
    )
    for (const what of ['ok, compacted', 'aborted']) expect(met.counts[what], what).toBeGreaterThan(0)
  })
  it('a summary that is prepared while a turn goes on is committed with the turn behind it, or not at all', async () => {
    const [started, met] = [await createStartedStore(), new OutcomeCounts()]
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), interferences, (scheduler, crowd) =>
        checkPreparedDraft({ started, scheduler, crowd, met }),
      ),
      { numRuns: countPropertyRuns(40, 8) },
    )
    for (const what of ['committed behind a turn', 'aborted'])
      expect(Object.keys(met.counts).join(), what).toContain(what)
  })
})
