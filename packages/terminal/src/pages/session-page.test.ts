import { fileURLToPath } from 'node:url'
import picocolors from 'picocolors'
import { findNamedLogs } from 'tidemark/internal'
import { inspectFiles, type SessionReport } from 'tidemark/logs'
import { beforeAll, describe, expect, it } from 'vitest'
import { chooseSymbols, createTimeFormat, type Screen } from '../render/screen.ts'
import { measureTextWidth } from '../render/text.ts'
import { renderSessionPage } from './session-page.ts'

const sample = fileURLToPath(new URL('../../../cli/sample/login-bug.jsonl', import.meta.url))

async function inspected(): Promise<SessionReport> {
  const { logs } = await findNamedLogs([sample])
  const { sessions } = await inspectFiles(logs, { timeZone: 'UTC' })
  const [report] = sessions
  if (report === undefined) throw new Error('the sample session could not be read')
  return report
}

function screen(columns: number, env: Readonly<Record<string, string>> = {}): Screen {
  const colors = picocolors.createColors(false)
  return { columns, colors, symbols: chooseSymbols(env), time: createTimeFormat('UTC') }
}

let report: SessionReport
beforeAll(async () => {
  report = await inspected()
})

it('a peak that the last window cannot hold is shown beside it, not as a share of it', () => {
  const context = { ...report.context, window: 20_000, windowFrom: 'log' as const }
  const page = renderSessionPage({ ...report, peakContextTokens: 34_600, context }, screen(80))
  expect(page).toContain('34.6k (window now 20k)')
  expect(page.split('\n').filter((line) => measureTextWidth(line) > 80)).toEqual([])
})

