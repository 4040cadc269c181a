/** Properties of the thresholds and budgets over every window, maximum output and valid policy. */
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import type { Policy } from './policy.ts'
import {
  computeScaledLimits,
  computeSmallestWindow,
  computeThresholds,
  type KnownWindowLimits,
  limitBudgetsToRoom,
  type ThresholdInput,
  type Thresholds,
} from './scale-policy.ts'
import type { ThresholdPolicy } from './window-policy.ts'

const maxOutput = fc.option(fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(2_000_000)), { nil: null })
const extra = fc.oneof(fc.nat(3_000), fc.nat(300_000), fc.nat(2 ** 40))
const percents = fc.option(fc.double({ min: 0.1, max: 100, noNaN: true }), { nil: null })

function ask(window: number, output: number | null, rest: Partial<ThresholdInput> = {}): ThresholdInput {
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

/** Ladders that `createPolicy` accepts. */
const ladders: fc.Arbitrary<ThresholdPolicy> = fc
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

function expectOrder(lines: Thresholds, autoCompactOn: boolean): void {
  const { target, warning, error, autoCompact, limit, blocking, effective, window } = lines
  const below = autoCompactOn ? autoCompact : blocking
  expect([target <= warning, warning <= error, error <= below]).toEqual([true, true, true])
  expect([target < autoCompact, autoCompact < blocking, blocking < effective]).toEqual([true, true, true])
  expect([effective <= window, limit]).toEqual([true, autoCompactOn ? autoCompact : effective])
  expect(Object.values(lines).every((line) => Number.isSafeInteger(line) && line >= 0)).toBe(true)
}

describe('default thresholds', () => {
  const { ladder } = DEFAULT_POLICY

  it('are in order and leave enough usable tokens in every window that is large enough', () => {
    fc.assert(
      fc.property(
        maxOutput,
        extra,
        fc.boolean(),
        percents,
        (output, more, autoCompactOn, percentOfEffective) => {
          const window = computeSmallestWindow(ladder, output) + more
          const lines = computeThresholds(ladder, ask(window, output, { autoCompactOn, percentOfEffective }))
          expectOrder(lines, autoCompactOn)
          expect(lines.effective).toBeGreaterThanOrEqual(ladder.minimumUsableTokens)
          expect(lines.effective).toBeLessThan(window)
        },
      ),
      { numRuns: countPropertyRuns(2_000, 150) },
    )
  })

  it('never fall as the window grows', () => {
    const growth = fc.oneof(fc.constant(1), fc.nat(1_000))
    fc.assert(
      fc.property(maxOutput, extra, growth, percents, (output, more, wider, percentOfEffective) => {
        const window = computeSmallestWindow(ladder, output) + more
        const lines = computeThresholds(ladder, ask(window, output, { percentOfEffective }))
        const next = computeThresholds(ladder, ask(window + wider, output, { percentOfEffective }))
        expectNoLower(lines, next)
      }),
      { numRuns: countPropertyRuns(2_000, 150) },
    )
  })

  it('never fall from one window size to the next, up to 220,000', () => {
    let last = computeThresholds(ladder, ask(2_667, 64_000))
    for (let window = 2_668; window <= 220_000; window += 1) {
      const next = computeThresholds(ladder, ask(window, 64_000))
      if (!notLower(last, next)) expectNoLower(last, next)
      last = next
    }
    expect(last.autoCompact).toBe(187_000)
  })

  it('take no more than their share, apart from rounding by less than a token', () => {
    fc.assert(
      fc.property(maxOutput, extra, (output, more) => {
        const window = computeSmallestWindow(ladder, output) + more
        const { effective, autoCompact, limit, warning, blocking } = computeThresholds(
          ladder,
          ask(window, output),
        )
        expect(window - effective).toBeLessThan(window * 0.25 + 1)
        expect(effective - autoCompact).toBeLessThan(Math.min(13_000, window * 0.065) + 1)
        expect(limit - warning).toBeLessThan(Math.min(20_000, window * 0.1) + 1)
        expect(effective - blocking).toBeLessThan(Math.min(3_000, window * 0.015) + 1)
      }),
    )
  })
})

describe('thresholds of any policy', () => {
  it('are in order in every window that is large enough', () => {
    fc.assert(
      fc.property(ladders, maxOutput, extra, fc.boolean(), (ladder, output, more, autoCompactOn) => {
        const window = computeSmallestWindow(ladder, output) + more
        const lines = computeThresholds(ladder, ask(window, output, { autoCompactOn }))
        expectOrder(lines, autoCompactOn)
        expect(lines.effective).toBeGreaterThanOrEqual(ladder.minimumUsableTokens)
        expectNoLower(lines, computeThresholds(ladder, ask(window + 1, output, { autoCompactOn })))
      }),
      { numRuns: countPropertyRuns(1_000, 150) },
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
    expect(computeSmallestWindow(DEFAULT_POLICY.ladder, output)).toBe(smallest)
  })

  it('terminates even for an unchecked policy', () => {
    const ladder = { ...DEFAULT_POLICY.ladder, blocking: { tokens: 0, maximumPercent: 0 } }
    expect(computeSmallestWindow(ladder, null)).toBeGreaterThan(2 ** 40)
  })
})

function notLower(before: Thresholds, after: Thresholds): boolean {
  return (
    after.effective >= before.effective &&
    after.autoCompact >= before.autoCompact &&
    after.warning >= before.warning &&
    after.error >= before.error &&
    after.blocking >= before.blocking &&
    after.target >= before.target
  )
}

function expectNoLower(before: Thresholds, after: Thresholds): void {
  if (!notLower(before, after)) expect(after).toEqual(before)
  expect(notLower(before, after)).toBe(true)
}

// The worked figures are in limits-scale.test.ts.

const windows = fc.oneof(
  fc.integer({ min: 2_667, max: 300_000 }),
  fc.integer({ min: 2_667, max: 10_000_000 }),
)
const maxOutputBudgets = fc.option(fc.nat(200_000), { nil: null })
const policies: fc.Arbitrary<Policy> = fc
  .record({
    percentOfEffective: fc.option(fc.integer({ min: 1, max: 100 }), { nil: null }),
    targetTokens: fc.nat(400_000),
    minimumFreedTokens: fc.integer({ min: 1, max: 400_000 }),
    totalTokens: fc.nat(400_000),
    clearableResults: fc.integer({ min: 1, max: 50 }),
    files: fc.integer({ min: 1, max: 100 }),
  })
  .map((given) =>
    createPolicy({
      ladder: { autoCompact: { percentOfEffective: given.percentOfEffective } },
      clear: { budget: { targetTokens: given.targetTokens, minimumFreedTokens: given.minimumFreedTokens } },
      rehydrate: { files: { totalTokens: given.totalTokens } },
      shares: { clearableResults: given.clearableResults, files: given.files },
    }),
  )

function known(policy: Policy, window: number, output: number | null): KnownWindowLimits {
  const scaled = computeScaledLimits(policy, { window, maxOutput: output })
  if (!scaled.known) throw new Error(scaled.why)
  return scaled
}

function numbersIn(value: unknown): readonly number[] {
  if (typeof value === 'number') return [value]
  return Object.values(value as object).flatMap(numbersIn)
}

describe('budgets', () => {
  it('are whole numbers that only grow with the window', () => {
    fc.assert(
      fc.property(windows, fc.nat(2_000), maxOutputBudgets, (window, wider, output) => {
        const before = numbersIn(known(DEFAULT_POLICY, window, output).budgets)
        const after = numbersIn(known(DEFAULT_POLICY, window + wider, output).budgets)
        expect(before.every((budget) => Number.isSafeInteger(budget) && budget > 0)).toBe(true)
        expect(after.map((budget, index) => budget >= (before[index] ?? 0))).toEqual(after.map(() => true))
      }),
    )
  })

  it('keep the clearing target below the warning threshold and all content within the compaction target', () => {
    fc.assert(
      fc.property(policies, windows, maxOutputBudgets, (policy, window, output) => {
        const { lines, budgets } = known(policy, window, output)
        expect(budgets.clear.target).toBeLessThanOrEqual(lines.warning / 2)
        expect(budgets.keptMessages.minimum).toBeLessThanOrEqual(budgets.keptMessages.maximum)
        for (const budget of [budgets.files, budgets.skills]) {
          expect(budget.each).toBeLessThanOrEqual(budget.total)
          expect(budget.total).toBeLessThanOrEqual(lines.target)
        }
        expect(budgets.keptMessages.maximum).toBeLessThanOrEqual(lines.target)
      }),
    )
  })

  it('never exceed the policy', () => {
    const policy = createPolicy({ rehydrate: { files: { totalTokens: 3_000 } } })
    expect(known(policy, 1_000_000, 64_000).budgets.files).toMatchObject({ each: 3_000, total: 3_000 })
  })

  it('of one file never grow with its rank, whatever the policy gives each rank, and allow any number of files', () => {
    const count = Number.MAX_SAFE_INTEGER
    const policy = createPolicy({ rehydrate: { files: { count, eachTokens: 1_000, lastTokens: 5_000 } } })
    const { each, middle, last } = known(policy, 1_000_000, 64_000).budgets.files
    expect([each, middle, last]).toEqual([1_000, 1_000, 1_000])
  })

  it('leave half of the room beside a long system prompt to the work that follows a compaction', () => {
    fc.assert(
      fc.property(windows, fc.double({ min: 0, max: 1.2, noNaN: true }), (window, share) => {
        const { lines, budgets } = known(DEFAULT_POLICY, window, 64_000)
        const prefix = Math.round(lines.autoCompact * share)
        const { notes, ledger, keptMessages, files, skills, host } = limitBudgetsToRoom(
          budgets,
          lines,
          prefix,
        )
        const room = Math.max(0, lines.autoCompact - prefix)
        const text = notes.total + ledger.files + ledger.names
        expect(text + keptMessages.maximum + files.total).toBeLessThanOrEqual(room / 2)
        expect(text).toBeLessThanOrEqual(room / 6)
        expect(files.each).toBeLessThanOrEqual(files.total)
        for (const budget of numbersIn([notes, keptMessages, files])) expect(budget).toBeGreaterThanOrEqual(0)
        // What is added to notes shrinks with them, and skills and what a host attaches with files.
        const isAtMost = (part: number, of: number, share: number): boolean => part <= of * share + 1
        const [ofNotes, ofFiles] = [notes.total / budgets.notes.total, files.total / budgets.files.total]
        expect(isAtMost(ledger.names, budgets.ledger.names, ofNotes)).toBe(true)
        expect(isAtMost(skills.total, budgets.skills.total, ofFiles)).toBe(true)
        expect(isAtMost(host.total, budgets.host.total, ofFiles)).toBe(true)
      }),
    )
    const { lines, budgets } = known(DEFAULT_POLICY, 200_000, 64_000)
    expect(limitBudgetsToRoom(budgets, lines, 50_000)).toEqual({ ...budgets, broughtBack: 58_500 })
  })

  it('follow a low auto-compact threshold', () => {
    const policy = createPolicy({
      ladder: { autoCompact: { percentOfEffective: 10 } },
      notes: { kept: { maximumTokens: 40_000 } },
    })
    const { lines, budgets } = known(policy, 200_000, 64_000)
    expect([lines.autoCompact, lines.warning, lines.target]).toEqual([18_000, 9_000, 9_000])
    expect([budgets.clear.target, budgets.keptMessages.maximum, budgets.files.total]).toEqual([
      4_500, 9_000, 9_000,
    ])
  })
})
