/** The cost of sessions by day, month, project, model and program. */
import { describe, expect, it } from 'vitest'
import { type GroupNamers, groupSpending } from './spending-groups.ts'

type Session = Parameters<typeof groupSpending>[0][number]

const NAMES: GroupNamers = {
  nameProgram: ({ format }) => format,
  nameProject: ({ project }) => project ?? '',
}

function session(
  project: string | null,
  spent: readonly (readonly [string, string, number | null])[],
): Session {
  const nothing = { cacheBreaks: 0, lostToBreaks: 0, spentOnClearings: 0, pricedSpentOnClearings: 0 }
  return {
    format: project === null ? 'codex' : 'claude-code',
    project,
    spending: spent.map(([day, model, usd]) => ({
      ...nothing,
      day,
      model,
      costUsd: usd,
      pricedUsd: usd ?? 0,
      pricedLostToBreaks: 0.5,
      apiCalls: 10,
      usage: { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 },
    })),
  }
}

const sessions = [
  session('shop', [
    ['2026-03-01', 'opus', 4],
    ['2026-03-02', 'opus', 1],
  ]),
  session(null, [['2026-03-01', 'spark', null]]),
]

describe('the cost by group', () => {
  it('has the days of a session apart, the newest first, and what has no price marked as a part', () => {
    expect(groupSpending(sessions, 'day', NAMES)).toEqual([
      { name: '2026-03-02', usd: 1, lostUsd: 0.5, calls: 10, isPart: false },
      { name: '2026-03-01', usd: 4, lostUsd: 1, calls: 20, isPart: true },
    ])
  })

  it('has the calls of all days of a month together', () => {
    const groups = groupSpending(sessions, 'month', NAMES)
    expect(groups).toEqual([{ name: '2026-03', usd: 5, lostUsd: 1.5, calls: 30, isPart: true }])
  })

  it.each([
    ['project', ['shop', 'not known']],
    ['model', ['opus', 'spark']],
    ['program', ['claude-code', 'codex']],
  ] as const)('by %s has the dearest first, and the same sum', (grouping, names) => {
    const groups = groupSpending(sessions, grouping, NAMES)
    expect(groups.map(({ name }) => name)).toEqual(names)
    expect(groups.map(({ usd }) => usd)).toEqual([5, 0])
    expect(groups[1]?.isPart).toBe(true)
  })
})
