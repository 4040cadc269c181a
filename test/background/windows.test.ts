/** A long session with a slow summarizer: what its turns wait for, and what becomes of messages typed meanwhile. */
import { expect, it } from 'vitest'
import { driveThroughWindows } from './windows.ts'

it('through three windows no turn waits for a summary that is prepared in the background', async () => {
  const prepared = await driveThroughWindows(3, { summaryMs: 30_000, turns: 12 })
  expect(prepared.blockedPer100Calls).toBeLessThanOrEqual(5)
  expect(prepared.long.list('summary-dropped')).toEqual([])
  expect(prepared.long.list('compact').map(({ compaction }) => compaction.summarizer)).toEqual(
    prepared.long.list('compact').map(() => 'model'),
  )
  const foreground = await driveThroughWindows(3, { summaryMs: 30_000, turns: 12, background: false })
  expect(foreground.blockedSeconds).toBe(90)
  // Preparing changes when a summary is written, not how many are.
  expect(prepared.long.list('summary-prepared')).toHaveLength(prepared.compactions)
  for (const { typed, logged, missing } of [prepared, foreground]) {
    expect(typed.length).toBeGreaterThanOrEqual(18)
    expect(logged).toEqual(typed)
    expect(missing).toEqual([])
  }
})
