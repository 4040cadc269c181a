import { describe, expect, it } from 'vitest'
import { type CallRuns, callsToCome, NO_RUNS, tallyCall } from './call-runs.ts'

const TTL = 300_000

function after(gaps: readonly (number | null)[]): CallRuns {
  return gaps.reduce<CallRuns>((runs, gap) => tallyCall(runs, gap, TTL), NO_RUNS)
}

describe('calls before the cache goes cold', () => {
  it.each([
    ['nothing seen: the policy’s word', [], 27],
    ['three calls and no lapse', [null, 1_000, 299_999], 30],
    ['a lapse at the very end of its life', [null, 300_000], 14.5],
    ['a person who comes back once an hour', [null, 3_600_000, 3_600_000, 3_600_000], 7.75],
  ])('%s', (_, gaps, expected) => {
    expect(callsToCome(after(gaps), 27)).toBe(expected)
  })
})
