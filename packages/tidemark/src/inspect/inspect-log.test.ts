import type { SessionBuilder } from '@tidemark/core/testing'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import { describe, expect, it } from 'vitest'
import { addAnswer, buildExample, inspectSession, MODEL, read1, usage } from '../../test/inspect-example.ts'

describe('the report of a session', () => {
  const report = inspectSession(buildExample)

  it('counts a response on several lines once, with its final usage, and no error message of the host', () => {
    const { apiCalls, toolCalls, userMessages, firstPrompt, models, records } = report
    expect({ apiCalls, toolCalls, userMessages, firstPrompt, models, records }).toEqual({
      apiCalls: 4,
      toolCalls: 2,
      userMessages: 2,
      firstPrompt: 'please fix the login',
      models: [MODEL],
      records: 15,
    })
    expect(report.usage).toEqual({ input: 40, cacheRead: 40_000, cacheCreation: 30_000, output: 400 })
    expect(report.hitRate).toBe(0.5711)
  })

  it('has the context curve, with compactions and clearings at their positions', () => {
    expect(report.peakContextTokens).toBe(21_010)
    expect(report.context.points.map(({ tokens }) => tokens)).toEqual([20_010, 21_010, 21_010, 8_010])
    expect(report.context).toMatchObject({ window: 200_000, windowFrom: 'catalogue', autoCompact: 167_000 })
    expect(report.compactions).toEqual([
      {
        id: expect.any(String),
        trigger: 'manual',
        preTokens: 21_010,
        postTokens: 8_010,
        at: expect.any(String),
        afterCall: 3,
        costUsd: 0.017295,
        isUndone: false,
      },
    ])
    expect(report.clearings).toEqual([
      {
        id: expect.any(String),
        ...{ trigger: 'auto', preTokens: 900, savedTokens: 400, results: 1, at: expect.any(String) },
        ...{ afterCall: 2, by: 'host', isUndone: false },
      },
    ])
  })

  it('lists the requests of the curve, whose content adds up to their size and whose cost to the total', () => {
    expect(report.requests.map(({ at, tokens }) => ({ at, tokens }))).toEqual(report.context.points)
    for (const { content, tokens } of report.requests)
      expect(Object.values(content).reduce((sum, part) => sum + part, 0)).toBe(tokens)
    expect(report.requests.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)).toBeCloseTo(0.2177, 9)
    expect(report.requests[3]?.content.summaries).toBeGreaterThan(0)
    expect(report.requests[2]?.content.summaries).toBeUndefined()
  })

  it('has the cost of each token class', () => {
    const [input, cacheRead, write5m, output] = [40 * 5, 40_000 * 0.5, 30_000 * 6.25, 400 * 25].map(
      (x) => x / 1e6,
    )
    expect(report.money.byClass).toEqual({
      input: { tokens: 40, usd: input },
      cacheRead: { tokens: 40_000, usd: cacheRead },
      write5m: { tokens: 30_000, usd: write5m },
      write1h: { tokens: 0, usd: 0 },
      output: { tokens: 400, usd: output },
    })
    expect(report.costUsd).toBeCloseTo(0.2177, 9)
    expect(report.spending).toEqual([
      {
        day: '2023-11-14',
        model: MODEL,
        apiCalls: 4,
        usage: report.usage,
        costUsd: report.costUsd,
        pricedUsd: report.costUsd,
        cacheBreaks: 0,
        lostToBreaks: 0,
        spentOnClearings: 0.02875,
        pricedLostToBreaks: 0,
        pricedSpentOnClearings: 0.02875,
      },
    ])
  })

  it('has the cost of a clearing, which is not a cache break', () => {
    const { cacheBreaks, clearingCosts, money } = report
    expect(cacheBreaks).toEqual([])
    // The first call wrote 20,000 tokens in front of the cleared result; 15,000 of them were read.
    expect(clearingCosts).toEqual([
      {
        at: expect.any(String),
        tokensRewritten: 5_000,
        costUsd: 0.02875,
        breakEvenCalls: null,
        by: 'host',
        model: MODEL,
      },
    ])
    expect([money.lostToBreaks, money.shareLostToBreaks, money.spentOnClearings]).toEqual([0, 0, 0.02875])
  })

  it('shows what filled the context, and which file was read twice', () => {
    const { total, ...parts } = report.tokensByClass
    expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBe(total)
    expect(report.byTool).toEqual([
      { tool: 'Read', calls: 2, requestTokens: expect.any(Number), resultTokens: expect.any(Number) },
    ])
    expect(report.duplicateReads).toEqual([
      {
        path: '/home/user/shop/a.ts',
        count: 2,
        tokens: Math.floor((report.byTool[0]?.resultTokens ?? 0) / 2),
      },
    ])
    expect(report.largest.slice(0, 2)).toEqual(
      [6, 8].map((line) => ({
        kind: 'result',
        tool: 'Read',
        what: '/home/user/shop/a.ts',
        tokens: expect.any(Number),
        line,
      })),
    )
  })

  it('has no damage for an intact log', () => {
    expect(report.damaged).toEqual([])
  })
})

