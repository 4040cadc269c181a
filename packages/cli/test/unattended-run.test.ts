/** Sixty-six turns alone, with one request in ten failing: what holds of them holds of a thousand (`unattended-run.soak.ts`). */
import { expect, it } from 'vitest'
import { expectGoodRun, runUnattended } from './unattended-run.ts'

it('an agent left alone finishes its task although the provider fails again and again', {
  timeout: 180_000,
}, async () => {
  const run = await runUnattended({
    turns: 66,
    window: 24_000,
    resultTokens: 800,
    seed: 'sixty',
    faultEvery: 10,
  })
  expectGoodRun(run)
  expect(run.events.compactions).toBeGreaterThanOrEqual(2)
  expect(run.faults).toMatchObject({ status: 3, cut: 2, 'error-event': 1, reset: 1 })
})
