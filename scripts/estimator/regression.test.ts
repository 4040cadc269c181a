import { describe, expect, it } from 'vitest'
import { fitWeights, type Problem } from './regression.ts'

/** Rows whose targets are 2 · first + 50 · second − 30 · third. */
function problem(more: Partial<Problem> = {}): Problem {
  const rows = Array.from({ length: 300 }, (_, index) =>
    Float64Array.from([100 + ((index * 37) % 400), 1 + (index % 3), index % 2]),
  )
  const targets = rows.map(([first = 0, second = 0, third = 0]) => 2 * first + 50 * second - 30 * third)
  return { rows, targets, free: new Set([2]), given: new Map(), ...more }
}

const rounded = (weights: Float64Array): readonly number[] =>
  [...weights].map((weight) => Math.round(weight * 10) / 10)

describe('fitWeights', () => {
  it('finds the weights', () => {
    const [first = 0, second = 0, third = 0] = fitWeights(problem())
    expect(first).toBeCloseTo(2, 1)
    expect(Math.abs(second - 50)).toBeLessThan(2)
    expect(Math.abs(third + 30)).toBeLessThan(3)
  })

  it('is not thrown by rows that are far out', () => {
    const { targets } = problem()
    const wild = targets.map((target, index) => (index % 20 === 0 ? target + 50_000 : target))
    expect(Math.abs((fitWeights(problem({ targets: wild }))[0] ?? 0) - 2)).toBeLessThan(0.1)
  })

  it('lets no weight fall below 0 unless it may', () => {
    expect(fitWeights(problem({ free: new Set() }))[2]).toBe(0)
  })

  it('leaves a given weight alone', () => {
    expect(rounded(fitWeights(problem({ given: new Map([[1, 10]]) })))[1]).toBe(10)
  })
})
