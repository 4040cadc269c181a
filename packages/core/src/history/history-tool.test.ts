import { createFakeBlobs, GeneratorChoices, generateSession, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatRetrievalHint, NO_RETRIEVAL } from '../clearing/clear-candidates.ts'
import { isKnownRecord } from '../log/record.ts'
import { buildSessionLog } from '../log/session-log.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { formatRecordBody } from './history-items.ts'
import { createHistoryToolDefinition, runHistoryTool } from './history-tool.ts'
import type { HistoryToolContext } from './search-history.ts'
import { spillLargeResult } from './spill-results.ts'

const measure = (text: string): number => text.length

function createSource(
  builder: Pick<SessionBuilder, 'session'>,
  more: Partial<HistoryToolContext> = {},
): HistoryToolContext {
  return {
    session: builder.session,
    blobs: null,
    policy: DEFAULT_POLICY.history,
    pageTokens: 400,
    measure,
    ...more,
  }
}

/** A prompt, a read, its answer, an answer in words. */
function createExampleSession(): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('Fix the login')
  builder.assistant('m1', [
    { type: 'text', text: 'I look at it.' },
    { type: 'tool_use', id: 'call-1', name: 'Read', input: { file_path: '/a.ts' } },
  ])
  builder.result('call-1', 'const a = 1\nconst Token = 2')
  builder.assistant('m2', [{ type: 'text', text: 'Done: the token was wrong.' }])
  return builder
}

async function ask(input: unknown, given: HistoryToolContext): Promise<unknown> {
  return (await runHistoryTool(input, given)).content
}

describe('history by id', () => {
  it.each([
    ['r-1', '[r-1] 2023-11-14T22:13:21.000Z user\nFix the login'],
    [
      'call-1',
      'Tool call call-1\n(call call-1) Read {"file_path":"/a.ts"}\n(result of call-1)\nconst a = 1\nconst Token = 2',
    ],
    [
      'm1',
      '[r-2] 2023-11-14T22:13:22.000Z assistant\nI look at it.\n(call call-1) Read {"file_path":"/a.ts"}',
    ],
  ])('%s', async (id, expected) => {
    expect(await ask({ id }, createSource(createExampleSession()))).toBe(expected)
  })

  it('finds nothing of other sessions, and no blob that this one does not name', async () => {
    const blobs = createFakeBlobs()
    const blob = await blobs.put(new TextEncoder().encode('secret of another session'))
    for (const id of ['r-99', blob])
      expect(await runHistoryTool({ id }, createSource(createExampleSession(), { blobs }))).toEqual({
        content: `There is no record, tool call, response or blob ${id} in this session.`,
        is_error: true,
        body: '',
        next: null,
      })
  })

  it('gives lines, and finds within it', async () => {
    expect(await ask({ id: 'r-3', lines: '2-9' }, createSource(createExampleSession()))).toBe(
      '[r-3] 2023-11-14T22:13:23.000Z tool result, lines 2 to 3 of 3\nconst a = 1\nconst Token = 2',
    )
    expect(await ask({ id: 'r-3', text: 'token' }, createSource(createExampleSession()))).toBe(
      '[r-3] 2023-11-14T22:13:23.000Z tool result. 1 line found, with line numbers:\n3: const Token = 2',
    )
  })

  it('pages that are put together are the whole, byte for byte, also of what was put aside', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 600, maxLength: 2_500 }), async (text) => {
        const blobs = createFakeBlobs()
        const given = { type: 'tool_result' as const, tool_use_id: 'call-1', content: text }
        const { result, spilled } = await spillLargeResult({
          ...{ result: given, tool: 'Bash', policy: DEFAULT_POLICY.spill, measure, blobs },
          budgets: { threshold: 500, head: 50, tail: 50 },
          paths: { historyTool: 'history', transcript: null },
        })
        const builder = new SessionBuilder()
        builder.assistant('m1', [{ type: 'tool_use', id: 'call-1', name: 'Bash', input: {} }])
        builder.user([result], { spilled })
        expect(spilled).toHaveLength(1)
        expect(await allPages({ id: spilled[0]?.blob }, createSource(builder, { blobs }))).toBe(text)
        expect(await allPages({ id: 'call-1' }, createSource(builder, { blobs }))).toBe(
          `(call call-1) Bash {}\n(result of call-1)\n${text}`,
        )
      }),
      { numRuns: 30 },
    )
  })

  it('reaches every record of any session, also what a rewrite took out of the view', async () => {
    const choices = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 150, size: 'max' })
    await fc.assert(
      fc.asyncProperty(choices, async (numbers) => {
        const session = buildSessionLog(generateSession(new GeneratorChoices(numbers)).records)
        const records = [...session.records].filter(isKnownRecord)
        for (const record of records.filter(
          ({ uuid }, index) => records.findIndex((one) => one.uuid === uuid) === index,
        ))
          expect(await allPages({ id: record.uuid }, createSource({ session }, { pageTokens: 5_000 }))).toBe(
            formatRecordBody(record),
          )
      }),
      { numRuns: 20 },
    )
  })

  it('says that a blob is gone rather than making one up', async () => {
    const builder = new SessionBuilder()
    builder.user('x', { spilled: [{ toolUseId: 'c', part: null, blob: 'b1', holds: 'text', bytes: 1 }] })
    expect(await ask({ id: 'b1' }, createSource(builder, { blobs: createFakeBlobs() }))).toBe(
      'Blob b1 is not in the store any more: only what the conversation shows of it is left.',
    )
    const searched = await ask({ id: 'b1', text: 'x' }, createSource(builder, { blobs: createFakeBlobs() }))
    expect(searched).toBe(
      'Blob b1 is not in the store any more: only what the conversation shows of it is left.',
    )
    const broken = { get: () => Promise.reject(new Error('Blob b1 is damaged')) }
    expect(await ask({ id: 'b1' }, createSource(builder, { blobs: broken }))).toBe('Blob b1 is damaged')
  })

  it('shows images as images', async () => {
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const builder = new SessionBuilder()
    builder.assistant('m1', [{ type: 'tool_use', id: 'call-1', name: 'Shot', input: {} }])
    builder.result('call-1', [picture])
    expect(await ask({ id: 'call-1' }, createSource(builder))).toEqual([
      {
        type: 'text',
        text: 'Tool call call-1\n(call call-1) Shot {}\n(result of call-1)\n[image image/png]',
      },
      picture,
    ])
  })
})

