/** What a library user gets with nothing set: state after a compaction, ways to read what left the context. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Session } from 'tidemark'
import { toolResult, user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemarkOptions } from '../support/test-tidemark.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-defaults-'))
})
afterEach(() => {
  rmSync(home, { recursive: true, force: true, maxRetries: 10 })
})

let count = 0

/** Appends a tool call of the model and its result, as a caller with its own loop does. */
async function call(session: Session, name: string, input: object, result: string): Promise<void> {
  count += 1
  const id = `toolu_${count}`
  await session.append({
    id: `msg_${count}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5-5',
    content: [{ type: 'tool_use', id, name, input }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 10, output_tokens: 10 },
  })
  await session.append(toolResult(id, result))
}

const READ_TOOL = {
  name: 'open_file',
  input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}
const SAVE_TOOL = {
  name: 'save',
  input_schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
}

async function openWorked(options: TestTidemarkOptions = {}, tools: readonly object[] = [READ_TOOL]) {
  const made = createTestTidemark({ policy: { compact: { chain: { local: 'only' } } }, ...options })
  const session = await made.tide.open('s', { tools })
  await session.append(user('Fix the login.'))
  await call(
    session,
    'open_file',
    { path: '/src/login.ts' },
    `export const login = 1\n${'// filler\n'.repeat(900)}`,
  )
  await call(session, 'TodoWrite', { todos: [{ content: 'write the test', status: 'pending' }] }, 'saved')
  await call(session, 'ExitPlanMode', { plan: 'First the test, then the fix.' }, 'approved')
  await call(session, 'other', {}, 'x '.repeat(9_000))
  return { ...made, session }
}

async function compacted(session: Session): Promise<string> {
  expect(await session.compact()).toMatchObject({ ok: true })
  return JSON.stringify(session.messages())
}

describe('after a compaction, with nothing set', () => {
  it('todos, plan and the last known text of a file are back, from the log alone', async () => {
    const { session, tide } = await openWorked()
    const text = await compacted(session)
    expect(text).toContain('[pending] write the test')
    expect(text).toContain('First the test, then the fix.')
    expect(text).toContain('the file itself was not read again]\\nexport const login = 1')
    await tide.close()
  })

  it('what a tool says about a file is not taken for its text, and edits of other tools are followed', async () => {
    const { session } = await openWorked()
    await call(session, 'line_count', { path: '/src/login.ts' }, '901')
    await call(session, 'patch_it', { path: '/src/login.ts', old: 'login = 1', new: 'login = 2' }, 'changed')
    await call(session, 'other', {}, 'x '.repeat(9_000))
    expect(await session.compact()).toMatchObject({ ok: true })
    const text = JSON.stringify(session.messages())
    expect([text.includes('export const login = 2'), /login\.ts[^"]{0,120}(changed|901)/.test(text)]).toEqual(
      [true, false],
    )
  })

  it('a file whose reading was stored as a blob is back with its text, not with its beginning and end', async () => {
    const { tide } = createTestTidemark({
      policy: {
        compact: { chain: { local: 'only' } },
        spill: { thresholdTokens: 500, headTokens: 100, tailTokens: 100, exceptTools: ['other'] },
      },
      history: true,
    })
    const session = await tide.open('s', { tools: [READ_TOOL] })
    await session.append(user('Fix the login.'))
    const lines = Array.from({ length: 300 }, (_, line) => `export const line${line} = ${line}`)
    await call(session, 'open_file', { path: '/src/login.ts' }, lines.join('\n'))
    await call(session, 'other', {}, 'x '.repeat(9_000))
    expect(JSON.stringify(session.messages())).not.toContain('line150 = 150')
    const text = await compacted(session)
    expect(text).toContain('the file itself was not read again]\\nexport const line0 = 0')
    expect(text).toContain('line150 = 150')
    await tide.close()
  })

  it('todos and a plan are back, whatever their tools are called', async () => {
    const { session, tide } = await openWorked()
    await call(session, 'update_tasks', { items: [{ title: 'write the fix', done: false }] }, 'saved')
    await call(session, 'write_plan', { text: 'First the fix, then the docs.' }, 'saved')
    await call(session, 'other', {}, 'x '.repeat(9_000))
    const text = await compacted(session)
    expect(text).toContain('[pending] write the fix')
    expect(text).toContain('First the fix, then the docs.')
    expect(text).not.toContain('[pending] write the test')
    await tide.close()
  })

  it('the policy switches each of them off', async () => {
    const policy = { rehydrate: { todos: false, plan: false, files: { count: 0 } } }
    const { session, tide } = await openWorked({
      policy: { ...policy, compact: { chain: { local: 'only' } } },
    })
    const text = await compacted(session)
    expect(text).not.toContain('the file itself was not read again')
    expect(text).not.toContain('The plan of this session.')
    await tide.close()
  })

  it.each([
    ['a tool that can read files', [READ_TOOL], true],
    ['no tool that can', [SAVE_TOOL], false],
  ] as const)(
    'the summary names the log where it is a file and the model has %s',
    async (_, tools, expected) => {
      const { session, tide } = await openWorked({ home }, tools)
      const text = await compacted(session)
      expect(text.includes(join(home, 'sessions', 's.jsonl'))).toBe(expected)
      await tide.close()
    },
  )
})

describe('the history tool, with nothing set', () => {
  const names = (body: string | undefined): readonly string[] =>
    (JSON.parse(body ?? '{}') as { tools?: { name: string }[] }).tools?.map(({ name }) => name) ?? []

  it('is declared where we run the tools, and its calls are answered', async () => {
    const { tide, tools, bodies } = createTestTidemark({ turns: 1 })
    const session = await tide.open('s')
    expect(await session.run('Fix the login.', tools).outcome).toMatchObject({ ok: true })
    expect(names(bodies[0])).toContain('history')
    await tide.close()
  })

  it.each(['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-sonnet-4-5'])(
    'stays declared when the session is opened again, also if it came late or its text was another: %s',
    async (modelId) => {
      for (const isLate of [false, true]) {
        const store: MemoryStore = new Map()
        const first = createTestTidemark({ modelId, turns: 1, journal: createMemoryJournal(store) })
        const session = await first.tide.open('s')
        if (isLate) await session.run('Hello.').outcome
        await session.run('Fix the login.', first.tools).outcome
        await first.tide.close()
        const { lines = [] } = store.get('s') ?? {}
        for (const [index, line] of lines.entries())
          lines[index] = line.replaceAll("Reads this conversation's own past", 'Reads')
        const again = createTestTidemark({ modelId, turns: 1, journal: createMemoryJournal(store) })
        const later = await again.tide.open('s', { tools: first.coder.tools })
        await later.append(user('And the dates.'))
        const request = await later.next()
        expect(request.ok && request.text).toContain('"name":"history"')
        expect(request.ok && request.text).not.toContain('tool_removal')
        await again.tide.close()
      }
    },
  )

  it('is not declared in the caller’s own loop, without tools, or beside a tool of that name', async () => {
    const own = createTestTidemark()
    const session = await own.tide.open('s', { tools: [READ_TOOL] })
    await session.append(user('Fix the login.'))
    const request = await session.next()
    expect(request.ok && names(request.text)).toEqual(['open_file'])
    await own.tide.close()
    const bare = createTestTidemark({ turns: 1 })
    await (await bare.tide.open('s')).run('Hello.').outcome
    expect(names(bare.bodies[0])).toEqual([])
    await bare.tide.close()
    const taken = createTestTidemark({ turns: 1 })
    const history = { description: 'Ours.', run: () => 'ours' }
    await (await taken.tide.open('s')).run('Hello.', { tools: { history } }).outcome
    expect(names(taken.bodies[0])).toEqual(['history'])
    await taken.tide.close()
  })
})
