/** Our own logs say what was lost when it happened, and what was really sent: nothing has to be guessed. */
import { describe, expect, it } from 'vitest'
import { begun, type Fields, LOST, MODEL, report, ToldLog } from '../../../test/told-log.ts'

const loss = (fields: Fields = {}): Fields => ({
  type: 'system',
  subtype: 'cache_loss',
  isMeta: true,
  cacheLoss: {
    kind: 'break',
    source: 'sdk',
    reason: 'betas-changed',
    tokens: 41_000,
    usd: 0.24,
    sentence: 'Cache broke: the betas changed (+new).',
    ...fields,
  },
})

describe('a loss that was told', () => {
  it('is taken with its reason, its sentence and its price, though time would explain it too', () => {
    const { cacheBreaks } = report(begun().wait(400).prompt().answer(9_000, LOST).line(loss()))
    expect(cacheBreaks).toEqual([
      {
        at: '2026-03-09T09:06:44.000Z',
        tokensRewritten: 41_000,
        costUsd: 0.24,
        cause: 'settings-changed',
        evidence: 'told when it happened: Cache broke: the betas changed (+new).',
        line: 4,
        model: MODEL,
      },
    ])
  })

  it('without a price is priced by the catalogue, and of a reason nobody knows the cause is not known', () => {
    const log = begun()
      .prompt()
      .answer(10_000, { written: 42_000 })
      .line(loss({ usd: null, reason: 'moon' }))
    const [found] = report(log).cacheBreaks
    expect([found?.cause, found?.costUsd]).toEqual(['not-known', 0.23])
  })

  it('of a fork is listed with who asked', () => {
    const usage = { input_tokens: 5, output_tokens: 5, cache_creation_input_tokens: 50_000 }
    const modelCall = { id: 'f1', source: 'compact', model: MODEL, usage }
    const log = begun()
      .line({ type: 'system', subtype: 'model_call', isMeta: true, modelCall })
      .line(loss({ source: 'compact', reason: 'evicted' }))
      .prompt()
      .answer(50_000)
    expect(report(log).cacheBreaks).toMatchObject([{ source: 'compact', cause: 'server-side', line: 3 }])
  })

  it('to an act of the engine is the cost of a clearing', () => {
    const act = loss({ kind: 'act', reason: 'cleared 3 results', tokens: 7_000, usd: 0.04 })
    const { cacheBreaks, clearingCosts } = report(
      begun().prompt().answer(43_000, { written: 9_000 }).line(act),
    )
    expect(cacheBreaks).toEqual([])
    expect(clearingCosts).toMatchObject([{ tokensRewritten: 7_000, costUsd: 0.04, model: MODEL }])
  })
})

describe('parameters that an epoch or a delta names', () => {
  const front = { sections: [], tools: [], model: MODEL }
  const epoch = (parameters: Fields): Fields => ({
    type: 'system',
    subtype: 'epoch',
    isMeta: true,
    epoch: { ...front, parameters },
  })

  it.each([
    ['thinking', { type: 'enabled' }, 'thinking-changed', 'not set → {"type":"enabled"}'],
    ['output_config', { effort: 'high' }, 'effort-changed', 'not set → high'],
    ['tool_choice', { type: 'any' }, 'settings-changed', 'not set → {"type":"any"}'],
    ['betas', ['b'], 'settings-changed', 'b'],
  ])('%s', (name, value, cause, evidence) => {
    const log = new ToldLog()
      .line(epoch({ max_tokens: 9 }))
      .prompt()
      .answer(0, { written: 50_000 })
    const next = log
      .line(epoch({ max_tokens: 9, [name]: value }))
      .prompt()
      .answer(0, LOST)
    const [found] = report(next).cacheBreaks
    expect([found?.cause, found?.evidence.split(';')[0]]).toEqual([cause, evidence])
  })

  it('that no cache depends on are no cause', () => {
    const delta = {
      type: 'system',
      subtype: 'delta',
      isMeta: true,
      delta: { parameters: { max_tokens: 10 } },
    }
    const log = new ToldLog()
      .line(epoch({ max_tokens: 9 }))
      .prompt()
      .answer(0, { written: 50_000 })
    const [found] = report(log.line(delta).prompt().answer(0, LOST)).cacheBreaks
    expect(found?.cause).toBe('server-side')
  })
})
