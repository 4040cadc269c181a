import { describe, expect, it } from 'vitest'
import {
  type AnswerOptions,
  type Fields,
  LogBuilder,
  MODEL,
  NOTHING_READ,
  reportBreaks,
  startLog,
} from '../../test/claude-code-log.ts'
import { NO_META } from '../../test/inspect-example.ts'

describe('a break', () => {
  it('has its time, its size and its price', () => {
    const { cacheBreaks } = reportBreaks(startLog().wait(400).prompt().answer(10_000, { written: 42_000 }))
    const [found] = cacheBreaks
    expect([found?.at, found?.tokensRewritten, found?.line]).toEqual(['2026-03-09T09:06:44.000Z', 40_000, 4])
    expect(found?.costUsd).toBeCloseTo((40_000 * (6.25 - 0.5)) / 1e6, 4)
  })

  it('has no price where the model is not known', () => {
    const log = new LogBuilder().prompt().answer(0, { written: 50_000, model: 'no-such-model' })
    const { cacheBreaks } = reportBreaks(
      log
        .wait(400)
        .prompt()
        .answer(0, { ...NOTHING_READ, model: 'no-such-model' }),
    )
    expect(cacheBreaks.map(({ costUsd }) => costUsd)).toEqual([null])
  })

  it('is not told where an earlier file has the call, and what that call left is expected all the same', () => {
    const log = startLog()
      .wait(400)
      .prompt()
      .answer(0, NOTHING_READ)
      .wait(400)
      .prompt()
      .answer(0, { written: 54_000 })
    const elsewhere = new Set(['m1\n', 'm3\n'])
    expect(
      reportBreaks(log, { elsewhere }).cacheBreaks.map(({ line, tokensRewritten }) => [
        line,
        tokensRewritten,
      ]),
    ).toEqual([[6, 52_000]])
  })

  it('of an agent bears its name and is judged by what that agent sent', () => {
    const agents = [
      {
        agent: 'helper',
        path: 'x',
        records: startLog().wait(400).prompt().answer(0, NOTHING_READ).records,
        damage: [],
      },
    ]
    const { cacheBreaks } = reportBreaks(new LogBuilder(), { agents })
    expect(cacheBreaks.map(({ agent, cause }) => [agent, cause])).toEqual([['helper', 'expired']])
  })

  it('shows no secret', () => {
    const secret = `sk-ant-api03-${'a1B2'.repeat(20)}`
    const log = startLog('5m', { thinkingMetadata: { level: 'high' } })
    const { cacheBreaks } = reportBreaks(
      log.prompt('x', { thinkingMetadata: { level: secret } }).answer(0, NOTHING_READ),
    )
    expect(cacheBreaks[0]?.evidence).not.toContain(secret)
  })
})

