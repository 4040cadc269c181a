/** Every summariser that answers wrong, every way a compaction comes about, every window. */
import { expect, it } from 'vitest'
import { runTrial, trials, WINDOWS } from './adversarial-trials.ts'

it.each(['last', 'never'] as const)(
  'the whole product, with the summary that needs no model %s',
  async (local) => {
    const counts: Record<string, number> = {}
    const most = { calls: 0, filled: 0 }
    for (const trial of trials(() => WINDOWS, local)) {
      const { summarizer, calls, filled } = await runTrial(trial).catch((error: unknown) => {
        throw new Error(`${trial.adversary}, ${trial.trigger}, ${trial.window}`, { cause: error })
      })
      counts[summarizer] = (counts[summarizer] ?? 0) + 1
      most.calls = Math.max(most.calls, calls)
      most.filled = Math.max(most.filled, filled)
    }
    console.log(local, counts, most)
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(240)
  },
)