describe('the page of the sample session', () => {
  it('on 80 columns', () => {
    expect(renderSessionPage(report, screen(80))).toMatchInlineSnapshot(`
      "login-bug.jsonl                                                         tidemark
      claude-sonnet-5-5 · 2026-03-09 09:14 – 09:28 (14 min)
      "Since Friday people with a + in their e-mail address cannot log in ("unknown …"

      peak context         cost      cache hits     calls     tools     prompts
      4.6k of 1M (<1%)     $0.03     85.2%          10        12        4

      Context over time           window 1M  auto-compact 967k  ▲ compacted  △ cleared
         5k ┤                                     ▁▁▁▁▁▁▁▁
            ┤                ▂▂▂▂▂▂▂▅▅▅▅▅▅▅███████████████       ▄▄▄▄▄▄▄▆▆▆▆▆▆▆▇▇▇▇▇▇▇
         4k ┤         ▄▄▄▄▄▄▄█████████████████████████████▅▅▅▅▅▅▅█████████████████████
            ┤ ▁▁▁▁▁▁▁▁████████████████████████████████████████████████████████████████
         3k ┤ ████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████
         2k ┤ ████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████
         1k ┤ ████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████
          0 └─────────────────────────────────────────────────────────────────────────
                                                         ▲                    △
              call 1 · 09:14                                           call 10 · 09:28

      What filled the context                                   4.4k tokens, estimated
        tool results    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━   44.4%     2.0k
        tool requests   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━                    27.6%     1.2k
        summaries       ━━━━━━━━━━━━━╸                                  13.5%      599
        assistant text  ━━━━━━                                           5.7%      253
        thinking        ━━━━╸                                            4.3%      190
        prompts         ━━╸                                              2.4%      106
        attachments     ━━                                               2.2%       96

      Tools                                                    calls requests  results
        Read            ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━        4      235     1.1k
        Edit            ━━━━━━━━━━━━━━━━━━━╸                       3      611      141
        Bash            ━━━━━━━━━━━━━━━━                           3      178      437
        Grep            ━━━━━━━━╸                                  1       77      251
        TodoWrite       ━━━━╸                                      1      126       39

      Largest items                                                  tokens, estimated
           599  summary         This session continues an earlier part of the same co…
           498  Read            src/login/route.ts
           272  Read            src/web/read-form.ts
           270  Read            test/read-form.test.ts
           251  Grep            src
           250  Edit (request)  test/read-form.test.ts
           207  Edit (request)  src/web/read-form.ts
           199  Bash            npm test -- login read-form

      Cost                           tokens      cost    share
        cache reads                   35.0k    <$0.01    11.5%  ━━╸
        cache writes, 5 minutes        6.1k     $0.02    49.5%  ━━━━━━━━━━━
        input, not cached                40    <$0.01     0.3%  ╸
        output                         1.2k     $0.01    38.8%  ━━━━━━━━╸
        total                                   $0.03
        the cache saved $0.06
        cache writes without a lifetime are counted as writes for the shortest one

      Rewrites                                    1 compaction, 1 clearing by the host
        ▲ compacted (manual)       4.6k → 3.8k  after call 6, 2026-03-09 09:17
        △ cleared 1 result           131 saved  after call 9, 2026-03-09 09:28
      "
    `)
  })

  it('on 160 columns', () => {
    expect(renderSessionPage(report, screen(160))).toMatchInlineSnapshot(`
      "login-bug.jsonl                                                                                                                                         tidemark
      claude-sonnet-5-5 · 2026-03-09 09:14 – 09:28 (14 min)
      "Since Friday people with a + in their e-mail address cannot log in ("unknown account"). Please find out why and fix it. Keep the change small, we release tod…"

      peak context            cost         cache hits        calls        tools        prompts
      4.6k of 1M (<1%)        $0.03        85.2%             10           12           4

      Context over time                                                                                           window 1M  auto-compact 967k  ▲ compacted  △ cleared
         5k ┤                                                                             ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
            ┤                                ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅███████████████████████████████               ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
         4k ┤                 ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄█████████████████████████████████████████████████████████████▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅█████████████████████████████████████████████
            ┤ ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
         3k ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
         2k ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
         1k ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
            ┤ ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
          0 └─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
                                                                                                         ▲                                            △
              call 1 · 09:14                                                                                                                           call 10 · 09:28

      What filled the context                                 4.4k tokens, estimated    Tools                                                  calls requests  results
        tool results    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━   44.4%     2.0k      Read            ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━        4      235     1.1k
        tool requests   ━━━━━━━━━━━━━━━━━━━━━━━━━━╸                   27.6%     1.2k      Edit            ━━━━━━━━━━━━━━━━━━╸                      3      611      141
        summaries       ━━━━━━━━━━━━━                                 13.5%      599      Bash            ━━━━━━━━━━━━━━━                          3      178      437
        assistant text  ━━━━━╸                                         5.7%      253      Grep            ━━━━━━━━                                 1       77      251
        thinking        ━━━━                                           4.3%      190      TodoWrite       ━━━━                                     1      126       39
        prompts         ━━╸                                            2.4%      106
        attachments     ━━                                             2.2%       96

      Largest items                                                                                                                                  tokens, estimated
           599  summary         This session continues an earlier part of the same conversation, which was summarised to make room. The full transcript is in the log…
           498  Read            src/login/route.ts
           272  Read            src/web/read-form.ts
           270  Read            test/read-form.test.ts
           251  Grep            src
           250  Edit (request)  test/read-form.test.ts
           207  Edit (request)  src/web/read-form.ts
           199  Bash            npm test -- login read-form

      Cost                           tokens      cost    share                          Rewrites                                  1 compaction, 1 clearing by the host
        cache reads                   35.0k    <$0.01    11.5%  ━━╸                       ▲ compacted (manual)       4.6k → 3.8k  after call 6, 2026-03-09 09:17
        cache writes, 5 minutes        6.1k     $0.02    49.5%  ━━━━━━━━━━                △ cleared 1 result           131 saved  after call 9, 2026-03-09 09:28
        input, not cached                40    <$0.01     0.3%  ╸
        output                         1.2k     $0.01    38.8%  ━━━━━━━━
        total                                   $0.03
        the cache saved $0.06
        cache writes without a lifetime are counted as writes for the shortest one
      "
    `)
  })

  it('in ASCII has no other characters', () => {
    expect(renderSessionPage(report, screen(80, { LANG: 'C' }))).toMatch(/^[\x20-\x7e\n]*$/)
  })
})

/** Everything that a page can show, longer than fits. */
function crowded(given: SessionReport): SessionReport {
  const long = 'a very long name with 日本語 in it '.repeat(12)
  const damaged = (['torn-line', 'bad-json', 'missing-parent'] as const).map((kind, line) => ({
    kind,
    line,
    why: long,
    file: `/home/user/${long}`,
  }))
  const usage = { input: 1, cacheRead: 2, cacheCreation: 3, output: 4 }
  return {
    ...given,
    file: `/home/user/${long}.jsonl`,
    project: `/home/user/${long}`,
    models: [long, 'b', 'c'],
    firstPrompt: long,
    byTool: Array.from({ length: 20 }, (_, index) => ({
      tool: `${index} ${long}`,
      calls: 12_345,
      requestTokens: 1e9,
      resultTokens: 1e9,
    })),
    largest: [
      { kind: 'result', tool: long, what: long, tokens: 1e9, line: 1 },
      { kind: 'request', tool: 'Edit', what: `/home/user/${'x/'.repeat(200)}`, tokens: 1, line: 2 },
      { kind: 'thinking', tool: null, what: '', tokens: 0, line: 3 },
    ],
    duplicateReads: Array.from({ length: 9 }, () => ({ path: `/${long}`, count: 12_345, tokens: 1e9 })),
    money: { ...given.money, missing: [long], assumed: [long], feesUsd: 1_234_567.8, savedByCache: -12 },
    costUsd: null,
    outputEstimatedCalls: 12_345,
    compactions: [
      {
        id: null,
        costUsd: null,
        trigger: long,
        preTokens: 1e9,
        postTokens: null,
        at: null,
        afterCall: 1e6,
        isUndone: true,
      },
    ],
    clearings: [
      {
        ...{ trigger: null, preTokens: null, savedTokens: null, results: 1e6, at: report.endedAt },
        ...{ id: null, afterCall: 0, by: 'provider', isUndone: true },
      },
    ],
    cacheBreaks: Array.from({ length: 7 }, (_, index) => ({
      at: index === 0 ? 'no time' : (report.endedAt ?? ''),
      tokensRewritten: 1e9,
      costUsd: index === 0 ? null : 1_234_567.8,
      cause: index === 0 ? ('expired' as const) : ('look-back-outrun' as const),
      evidence: long,
      line: 1e6,
      model: long,
      agent: long,
    })),
    clearingCosts: [
      { at: '', tokensRewritten: 1e9, costUsd: null, breakEvenCalls: 1e9, by: 'host', model: 'm' },
    ],
    agents: Array.from({ length: 7 }, () => ({ id: long, apiCalls: 12_345, usage, costUsd: null })),
    damaged,
    copiedCalls: 12_345,
    callsWithoutUsage: 12_345,
    brokenOff: long,
  }
}

