/** What a fork reads and costs once the provider has cleared results by itself, and what is told of one that misses. */
import { createCoder, createSimulator, type RequestRecord, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { openTestSession } from '../support/test-tidemark.ts'
import { isSummaryBody } from './session-size.ts'

type ForkEvent = Extract<SessionEvent, { readonly type: 'fork' }>

function forksIn(events: readonly SessionEvent[]): readonly ForkEvent['fork'][] {
  return events.flatMap((event) => (event.type === 'fork' ? [event.fork] : []))
}

function clearedFrom(request: RequestRecord | undefined): number {
  return (request?.appliedEdits ?? []).reduce(
    (sum, edit) => sum + ('cleared_tool_uses' in edit ? edit.cleared_tool_uses : 0),
    0,
  )
}

describe('a summary where the provider clears results by itself', () => {
  it('reads the cached conversation, and nothing more is cleared for it', async () => {
    const stage = await openTestSession({
      window: 40_000,
      realWindow: 200_000,
      maxOutput: 64_000,
      modelId: 'claude-sonnet-5-5',
      turns: 20,
      resultTokens: 1_500,
      policy: { notes: { enabled: false }, compact: { background: false } },
    })
    const { session, simulator, bodies, events, tools } = stage
    for (const prompt of ['Mend the sums of orders.', 'And the dates.'])
      expect(await session.run(prompt, tools).outcome).toMatchObject({ ok: true })
    const summaries = bodies.flatMap((body, index) => (isSummaryBody(body) ? [index] : []))
    const forks = forksIn(events)
    expect(forks.length).toBeGreaterThan(0)
    expect(forks.map(({ missed }) => missed)).toEqual(forks.map(() => null))
    expect(Math.min(...forks.map(({ read, expected }) => read / expected))).toBeGreaterThanOrEqual(0.95)
    // The provider clears what it had cleared from the request before, and nothing more.
    for (const index of summaries)
      expect(clearedFrom(simulator.requests[index])).toBe(clearedFrom(simulator.requests[index - 1]))
    expect(Math.max(...simulator.requests.map(clearedFrom))).toBeGreaterThan(10)
    expect(session.money().breaks).toBe(0)
  })
})

describe('a fork that misses the cache', () => {
  it.each([false, true])(
    'says why, and is counted as a break and in the money lost (after an undo: %s)',
    async (isUndone) => {
      const coder = createCoder({ turns: 12, resultTokens: 1_500 })
      const [simulator, other] = [1, 2].map(() => createSimulator({ script: withSummaries(coder.script) }))
      const fetch: typeof globalThis.fetch = (input, init) => {
        // The summary is asked of a server that has none of the cache.
        const server = isSummaryBody(String(init?.body)) ? other : simulator
        if (server === undefined) throw new Error('no server')
        return server.fetch(input instanceof Request ? input : String(input), init)
      }
      const tide = createTidemark({
        model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }),
        memory: true,
        env: {},
      })
      const session = await tide.open('a', {
        tools: coder.tools,
        runTool: (call) => String(coder.toolResult(call).content),
      })
      const forks: ForkEvent['fork'][] = []
      session.on('fork', ({ fork }) => forks.push(fork))
      await session.run('Mend the sums of orders.').outcome
      if (isUndone) {
        expect(await session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
        expect(await session.undo()).toMatchObject({ ok: true })
      }
      expect(await session.compact()).toMatchObject({ ok: true })
      expect(forks).toMatchObject([
        { read: 0, missed: expect.stringMatching(/^Cache broke: nothing in the request/) },
      ])
      const { breaks, tokensLostToBreaks, lostToBreaks } = session.money()
      expect([breaks, tokensLostToBreaks]).toEqual([1, forks[0]?.expected])
      expect(lostToBreaks.total).toBeGreaterThan(0)
      await tide.close()
    },
  )

  it('has missed nothing where it read what was expected, as after an undo', async () => {
    const { session, events, tools } = await openTestSession({
      window: 200_000,
      turns: 6,
      resultTokens: 1_500,
    })
    expect(await session.run('Mend the sums of orders.', tools).outcome).toMatchObject({ ok: true })
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(await session.undo()).toMatchObject({ ok: true })
    expect(await session.compact()).toMatchObject({ ok: true })
    const [, second] = forksIn(events)
    expect(second).toMatchObject({ read: second?.expected, missed: null })
    expect(second?.read).toBeGreaterThan(5_000)
  })
})
