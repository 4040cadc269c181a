import type { MessageContent } from '@tidemark/core/log/block'
import type { SessionRecord } from '@tidemark/core/log/record'
import { SessionBuilder } from '@tidemark/core/testing'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { describe, expect, it } from 'vitest'
import {
  addAnswer,
  buildExample,
  createLog,
  inspectSession,
  MODEL,
  read1,
  read2,
  TEXT,
  toReadRecords,
  usage,
} from '../../test/inspect-example.ts'
import { inspectLog } from './inspect-log.ts'
import { createDayFormatter } from './spending.ts'

describe('a rewrite', () => {
  const clearing = (way: string | undefined, id: string): Record<string, unknown> => ({
    microcompactMetadata: { trigger: 'auto', way, tokensSaved: 400, compactedToolIds: [id] },
  })
  const report = inspectSession((builder) => {
    builder.user('go')
    addAnswer(builder, 'm1', [read1], { usage: usage(0, 20_000) })
    builder.result('t1', 'x')
    addAnswer(builder, 'm2', 'yes', { usage: usage(20_000, 1_000) })
    const compactMetadata = { trigger: 'auto', preTokens: 21_010, postTokens: 4_000 }
    const boundary = builder.notice('compact_boundary', { compactMetadata } as Record<string, unknown>)
    builder.user('Summary: it went well.', { isCompactSummary: true })
    builder.notice('compact_undone', { of: boundary.uuid })
    builder.user('more')
    addAnswer(builder, 'm3', 'yes', { usage: usage(21_000, 500) })
    const first = builder.notice('microcompact_boundary', clearing('budget', 't1'))
    builder.notice('clear_undone', { of: first.uuid })
    builder.notice('clear_undone', { of: first.uuid })
    builder.notice('microcompact_boundary', clearing('native', 't1'))
    builder.notice('microcompact_boundary', clearing(undefined, 't1'))
  })

  it('that was undone is marked, and its size is its own, not that of the request after the undo', () => {
    expect(report.compactions).toMatchObject([
      { preTokens: 21_010, postTokens: 4_000, afterCall: 2, isUndone: true },
    ])
    expect(report.clearings.map(({ isUndone }) => isUndone)).toEqual([true, false, false])
  })

  it('names who cleared: Tidemark, the provider, or the host', () => {
    expect(report.clearings.map(({ by }) => by)).toEqual(['tidemark', 'provider', 'host'])
  })
})

describe('a copy', () => {
  const tell = (builder: SessionBuilder) => {
    builder.user('go')
    addAnswer(builder, 'm1', [read1], { usage: usage(0, 1_000) })
    builder.result('t1', 'x')
    addAnswer(builder, 'm2', 'yes', { usage: usage(1_000, 100) })
  }

  it('of a response in a later file counts in the first file', () => {
    const seen = { seenCalls: new Set<string>(), seenPrompts: new Set<string>() }
    const first = inspectSession(tell, seen)
    const second = inspectSession((builder) => {
      tell(builder)
      builder.user('more')
      addAnswer(builder, 'm3', 'more', { usage: usage(1_100, 50) })
    }, seen)
    expect(
      [first, second].map(({ apiCalls, toolCalls, userMessages, copiedCalls }) => [
        apiCalls,
        toolCalls,
        userMessages,
        copiedCalls,
      ]),
    ).toEqual([
      [2, 1, 1, 0],
      [1, 0, 1, 2],
    ])
    expect(second.usage).toEqual({ input: 10, cacheRead: 1_100, cacheCreation: 50, output: 100 })
    expect(second.context.points).toHaveLength(3)
  })

  it('with another request id is another call', () => {
    const seenCalls = new Set<string>()
    const one = (requestId: string) =>
      inspectSession((builder) => addAnswer(builder, 'm1', 'x', { usage: usage(0, 1), requestId }), {
        seenCalls,
      })
    expect([one('a'), one('b'), one('a')].map(({ apiCalls }) => apiCalls)).toEqual([1, 1, 0])
  })

  it('of a line in the same file counts once, and is reported as damage', () => {
    const report = inspectSession((builder) => {
      tell(builder)
      for (const record of [...builder.records]) builder.foreign(record)
    })
    expect(report).toMatchObject({ apiCalls: 2, toolCalls: 1, userMessages: 1 })
    expect(report.damaged.map(({ kind }) => kind)).toEqual(Array(4).fill('duplicate-uuid'))
  })
})

