/** Twenty windows of 200,000 tokens: what turns wait for with summaries prepared in the background, and without. */
import { expect, it } from 'vitest'
import { driveThroughWindows } from './windows.ts'

/** 1,163 tokens and 8 seconds a call, 80 seconds a summary. */
const SIZE = { window: 200_000, summaryMs: 80_000, turns: 30, resultTokens: 2_520, textTokens: 200 }

it('twenty windows of 200,000 tokens', async () => {
  const prepared = await driveThroughWindows(20, SIZE)
  const foreground = await driveThroughWindows(20, { ...SIZE, background: false })
  for (const [name, figures] of Object.entries({ prepared, foreground })) {
    const { calls, compactions, blockedSeconds, blockedPer100Calls, growthPerCall, dollars } = figures
    console.info(
      `${name}: ${calls} calls, ${compactions} compactions, ${growthPerCall.toFixed(0)} tokens a call, ${blockedSeconds} s blocked, ${blockedPer100Calls.toFixed(1)} s per 100 calls, $${dollars.toFixed(2)}`,
    )
  }
  expect(prepared.blockedPer100Calls).toBeLessThanOrEqual(5)
  expect(foreground.blockedPer100Calls).toBeGreaterThan(40)
  for (const { typed, logged, missing } of [prepared, foreground]) {
    expect(logged).toEqual(typed)
    expect(missing).toEqual([])
  }
})
