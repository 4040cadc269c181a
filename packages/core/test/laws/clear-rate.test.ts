import { countPropertyRuns } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClearProposal } from '../../src/clearing/clear-candidates.ts'
import { decideClearing } from '../../src/clearing/propose-clearing.ts'
import { makeContextPlan } from '../../src/planner/context-plan.ts'
import { Situation, warm } from '../clear/situation.ts'

const MINIMUM = 20_000
const sizes = fc.array(fc.integer({ min: 20, max: 9_000 }), { minLength: 20, maxLength: 120, size: 'max' })

/** One turn a size: a call, its result, and what tier 1 proposes before the next. */
function play(
  given: readonly number[],
  propose: (situation: Situation) => ClearProposal | null,
  visit: (proposal: ClearProposal, since: number) => void,
): number {
  const situation = new Situation()
  let [since, clearings] = [0, 0]
  for (const tokens of given) {
    situation.reads(1, tokens)
    since += tokens
    const proposal = propose(situation)
    if (proposal === null) continue
    visit(proposal, since)
    situation.clear(proposal.metadata)
    since = 0
    clearings += 1
  }
  return clearings
}

describe('how often the prefix is rewritten', () => {
  it('law 5: between the lines, never before as much has come as a clearing must free', () => {
    fc.assert(
      fc.property(sizes, (given) => {
        const clearings = play(
          given,
          (situation) => decideClearing(situation.question()).proposal,
          ({ freedTokens }, since) => {
            expect(freedTokens).toBeGreaterThanOrEqual(MINIMUM)
            expect(since).toBeGreaterThanOrEqual(MINIMUM)
          },
        )
        const total = given.reduce((sum, tokens) => sum + tokens, 0)
        expect(clearings).toBeLessThanOrEqual(total / MINIMUM)
      }),
      { numRuns: countPropertyRuns(30, 8) },
    )
  })

  it('with a plan that watches its own meter: two clearings are at least three turns apart', () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 90_000, max: 120_000 }), (given, prefixTokens) => {
        let turn = 0
        let last = Number.NEGATIVE_INFINITY
        play(
          given,
          (situation) => {
            turn += 1
            const context = situation.planContext({ prefixTokens, cache: warm({ expectedCalls: 1_000 }) })
            return makeContextPlan(context).clear ?? null
          },
          () => {
            expect(turn - last).toBeGreaterThanOrEqual(3)
            last = turn
          },
        )
      }),
      { numRuns: countPropertyRuns(20, 10) },
    )
  })

  it('cached: deletions only ever come to those that stand, and never go below what is kept', () => {
    const profile = defineMessagesProfile({
      capabilities: { cacheEdits: true },
      thinking: { binding: 'none' },
    })
    fc.assert(
      fc.property(sizes, (given) => {
        const deleted = new Set<string>()
        let [turn, last] = [0, 0]
        play(
          given,
          (situation) => {
            turn += 1
            return decideClearing(situation.question({ profile, cache: warm() })).proposal
          },
          ({ metadata: { compactedToolIds: ids } }) => {
            expect(ids.filter((id) => deleted.has(id))).toEqual([])
            for (const id of ids) deleted.add(id)
            expect(turn - deleted.size).toBeGreaterThanOrEqual(5)
            expect(turn - last).toBeGreaterThanOrEqual(7)
            last = turn
          },
        )
      }),
      { numRuns: countPropertyRuns(20, 10) },
    )
  })
})