describe('a repeated uuid', () => {
  const again = (builder: SessionBuilder, id: string, content: MessageContent, requestId: string): void => {
    const first = builder.records.find((record) => record.type === 'assistant')
    addAnswer(builder, id, content, { usage: usage(0, 5), requestId })
    const last = builder.records.at(-1)
    if (first === undefined || last === undefined) throw new Error('the log is empty')
    builder.records.splice(-1, 1, { ...last, uuid: first.uuid } as SessionRecord)
  }

  it('does not hide a different response: it is a call with a cost, and part of the context', () => {
    const tell = (builder: SessionBuilder) => {
      builder.user('go')
      addAnswer(builder, 'm1', 'one', { usage: usage(0, 1_000) })
    }
    const once = inspectSession(tell)
    const report = inspectSession((builder) => {
      tell(builder)
      again(builder, 'm2', [read1, { type: 'text', text: TEXT }], 'req-other')
    })
    expect(report).toMatchObject({ apiCalls: 2, toolCalls: 1, callsWithoutUsage: 0 })
    expect(report.usage.cacheCreation).toBe(1_005)
    expect(report.costUsd).toBeGreaterThan(once.costUsd ?? Number.NaN)
    expect(report.byTool.map(({ tool }) => tool)).toEqual(['Read'])
    expect(report.largest[0]).toMatchObject({ kind: 'text', line: 3 })
    expect(report.damaged.map(({ kind }) => kind)).toEqual(['duplicate-uuid'])
  })

  it('with the same content is a copy, of which only a more complete usage is taken', () => {
    const report = inspectSession((builder) => {
      builder.user('go')
      addAnswer(builder, 'm1', [read1], { usage: usage(0, 1_000, { output_tokens: 1 }), requestId: 'r' })
      again(builder, 'm1', [read1], 'r')
    })
    expect(report).toMatchObject({ apiCalls: 1, toolCalls: 1 })
    expect(report.usage.output).toBe(100)
    expect(report.byTool.map(({ calls }) => calls)).toEqual([1])
  })

  it('does not hide a different prompt', () => {
    const report = inspectSession((builder) => {
      builder.user('go')
      const [first] = builder.records
      builder.foreign({ ...first, message: { role: 'user', content: 'and on' } } as SessionRecord)
      builder.foreign({ ...first } as SessionRecord)
    })
    expect(report.userMessages).toBe(2)
  })
})

it('side agents count in the totals and have a row of their own, but are not part of the context', () => {
  const agent = new SessionBuilder('agent')
  agent.user('look for it')
  addAnswer(agent, 'a1', [{ ...read1, id: 'at1' }], { usage: usage(0, 500), model: 'claude-haiku-4-5' })
  const damage = [{ kind: 'torn-line', line: 3, why: 'the last line was cut off' }] as const
  const agents = [
    { agent: 'scout', path: 'agent-scout.jsonl', records: toReadRecords(agent.records), damage },
  ]
  const report = inspectSession(buildExample, { agents })
  expect(report).toMatchObject({
    apiCalls: 5,
    toolCalls: 3,
    userMessages: 2,
    records: 17,
    peakContextTokens: 21_010,
  })
  expect(report.agents).toEqual([
    {
      id: 'scout',
      apiCalls: 1,
      usage: { input: 10, cacheRead: 0, cacheCreation: 500, output: 100 },
      costUsd: (10 + 500 * 1.25 + 100 * 5) / 1e6,
    },
  ])
  expect(report.damaged).toEqual([{ ...damage[0], file: 'agent-scout.jsonl' }])
})

