import { expect, it } from 'vitest'
import { hitRatesOf } from './hit-rates.ts'
import type { ReplayedCall } from './replay-trace.ts'

function call(sent: number, foreseen: number, logged: number): ReplayedCall {
  return { at: 0, sent, foreseen, logged, why: 'warm' }
}

it('are shares of all that was sent', () => {
  const { points, ...rates } = hitRatesOf([call(1_000, 0, 0), call(3_000, 3_000, 2_960)])
  expect(rates).toEqual({ foreseen: 0.75, logged: 0.74 })
  expect(points).toBeCloseTo(1, 9)
})

it('are not known where nothing was sent', () => {
  expect(hitRatesOf([])).toEqual({ foreseen: null, logged: null, points: null })
})