async function allPages(input: object, given: HistoryToolContext): Promise<string> {
  let text = ''
  let cursor: string | null = null
  do {
    const answer = await runHistoryTool(cursor === null ? input : { ...input, cursor }, given)
    expect(answer.is_error).toBe(undefined)
    expect(measure(answer.body)).toBeLessThanOrEqual(given.pageTokens)
    text += answer.body
    cursor = answer.next
  } while (cursor !== null)
  return text
}

describe('history by text', () => {
  it('shows records newest first, with their ids', async () => {
    expect(await ask({ text: 'TOKEN' }, createSource(createExampleSession()))).toBe(
      [
        '2 found, newest first:',
        '[r-4] 2023-11-14T22:13:24.000Z assistant\n  Done: the token was wrong.',
        '[r-3] 2023-11-14T22:13:23.000Z tool result\n  const Token = 2',
      ].join('\n'),
    )
    expect(await ask({ text: 'nowhere' }, createSource(createExampleSession()))).toBe('Nothing found.')
  })

  it.each([
    ['1 const', 'const a = 1'],
    ['"a = 1"', 'const a = 1'],
    ['"const token"', 'const Token = 2'],
    ['CONST "= 2"', 'const Token = 2'],
    ['"= 2', 'const Token = 2'],
  ])('finds the lines that contain every word and phrase: %s', async (text, line) => {
    expect(await ask({ text }, createSource(createExampleSession()))).toBe(
      `1 found, newest first:\n[r-3] 2023-11-14T22:13:23.000Z tool result\n  ${line}`,
    )
  })

  it.each(['"= const"', 'token 1'])('finds no line that lacks one: %s', async (text) => {
    expect(await ask({ text }, createSource(createExampleSession()))).toBe('Nothing found.')
  })

  it.each<[string, Partial<HistoryToolContext>]>([
    ['matches', { policy: { ...DEFAULT_POLICY.history, matches: 1 } }],
    ['work', { policy: { ...DEFAULT_POLICY.history, searchSteps: 10 } }],
    ['size', { pageTokens: 80 }],
  ])('is bounded in %s, and goes on where it stopped', async (_, more) => {
    const builder = new SessionBuilder()
    for (let index = 0; index < 7; index += 1) builder.user(`note ${index}`)
    const given = createSource(builder, more)
    const answers: string[] = []
    let cursor: string | null = null
    do {
      const answer = await runHistoryTool({ text: 'note', ...(cursor === null ? {} : { cursor }) }, given)
      answers.push(answer.body)
      cursor = answer.next
    } while (cursor !== null)
    expect(answers.length).toBeGreaterThan(3)
    expect(answers.join('\n').match(/note \d/g)).toEqual(
      [6, 5, 4, 3, 2, 1, 0].map((index) => `note ${index}`),
    )
  })

  it('says which record was too long to be searched to its end, and where to search it', async () => {
    const builder = new SessionBuilder()
    builder.user('the needle')
    builder.user(`${'hay '.repeat(300)}\nthe needle`)
    const policy = { ...DEFAULT_POLICY.history, searchSteps: 1_000 }
    const given = createSource(builder, { policy })
    const first = await runHistoryTool({ text: 'needle' }, given)
    expect(first.content).toBe(
      [
        'Nothing found yet: the search was cut short to bound its time.',
        '[r-2] 2023-11-14T22:13:22.000Z user',
        '  … only the first 1000 of 1211 characters were searched; give r-2 as "id" with "text" to search all',
        'More: call again with the same fields and "cursor": "0".',
      ].join('\n'),
    )
    expect(await ask({ text: 'needle', cursor: first.next }, given)).toContain('1 found')
    expect(await ask({ text: 'needle', id: 'r-2', cursor: 1 }, given)).toContain('2: the needle')
  })

  it('looks along the branch that counts', async () => {
    const builder = new SessionBuilder()
    const first = builder.user('start')
    builder.user('left behind')
    builder.user('taken instead', { parentUuid: first.uuid })
    expect(await ask({ text: 'behind' }, createSource(builder))).toBe('Nothing found.')
    expect(await ask({ id: 'r-2' }, createSource(builder))).toBe(
      '[r-2] 2023-11-14T22:13:22.000Z user\nleft behind',
    )
  })
})

