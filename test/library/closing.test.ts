/** Whatever hangs, a session can be called off and closed; and once it is closed, nothing of it is written. */
import type { Journal } from '@tidemark/core/engine/ports'
import { anthropic, type TidemarkOptions, user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

const never = (): Promise<never> => new Promise(() => {})

async function worked(world: TestTidemark) {
  const session = await world.tide.open('a')
  expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({ ok: true })
  return session
}

/** Tells in which order sessions are written to and let go. */
function watched(acts: string[]): { readonly journal: Journal; readonly store: MemoryStore } {
  const store: MemoryStore = new Map()
  const journal = createMemoryJournal(store)
  return {
    store,
    journal: {
      ...journal,
      async append(session, after, records) {
        acts.push('append')
        return journal.append(session, after, records)
      },
      async release(session) {
        acts.push('release')
        await journal.release(session)
      },
    },
  }
}

describe('close', () => {
  it.each([
    ['a summary that is being made', {}],
    ['a hook that hangs', { hooks: { preCompact: [{ name: 'slow', run: never }] } }],
  ] satisfies [string, Partial<TidemarkOptions>][])(
    'calls off %s, waits for it, and nothing is written after',
    async (_, own) => {
      const acts: string[] = []
      const world = createTestTidemark({ journal: watched(acts).journal, ...own })
      const session = await worked(world)
      const plan = await session.planCompaction()
      if (!plan.ok) throw new Error(plan.message)
      const draft = session.prepare(plan)
      await Promise.all([session.close(), session.close()])
      expect(acts.at(-1)).toBe('release')
      expect(await draft).toMatchObject({ ok: false, reason: 'aborted' })
      expect(acts.at(-1)).toBe('release')
      expect(acts.filter((act) => act === 'release')).toHaveLength(1)
    },
  )

  it('calls off a compaction that has the session', async () => {
    const acts: string[] = []
    const hooks = { preCompact: [{ name: 'slow', run: never }] }
    const session = await worked(createTestTidemark({ journal: watched(acts).journal, hooks }))
    const compaction = session.compact()
    await session.close()
    expect(await compaction).toMatchObject({ ok: false, reason: 'aborted' })
    expect(acts.at(-1)).toBe('release')
  })

  it('waits for what was being appended', async () => {
    const acts: string[] = []
    const { journal } = watched(acts)
    const session = await createTestTidemark({ journal }).tide.open('a')
    const said = session.append(user('one'), { role: 'assistant', content: 'two' }, user('three'))
    await session.close()
    expect(await said).toHaveLength(3)
    expect(acts).toEqual(['append', 'append', 'append', 'release'])
  })

  it.each<[string, () => Promise<Response>]>([
    ['a fetch that ignores its signal', never],
    [
      'a body that ignores its signal',
      async () =>
        new Response(new ReadableStream({ pull: never }), {
          headers: { 'content-type': 'text/event-stream' },
        }),
    ],
  ])('does not wait for %s', async (_, fetch) => {
    const acts: string[] = []
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch })
    const session = await createTestTidemark({ journal: watched(acts).journal, model }).tide.open('a')
    const run = session.run('Mend the sums.')
    await new Promise((resolve) => session.on('request-sent', resolve))
    await session.close()
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(acts.at(-1)).toBe('release')
  })

  it('does not wait for a model that ignores its signal', async () => {
    const { window, maxOutput, ...choice } = anthropic('claude-sonnet-5-5', { apiKey: 'any' })
    const connect = () => ({ stream: () => ({ [Symbol.asyncIterator]: () => ({ next: never }) }) })
    const model = { ...choice, window, maxOutput, connect }
    const session = await createTestTidemark({ model }).tide.open('a')
    const run = session.run('Mend the sums.')
    await new Promise((resolve) => session.on('request-sent', resolve))
    await session.close()
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
  })

  it('closes every session and the journal, even if one of them fails', async () => {
    const { journal } = watched([])
    const released: string[] = []
    const release = async (id: string): Promise<void> => {
      released.push(id)
      if (id === 'a') throw new Error('no disk')
    }
    const { tide } = createTestTidemark({ journal: { ...journal, release } })
    for (const id of ['a', 'b']) await tide.open(id)
    await expect(tide.close()).rejects.toThrow('no disk')
    expect(released).toEqual(['a', 'b'])
  })

  it('does not wait for a tool that hangs', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const run = session.run('Mend the sums.', {
      tools: world.coder.tools,
      runTool: async () => {
        await session.close()
        return never()
      },
    })
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
  })
})

describe('a run that is called off', () => {
  it('leaves tools that do not listen, keeps what those say that do, and answers the rest later', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const stop = new AbortController()
    const run = session.run('Mend the sums.', {
      tools: world.coder.tools,
      runTool: () => {
        stop.abort()
        return never()
      },
      signal: stop.signal,
    })
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const settled: number[] = []
    session.on('calls-settled', ({ calls }) => settled.push(calls.length))
    expect(await session.run(null, world.tools).outcome).toMatchObject({ ok: true })
    expect(settled).toEqual([2])
    const heeding = new AbortController()
    const second = session.run('And the dates.', {
      tools: world.coder.tools,
      runTool: (_, signal) => {
        queueMicrotask(() => heeding.abort())
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('half of it')))
      },
      signal: heeding.signal,
    })
    expect(await second.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(JSON.stringify(session.messages().at(-1))).toContain('half of it')
  })
})