describe('no breaks', () => {
  const boundary = {
    type: 'system',
    subtype: 'compact_boundary',
    compactMetadata: { trigger: 'auto', preTokens: 1 },
  }
  const summary = { type: 'user', isCompactSummary: true, message: { role: 'user', content: 'summary' } }

  it.each([
    { name: 'the first call', log: startLog() },
    { name: 'a read of all', log: startLog().prompt().answer(50_000) },
    { name: 'little lost', log: startLog().prompt().answer(48_000, { written: 5_000 }) },
    { name: 'a compaction', log: startLog().line(boundary).line(summary).answer(0, NOTHING_READ) },
    {
      name: 'a compaction whose summary is not in the log',
      log: startLog().line(boundary).prompt().answer(0, NOTHING_READ),
    },
    {
      name: 'context that is gone without a word',
      log: startLog().prompt().answer(20_000, { written: 8 }),
    },
    {
      name: 'a rewind, that reads what it goes back to',
      log: startLog()
        .prompt('one way')
        .answer(50_000, { written: 30_000 })
        .line({ type: 'user', parentUuid: 'u2', message: { role: 'user', content: 'another way' } })
        .answer(50_000, { written: 30_000 }),
    },
    {
      name: 'calls without usage',
      log: new LogBuilder()
        .prompt()
        .answer(0, { usage: { input_tokens: 0, cache_creation_input_tokens: 0 } }),
    },
  ])('$name', ({ log }) => {
    expect(reportBreaks(log).cacheBreaks).toEqual([])
  })

  it.each([
    { name: 'as far as it reaches', read: 50_000, written: 5_000, tokens: 5_000, usd: 0.02875, calls: 10 },
    {
      name: 'and whatever else is lost with it',
      read: 20_000,
      written: 40_000,
      tokens: 30_000,
      usd: 0.1725,
      calls: null,
    },
  ])('a clearing, which is told apart with what it cost, $name', ({ read, written, tokens, usd, calls }) => {
    const log = new LogBuilder().prompt()
    const call = log.call('Read')
    log
      .answer(0, { written: 50_000, blocks: [call] })
      .result(String(call.id))
      .answer(50_000, { written: 11_000 })
    const metadata = { trigger: 'auto', preTokens: 1, tokensSaved: 6_000, clearedAttachmentUUIDs: [] }
    const microcompactMetadata = { ...metadata, compactedToolIds: [call.id] }
    log.line({ type: 'system', subtype: 'microcompact_boundary', microcompactMetadata })
    const { cacheBreaks, clearingCosts } = reportBreaks(log.prompt().answer(read, { written }))
    expect(cacheBreaks).toEqual([])
    expect(clearingCosts).toEqual([
      {
        at: '2026-03-09T09:00:07.000Z',
        tokensRewritten: tokens,
        costUsd: usd,
        breakEvenCalls: calls,
        by: 'host',
        model: MODEL,
      },
    ])
  })
})

it('two clearings before one call pay for it together', () => {
  const log = new LogBuilder().prompt()
  const calls = [0, 1].map(() => {
    const call = log.call('Read')
    log.answer(log.read, { written: 30_000, blocks: [call] }).result(String(call.id))
    return call
  })
  log.answer(log.read, { written: 1_000 })
  for (const { id } of calls)
    log.line({
      type: 'system',
      subtype: 'microcompact_boundary',
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 1,
        tokensSaved: 10_000,
        clearedAttachmentUUIDs: [],
        compactedToolIds: [id],
      },
    })
  const { cacheBreaks, clearingCosts } = reportBreaks(log.prompt().answer(30_000, { written: 12_000 }))
  expect(cacheBreaks).toEqual([])
  expect(clearingCosts.map(({ breakEvenCalls }) => breakEvenCalls)).toEqual([7])
})

describe('providers that do not say what they write', () => {
  const untold = (read: number, input: number, model = 'gpt-5.4'): AnswerOptions => ({
    model,
    usage: {
      input_tokens: input,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: undefined,
      cache_creation: undefined,
    },
  })

  it('are taken to keep all that was sent', () => {
    const log = new LogBuilder()
      .prompt()
      .answer(0, untold(0, 50_000))
      .prompt()
      .answer(0, untold(9_600, 42_000))
    const { cacheBreaks } = reportBreaks(log.wait(900).prompt().answer(0, untold(0, 60_000)))
    expect(
      cacheBreaks.map(({ cause, tokensRewritten, costUsd }) => [cause, tokensRewritten, costUsd]),
    ).toEqual([
      ['server-side', 40_320, 0.09072],
      ['expired', 51_584, 0.116064],
    ])
  })

  it('are taken to keep all that was sent, also where nothing else is known about the cache', () => {
    const log = new LogBuilder().prompt().answer(0, untold(0, 50_000, 'model-of-a-proxy'))
    const { cacheBreaks } = reportBreaks(log.prompt().answer(0, untold(9_600, 42_000, 'model-of-a-proxy')))
    expect(cacheBreaks.map(({ tokensRewritten }) => tokensRewritten)).toEqual([40_400])
  })
})