describe('no line is wider than the screen', () => {
  it.each([60, 72, 80, 100, 129, 130, 159, 160])('of %d columns', (columns) => {
    for (const shown of [report, crowded(report)]) {
      const lines = renderSessionPage(shown, screen(columns)).split('\n')
      expect(lines.filter((line) => measureTextWidth(line) > columns)).toEqual([])
    }
  })
})

describe('warnings', () => {
  const warned = (given: Partial<SessionReport>) =>
    renderSessionPage({ ...report, ...given }, screen(160))
      .split('\n')
      .filter((line) => /^!|^ {2}\S/.test(line))
      .slice(-9)
      .filter((line) => line.startsWith('!'))

  it('are grouped by reason, whatever ids they mention', () => {
    const uuid = (one: number) => `7e57ed00-0000-4000-8000-00000000000${one}`
    const damaged: SessionReport['damaged'] = [
      { kind: 'torn-line', line: 4, why: 'the last line was cut off; it is left out' },
      { kind: 'torn-line', line: 5, why: 'the gzip data ends early: nothing behind this could be read' },
      ...[1, 2, 3].map((one) => ({
        kind: 'duplicate-uuid' as const,
        line: one,
        why: `the uuid ${uuid(one)} was there before`,
        uuid: uuid(one),
      })),
      { kind: 'bad-json', line: 7, why: 'lines 7 to 9: no JSON' },
      { kind: 'bad-json', line: 12, why: 'no JSON' },
    ]
    expect(warned({ damaged })).toEqual([
      '! line 4: the last line was cut off; it is left out',
      '! line 5: the gzip data ends early: nothing behind this could be read',
      `! line 1: the uuid ${uuid(1)} was there before (and 2 more like it)`,
      '! lines 7 to 9: no JSON (and 1 more like it)',
    ])
  })

  it('beyond the limit are counted', () => {
    const damaged = Array.from({ length: 12 }, (_, line) => ({
      kind: 'bad-shape' as const,
      line: line + 1,
      why: `reason ${'abcdefghijkl'[line]}`,
    }))
    expect(warned({ damaged }).at(-1)).toBe('! and 4 more kinds of damage (--json lists them all)')
  })

  it('mention responses without usage, for Codex as well', () => {
    expect(warned({ format: 'codex', callsWithoutUsage: 1 })).toEqual([
      '! 1 response without usage in the log: not included in any figure; cost not known',
    ])
    expect(warned({ callsWithoutUsage: 2 })).toEqual([
      '! 2 responses without usage in the log: tokens and cost are not known',
    ])
  })
})

it('a session without a model response says so and shows no figures', () => {
  const empty: SessionReport = {
    ...report,
    apiCalls: 0,
    copiedCalls: 0,
    context: { ...report.context, points: [] },
    tokensByClass: { ...report.tokensByClass, total: 0 },
    byTool: [],
    largest: [],
    duplicateReads: [],
    money: { ...report.money, byClass: { ...report.money.byClass, ...noTokens(report) } },
    compactions: [],
    clearings: [],
    firstPrompt: null,
  }
  expect(renderSessionPage(empty, screen(80))).toBe(
    [
      'login-bug.jsonl                                                         tidemark',
      'claude-sonnet-5-5 · 2026-03-09 09:14 – 09:28 (14 min)',
      '',
      'No model response in this session: 43 records read.',
      '',
    ].join('\n'),
  )
})

function noTokens({ money }: SessionReport): SessionReport['money']['byClass'] {
  const none = { tokens: 0, usd: 0 }
  return { ...money.byClass, input: none, cacheRead: none, write5m: none, write1h: none, output: none }
}
