import { createUsage, readTestReport } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { AppendList } from '../log/persistent-collections.ts'
import type { SessionRecord } from '../log/record.ts'
import { runStepsAtOnce } from '../log/work-steps.ts'
import { emptySessionCost, type FindModelPrices, sumSessionCost, updateSessionCost } from './session-cost.ts'

const PRICES = { input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }
const prices: FindModelPrices = (model) => (model === 'known' ? PRICES : null)

let count = 0
function line(fields: object): SessionRecord {
  count += 1
  const links = { uuid: `u${count}`, parentUuid: null, timestamp: '2026-01-01T00:00:00Z', sessionId: 's' }
  return { ...links, ...fields } as unknown as SessionRecord
}

function answer(id: string, usage?: object, model = 'known', extra: object = {}): SessionRecord {
  const message = { id, role: 'assistant', model, content: [], usage }
  return line({ type: 'assistant', message, ...readTestReport(message), ...extra })
}

function side(id: string, source: string, usage: object): SessionRecord {
  const modelCall = { id, source, model: 'known', usage, tokens: createUsage(usage) }
  return line({ type: 'system', subtype: 'model_call', modelCall })
}

function loss(kind: string, tokens: number, usd: number | null): SessionRecord {
  const cacheLoss = { kind, source: 'sdk', reason: 'evicted', tokens, usd, sentence: '' }
  return line({ type: 'system', subtype: 'cache_loss', cacheLoss })
}

function totalsOf(records: readonly SessionRecord[]) {
  return sumSessionCost(runStepsAtOnce(updateSessionCost(emptySessionCost(), AppendList.of(records), prices)))
}

const M = 1_000_000
const IN = { input: M, output: 0 }

describe('the cost of a session', () => {
  it('counts a response of several records once, with the usage of the last', () => {
    const growing = [1, 5, 100_000].map((output) => answer('m1', { input: M, output }))
    const { calls, spent, tokens } = totalsOf([...growing.slice(0, 2), answer('m2', IN), ...growing.slice(2)])
    expect([calls, spent.total, tokens.output]).toEqual([2, 25, 100_000])
  })

  it.each([
    ['without usage', undefined],
    ['with fewer output tokens', { input: M, output: 1 }],
  ])('keeps the usage of a response that has a later record %s', (_, usage) => {
    const { calls, spent } = totalsOf([answer('m1', { input: M, output: 100_000 }), answer('m1', usage)])
    expect([calls, spent.total]).toEqual([1, 15])
  })

  it('reports what the cache saved', () => {
    const read = { input: 0, read: M, output: M }
    const { savedByCache, spent } = totalsOf([answer('m1', read)])
    expect([savedByCache, spent.total]).toEqual([{ total: 9, known: 9 }, 51])
  })

  it('adds up cache breaks, own rewrites and summaries separately', () => {
    const totals = totalsOf([
      answer('m1', IN),
      loss('break', 5_000, 2),
      loss('act', 3_000, 0.5),
      side('m2', 'compact', IN),
      side('m3', 'session_memory', IN),
    ])
    expect(totals).toMatchObject({
      calls: 3,
      breaks: 1,
      tokensLostToBreaks: 5_000,
      lostToBreaks: { total: 2, known: 2 },
      spentOnClearing: { total: 0.5, known: 0.5 },
      spentOnCompaction: { total: 10, known: 10 },
      spent: { total: 30 },
    })
  })

  it('names what it cannot price, and prices the rest', () => {
    const totals = totalsOf([answer('m1', IN), answer('m2', IN, 'new'), answer('m3'), loss('break', 1, null)])
    expect(totals).toMatchObject({ calls: 3, unpricedCalls: 2, lostToBreaks: { total: null, known: 0 } })
    expect(totals.spent).toMatchObject({
      total: null,
      priced: 10,
      missing: ['prices of new', 'calls whose usage the log does not have'],
    })
    expect(totals.savedByCache).toEqual({ total: null, known: 0 })
  })

  it('counts subagents, but not errors written by the engine', () => {
    const synthetic = answer('m2', IN, '<synthetic>', { isApiErrorMessage: true })
    const { calls, spent } = totalsOf([answer('m1', IN, 'known', { isSidechain: true }), synthetic])
    expect([calls, spent.total]).toEqual([1, 10])
  })

  it('ignores values that are not figures', () => {
    const bad = [
      line({ type: 'system', subtype: 'model_call', modelCall: { id: 7 } }),
      line({ type: 'system', subtype: 'model_call', modelCall: null }),
      line({ type: 'system', subtype: 'cache_loss', cacheLoss: { kind: 'break', tokens: 'x', usd: 'y' } }),
      line({ type: 'system', subtype: 'cache_loss', cacheLoss: { kind: 'other', usd: 3 } }),
    ]
    const { calls, breaks, tokensLostToBreaks, lostToBreaks } = totalsOf(bad)
    expect([calls, breaks, tokensLostToBreaks, lostToBreaks]).toEqual([0, 1, 0, { total: null, known: 0 }])
  })

  it('is the same computed at once or record by record, and starts over on another log', () => {
    const records = Array.from({ length: 40 }, (_, at) => answer(`m${at >> 1}`, { ...IN, output: at }))
    let list = AppendList.of<SessionRecord>()
    let money = emptySessionCost()
    for (const record of records) {
      list = list.push(record)
      money = runStepsAtOnce(updateSessionCost(money, list, prices))
    }
    expect(sumSessionCost(money)).toEqual(totalsOf(records))
    expect(sumSessionCost(money).calls).toBe(20)
    const other = runStepsAtOnce(updateSessionCost(money, AppendList.of([answer('x', IN)]), prices))
    expect(sumSessionCost(other)).toEqual(totalsOf([answer('x', IN)]))
  })

  it('does not count a call twice if it occurs again much later', () => {
    const many = Array.from({ length: 20 }, (_, at) => answer(`m${at}`, IN))
    expect(totalsOf([...many, answer('m0', IN)]).calls).toBe(20)
  })
})
