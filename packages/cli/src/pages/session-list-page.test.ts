/** The table of many sessions on narrow screens: no line is too wide, and hidden columns are named. */
import { fileURLToPath } from 'node:url'
import { chooseSymbols, createTimeFormat, type Screen } from '@tidemark/terminal/render/screen'
import { measureTextWidth } from '@tidemark/terminal/render/text'
import picocolors from 'picocolors'
import { findNamedLogs } from 'tidemark/internal'
import { inspectFiles, type SessionReport } from 'tidemark/logs'
import { beforeAll, describe, expect, it } from 'vitest'
import { renderSessionsPage } from './session-list-page.ts'

const sample = fileURLToPath(new URL('../../sample/login-bug.jsonl', import.meta.url))

function screen(columns: number): Screen {
  const colors = picocolors.createColors(false)
  return { columns, colors, symbols: chooseSymbols({}), time: createTimeFormat('UTC') }
}

let sessions: readonly SessionReport[]
beforeAll(async () => {
  const { logs } = await findNamedLogs([sample])
  const { sessions: found } = await inspectFiles(logs, { timeZone: 'UTC' })
  const [first] = found
  if (first === undefined) throw new Error('the sample session could not be read')
  const spending = first.spending.map((row) => ({
    ...row,
    day: '2026-03-10',
    model: 'claude-opus-4-6',
    cacheBreaks: 2,
    lostToBreaks: 0.5,
    spentOnClearings: 1.89,
    pricedLostToBreaks: 0.5,
    pricedSpentOnClearings: 1.89,
  }))
  const lost: SessionReport['cacheBreaks'] = [
    { at: '', tokensRewritten: 9, costUsd: 0.5, cause: 'expired', evidence: '', line: 1, model: 'm' },
  ]
  sessions = [first, { ...first, sessionId: 'other', spending, cacheBreaks: lost }]
})

const UNKNOWN_COSTS = {
  costUsd: null,
  pricedUsd: 0,
  lostToBreaks: null,
  spentOnClearings: null,
  pricedLostToBreaks: 0,
  pricedSpentOnClearings: 0,
}

const VIEW: Parameters<typeof renderSessionsPage>[1] = {
  rows: 0,
  unread: 0,
  sinceDay: null,
  isTerminal: false,
}

describe('many sessions', () => {
  it.each([60, 72, 80, 100, 160])('fit into %d columns', (columns) => {
    const lines = renderSessionsPage(sessions, VIEW, screen(columns)).split('\n')
    expect(lines.filter((line) => measureTextWidth(line) > columns)).toEqual([])
  })

  it('say of a session whose calls are all in another one that it is a copy, in place of zeros', () => {
    const [first] = sessions
    if (first === undefined) throw new Error('no session')
    const copy = { ...first, apiCalls: 0, copiedCalls: 10, hitRate: null, costUsd: 0, spending: [] }
    const page = renderSessionsPage([first, copy], VIEW, screen(100))
    expect(page).toMatch(/^2 .* 4\.6k +copy$/m)
    expect(page).toContain('copy: all calls of the session are in another one that was read')
  })

  it('show the known part of what was lost and re-cached where a model has no price', () => {
    const unpriced = sessions.map((session) => ({
      ...session,
      spending: session.spending.flatMap((row) => [
        row,
        { ...row, model: 'llama-x', cacheBreaks: 1, ...UNKNOWN_COSTS },
      ]),
    }))
    const page = renderSessionsPage(unpriced, VIEW, screen(100))
    expect(page).toContain('>$0.50 lost; the page of each session shows the causes')
    expect(page).toContain('>$1.89 spent on re-caching after clearings')
    expect(page).toMatch(/^claude-opus-4-6 .*\$0\.50 +\$1\.89$/m)
    expect(page).toMatch(/^2026-03-10 .*>\$0\.50 +>\$1\.89$/m)
  })

  it('name the columns that are hidden, and show the cost of clearings', () => {
    const page = renderSessionsPage(sessions, VIEW, screen(60))
    expect(page).toContain('no room for peak, hits, lost: use at least 80 columns')
    expect(page).toContain('$1.89 spent on re-caching after clearings')
    expect(renderSessionsPage(sessions, VIEW, screen(80))).not.toContain('no room')
  })
})