describe('the report of a session with a cache break', () => {
  const broken = inspectSession((builder) => {
    builder.user('please fix the login')
    addAnswer(builder, 'm1', 'I look.', { usage: usage(0, 20_000) })
    builder.user('and the tests?')
    addAnswer(builder, 'm2', 'They pass.', { usage: usage(5_000, 16_000) })
  })
  // 15,000 tokens written at $6.25 a million where they could have been read at $0.50.
  const costUsd = 0.08625

  it('has the time, tokens, cost and cause of the break', () => {
    expect(broken.cacheBreaks).toEqual([
      {
        at: expect.any(String),
        tokensRewritten: 15_000,
        costUsd,
        cause: expect.any(String),
        evidence: expect.stringContaining('5,000 of 20,000 tokens were still read'),
        line: 4,
        model: MODEL,
      },
    ])
  })

  it('includes the break in the costs of the session, and of its day and model', () => {
    const { money, costUsd: spent, spending } = broken
    expect(money.spent).toBe(spent)
    expect(money.lostToBreaks).toBe(costUsd)
    expect(money.shareLostToBreaks).toBeCloseTo(costUsd / (spent ?? 0), 4)
    expect(spending.map(({ cacheBreaks, lostToBreaks }) => [cacheBreaks, lostToBreaks])).toEqual([
      [1, costUsd],
    ])
  })
})

describe('the number of output tokens', () => {
  const long = { type: 'text', text: 'A long answer in plain words. '.repeat(100) }
  const tell = (output: number) => (builder: SessionBuilder) => {
    builder.user('go')
    addAnswer(builder, 'm1', [long], { usage: usage(0, 0, { output_tokens: output }) })
  }

  it('is estimated when the log has less than half of the estimate for the text', () => {
    const report = inspectSession(tell(1))
    expect(report).toMatchObject({ outputEstimated: true, outputEstimatedCalls: 1 })
    expect(report.usage.output).toBe(1)
    expect(report.outputTokensEstimated).toBeGreaterThan(500)
    expect(report.money.byClass.output.tokens).toBe(report.outputTokensEstimated)
    expect(report.requests.map(({ outputTokens }) => outputTokens)).toEqual([report.outputTokensEstimated])
  })

  it.each<[string, number, LogFormat]>([
    ['it is close to the estimate', 600, 'claude-code'],
    ['another program wrote the log', 1, 'tidemark'],
  ])('is taken from the log when %s', (_why, output, format) => {
    const report = inspectSession(tell(output), { format })
    expect(report).toMatchObject({
      ...{ outputEstimated: false, outputTokensEstimated: output },
      requests: [{ outputTokens: output }],
    })
  })
})

describe('unknown figures', () => {
  it('make the cost null, and the report names the model without prices', () => {
    const report = inspectSession((builder) => {
      builder.user('go')
      addAnswer(builder, 'm1', 'yes', { usage: usage(10, 10) })
      addAnswer(builder, 'm2', 'no', { model: 'llama-x', usage: usage(20, 10) })
    })
    expect(report.costUsd).toBe(null)
    expect(report.money.pricedUsd).toBeGreaterThan(0)
    expect(report.money.missing).toEqual(['prices of llama-x'])
    expect(report.models).toEqual([MODEL, 'llama-x'])
  })

  it.each([undefined, { input_tokens: 1e300, output_tokens: 1 }])(
    'include usage %j, which counts as none',
    (used) => {
      const report = inspectSession((builder) => {
        builder.user('go')
        addAnswer(builder, 'm1', 'yes', used === undefined ? {} : { usage: used })
      })
      expect(report).toMatchObject({ apiCalls: 1, callsWithoutUsage: 1, costUsd: null, hitRate: null })
      expect(report.context.points).toEqual([])
    },
  )

  it('are no calls in a Codex log: a response without usage was interrupted', () => {
    const report = inspectSession(
      (builder) => {
        builder.user('go')
        addAnswer(builder, 'm1', [read1], {})
        addAnswer(builder, 'm2', 'yes', { usage: usage(10, 0), model: 'gpt-5.4' })
      },
      { format: 'codex' },
    )
    expect(report).toMatchObject({ apiCalls: 1, toolCalls: 1, callsWithoutUsage: 1 })
    expect(report.costUsd).not.toBe(null)
  })
})
