/** The table of many sessions on narrow screens: no line is too wide, and hidden columns are named. */
import { fileURLToPath } from 'node:url'
import picocolors from 'picocolors'
import { findNamedLogs, inspectFiles, type SessionReport } from 'tidemark'
import { beforeAll, describe, expect, it } from 'vitest'
import { momentsIn, type Screen, symbolsFor } from '../render/screen.ts'
import { widthOf } from '../render/text.ts'
import { sessionsPage } from './sessions-page.ts'

const sample = fileURLToPath(new URL('../../sample/login-bug.jsonl', import.meta.url))

function screen(columns: number): Screen {
  const colors = picocolors.createColors(false)
  return { columns, colors, symbols: symbolsFor({}), moments: momentsIn('UTC') }
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
  }))
  const lost: SessionReport['cacheBreaks'] = [
    { at: '', tokensRewritten: 9, costUsd: 0.5, cause: 'expired', evidence: '', line: 1, model: 'm' },
  ]
  sessions = [first, { ...first, sessionId: 'other', spending, cacheBreaks: lost }]
})

const VIEW: Parameters<typeof sessionsPage>[1] = { rows: 0, left: 0, sinceDay: null, isWatched: false }

describe('many sessions', () => {
  it.each([60, 72, 80, 100, 160])('fit into %d columns', (columns) => {
    const lines = sessionsPage(sessions, VIEW, screen(columns)).split('\n')
    expect(lines.filter((line) => widthOf(line) > columns)).toEqual([])
  })

  it('name the columns that are hidden, and show the cost of clearings', () => {
    const page = sessionsPage(sessions, VIEW, screen(60))
    expect(page).toContain('no room for peak, hits, lost: use at least 80 columns')
    expect(page).toContain('$1.89 spent on re-caching after clearings')
    expect(sessionsPage(sessions, VIEW, screen(80))).not.toContain('no room')
  })
})
