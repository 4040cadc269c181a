import type { Content, SessionRecord, Usage } from '@tidemark/core'
import { type LogFormat, modelCatalogue } from '@tidemark/wire'
import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import type { AgentLog, ReadLog } from '../reading/read-log.ts'
import { inspectLog } from './inspect-log.ts'
import type { SessionReport } from './report.ts'
import { daysIn } from './spending-table.ts'

const MODEL = 'claude-opus-4-5-20251101'

interface Answer {
  readonly usage?: Partial<Usage>
  readonly model?: string
  readonly requestId?: string
}

function usage(read: number, written: number, given: Partial<Usage> = {}): Usage {
  return {
    input_tokens: 10,
    output_tokens: 100,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    ...given,
  }
}

function answer(teller: Teller, id: string, content: Content, given: Answer = {}): void {
  const { model = MODEL, requestId = `req-${id}`, usage: used } = given
  const message = {
    id,
    role: 'assistant' as const,
    model,
    content,
    ...(used === undefined ? {} : { usage: used }),
  }
  teller.assistant(id, content, { message, requestId } as Parameters<Teller['assistant']>[2])
}

const NO_META: ReadLog['meta'] = {
  sessionId: 'told',
  cwd: '/home/user/shop',
  project: 'shop',
  version: null,
  startedAt: '2026-03-09T09:00:00.000Z',
  endedAt: '2026-03-09T10:30:00.000Z',
  forkedFrom: null,
  parentSessionId: null,
  agent: null,
  contextWindow: null,
}

interface Given {
  readonly format?: LogFormat
  readonly agents?: readonly AgentLog[]
  readonly seenCalls?: Set<string>
}

function read(records: readonly SessionRecord[]): ReadLog['records'] {
  return records.map((record, index) => ({ record, line: index + 1 }))
}

function logOf(teller: Teller, { format = 'claude-code', agents = [] }: Given = {}): ReadLog {
  const records = read(teller.records)
  const file = {
    ok: true,
    path: 'shop.jsonl',
    format,
    sizeBytes: 0,
    modifiedMs: 0,
    lines: records.length,
  } as const
  return { ...file, records, damage: [], meta: NO_META, agents }
}

function inspected(tell: (teller: Teller) => void, given: Given = {}): SessionReport {
  const teller = new Teller()
  tell(teller)
  const { seenCalls = new Set<string>() } = given
  return inspectLog(logOf(teller, given), { catalogue: modelCatalogue, dayOf: daysIn('UTC'), seenCalls })
}

const read1 = { type: 'tool_use', id: 't1', name: 'Read', input: { file_path: '/home/user/shop/a.ts' } }
const read2 = { ...read1, id: 't2' }
const TEXT = 'line of code\n'.repeat(200)

function story(teller: Teller): void {
  teller.user('please fix the login')
  teller.user('<command-name>/model</command-name>')
  teller.user('caveat', { isMeta: true })
  answer(teller, 'm1', [{ type: 'text', text: 'I look.' }], { usage: usage(0, 20_000, { output_tokens: 1 }) })
  answer(teller, 'm1', [read1], { usage: usage(0, 20_000) })
  teller.result('t1', TEXT)
  answer(teller, 'm2', [read2], { usage: usage(20_000, 1_000) })
  teller.result('t2', TEXT)
  teller.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 900,
      tokensSaved: 400,
      compactedToolIds: ['t1'],
      clearedAttachmentUUIDs: [],
    },
  })
  answer(teller, 'm3', 'done', { usage: usage(15_000, 6_000) })
  teller.notice('compact_boundary', {
    parentUuid: null,
    compactMetadata: { trigger: 'manual', preTokens: 21_010 },
  })
  teller.user('Summary: …', { isCompactSummary: true, isVisibleInTranscriptOnly: true })
  teller.user('and the tests?')
  answer(teller, 'e1', 'API error', { model: '<synthetic>' })
  answer(teller, 'm4', 'They pass.', { usage: usage(5_000, 3_000) })
}

