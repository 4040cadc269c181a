/** Twenty compactions in a chain (fewer in `npm test`): nothing that must last fades, nothing is made up, and it stays small. */
import { isFullRun, sampleCases } from '@tidemark/core/testing'
import { createSummarizer } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { compactRepeatedly, expectBounded, expectLasting, ROUNDS } from './repeated-compactions.ts'

const window = 32_000

describe('many compactions in a chain', () => {
  it('without a model', async () => {
    const end = await compactRepeatedly({ rounds: ROUNDS, window, compact: { summarizer: 'local' } })
    expect(new Set(end.summarizers)).toEqual(new Set(['local']))
    expectLasting(end)
  })

  it('by a model that sums up well', async () => {
    const end = await compactRepeatedly({ rounds: ROUNDS, window, compact: {} })
    expect(new Set(end.summarizers)).toEqual(new Set(['model']))
    expectLasting(end)
  })

  it.runIf(isFullRun())(
    'by a model that forgets what the person said, the files and the errors',
    async () => {
      const summary = createSummarizer({ forget: ['cents', 'tide-gate', 'E4711', /mend module/] })
      expectLasting(await compactRepeatedly({ rounds: ROUNDS, window, compact: {}, summary }))
    },
  )

  it.each(
    sampleCases(
      [
        [16_000, 'local'],
        [8_000, 'model'],
      ] as const,
      1,
    ),
  )(
    'with more words of the person’s than %d tokens have room for, by %s: bounded, and what went is named',
    (small, summarizer) => expectBounded({ window: small, compact: { summarizer } }),
  )
})