it('secrets are removed from all texts', () => {
  const secret = `ghp_${'aZ3kQ9xB7mT2'.repeat(3)}`
  const report = inspectSession((builder) => {
    builder.user(`use ${secret} please`)
    const input = { command: `curl -H "Authorization: Bearer ${secret}" x` }
    addAnswer(builder, 'm1', [{ type: 'tool_use', id: 't1', name: 'Bash', input }], { usage: usage(0, 1) })
    builder.result('t1', TEXT)
    const path = { file_path: `/tmp/${secret}/x` }
    addAnswer(
      builder,
      'm2',
      [
        { ...read1, input: path },
        { ...read2, input: path },
      ],
      { usage: usage(0, 1) },
    )
    builder.result('t1', TEXT)
    builder.result('t2', TEXT)
  })
  expect(JSON.stringify(report)).not.toContain(secret)
  expect(report.firstPrompt).toBe('use [redacted] please')
})

it('secrets are removed from names of tools and models', () => {
  const secret = `AKIA${'ABCDEFG234567ABC'}`
  const tool = `mcp__${secret}__x`
  const report = inspectSession((builder) => {
    builder.user('go')
    const call = { type: 'tool_use', id: 't1', name: tool, input: { query: 'x' } }
    addAnswer(builder, 'm1', [call], { usage: usage(0, 1), model: `own-${secret}` })
    builder.result('t1', TEXT)
  })
  expect(JSON.stringify(report)).not.toContain(secret)
  expect(report.byTool.map((share) => share.tool)).toEqual(['mcp__[redacted]__x'])
  expect(report.largest[0]?.tool).toBe('mcp__[redacted]__x')
  expect(report.spending[0]?.model).toBe('own-[redacted]')
})

it('a log without any response has an empty report', () => {
  const report = inspectSession((builder) => builder.user('hello?'))
  expect(report).toMatchObject({
    apiCalls: 0,
    hitRate: null,
    costUsd: 0,
    peakContextTokens: 0,
  })
})

it('the report says why the log, or that of a side agent, could not be read to its end', () => {
  const fault = 'the gzip data ends early: nothing behind this could be read'
  const builder = new SessionBuilder()
  buildExample(builder)
  const rules = () => ({
    catalogue: modelCatalogue,
    toDay: createDayFormatter('UTC'),
    seenCalls: new Set<string>(),
  })
  const log = createLog(builder)
  expect(inspectLog(log, rules()).brokenOff).toBe(null)
  expect(inspectLog({ ...log, fault }, rules()).brokenOff).toBe(fault)
  const agents = [{ agent: 'scout', path: 'agent-scout.jsonl.gz', records: [], damage: [], fault }]
  expect(inspectLog({ ...log, agents }, rules()).brokenOff).toBe(`agent-scout.jsonl.gz: ${fault}`)
})

it('the search for damage stops after a thousand findings', () => {
  const report = inspectSession((builder) => {
    for (let count = 0; count < 1_200; count += 1) builder.user('x', { parentUuid: 'nobody' })
  })
  expect(report.damaged).toHaveLength(1_001)
  expect(report.damaged.at(-1)?.line).toBe(1_000)
})

describe('calls beside the conversation, which our own logs record', () => {
  const beside = (builder: SessionBuilder, id: string, source: string, model = MODEL): void => {
    const figures = usage(1_000_000, 0, { input_tokens: 0, output_tokens: 0 })
    const tokens = readAnthropicReport({ usage: figures }).usage
    const modelCall = { id, source, model, usage: figures, tokens }
    builder.notice('model_call', { isMeta: true, modelCall } as Parameters<SessionBuilder['notice']>[1])
  }
  const report = inspectSession(
    (builder) => {
      builder.user('go')
      addAnswer(builder, 'm1', 'done', { usage: usage(0, 0, { input_tokens: 0, output_tokens: 0 }) })
      beside(builder, 'f1', 'compact')
      beside(builder, 'f2', 'session_memory', 'claude-haiku-4-5')
    },
    { format: 'tidemark' },
  )

  it('count in the costs, with those for summaries also listed separately', () => {
    expect([report.apiCalls, report.usage.cacheRead, report.models]).toEqual([
      3,
      2_000_000,
      [MODEL, 'claude-haiku-4-5'],
    ])
    expect([report.costUsd, report.money.spentOnCompaction]).toEqual([0.6, 0.5])
  })

  it('are not part of the context', () => {
    expect([report.peakContextTokens, report.context.points]).toEqual([0, []])
  })
})
