/** The properties of the ladder, over every window, longest answer, and policy that passes its checks. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import type { LadderPolicy } from './groups/ladder-policy.ts'
import { type Lines, type LinesQuestion, placeLines, smallestWindow } from './lines.ts'

const maxOutput = fc.option(fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(2_000_000)), { nil: null })
const extra = fc.oneof(fc.nat(3_000), fc.nat(300_000), fc.nat(2 ** 40))
const percents = fc.option(fc.double({ min: 0.1, max: 100, noNaN: true }), { nil: null })

function ask(window: number, output: number | null, rest: Partial<LinesQuestion> = {}): LinesQuestion {
  return {
    window,
    maxOutput: output,
    autoCompactOn: true,
    percentOfEffective: null,
    targetPercent: 50,
    ...rest,
  }
}

const offset = (tokens: fc.Arbitrary<number>, most: number) =>
  fc.record({ tokens, maximumPercent: fc.double({ min: 0.1, max: most, noNaN: true }) })

/** Ladders that `createPolicy` takes. */
const ladders: fc.Arbitrary<LadderPolicy> = fc
  .record({
    reserve: fc
      .tuple(offset(fc.integer({ min: 1, max: 100_000 }), 40), fc.constantFrom('smaller', 'larger', 'none'))
      .map(([distance, rule]) => ({ ...distance, rule: rule as 'smaller' | 'larger' | 'none' })),
    autoCompact: offset(fc.integer({ min: 2, max: 50_000 }), 20),
    warning: offset(fc.nat(50_000), 25),
    error: offset(fc.nat(50_000), 25),
    blocking: offset(fc.integer({ min: 1, max: 20_000 }), 10),
    minimumUsableTokens: fc.integer({ min: 100, max: 10_000 }),
  })
  .filter((ladder) => accepted(ladder))
  .map((ladder) => createPolicy({ ladder }).ladder)

function accepted(ladder: object): boolean {
  try {
    createPolicy({ ladder })
    return true
  } catch {
    return false
  }
}

function expectOrder(lines: Lines, autoCompactOn: boolean): void {
  const { target, warning, error, autoCompact, limit, blocking, effective, window } = lines
  const below = autoCompactOn ? autoCompact : blocking
  expect([target <= warning, warning <= error, error <= below]).toEqual([true, true, true])
  expect([target < autoCompact, autoCompact < blocking, blocking < effective]).toEqual([true, true, true])
  expect([effective <= window, limit]).toEqual([true, autoCompactOn ? autoCompact : effective])
  expect(Object.values(lines).every((line) => Number.isSafeInteger(line) && line >= 0)).toBe(true)
}

describe('lines by default', () => {
  const { ladder } = DEFAULT_POLICY

  it('are in order and leave room to work, in every window that is large enough', () => {
    fc.assert(
      fc.property(
        maxOutput,
        extra,
        fc.boolean(),
        percents,
        (output, more, autoCompactOn, percentOfEffective) => {
          const window = smallestWindow(ladder, output) + more
          const lines = placeLines(ladder, ask(window, output, { autoCompactOn, percentOfEffective }))
          expectOrder(lines, autoCompactOn)
          expect(lines.effective).toBeGreaterThanOrEqual(ladder.minimumUsableTokens)
          expect(lines.effective).toBeLessThan(window)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('never move back as the window grows', () => {
    const growth = fc.oneof(fc.constant(1), fc.nat(1_000))
    fc.assert(
      fc.property(maxOutput, extra, growth, percents, (output, more, wider, percentOfEffective) => {
        const window = smallestWindow(ladder, output) + more
        const lines = placeLines(ladder, ask(window, output, { percentOfEffective }))
        const next = placeLines(ladder, ask(window + wider, output, { percentOfEffective }))
        expectNoLower(lines, next)
      }),
      { numRuns: 2_000 },
    )
  })

  it('never move back from one token to the next, up to 220,000', () => {
    let last = placeLines(ladder, ask(2_667, 64_000))
    for (let window = 2_668; window <= 220_000; window += 1) {
      const next = placeLines(ladder, ask(window, 64_000))
      if (!notLower(last, next)) expectNoLower(last, next)
      last = next
    }
    expect(last.autoCompact).toBe(187_000)
  })

  it('take no more than their share, but for the rounding of less than a token', () => {
    fc.assert(
      fc.property(maxOutput, extra, (output, more) => {
        const window = smallestWindow(ladder, output) + more
        const { effective, autoCompact, limit, warning, blocking } = placeLines(ladder, ask(window, output))
        expect(window - effective).toBeLessThan(window * 0.25 + 1)
        expect(effective - autoCompact).toBeLessThan(Math.min(13_000, window * 0.065) + 1)
        expect(limit - warning).toBeLessThan(Math.min(20_000, window * 0.1) + 1)
        expect(effective - blocking).toBeLessThan(Math.min(3_000, window * 0.015) + 1)
      }),
    )
  })
})

describe('lines of any policy', () => {
  it('are in order in every window that is large enough', () => {
    fc.assert(
      fc.property(ladders, maxOutput, extra, fc.boolean(), (ladder, output, more, autoCompactOn) => {
        const window = smallestWindow(ladder, output) + more
        const lines = placeLines(ladder, ask(window, output, { autoCompactOn }))
        expectOrder(lines, autoCompactOn)
        expect(lines.effective).toBeGreaterThanOrEqual(ladder.minimumUsableTokens)
        expectNoLower(lines, placeLines(ladder, ask(window + 1, output, { autoCompactOn })))
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('smallestWindow', () => {
  it.each([
    // What is left of 2,667 after a quarter of it is 2,000.25; of 2,666 it is 1,999.5.
    [64_000, 2_667],
    [null, 2_667],
    [0, 2_667],
    [667, 2_667],
    [666, 2_666],
    [100, 2_100],
    [1, 2_001],
  ])('with a longest answer of %d is %d', (output, smallest) => {
    expect(smallestWindow(DEFAULT_POLICY.ladder, output)).toBe(smallest)
  })

  it('ends even for a ladder that no check has seen', () => {
    const ladder = { ...DEFAULT_POLICY.ladder, blocking: { tokens: 0, maximumPercent: 0 } }
    expect(smallestWindow(ladder, null)).toBeGreaterThan(2 ** 40)
  })
})

function notLower(before: Lines, after: Lines): boolean {
  return (
    after.effective >= before.effective &&
    after.autoCompact >= before.autoCompact &&
    after.warning >= before.warning &&
    after.error >= before.error &&
    after.blocking >= before.blocking &&
    after.target >= before.target
  )
}

function expectNoLower(before: Lines, after: Lines): void {
  if (!notLower(before, after)) expect(after).toEqual(before)
  expect(notLower(before, after)).toBe(true)
}