describe('a session', () => {
  const report = inspected(story)

  it('is counted: a response on several lines once, with its fullest usage, and no error of the host', () => {
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

  it('has its context curve, with the acts where they fell', () => {
    expect(report.peakContextTokens).toBe(21_010)
    expect(report.context.points.map(({ tokens }) => tokens)).toEqual([20_010, 21_010, 21_010, 8_010])
    expect(report.context).toMatchObject({ window: 200_000, windowFrom: 'catalogue', autoCompact: 167_000 })
    expect(report.compactions).toEqual([
      { trigger: 'manual', preTokens: 21_010, postTokens: 8_010, at: expect.any(String), afterCall: 3 },
    ])
    expect(report.clearings).toEqual([
      { trigger: 'auto', preTokens: 900, savedTokens: 400, results: 1, at: expect.any(String), afterCall: 2 },
    ])
  })

  it('is priced by class', () => {
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
      { day: '2023-11-14', model: MODEL, apiCalls: 4, usage: report.usage, costUsd: report.costUsd },
    ])
  })

  it('says what filled it, and what was read twice', () => {
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

  it('leaves turns behind acts out of the estimator, and counts them', () => {
    expect(report.estimator.turns).toBe(1)
    expect(report.estimator.excluded).toEqual([
      { reason: 'clearing', count: 1 },
      { reason: 'boundary', count: 1 },
    ])
  })

  it('has nothing damaged', () => {
    expect(report.damaged).toEqual([])
  })
})

describe('output', () => {
  const long = { type: 'text', text: 'A long answer in plain words. '.repeat(100) }
  const tell = (output: number) => (teller: Teller) => {
    teller.user('go')
    answer(teller, 'm1', [long], { usage: usage(0, 0, { output_tokens: output }) })
  }

  it('is estimated where the log has less than half of what the text comes to', () => {
    const report = inspected(tell(1))
    expect(report).toMatchObject({ outputEstimated: true, outputEstimatedCalls: 1 })
    expect(report.usage.output).toBe(1)
    expect(report.outputTokensEstimated).toBeGreaterThan(500)
    expect(report.money.byClass.output.tokens).toBe(report.outputTokensEstimated)
  })

  it.each<[string, number, LogFormat]>([
    ['it is near enough', 600, 'claude-code'],
    ['another program wrote the log', 1, 'tidemark'],
  ])('is believed where %s', (_why, output, format) => {
    const report = inspected(tell(output), { format })
    expect(report).toMatchObject({ outputEstimated: false, outputTokensEstimated: output })
  })
})

describe('what is not known', () => {
  it('makes the cost null, and says of which model', () => {
    const report = inspected((teller) => {
      teller.user('go')
      answer(teller, 'm1', 'yes', { usage: usage(10, 10) })
      answer(teller, 'm2', 'no', { model: 'llama-x', usage: usage(20, 10) })
    })
    expect(report.costUsd).toBe(null)
    expect(report.money.pricedUsd).toBeGreaterThan(0)
    expect(report.money.missing).toEqual(['prices of llama-x'])
    expect(report.models).toEqual([MODEL, 'llama-x'])
  })

  it.each([undefined, { input_tokens: 1e300, output_tokens: 1 }])('usage %j counts as none', (used) => {
    const report = inspected((teller) => {
      teller.user('go')
      answer(teller, 'm1', 'yes', used === undefined ? {} : { usage: used })
    })
    expect(report).toMatchObject({ apiCalls: 1, callsWithoutUsage: 1, costUsd: null, hitRate: null })
    expect(report.context.points).toEqual([])
  })

  it('is no call of Codex: what it did not count was broken off', () => {
    const report = inspected(
      (teller) => {
        teller.user('go')
        answer(teller, 'm1', [read1], {})
        answer(teller, 'm2', 'yes', { usage: usage(10, 0), model: 'gpt-5.4' })
      },
      { format: 'codex' },
    )
    expect(report).toMatchObject({ apiCalls: 1, toolCalls: 1, callsWithoutUsage: 1 })
    expect(report.costUsd).not.toBe(null)
  })
})

describe('copies', () => {
  const tell = (teller: Teller) => {
    teller.user('go')
    answer(teller, 'm1', [read1], { usage: usage(0, 1_000) })
    teller.result('t1', 'x')
    answer(teller, 'm2', 'yes', { usage: usage(1_000, 100) })
  }

  it('of a response in a later file count in the first', () => {
    const seenCalls = new Set<string>()
    const first = inspected(tell, { seenCalls })
    const second = inspected(
      (teller) => {
        tell(teller)
        answer(teller, 'm3', 'more', { usage: usage(1_100, 50) })
      },
      { seenCalls },
    )
    expect(
      [first, second].map(({ apiCalls, toolCalls, copiedCalls }) => [apiCalls, toolCalls, copiedCalls]),
    ).toEqual([
      [2, 1, 0],
      [1, 0, 2],
    ])
    expect(second.usage).toEqual({ input: 10, cacheRead: 1_100, cacheCreation: 50, output: 100 })
    expect(second.context.points).toHaveLength(3)
  })

  it('with another request id are other calls', () => {
    const seenCalls = new Set<string>()
    const one = (requestId: string) =>
      inspected((teller) => answer(teller, 'm1', 'x', { usage: usage(0, 1), requestId }), { seenCalls })
    expect([one('a'), one('b'), one('a')].map(({ apiCalls }) => apiCalls)).toEqual([1, 1, 0])
  })

  it('of a line in the same file count once, and are told', () => {
    const report = inspected((teller) => {
      tell(teller)
      for (const record of [...teller.records]) teller.foreign(record)
    })
    expect(report).toMatchObject({ apiCalls: 2, toolCalls: 1, userMessages: 1 })
    expect(report.damaged.map(({ kind }) => kind)).toEqual(Array(4).fill('duplicate-uuid'))
  })
})

describe('a uuid that was there before', () => {
  const again = (teller: Teller, id: string, content: Content, requestId: string): void => {
    const first = teller.records.find((record) => record.type === 'assistant')
    answer(teller, id, content, { usage: usage(0, 5), requestId })
    const last = teller.records.at(-1)
    if (first === undefined || last === undefined) throw new Error('nothing was told')
    teller.records.splice(-1, 1, { ...last, uuid: first.uuid } as SessionRecord)
  }

  it('does not hide another answer: it is a call, it cost something, and it filled the context', () => {
    const tell = (teller: Teller) => {
      teller.user('go')
      answer(teller, 'm1', 'one', { usage: usage(0, 1_000) })
    }
    const once = inspected(tell)
    const report = inspected((teller) => {
      tell(teller)
      again(teller, 'm2', [read1, { type: 'text', text: TEXT }], 'req-other')
    })
    expect(report).toMatchObject({ apiCalls: 2, toolCalls: 1, callsWithoutUsage: 0 })
    expect(report.usage.cacheCreation).toBe(1_005)
    expect(report.costUsd).toBeGreaterThan(once.costUsd ?? Number.NaN)
    expect(report.byTool.map(({ tool }) => tool)).toEqual(['Read'])
    expect(report.largest[0]).toMatchObject({ kind: 'text', line: 3 })
    expect(report.damaged.map(({ kind }) => kind)).toEqual(['duplicate-uuid'])
  })

  it('is a copy where it says the same, and then gives no more than a fuller usage', () => {
    const report = inspected((teller) => {
      teller.user('go')
      answer(teller, 'm1', [read1], { usage: usage(0, 1_000, { output_tokens: 1 }), requestId: 'r' })
      again(teller, 'm1', [read1], 'r')
    })
    expect(report).toMatchObject({ apiCalls: 1, toolCalls: 1 })
    expect(report.usage.output).toBe(100)
    expect(report.byTool.map(({ calls }) => calls)).toEqual([1])
  })

  it('does not hide another prompt', () => {
    const report = inspected((teller) => {
      teller.user('go')
      const [first] = teller.records
      teller.foreign({ ...first, message: { role: 'user', content: 'and on' } } as SessionRecord)
      teller.foreign({ ...first } as SessionRecord)
    })
    expect(report.userMessages).toBe(2)
  })
})

it('side agents are in the totals and have a line of their own, but not in the context', () => {
  const agent = new Teller('agent')
  agent.user('look for it')
  answer(agent, 'a1', [{ ...read1, id: 'at1' }], { usage: usage(0, 500), model: 'claude-haiku-4-5' })
  const damage = [{ kind: 'torn-line', line: 3, why: 'the last line was cut off' }] as const
  const agents = [{ agent: 'scout', path: 'agent-scout.jsonl', records: read(agent.records), damage }]
  const report = inspected(story, { agents })
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

it('secrets are in none of the texts', () => {
  const secret = `ghp_${'aZ3kQ9xB7mT2'.repeat(3)}`
  const report = inspected((teller) => {
    teller.user(`use ${secret} please`)
    const input = { command: `curl -H "Authorization: Bearer ${secret}" x` }
    answer(teller, 'm1', [{ type: 'tool_use', id: 't1', name: 'Bash', input }], { usage: usage(0, 1) })
    teller.result('t1', TEXT)
    const path = { file_path: `/tmp/${secret}/x` }
    answer(
      teller,
      'm2',
      [
        { ...read1, input: path },
        { ...read2, input: path },
      ],
      { usage: usage(0, 1) },
    )
    teller.result('t1', TEXT)
    teller.result('t2', TEXT)
  })
  expect(JSON.stringify(report)).not.toContain(secret)
  expect(report.firstPrompt).toBe('use [redacted] please')
})

it('secrets are in no name either', () => {
  const secret = `AKIA${'ABCDEFG234567ABC'}`
  const tool = `mcp__${secret}__x`
  const report = inspected((teller) => {
    teller.user('go')
    const call = { type: 'tool_use', id: 't1', name: tool, input: { query: 'x' } }
    answer(teller, 'm1', [call], { usage: usage(0, 1), model: `own-${secret}` })
    teller.result('t1', TEXT)
  })
  expect(JSON.stringify(report)).not.toContain(secret)
  expect(report.byTool.map((share) => share.tool)).toEqual(['mcp__[redacted]__x'])
  expect(report.largest[0]?.tool).toBe('mcp__[redacted]__x')
  expect(report.spending[0]?.model).toBe('own-[redacted]')
})

it('a log of which nothing is an answer has an empty report', () => {
  const report = inspected((teller) => teller.user('hello?'))
  expect(report).toMatchObject({
    apiCalls: 0,
    hitRate: null,
    costUsd: 0,
    peakContextTokens: 0,
    estimator: { turns: 0, medianAbsError: null, bias: null, excluded: [] },
  })
})

it("a log that broke off says so, its own or an agent's", () => {
  const fault = 'the gzip data ends early: nothing behind this could be read'
  const teller = new Teller()
  story(teller)
  const rules = () => ({ catalogue: modelCatalogue, dayOf: daysIn('UTC'), seenCalls: new Set<string>() })
  const log = logOf(teller)
  expect(inspectLog(log, rules()).brokenOff).toBe(null)
  expect(inspectLog({ ...log, fault }, rules()).brokenOff).toBe(fault)
  const agents = [{ agent: 'scout', path: 'agent-scout.jsonl.gz', records: [], damage: [], fault }]
  expect(inspectLog({ ...log, agents }, rules()).brokenOff).toBe(`agent-scout.jsonl.gz: ${fault}`)
})

it('a thousand faults are enough', () => {
  const report = inspected((teller) => {
    for (let count = 0; count < 1_200; count += 1) teller.user('x', { parentUuid: 'nobody' })
  })
  expect(report.damaged).toHaveLength(1_001)
  expect(report.damaged.at(-1)?.line).toBe(1_000)
})
