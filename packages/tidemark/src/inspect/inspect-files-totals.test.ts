import { expect, it } from 'vitest'
import { sumSessions } from './inspect-files.ts'
import type { DailySpending, SessionReport } from './report.ts'

function spendingRow(
  day: string | null,
  model: string,
  costUsd: number | null,
  pricedUsd: number = costUsd ?? 0,
): DailySpending {
  const usage = { input: 1, cacheRead: 3, cacheCreation: 0, output: 5 }
  const clearings = { spentOnClearings: 0.25, pricedSpentOnClearings: 0.25 }
  return { day, model, apiCalls: 2, usage, cacheBreaks: 3, ...costs(costUsd, pricedUsd), ...clearings }
}

/** Costs of which a tenth was lost to cache breaks. */
const costs = (costUsd: number | null, pricedUsd: number = costUsd ?? 0) => ({
  costUsd,
  pricedUsd,
  lostToBreaks: costUsd === null ? null : costUsd / 10,
  pricedLostToBreaks: pricedUsd / 10,
})

function report(project: string | null, spending: readonly DailySpending[]): SessionReport {
  return { project, spending } as SessionReport
}

const reports = [
  report('/shop', [spendingRow('2026-03-09', 'opus', 2), spendingRow('2026-03-10', 'opus', 1)]),
  report('/shop', [spendingRow('2026-03-10', 'sonnet', 0.5)]),
  report(null, [spendingRow(null, 'llama', null)]),
]

const figures = (sessions: number, calls: number) => ({
  sessions,
  apiCalls: calls * 2,
  usage: { input: calls, cacheRead: calls * 3, cacheCreation: 0, output: calls * 5 },
  hitRate: 0.75,
  cacheBreaks: calls * 3,
  spentOnClearings: calls * 0.25,
  pricedSpentOnClearings: calls * 0.25,
})

it('totals cover all sessions: days newest first, models and projects most expensive first', () => {
  expect(sumSessions(reports)).toEqual({
    since: null,
    ...figures(3, 4),
    ...costs(null, 3.5),
    byDay: [
      { name: 'unknown', ...figures(1, 1), ...costs(null) },
      { name: '2026-03-10', ...figures(2, 2), ...costs(1.5) },
      { name: '2026-03-09', ...figures(1, 1), ...costs(2) },
    ],
    byModel: [
      { name: 'opus', ...figures(1, 2), ...costs(3) },
      { name: 'sonnet', ...figures(1, 1), ...costs(0.5) },
      { name: 'llama', ...figures(1, 1), ...costs(null) },
    ],
    byProject: [
      { name: '/shop', ...figures(2, 3), ...costs(3.5) },
      { name: 'unknown', ...figures(1, 1), ...costs(null) },
    ],
  })
})

it('what cache breaks cost is summed as far as it is known, though one model has no price', () => {
  const { lostToBreaks, pricedLostToBreaks, byDay } = sumSessions([
    report('/shop', [spendingRow('2026-03-09', 'opus', 2), spendingRow('2026-03-09', 'llama', null)]),
  ])
  expect([lostToBreaks, pricedLostToBreaks]).toEqual([null, 0.2])
  expect(byDay.map((day) => [day.lostToBreaks, day.pricedLostToBreaks])).toEqual([[null, 0.2]])
})

it('what is known of a day counts, though the cost of one of its calls is not known', () => {
  const day = [spendingRow('2026-03-09', 'opus', null, 6.69), spendingRow('2026-03-10', 'opus', 1)]
  const { costUsd, pricedUsd, byDay, byModel } = sumSessions([report('/shop', day)])
  expect([costUsd, pricedUsd]).toEqual([null, 7.69])
  expect([...byDay, ...byModel].map((total) => total.pricedUsd)).toEqual([1, 6.69, 7.69])
})

it('totals since a day count only what was spent from that day on', () => {
  const totals = sumSessions(reports, '2026-03-10')
  expect(totals).toMatchObject({
    since: '2026-03-10',
    ...figures(2, 2),
    ...costs(1.5),
  })
  expect(totals.byDay.map(({ name }) => name)).toEqual(['2026-03-10'])
  expect(totals.byModel.map(({ name, costUsd }) => [name, costUsd])).toEqual([
    ['opus', 1],
    ['sonnet', 0.5],
  ])
  expect(totals.byProject.map(({ name, costUsd }) => [name, costUsd])).toEqual([['/shop', 1.5]])
})

it.each([
  ['/home/user/shop/.worktrees/12', '/home/user/shop'],
  ['/home/user/shop/.worktrees/fix-login/packages/web', '/home/user/shop'],
  ['/home/user/shop/.claude/worktrees/brave-fox', '/home/user/shop'],
  ['/home/user/.worktrees', '/home/user/.worktrees'],
  ['/home/user/worktrees/shop', '/home/user/worktrees/shop'],
])('a session in %s belongs to the project %s', (folder, expected) => {
  const { byProject } = sumSessions([report(folder, [spendingRow('2026-03-09', 'opus', 1)])])
  expect(byProject.map(({ name }) => name)).toEqual([expected])
})

it('totals of no sessions are zero', () => {
  expect(sumSessions([])).toEqual({
    since: null,
    sessions: 0,
    apiCalls: 0,
    usage: { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 },
    hitRate: null,
    ...costs(0),
    cacheBreaks: 0,
    spentOnClearings: 0,
    pricedSpentOnClearings: 0,
    byDay: [],
    byModel: [],
    byProject: [],
  })
})
