import { countPropertyRuns } from '@tidemark/core/testing'
import { expect, it } from 'vitest'
import { type FuzzBill, runFuzzSession } from './fuzz-session.ts'

it('random conversations stay alive, whatever happens in them, and count what the provider bills', async () => {
  for (let seed = 0; seed < countPropertyRuns(60, 10); seed += 1) {
    const { death, steps, bill } = await runFuzzSession(seed)
    const story = `seed ${seed}:\n${steps.join('\n')}`
    expect(death, story).toBeNull()
    expect(bill === null ? null : findBillErrors(bill), story).toEqual([])
  }
}, 300_000)

/**
 * Every call is counted with its whole prompt, and its output unless the response broke off: the provider then reports
 * no output, so that it is estimated from what arrived, and the totals say so.
 */
function findBillErrors({ counted, billed, isEstimated }: FuzzBill): readonly string[] {
  const errors: string[] = []
  if (counted.calls !== billed.calls) errors.push(`${counted.calls} calls instead of ${billed.calls}`)
  if (counted.promptTokens !== billed.promptTokens)
    errors.push(`${counted.promptTokens} prompt tokens instead of ${billed.promptTokens}`)
  const isSame = Math.abs((counted.dollars ?? Number.NaN) - (billed.dollars ?? 0)) < 1e-9
  if (!isSame && !isEstimated) errors.push(`$${counted.dollars} instead of $${billed.dollars}`)
  return errors
}
