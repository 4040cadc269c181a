import type { SessionRecord } from '@tidemark/core/log/record'
import type { SessionBuilder } from '@tidemark/core/testing'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { describe, expect, it } from 'vitest'
import { addAnswer, inspectSession, MODEL, usage } from '../../test/inspect-example.ts'

const LONG = 'a sentence that goes on and on, '.repeat(200)

/** A prompt with its answer: 1,000 tokens read, 2,000 written, 100 of output. */
function work(builder: SessionBuilder, id: string): void {
  builder.user('go')
  addAnswer(builder, id, 'done', { usage: usage(1_000, 2_000) })
}

function addTotals(builder: SessionBuilder, totalCostUSD: number, promptTokens: number): void {
  const used = { inputTokens: promptTokens, outputTokens: 900, costUSD: totalCostUSD }
  const record = { type: 'cost-state', sessionId: 'told', totalCostUSD, modelUsage: { [MODEL]: used } }
  builder.foreign(record as unknown as SessionRecord)
}

const logged = inspectSession((builder) => work(builder, 'm1')).costUsd ?? 0

describe('the totals that Claude Code logs', () => {
  it('are the cost of the session, with the calls that the log does not have', () => {
    const report = inspectSession((builder) => {
      work(builder, 'm1')
      addTotals(builder, 5, 10_010)
    })
    expect([report.costUsd, report.money.spent, report.money.pricedUsd]).toEqual([5, 5, 5])
    expect(report.money.notInLog).toEqual({ summaries: 0, usd: 5 - logged, tokens: 7_000 + 800 })
    expect(report.spending.map(({ costUsd }) => costUsd)).toEqual([5])
  })

  it('are added to by the calls after them, and the last totals count', () => {
    const report = inspectSession((builder) => {
      work(builder, 'm1')
      addTotals(builder, 1, 10_010)
      addTotals(builder, 5, 10_010)
      work(builder, 'm2')
    })
    expect(report.costUsd).toBeCloseTo(5 + logged, 6)
  })

  it.each([
    ['that count fewer tokens than the log', (builder: SessionBuilder) => addTotals(builder, 5, 10)],
    [
      'of another session',
      (builder: SessionBuilder) =>
        builder.foreign({ type: 'cost-state', sessionId: 'x', totalCostUSD: 5 } as unknown as SessionRecord),
    ],
  ])('%s are not used', (_, add) => {
    const report = inspectSession((builder) => {
      work(builder, 'm1')
      add(builder)
    })
    expect([report.costUsd, report.money.notInLog.usd]).toEqual([logged, null])
  })

  it('of a session that begins with a copy are not used', () => {
    const seenCalls = new Set([`m1\nreq-m1`])
    const report = inspectSession(
      (builder) => {
        work(builder, 'm1')
        work(builder, 'm2')
        addTotals(builder, 5, 10_010)
      },
      { seenCalls },
    )
    expect(report.money.notInLog.usd).toBe(null)
  })

  it('tell a long context window of the model', () => {
    const report = inspectSession((builder) => {
      builder.user('go')
      addAnswer(builder, 'm1', 'done', { model: 'claude-sonnet-4-5', usage: usage(1_000, 2_000) })
      const modelUsage = { 'claude-sonnet-4-5[1m]': { inputTokens: 9_000, costUSD: 1 } }
      builder.foreign({ type: 'cost-state', totalCostUSD: 1, modelUsage } as unknown as SessionRecord)
    })
    expect(report.context.window).toBe(1_000_000)
  })
})

it('without totals, the number of summaries whose calls are not in the log is reported', () => {
  const report = inspectSession((builder) => {
    work(builder, 'm1')
    builder.compact('what happened')
    work(builder, 'm2')
  })
  expect(report.money.notInLog).toEqual({ summaries: 1, usd: null, tokens: null })
})

it('output that was logged with a stop reason is priced as logged, however long the text is', () => {
  const tell = (stop_reason: string | null) => (builder: SessionBuilder) => {
    builder.user('go')
    const message = { id: 'm1', role: 'assistant' as const, model: MODEL, content: LONG, stop_reason }
    const whole = { ...message, usage: usage(0, 10) }
    builder.assistant('m1', LONG, { message: whole, ...readAnthropicReport(whole) })
  }
  const reports = [tell('end_turn'), tell(null)].map((each) => inspectSession(each))
  expect(reports.map(({ outputEstimatedCalls }) => outputEstimatedCalls)).toEqual([0, 1])
  expect(reports[0]?.outputTokensEstimated).toBe(100)
})

it('the size that a compaction recorded is shown if no request followed', () => {
  const report = inspectSession((builder) => {
    work(builder, 'm1')
    const compactMetadata = { trigger: 'auto', preTokens: 20_800, postTokens: 1_234 }
    builder.foreign({
      type: 'system',
      subtype: 'compact_boundary',
      uuid: 'b1',
      parentUuid: null,
      timestamp: '2026-03-09T10:00:00.000Z',
      compactMetadata,
    } as unknown as SessionRecord)
  })
  expect(report.compactions.map(({ postTokens }) => postTokens)).toEqual([1_234])
})

it('the window is that of the model that got the largest request, if the main model could not hold it', () => {
  const report = inspectSession((builder) => {
    work(builder, 'm1')
    work(builder, 'm2')
    builder.user('go')
    addAnswer(builder, 'm3', 'done', { model: 'claude-opus-4-6', usage: usage(600_000, 10) })
  })
  expect([report.peakContextTokens, report.context.window]).toEqual([600_020, 1_000_000])
})

it('a long secret at the start of a prompt is not shown in part', () => {
  const key = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA\n'.repeat(90)}-----END PRIVATE KEY-----`
  const report = inspectSession((builder) => {
    builder.user(`use ${key}`)
    addAnswer(builder, 'm1', 'done', { usage: usage(0, 10) })
  })
  const shown = JSON.stringify([report.firstPrompt, report.largest])
  expect(shown).not.toContain('MIIEvQ')
})
