import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FAILURE, PROMPTS, type WorkingLine, writeWorkingSession } from '../../test/working-session.ts'
import { type LogContents, readLog } from '../logs/read-log.ts'
import { createSingleLogJournal } from '../storage/file-journal.ts'
import { compactLog, undoLog } from './compact-log.ts'
import type { CompactLogOptions } from './compact-report.ts'
import { findOutputProblem, writeLogAndBlobs } from './write-log.ts'

/** A session whose log has the system prompt, the tools and a todo list. */
const SAMPLE = join(import.meta.dirname, '../../../cli/sample/login-bug.jsonl')

let folder = ''
let path = ''
let lines: readonly WorkingLine[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-compact-'))
  path = join(folder, 'working.jsonl')
  lines = writeWorkingSession(path)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function logAt(file: string): Promise<LogContents> {
  const log = await readLog(file)
  if (!log.ok) throw new Error(log.message)
  return log
}

async function compacted(options: CompactLogOptions = {}, file: string = path) {
  const outcome = await compactLog(await logAt(file), options)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome
}

function messagesIn(log: LogContents): unknown {
  return toApiMessages(
    flattenContext(buildContextView(buildSessionLog(log.records.map(({ record }) => record)))),
  )
}

describe('a foreign log', () => {
  it('is compacted in memory, with what may not be lost in the next request', async () => {
    const before = readFileSync(path, 'utf8')
    const { report } = await compacted()
    const text = JSON.stringify(report.messages)
    const wanted = [...PROMPTS, `${FAILURE} (2)`, '/home/user/tides/src/tide-0.ts', 'line0x2']
    expect(wanted.filter((part) => !text.includes(part))).toEqual([])
    expect(text).toContain('as the log of the session last had it; the file itself was not read again')
    expect(report.tokensAfter).toBeLessThan(report.tokensBefore)
    expect(report.receipt.lost).toEqual({
      files: [],
      userMessages: [],
      errors: [],
      identifiers: report.receipt.lost.identifiers,
      moreIdentifiers: report.receipt.lost.moreIdentifiers,
    })
    expect([report.model, report.window, report.summarizer]).toEqual(['claude-sonnet-4-5', 200_000, 'notes'])
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual([before, ['working.jsonl']])
  })

  it('becomes a session of ours that holds all of it, is read as compacted, and can be taken back', async () => {
    const out = join(folder, 'out.jsonl')
    const { report, written } = await compacted({ transcript: out })
    expect(await writeLogAndBlobs(out, written)).toMatchObject({ ok: true })
    const log = await logAt(out)
    expect([log.format, log.damage]).toEqual(['tidemark', []])
    expect(messagesIn(log)).toEqual(report.messages)
    const kept = new Set(log.records.map(({ record }) => record.uuid))
    expect(lines.filter(({ uuid }) => !kept.has(uuid))).toEqual([])
    const undone = await undoLog(log, report.id)
    expect(undone.ok && undone.report.messages).toEqual(messagesIn(await logAt(path)))
  })

  it('is compacted as of a record, moved back to where it may be cut', async () => {
    const { report, written } = await compacted({ at: lines[9]?.uuid ?? '' })
    expect([report.at, report.movedFrom, report.recordsAfter]).toEqual([
      lines[8]?.uuid,
      lines[9]?.uuid,
      lines.length - 9,
    ])
    expect(written.records.length).toBe(9)
    const text = JSON.stringify(report.messages)
    expect([text.includes(PROMPTS[1] ?? ''), text.includes(PROMPTS[2] ?? '')]).toEqual([true, false])
  })

  it('keeps what lies on the other side of a pivot word for word', async () => {
    const pivot = lines[16]?.uuid ?? ''
    const upTo = await compacted({ upTo: pivot })
    expect(upTo.report.plan.form).toBe('up_to')
    expect(upTo.report.receipt.kept).toEqual(lines.slice(16).map(({ uuid }) => uuid))
    const from = await compacted({ from: pivot })
    expect(from.report.receipt.kept).toEqual(lines.slice(0, 16).map(({ uuid }) => uuid))
  })
})

it.each([800, 1_500])(
  'a local summary becomes smaller again where names and todos are added to it: %i',
  async (target) => {
    const { report } = await compacted({ target }, SAMPLE)
    expect(report.ledger.length).toBeGreaterThan(0)
    expect(report.tokensAfter).toBeLessThanOrEqual(target)
  },
)

describe('a long session in a small window', () => {
  function talk(round: number): readonly object[] {
    const told = (kind: string): string => `${kind} ${round}: ${'words that may not be lost '.repeat(16)}`
    const common = { ...lines[0], parentUuid: undefined }
    const usage = { input_tokens: 5, output_tokens: 90, cache_read_input_tokens: 9_000 + 900 * round }
    const content = [{ type: 'text', text: told('Finding') }]
    const reply = { id: `msg_long_${round}`, role: 'assistant', model: 'claude-sonnet-4-5', content, usage }
    return [
      { ...common, uuid: `long-user-${round}`, message: { role: 'user', content: told('Request') } },
      { ...common, type: 'assistant', uuid: `long-reply-${round}`, message: reply },
    ]
  }

  function writeTalks(rounds: number, begun: readonly WorkingLine[] = []): void {
    const talks = Array.from({ length: rounds }, (_, round) => talk(round)).flat() as readonly WorkingLine[]
    const long = [...begun, ...talks]
    writeLines(long.map((line, at) => ({ ...line, parentUuid: long[at - 1]?.uuid ?? null })))
  }

  it.each([
    ['a window of 8,000', { window: 8_000 }],
    ['a window of 16,000', { window: 16_000 }],
    ['a window of 32,000', { window: 32_000 }],
    ['a target of 8,000', { target: 8_000 }],
    ['a target of 1,500', { target: 1_500 }],
  ])('in a small window it becomes smaller instead of being refused: %s', async (_, options) => {
    writeTalks(120)
    const { report } = await compacted(options)
    expect(JSON.stringify(report.messages)).toContain('Request 119: ')
    expect(report.receipt.lost.userMessages.length).toBeGreaterThan(0)
    if ('target' in options) expect(report.tokensAfter).toBeLessThanOrEqual(options.target)
  })

  it('a target that is too small is refused with the smallest one that works', async () => {
    writeTalks(120)
    const sizes: number[] = []
    for (const target of [1, 40]) {
      const outcome = await compactLog(await logAt(path), { target })
      const message = outcome.ok ? '' : outcome.message
      expect(outcome).toMatchObject({ ok: false, reason: 'floor' })
      sizes.push(Number(/The smallest target that works here is (\d+)\.$/.exec(message)?.[1]))
    }
    expect(new Set(sizes).size).toBe(1)
    const { report } = await compacted({ target: sizes[0] ?? 0 })
    expect(report.tokensAfter).toBe(sizes[0])
    expect(report.summary).toMatch(/First request: "Request 0: .*\n- Latest message, \[120\]: "Request 119: /)
  })

  it.each([400, 500, 700, 800, 1_000, 1_300])(
    'has the first request and the latest message at a target of %i',
    async (target) => {
      writeTalks(120)
      const { report } = await compacted({ target })
      expect(report.tokensAfter).toBeLessThanOrEqual(target)
      expect(report.summary).toMatch(
        /First request: "Request 0: .*\n- Latest message, \[120\]: "Request 119: /,
      )
    },
  )

  it('fills what files that do not fit leave free', async () => {
    const rows = Array.from(
      { length: 400 },
      (_, at) => `${at + 1}\tconst tide_${at} = 'words of a long file'`,
    )
    const read = { type: 'tool_result', tool_use_id: 'toolu_1', content: rows.join('\n') }
    const begun = [lines[0], lines[1], { ...lines[2], message: { role: 'user', content: [read] } }]
    writeTalks(120, begun as readonly WorkingLine[])
    const { report } = await compacted({ target: 6_000 })
    expect([report.receipt.carried, report.tokensAfter > 4_500]).toEqual([[], true])
  })

  it('keeps what the model found as far as its share of what it replaces allows', async () => {
    writeTalks(80)
    const { report } = await compacted({ target: 16_000 })
    expect(
      report.summary.match(/Finding \d+: (?:words that may not be lost ){15}/g)?.length,
    ).toBeGreaterThanOrEqual(20)
  })
})

describe('what is refused', () => {
  it.each([
    ['an id that names nothing', { at: 'nothing-like-it' }, 'bad-record'],
    ['a pivot that names nothing', { from: 'nothing-like-it' }, 'bad-record'],
    ['a target that nothing fits', { target: 20 }, 'floor'],
    ['by whoever is asked', { confirm: async () => false }, 'declined'],
    ['once it is called off', { signal: AbortSignal.abort() }, 'aborted'],
  ] as const)('%s', async (_, options, reason) => {
    const outcome = await compactLog(await logAt(path), options)
    expect(outcome.ok ? null : outcome.reason).toBe(reason)
    expect(readdirSync(folder)).toEqual(['working.jsonl'])
  })

  it('a compaction by which nothing is gained', async () => {
    writeLines([lines[0], { ...lines[7], parentUuid: lines[0]?.uuid }])
    const outcome = await compactLog(await logAt(path))
    expect(outcome.ok ? null : outcome.reason).toBe('not-smaller')
  })

  it.each([50, 95])(
    'a compaction that would cut the words of the user although the window has room: %i %',
    async (maximumPercent) => {
      const words = (round: number): string =>
        Array.from({ length: 20 }, (_, row) => `Rule ${round}.${row}: the pier ${row} is closed.`).join('\n')
      const talk = [0, 1, 2].flatMap((round) => [
        { ...lines[0], uuid: `words-${round}`, message: { role: 'user', content: words(round) } },
        { ...lines[7], uuid: `reply-${round}` },
      ])
      writeLines(talk.map((line, at) => ({ ...line, parentUuid: talk[at - 1]?.uuid ?? null })))
      const outcome = await compactLog(await logAt(path), { window: 1_000_000, maximumPercent })
      expect(outcome.ok ? null : outcome.reason).toBe('not-smaller')
      expect(outcome.ok ? '' : outcome.message).toMatch(
        /^A compaction is not worth it: \d+ tokens would become \d+, of which \d+ are the user's own words\. At most \d+ are accepted \(compact\.maximumPercentOfReplaced\)\.$/,
      )
    },
  )
})

describe('worth', () => {
  const rows = (amount: number): string =>
    Array.from({ length: amount }, (_, row) => `${row + 1}\tconst tide_${row} = 'high water at noon'`).join(
      '\n',
    )

  /** A session that reads files again and again, with a question of the user between two reads. */
  function writeReads(files: number, rowsEach: number): void {
    const talk = Array.from({ length: files }, (_, at) => {
      const path = `/home/user/tides/src/read-${at}.ts`
      const call = { type: 'tool_use', id: `toolu_read_${at}`, name: 'Read', input: { file_path: path } }
      const result = { type: 'tool_result', tool_use_id: `toolu_read_${at}`, content: rows(rowsEach) }
      const message = { id: `msg_read_${at}`, role: 'assistant', model: 'claude-sonnet-4-5' }
      return [
        { ...lines[0], uuid: `ask-${at}`, message: { role: 'user', content: `What does file ${at} say?` } },
        { ...lines[1], uuid: `call-${at}`, message: { ...message, content: [call] } },
        { ...lines[2], uuid: `rows-${at}`, message: { role: 'user', content: [result] } },
        {
          ...lines[1],
          uuid: `said-${at}`,
          message: {
            ...message,
            id: `msg_said_${at}`,
            content: [{ type: 'text', text: `It is file ${at}.` }],
          },
        },
      ]
    }).flat() as readonly WorkingLine[]
    writeLines(talk.map((line, at) => ({ ...line, parentUuid: talk[at - 1]?.uuid ?? null })))
  }

  it.each([
    [4, 40],
    [12, 100],
    [30, 300],
  ])('%i files of %i lines: the result has at most half of what it replaces', async (files, rowsEach) => {
    writeReads(files, rowsEach)
    const { report } = await compacted()
    expect(report.tokensAfter).toBeLessThanOrEqual(report.tokensBefore / 2)
    expect(report.receipt.lost.userMessages).toEqual([])
  })

  it('files that would make the result larger than half come back where more is allowed', async () => {
    writeReads(6, 60)
    const half = await compacted()
    const most = await compacted({ maximumPercent: 95 })
    expect(most.report.receipt.carried.length).toBeGreaterThan(half.report.receipt.carried.length)
    expect(most.report.tokensAfter).toBeGreaterThan(half.report.tokensAfter)
  })

  it('without a model the draft is the notes of the session, with the newest messages word for word', async () => {
    writeReads(30, 300)
    const { report } = await compacted()
    expect([report.summarizer, report.plan.form]).toEqual(['notes', 'up_to'])
    expect(report.summary).toContain('# Task specification')
    expect(report.receipt.kept).toContain('said-29')
  })

  it('where the words of the user are many, all else gives way before any of them', async () => {
    const rules = (round: number): string =>
      Array.from({ length: 95 }, (_, row) => `Rule ${round}.${row}: the pier ${row} is closed.`).join('\n')
    const talk = [0, 1, 2, 3, 4].flatMap((round) => {
      const content = [
        { type: 'text', text: `Finding ${round}: ${'the tide is high at noon, '.repeat(330)}` },
      ]
      const message = { id: `msg_${round}`, role: 'assistant', model: 'claude-sonnet-4-5', content }
      return [
        { ...lines[0], uuid: `rules-${round}`, message: { role: 'user', content: rules(round) } },
        { ...lines[1], uuid: `found-${round}`, message },
      ]
    })
    writeLines(talk.map((line, at) => ({ ...line, parentUuid: talk[at - 1]?.uuid ?? null })))
    const { report } = await compacted()
    expect(report.receipt.lost.userMessages).toEqual([])
    expect(report.tokensAfter).toBeLessThanOrEqual(report.tokensBefore / 2)
    expect(report.tokensAfter).toBeGreaterThan(report.tokensBefore / 3)
  })

  it('a plan that is attached again counts: a result above half because of it is not written', async () => {
    writeReads(4, 40)
    const plan = Array.from({ length: 200 }, (_, at) => `Step ${at}: move the tide table ${at}.`).join('\n')
    const call = { type: 'tool_use', id: 'toolu_plan', name: 'ExitPlanMode', input: { plan } }
    const message = { id: 'msg_plan', role: 'assistant', model: 'claude-sonnet-4-5', content: [call] }
    const result = { type: 'tool_result', tool_use_id: 'toolu_plan', content: 'The user approved the plan.' }
    const log = readFileSync(path, 'utf8').trimEnd()
    const added = [
      { ...lines[1], uuid: 'plan', parentUuid: 'said-3', message },
      { ...lines[2], uuid: 'approved', parentUuid: 'plan', message: { role: 'user', content: [result] } },
    ]
    writeFileSync(path, [log, ...added.map((line) => JSON.stringify(line)), ''].join('\n'))
    const outcome = await compactLog(await logAt(path))
    expect(outcome.ok ? null : outcome.reason).toBe('not-smaller')
    const { report } = await compacted({ maximumPercent: 95 })
    expect(JSON.stringify(report.messages)).toContain('Step 199')
  })

  it('a full window is compacted at any saving', async () => {
    writeReads(12, 100)
    const { report } = await compacted({ window: 12_000, maximumPercent: 1 })
    expect(report.tokensAfter).toBeLessThan(report.tokensBefore)
    expect(report.tokensAfter).toBeGreaterThan(report.tokensBefore / 100)
  })
})

it('a file that would make it larger is let go, although the figures before hold a prompt that the log has not', async () => {
  const rows = Array.from({ length: 60 }, (_, row) => `${row + 1}→export const row${row} = ${row}`)
  const read = { type: 'tool_result', tool_use_id: 'toolu_1', content: rows.join('\n') }
  writeLines([lines[0], lines[1], { ...lines[2], message: { role: 'user', content: [read] } }])
  const { report } = await compacted()
  const shed = report.trace.filter(({ outcome }) => outcome === 'shed').map(({ kind }) => kind)
  expect([shed, report.receipt.carried]).toEqual([['files:/home/user/tides/src/tide-0.ts'], []])
  expect(report.tokensAfter).toBeLessThan(report.tokensBefore)
})

function countPrompt(usage: Readonly<Record<string, number>>): number {
  const { input_tokens = 0, cache_read_input_tokens = 0, cache_creation_input_tokens = 0 } = usage
  return input_tokens + cache_read_input_tokens + cache_creation_input_tokens
}

describe('sizes', () => {
  it('before and after leave out alike what the log does not have, and so does the target', async () => {
    const { report } = await compacted()
    writeLines(lines.map((line) => withLargerPrefix(line, 30_000)))
    const larger = await compacted({ target: report.tokensAfter })
    expect([larger.report.tokensBefore, larger.report.tokensAfter]).toEqual([
      report.tokensBefore,
      report.tokensAfter,
    ])
    expect(larger.report.prefixTokens - report.prefixTokens).toBe(30_000)
  })

  it('before are those of the records: what the provider counted in addition is not counted as freed', async () => {
    const late = (line: WorkingLine, at: number): unknown => withLargerPrefix(line, at < 4 ? 0 : 5_000)
    writeLines(lines.map(late))
    const { plan, tokensBefore, prefixTokens } = (await compacted()).report
    const rows = plan.goes.tokens + plan.stays.tokens + plan.unanswered.tokens
    expect(Math.abs(rows - tokensBefore)).toBeLessThan(3)
    const { message } = lines.findLast(({ type }) => type === 'assistant') as unknown as {
      readonly message: { readonly usage: Record<string, number> }
    }
    const last = 5_000 + countPrompt(message.usage)
    expect(plan.notEstimated).toBeGreaterThan(4_000)
    expect(tokensBefore + prefixTokens + plan.notEstimated).toBeGreaterThanOrEqual(last)
  })

  it('of a log that begins in mid-conversation add up to the last request, not to more', async () => {
    // The first request held 60,000 tokens of messages that the log does not have, and the host has cleared 50,000.
    writeLines(lines.map((line, at) => withLargerPrefix(line, at < 8 ? 60_000 : 10_000)))
    const { tokensBefore, prefixTokens } = (await compacted()).report
    const { message } = lines.findLast(({ type }) => type === 'assistant') as unknown as {
      readonly message: { readonly usage: Record<string, number> }
    }
    const last = 10_000 + countPrompt(message.usage)
    expect(tokensBefore + prefixTokens).toBeGreaterThanOrEqual(last)
    expect(tokensBefore + prefixTokens).toBeLessThan(last + 1_000)
  })

  it('of an undo are those of the compaction the other way round', async () => {
    const out = join(folder, 'out.jsonl')
    const { report, written } = await compacted({ transcript: out })
    await writeLogAndBlobs(out, written)
    const undone = await undoLog(await logAt(out), report.id)
    expect(undone.ok && [undone.report.tokensAfter, undone.report.tokensBefore]).toEqual([
      report.tokensBefore,
      report.tokensAfter,
    ])
  })

  it('that fit the target are not refused or made smaller', async () => {
    const { report } = await compacted()
    const again = await compacted({ target: report.tokensAfter })
    expect(again.report.summary).toBe(report.summary)
  })

  it('that do not fit the target are refused with figures that say so', async () => {
    const outcome = await compactLog(await logAt(path), { target: 20 })
    const [, size, target] =
      /still has (\d+) tokens, and the target is (\d+)/.exec(outcome.ok ? '' : outcome.message) ?? []
    expect([Number(size) > 20, target]).toEqual([true, '20'])
  })
})

it('a plan that the model made is attached again, as in an open session', async () => {
  const plan = 'Move the tide tables to one folder, then delete the copies.'
  const common = { sessionId: 'working-0000', cwd: '/home/user/tides', isSidechain: false }
  const call = { type: 'tool_use', id: 'toolu_plan', name: 'ExitPlanMode', input: { plan } }
  const result = { type: 'tool_result', tool_use_id: 'toolu_plan', content: 'The user approved the plan.' }
  const message = { id: 'msg_plan', role: 'assistant', model: 'claude-sonnet-4-5', content: [call] }
  const timestamp = '2026-03-09T08:59:00.000Z'
  writeLines([
    {
      ...common,
      type: 'user',
      uuid: 'p1',
      parentUuid: null,
      timestamp,
      message: { role: 'user', content: 'Plan it.' },
    },
    { ...common, type: 'assistant', uuid: 'p2', parentUuid: 'p1', timestamp, message },
    {
      ...common,
      type: 'user',
      uuid: 'p3',
      parentUuid: 'p2',
      timestamp,
      message: { role: 'user', content: [result] },
    },
    ...lines.map((line, index) => (index === 0 ? { ...line, parentUuid: 'p3' } : line)),
  ])
  const { written } = await compacted()
  expect(written.added).toContain(`"planContent":"${plan}"`)
})

describe('results that the provider cleared on its side', () => {
  it('count as cleared in what stays and in what is left, with the messages still sent whole', async () => {
    // The summary names the file of the log. A drawn name would make its size, which is close to the limit, a matter of chance.
    const fixed = { upTo: lines[8]?.uuid ?? '', transcript: '/home/user/tides/working.jsonl' }
    const whole = await compacted(fixed)
    const reads = lines.flatMap((line) => JSON.stringify(line).match(/toolu_\d+(?=","name":"Read")/) ?? [])
    const microcompactMetadata = { trigger: 'auto', way: 'native', tokensSaved: 9, compactedToolIds: reads }
    const clearing = { type: 'system', subtype: 'microcompact_boundary', microcompactMetadata }
    const links = { uuid: 'cleared-by-provider', parentUuid: lines.at(-1)?.uuid, isSidechain: false }
    writeLines([...lines, { ...clearing, ...links, timestamp: '2026-03-09T09:10:00.000Z' }])
    const cleared = await compacted({ ...fixed, maximumPercent: 100 })
    const drop = whole.report.plan.stays.tokens - cleared.report.plan.stays.tokens
    expect(reads).toHaveLength(3)
    expect(cleared.report.plan.stays.records).toBe(whole.report.plan.stays.records)
    expect(drop).toBeGreaterThan(whole.report.plan.stays.tokens / 2)
    expect(whole.report.tokensAfter - cleared.report.tokensAfter).toBeGreaterThan(0.8 * drop)
    expect(JSON.stringify(cleared.report.messages)).toContain('row299x2')
  })
})

/** Adds tokens to the cache reads of a response, as a larger system prompt that the log does not have would. */
function withLargerPrefix(line: WorkingLine, tokens: number): unknown {
  const { message } = line as { readonly message?: { readonly usage?: Record<string, number> } }
  if (message?.usage === undefined) return line
  const read = (message.usage.cache_read_input_tokens ?? 0) + tokens
  return { ...line, message: { ...message, usage: { ...message.usage, cache_read_input_tokens: read } } }
}

function writeLines(given: readonly unknown[]): void {
  writeFileSync(path, given.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

describe('a log of ours', () => {
  it('is appended to in its place, and taken back there', async () => {
    const own = join(folder, 'own.jsonl')
    const first = await compacted({ transcript: own })
    await writeLogAndBlobs(own, first.written)
    const journal = createSingleLogJournal(own)
    const undone = await undoLog(await logAt(own), first.report.id, { journal })
    expect(undone.ok).toBe(true)
    expect(messagesIn(await logAt(own))).toEqual(messagesIn(await logAt(path)))
    const again = await compacted({ journal }, own)
    await journal.release('')
    expect(messagesIn(await logAt(own))).toEqual(again.report.messages)
    expect(readdirSync(folder).toSorted()).toEqual(['own.jsonl', 'working.jsonl'])
  })
})

describe('where it is written', () => {
  it('nothing that is there gives way unless that is said, and the log itself never', async () => {
    const taken = join(folder, 'taken.jsonl')
    writeFileSync(taken, 'mine')
    const { written } = await compacted()
    expect(await findOutputProblem(join(folder, 'new.jsonl'), path)).toBe(null)
    expect(await findOutputProblem(taken, path, { force: true })).toBe(null)
    const refused = [
      taken,
      join(folder, 'x.gz'),
      join(folder, 'x.jsonl.zst'),
      join(folder, 'no', 'x.jsonl'),
      folder,
    ]
    for (const out of refused) expect(await findOutputProblem(out, path)).toContain(out)
    expect(await findOutputProblem(path, path, { force: true })).toContain('is the log itself')
    expect(await writeLogAndBlobs(taken, written)).toEqual({
      ok: false,
      message: `${taken} is there already.`,
    })
    expect(readFileSync(taken, 'utf8')).toBe('mine')
    expect(await writeLogAndBlobs(taken, written, { force: true })).toMatchObject({ ok: true })
    expect((await logAt(taken)).format).toBe('tidemark')
    expect(readdirSync(folder).toSorted()).toEqual(['taken.jsonl', 'working.jsonl'])
  })
})
