/** The worked figures are in scale.test.ts; here, what holds for every window and policy. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import type { Policy } from './policy.ts'
import { type KnownWindow, scalePolicy } from './scale.ts'

const windows = fc.oneof(
  fc.integer({ min: 2_667, max: 300_000 }),
  fc.integer({ min: 2_667, max: 10_000_000 }),
)
const maxOutput = fc.option(fc.nat(200_000), { nil: null })
const policies: fc.Arbitrary<Policy> = fc
  .record({
    percentOfEffective: fc.option(fc.integer({ min: 1, max: 100 }), { nil: null }),
    targetTokens: fc.nat(400_000),
    minimumFreedTokens: fc.integer({ min: 1, max: 400_000 }),
    maximumTokens: fc.integer({ min: 10_000, max: 400_000 }),
    totalTokens: fc.nat(400_000),
    clearableResults: fc.integer({ min: 1, max: 50 }),
    files: fc.integer({ min: 1, max: 100 }),
  })
  .map((given) =>
    createPolicy({
      ladder: { autoCompact: { percentOfEffective: given.percentOfEffective } },
      clear: { budget: { targetTokens: given.targetTokens, minimumFreedTokens: given.minimumFreedTokens } },
      notes: { kept: { maximumTokens: given.maximumTokens } },
      rehydrate: { files: { totalTokens: given.totalTokens } },
      shares: { clearableResults: given.clearableResults, files: given.files },
    }),
  )

function known(policy: Policy, window: number, output: number | null): KnownWindow {
  const scaled = scalePolicy(policy, { window, maxOutput: output })
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
      fc.property(windows, fc.nat(2_000), maxOutput, (window, wider, output) => {
        const before = numbersIn(known(DEFAULT_POLICY, window, output).budgets)
        const after = numbersIn(known(DEFAULT_POLICY, window + wider, output).budgets)
        expect(before.every((budget) => Number.isSafeInteger(budget) && budget > 0)).toBe(true)
        expect(after.map((budget, index) => budget >= (before[index] ?? 0))).toEqual(after.map(() => true))
      }),
    )
  })

  it('keep the low-water mark below the warning line and all content within the target', () => {
    fc.assert(
      fc.property(policies, windows, maxOutput, (policy, window, output) => {
        const { lines, budgets } = known(policy, window, output)
        expect(budgets.clear.target).toBeLessThanOrEqual(lines.warning / 2)
        expect(budgets.keptMessages.minimum).toBeLessThanOrEqual(budgets.keptMessages.maximum)
        for (const budget of [budgets.files, budgets.skills, budgets.userMessages]) {
          expect(budget.each).toBeLessThanOrEqual(budget.total)
          expect(budget.total).toBeLessThanOrEqual(lines.target)
        }
        expect(budgets.keptMessages.maximum).toBeLessThanOrEqual(lines.target)
      }),
    )
  })

  it('never exceed what the policy says', () => {
    const policy = createPolicy({ rehydrate: { files: { totalTokens: 3_000 } } })
    expect(known(policy, 1_000_000, 64_000).budgets.files).toEqual({ each: 3_000, total: 3_000 })
  })

  it('follow an auto-compact line that was drawn low', () => {
    const policy = createPolicy({ ladder: { autoCompact: { percentOfEffective: 10 } } })
    const { lines, budgets } = known(policy, 200_000, 64_000)
    expect([lines.autoCompact, lines.warning, lines.target]).toEqual([18_000, 9_000, 9_000])
    expect([budgets.clear.target, budgets.keptMessages.maximum, budgets.files.total]).toEqual([
      4_500, 9_000, 9_000,
    ])
  })
})
