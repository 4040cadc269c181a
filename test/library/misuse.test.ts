/** What is given wrong is said at once, in one line that names it; nothing is begun. */
import { memoryFiles, type OpenOptions, type Session } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const DEFINITION = { name: 'Read', description: 'Reads.', input_schema: { type: 'object' } }

/** The message of the `bad-option` that it throws or rejects with. */
async function said(act: () => unknown): Promise<unknown> {
  try {
    await act()
    return null
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'bad-option' })
    return thrown instanceof Error ? thrown.message : thrown
  }
}

describe('open', () => {
  it.each<[object, string]>([
    [{ tool: {} }, 'open: unknown option tool. Did you mean tools?'],
    [{ hooks: { precompact: [] } }, 'hooks: unknown option precompact. Did you mean preCompact?'],
    [
      { hooks: { preCompact: () => {} } },
      'hooks.preCompact: expected a list of { name, run(input, signal), timeoutSeconds }.',
    ],
    [
      { cleanups: [() => {}] },
      'open: cleanups is [a function]; expected a list of { name, scope, forget(rewritten) }; scope is "main" or the source of an agent.',
    ],
    [
      { cleanups: [{ name: 'cache', forget: () => {} }] },
      'open: cleanups is [an object]; expected a list of { name, scope, forget(rewritten) }; scope is "main" or the source of an agent.',
    ],
    [
      { carriers: [memoryFiles({ cwd: '/' })] },
      'open: carriers is [[an object, an object]]; expected a flat list of context sources, such as [...memoryFiles({ cwd })], or a function that returns one.',
    ],
    [
      { carriers: () => undefined },
      'carriers: the function returned undefined; expected a flat list of context sources, such as [...memoryFiles({ cwd })], or a function that returns one.',
    ],
    [{ interactive: 1 }, 'open: interactive is 1; expected true or false.'],
  ])('%j', async (options, message) => {
    const { tide } = createTestTidemark()
    expect(await said(() => tide.open('a', options as OpenOptions))).toBe(message)
    expect(await tide.open('a')).toMatchObject({ id: 'a' })
  })
})

describe('a session', () => {
  it.each<[string, (session: Session) => unknown, string]>([
    [
      'run with tools that nothing runs',
      (session) => session.run('hello', { tools: [DEFINITION] }),
      'run: nothing runs the tools Read. Give runTool(call, signal), or each tool as { description, inputSchema, run }.',
    ],
    [
      'run with another name',
      (session) => session.run('hello', { tool: [] } as never),
      'run: unknown option tool. Did you mean tools?',
    ],
    [
      'run of nothing',
      (session) => session.run(undefined as never),
      'run: the prompt is undefined; expected text, blocks, or null to continue.',
    ],
    [
      'a signal that is none',
      (session) => session.run('hello', { signal: new AbortController() as never }),
      'signal: expected an AbortSignal, as new AbortController().signal.',
    ],
    [
      'next with another name',
      (session) => session.next({ settled: true } as never),
      'next: unknown option settled. Did you mean settle?',
    ],
    [
      'compact with another name',
      (session) => session.compact({ instruction: 'x' } as never),
      'compact: unknown option instruction. Did you mean instructions?',
    ],
    [
      'prepare of no plan',
      (session) => session.prepare({} as never),
      'prepare: expected a plan, as planCompaction returns it if ok, found an object.',
    ],
    [
      'commit of no draft',
      (session) => session.commit({} as never),
      'commit: expected a draft, as prepare returns it if ok, found an object.',
    ],
    [
      'commit of a refusal',
      (session) => session.commit({ ok: false, reason: 'floor', message: 'Too much.' } as never),
      'commit: expected a draft, as prepare returns it if ok, found a refusal: Too much.',
    ],
    [
      'undo of no id',
      (session) => session.undo({ force: true } as never),
      'undo: the id is an object; expected that of a compaction or clearing, or nothing for the newest.',
    ],
    [
      'another model by its name',
      (session) => session.switchModel('claude-haiku-5-5' as never),
      'switchModel: model is "claude-haiku-5-5"; expected a model, as returned by anthropic("claude-sonnet-5-5").',
    ],
    [
      'no such event',
      (session) => session.on('compacted' as never, () => {}),
      'on: unknown event compacted. Did you mean compact?',
    ],
    [
      'no listener',
      (session) => session.on('compact', undefined as never),
      'on("compact", listener): expected a function.',
    ],
  ])('%s', async (_, act, message) => {
    const session = await createTestTidemark().tide.open('a')
    expect(await said(() => act(session))).toBe(message)
    expect(session.messages()).toEqual([])
  })

  it('takes tools that the provider runs, and what runs those it knows', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a', { tools: world.coder.tools })
    const search = { type: 'web_search_20250305', name: 'web_search' }
    const { runTool } = world.tools
    if (runTool === undefined) throw new Error('the coder runs its tools')
    expect(await session.run('Mend the sums.', { runTool }).outcome).toMatchObject({ ok: true })
    expect(world.simulator.requests.at(-1)?.status).toBe(200)
    expect(await said(() => session.run('And?', { tools: [search] }).outcome)).toBeNull()
  })
})

describe('what is refused changes nothing', () => {
  const TIME = { time: { description: 'The time.', inputSchema: { type: 'object' }, run: () => 'noon' } }

  it('run with a signal that is none keeps the tools', async () => {
    const world = createTestTidemark({ history: false })
    const session = await world.tide.open('a', world.tools)
    const options = { tools: TIME, signal: new AbortController() as never }
    expect(() => session.run('hello', options)).toThrow('expected an AbortSignal')
    expect(await session.run('Mend the sums.').outcome).toMatchObject({ ok: true })
    expect(JSON.parse(world.bodies[0] ?? '').tools).toHaveLength(world.coder.tools.length)
  })

  it('next keeps tools and system prompt if calls have no result', async () => {
    const world = createTestTidemark({ system: 'Be brief.' })
    const session = await world.tide.open('a', world.tools)
    await session.append(
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }] },
    )
    const refused = await session.next({ tools: TIME, system: 'Be long.' })
    expect(refused).toMatchObject({ ok: false, reason: 'open-calls' })
    const request = await session.next({ settle: true })
    if (!request.ok) throw new Error(request.message)
    expect(request.text).toContain('Be brief.')
    expect(request.text).not.toContain('The time.')
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 9e15, '12:00'])(
    'a clock that says %s is no clock',
    (time) => {
      const clock = { now: () => time as number, sleep: async () => {} }
      expect(() => createTestTidemark({ clock })).toThrow(
        expect.objectContaining({
          code: 'bad-option',
          message: expect.stringMatching(/^clock: now\(\) returned/),
        }),
      )
    },
  )

  it('a clock that breaks later is named, and the session goes on when it is mended', async () => {
    let time: number = Date.UTC(2026, 0, 1)
    const clock = { now: () => time, sleep: () => new Promise<void>(() => {}) }
    const session = await createTestTidemark({ clock }).tide.open('a')
    time = Number.NaN
    expect(await said(() => session.append({ role: 'user', content: 'hello' }))).toBe(
      'clock: now() returned NaN; expected milliseconds since 1970.',
    )
    time = Date.UTC(2026, 0, 2)
    expect(await session.append({ role: 'user', content: 'hello' })).toHaveLength(1)
  })
})
