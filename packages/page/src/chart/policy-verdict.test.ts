/** What the page says about other policies, from costs of replays. */
import { describe, expect, it } from 'vitest'
import { findCheaperPolicy, formatPolicyVerdict, type NamedPolicyResult } from './policy-verdict.ts'

function replay(title: string, usd: number, more: Partial<NamedPolicyResult> = {}): NamedPolicyResult {
  return {
    name: title.toLowerCase(),
    title,
    usd,
    anchors: { used: 10, seen: 9 },
    compactions: 1,
    clearings: 0,
    refused: 0,
    points: [],
    breaksUsd: 0,
    ...more,
  }
}

describe('the verdict about other policies', () => {
  it('names the cheapest policy that could have made every call, and what its edits saw', () => {
    const results = [
      replay('Dear', 9),
      replay('Cheap', 6),
      replay('Short', 1, { refused: 3 }),
      replay('Nothing', 2, { name: 'nothing' }),
    ]
    expect(formatPolicyVerdict({ costUsd: 10 }, results)).toBe(
      'Cheap would have cost 40% less: $6.00 instead of $10.00. 90% of edits would still have seen the lines they change.',
    )
    expect(formatPolicyVerdict({ costUsd: 10 }, results.slice(2))).toBe(
      'None of these policies could have made every call.',
    )
  })

  it('does not count cache breaks that a replay leaves out as saved by a policy', () => {
    const results = [replay('Cheap', 6, { breaksUsd: 4.5 })]
    expect(formatPolicyVerdict({ costUsd: 10 }, results)).toBe(
      'No reason to change: the cheapest of these, Cheap, would have cost $6.00 instead of $5.50 (recorded, without $4.50 of cache breaks that are not replayed).',
    )
  })

  it('gives no advice about a difference that is smaller than the error of a replay', () => {
    expect(formatPolicyVerdict({ costUsd: 10 }, [replay('Cheap', 9.6)])).toContain(
      'No clear reason to change',
    )
    expect(formatPolicyVerdict({ costUsd: 10 }, [replay('Cheap', 9.4)])).toContain(
      'Cheap would have cost 6% less: ',
    )
    expect(
      [9.6, 9.4].map((usd) => findCheaperPolicy({ costUsd: 10 }, [replay('Cheap', usd)])?.title),
    ).toEqual([undefined, 'Cheap'])
  })
})