describe('a history that was copied in one go', () => {
  const copied = (): LogBuilder => {
    const log = new LogBuilder()
    const at = { timestamp: '2026-03-09T09:00:00.000Z' }
    for (const read of [0, 50_000, 60_000])
      log.prompt('go', at).answer(read, { written: read === 0 ? 50_000 : 10_000, fields: at })
    return log.wait(30).prompt()
  }

  it('of a fork is no cache of its own: its first call begins anew', () => {
    const log = copied().answer(3_000, { written: 68_000 }).prompt().answer(0, { written: 72_000 })
    const { cacheBreaks } = reportBreaks(log, { meta: { ...NO_META, forkedFrom: 'parent' } })
    expect(cacheBreaks.map(({ line, cause }) => [line, cause])).toEqual([[10, 'server-side']])
  })

  it('tells no time that a cause could rest on', () => {
    const { cacheBreaks } = reportBreaks(copied().answer(3_000, { written: 68_000 }))
    expect(cacheBreaks.map(({ cause }) => cause)).toEqual(['not-known'])
  })
})

describe('whether an hour would have paid', () => {
  const paused = (times: number, lifetime: '5m' | '1h' = '5m'): LogBuilder => {
    const log = startLog(lifetime)
    for (let turn = 0; turn < times; turn += 1)
      log
        .wait(600)
        .prompt()
        .answer(0, { written: 51_000 + turn * 1_000, lifetime })
    return log
  }

  it('it would, where pauses of ten minutes lose the whole each time', () => {
    const lapsed = 50_000 + 51_000 + 52_000
    const saved = (lapsed * (6.25 - 0.5) - 53_000 * (10 - 6.25)) / 1e6
    expect(reportBreaks(paused(3)).hourWouldSave).toBeCloseTo(saved, 4)
  })

  it('it would not, where there are none', () => {
    const log = startLog().prompt().answer(50_000).prompt().answer(51_000)
    expect(reportBreaks(log).hourWouldSave).toBeCloseTo((-52_000 * (10 - 6.25)) / 1e6, 4)
  })

  it('is not asked where an hour was in force', () => {
    expect(reportBreaks(paused(3, '1h')).hourWouldSave).toBeNull()
  })
})

// Our own logs say what was lost when it happened, and what was really sent: nothing has to be guessed.

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
    const { cacheBreaks } = reportBreaks(
      startLog().wait(400).prompt().answer(9_000, NOTHING_READ).line(loss()),
    )
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
    const log = startLog()
      .prompt()
      .answer(10_000, { written: 42_000 })
      .line(loss({ usd: null, reason: 'moon' }))
    const [found] = reportBreaks(log).cacheBreaks
    expect([found?.cause, found?.costUsd]).toEqual(['not-known', 0.23])
  })

  it('of a fork is listed with who asked', () => {
    const usage = { input_tokens: 5, output_tokens: 5, cache_creation_input_tokens: 50_000 }
    const modelCall = { id: 'f1', source: 'compact', model: MODEL, usage }
    const log = startLog()
      .line({ type: 'system', subtype: 'model_call', isMeta: true, modelCall })
      .line(loss({ source: 'compact', reason: 'evicted' }))
      .prompt()
      .answer(50_000)
    expect(reportBreaks(log).cacheBreaks).toMatchObject([
      { source: 'compact', cause: 'server-side', line: 3 },
    ])
  })

  it('to an act of the engine is the cost of a clearing', () => {
    const act = loss({ kind: 'act', reason: 'cleared 3 results', tokens: 7_000, usd: 0.04 })
    const { cacheBreaks, clearingCosts } = reportBreaks(
      startLog().prompt().answer(43_000, { written: 9_000 }).line(act),
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
    const log = new LogBuilder()
      .line(epoch({ max_tokens: 9 }))
      .prompt()
      .answer(0, { written: 50_000 })
    const next = log
      .line(epoch({ max_tokens: 9, [name]: value }))
      .prompt()
      .answer(0, NOTHING_READ)
    const [found] = reportBreaks(next).cacheBreaks
    expect([found?.cause, found?.evidence.split(';')[0]]).toEqual([cause, evidence])
  })

  it('that no cache depends on are no cause', () => {
    const delta = {
      type: 'system',
      subtype: 'delta',
      isMeta: true,
      delta: { parameters: { max_tokens: 10 } },
    }
    const log = new LogBuilder()
      .line(epoch({ max_tokens: 9 }))
      .prompt()
      .answer(0, { written: 50_000 })
    const [found] = reportBreaks(log.line(delta).prompt().answer(0, NOTHING_READ)).cacheBreaks
    expect(found?.cause).toBe('server-side')
  })
})
