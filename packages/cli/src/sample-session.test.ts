import { buildContextView } from '@tidemark/core/context/context-view'
import { flattenContext } from '@tidemark/core/context/flatten-context'
import { isCompactBoundary, isKnownRecord, isMicrocompactBoundary } from '@tidemark/core/log/record'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { listRepairs } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createSampleReport } from './commands/sample.ts'
import { readSampleSession } from './sample-session.ts'

const sample = readSampleSession()
const session = buildSessionLog(sample.records)
const view = buildContextView(session)

describe('the sample session', () => {
  it('is a whole log: nothing damaged, nothing off the branch, nothing to repair', () => {
    expect(sample.damage).toEqual([])
    expect([...session.damage, ...view.damage]).toEqual([])
    expect(session.branch.length).toBe(sample.records.length)
    expect(listRepairs(flattenContext(view))).toEqual([])
  })

  it('has a record of every known kind, one compaction and one clearing', () => {
    const kinds = new Set(sample.records.filter(isKnownRecord).map((record) => record.type))
    expect([...kinds].sort()).toEqual(['assistant', 'attachment', 'progress', 'system', 'user'])
    const acts = [isCompactBoundary, isMicrocompactBoundary].map((is) => sample.records.filter(is).length)
    expect(acts).toEqual([1, 1])
  })
})

it('the context shows what was kept and what was cleared', () => {
  const forms = createSampleReport(sample).view.map(({ who, form }) => `${who} ${form}`)
  expect(forms.slice(0, 8)).toEqual([
    'boundary verbatim',
    'summary verbatim',
    'call kept',
    'call kept',
    'result kept',
    'result cleared',
    'todo verbatim',
    'user verbatim',
  ])
})

it('the request takes its prefix from the epoch', () => {
  const { request } = createSampleReport(sample)
  expect([request.model, request.max_tokens, request.tools?.length, request.messages.length]).toEqual([
    'claude-sonnet-5-5',
    16_000,
    5,
    11,
  ])
  expect(request.messages.map(({ role }) => role).join(' ')).toBe(
    'user assistant user assistant user assistant user assistant user assistant user',
  )
})