describe('history by range', () => {
  it('shows records in order, long ones shortened', async () => {
    expect(await ask({ from: 'r-2', to: 'call-1' }, createSource(createExampleSession()))).toBe(
      '1 record, oldest first:\n[r-2] 2023-11-14T22:13:22.000Z assistant\nI look at it.\n(call call-1) Read {"file_path":"/a.ts"}',
    )
    expect(await ask({ last: 1 }, createSource(createExampleSession(), { pageTokens: 40 }))).toBe(
      '1 record, oldest first:\n[r-4] 2023-11-14T22:13:24.000Z assistant\nDone: the \n… 16 more characters; give r-4 as "id" for all of it',
    )
  })

  it('goes on with its cursor until each was shown once', async () => {
    const builder = new SessionBuilder()
    for (let index = 0; index < 9; index += 1) builder.user(`note ${index}`)
    expect(
      (await allPages({ last: 8 }, createSource(builder, { pageTokens: 150 }))).match(/note \d/g),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((index) => `note ${index}`))
  })
})

describe('what is asked', () => {
  it.each([
    [{}, 'Say what to look for: "id", "text", "from" and "to", or "last".'],
    [null, 'Say what to look for: "id", "text", "from" and "to", or "last".'],
    [{ last: -1 }, '"last" must be a whole number of 1 or more.'],
    [{ id: 'r-1', cursor: 'x' }, '"cursor" must be one that an answer of this tool gave.'],
    [{ id: 'r-1', lines: '9-2' }, '"lines" must be like "120-180".'],
    [{ from: 'nobody' }, '"from": there is no record nobody in this session.'],
    [{ text: ' "" ' }, 'Say what to look for: "id", "text", "from" and "to", or "last".'],
  ])('%j is refused in words', async (input, why) => {
    expect(await runHistoryTool(input, createSource(createExampleSession()))).toMatchObject({
      content: why,
      is_error: true,
    })
  })

  it('leaves fields that are blank out of account', async () => {
    expect(
      await ask({ id: 'r-1', text: ' ', lines: '', cursor: '' }, createSource(createExampleSession())),
    ).toBe('[r-1] 2023-11-14T22:13:21.000Z user\nFix the login')
  })
})

it('the tool is the same each time, under the name the host gives it', () => {
  expect(JSON.stringify(createHistoryToolDefinition())).toBe(
    JSON.stringify(createHistoryToolDefinition('history')),
  )
  expect(createHistoryToolDefinition('recall').name).toBe('recall')
})

it.each([
  [{ historyTool: 'recall', transcript: '/log' }, 'To read it, call recall with {"id":"toolu_1"}.'],
  [{ historyTool: null, transcript: '/log' }, 'To read it, look for toolu_1 in /log.'],
  [NO_RETRIEVAL, 'It cannot be read back here. If you need it, obtain it again.'],
])('the way by %j', (paths, expected) => {
  expect(formatRetrievalHint('toolu_1', paths)).toBe(expected)
})
