/** Limits of a run and a session: what a user sees when one is reached, and that the bill keeps to them. */

import { findReachedLimit } from '@tidemark/core/cost/limits'
import { emptySessionCost, sumSessionCost } from '@tidemark/core/cost/session-cost'
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { compatible, createTidemark, type RunOptions } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

type Limits = NonNullable<RunOptions['limits']>

const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'

/** What the simulator has billed, call by call. */
function listCosts({ simulator }: Pick<TestTidemark, 'simulator'>): readonly number[] {
  return simulator.requests.flatMap(({ cost }) => (cost?.total == null ? [] : [cost.total]))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

describe('a run with a limit', () => {
  it.each<[keyof Limits, number]>([
    ['turns', 2],
    ['tokens', 5_000],
    ['dollars', 0.01],
  ])('of %s ends before the next call with the limit as its outcome', async (limit, allowed) => {
    const world = createTestTidemark({ turns: 20 })
    const session = await world.tide.open('a')
    const outcome = await session.run(PROMPT, { ...world.tools, limits: { [limit]: allowed } }).outcome
    expect(outcome).toMatchObject({ ok: false, reason: 'limit', scope: 'run', limit, allowed })
    if (outcome.ok || outcome.reason !== 'limit') throw new Error('no limit')
    expect(outcome.used).toBeGreaterThanOrEqual(allowed)
    expect(outcome.message).toContain("The run's limit of")
    if (limit === 'turns') expect(world.bodies).toHaveLength(2)
    // The turn stopped after its tools had run, so that it can go on.
    expect(session.messages().at(-1)?.role).toBe('user')
    expect(await session.run(null, world.tools).outcome).toMatchObject({ ok: true })
  })

  it('counts only its own calls', async () => {
    const world = createTestTidemark({ turns: 3 })
    const session = await world.tide.open('a')
    expect(await session.run(PROMPT, { ...world.tools, limits: { turns: 4 } }).outcome).toMatchObject({
      ok: true,
    })
    expect(await session.run('And the tests?', { limits: { turns: 4 } }).outcome).toMatchObject({ ok: true })
  })

  it('counts a reply that broke off and was requested again', async () => {
    let calls = 0
    const world = createTestTidemark({
      script: () => {
        calls += 1
        return { blocks: [{ type: 'text', text: 'One, two.' }], fault: { type: 'cut', afterEvents: 3 } }
      },
      policy: { turn: { network: { firstDelayMs: 1, maximumDelayMs: 2 } } },
    })
    const session = await world.tide.open('a')
    const outcome = await session.run('Count.', { limits: { turns: 2 } }).outcome
    expect(outcome).toMatchObject({ ok: false, reason: 'limit', used: 2 })
    expect(calls).toBe(2)
  })

  it.each([
    [{ turns: 0 }],
    [{ turns: 1.5 }],
    [{ dollars: -1 }],
    [{ dollars: '5' }],
    [{ calls: 5 }],
    [[{ turns: 1 }]],
    [null],
  ])('refuses %j in one line', async (limits) => {
    const { tide } = createTestTidemark()
    const session = await tide.open('a')
    expect(() => session.run(PROMPT, { limits: limits as Limits })).toThrow(
      /^run: limits: expected \{ turns, tokens, dollars \}, each a number above 0[^\n]*\.$/,
    )
  })
})

describe('a session with a limit', () => {
  it('knows after it was opened again what it has used', async () => {
    const store = createMemoryJournal()
    const limits = { turns: 3 }
    const first = createTestTidemark({ turns: 20, journal: store, limits })
    const session = await first.tide.open('a')
    expect(await session.run(PROMPT, first.tools).outcome).toMatchObject({ reason: 'limit', used: 3 })
    await first.tide.close()

    const again = createTestTidemark({ turns: 20, journal: store, limits, seed: 'again' })
    const reopened = await again.tide.open('a')
    const outcome = await reopened.run('Go on.', again.tools).outcome
    expect(outcome).toMatchObject({ ok: false, reason: 'limit', scope: 'session', limit: 'turns', used: 3 })
    expect(again.bodies).toEqual([])
    await again.tide.close()

    const raised = createTestTidemark({ turns: 20, journal: store, limits: { turns: 100 }, seed: 'raised' })
    const open = await raised.tide.open('a')
    expect(await open.run(null, raised.tools).outcome).toMatchObject({ ok: true })
  })

  it('prices only what a turn has added, however long the log is', async () => {
    const world = createTestTidemark({ turns: 3, limits: { dollars: 100 } })
    const session = await world.tide.open('a')
    const prices: string[] = []
    for (let prompt = 0; prompt < 20; prompt += 1) await session.run(PROMPT, world.tools).outcome
    session.on('priced', ({ call }) => prices.push(call.id))
    await session.run('And the tests?', world.tools).outcome
    expect(prices.length).toBeLessThan(6)
  })

  it('also holds the requests of a loop of your own', async () => {
    const world = createTestTidemark({ limits: { turns: 1 } })
    const session = await world.tide.open('a')
    await session.run('Hello.', world.tools).outcome
    await session.append({ role: 'user', content: 'More.' })
    expect(await session.next({ settle: true })).toMatchObject({ ok: false, reason: 'limit', used: 1 })
  })

  it('counts summaries; one that the limit does not allow is written without a model', async () => {
    const limited = createTestTidemark({ turns: 4, limits: { turns: 3 } })
    const tight = await limited.tide.open('a')
    await tight.run(PROMPT, limited.tools).outcome
    const sent = limited.bodies.length
    const end = await tight.compact()
    expect(limited.bodies).toHaveLength(sent)
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction.summarizer).toBe('local')
    expect(JSON.stringify(end.compaction.steps)).toContain("The session's limit of 3 turns is reached")
  })

  it('shares it with what others use, such as subagents', async () => {
    let others = { turns: 0, tokens: 0, dollars: 0 }
    const world = createTestTidemark({ limits: { turns: 10, others: () => others } })
    const session = await world.tide.open('a')
    expect(await session.run('Hello.', world.tools).outcome).toMatchObject({ ok: true })
    others = { turns: 9, tokens: 0, dollars: 0 }
    expect(await session.run('Hello?', world.tools).outcome).toMatchObject({ ok: false, reason: 'limit' })
  })
})

describe('a limit of dollars', () => {
  it('is refused at once for a model without a price', async () => {
    const model = compatible('my-model', { baseUrl: 'http://localhost:1/v1', window: 32_000 })
    const expected = 'limits: dollars cannot be counted, because the price of my-model is not known.'
    expect(() => createTidemark({ model, memory: true, limits: { dollars: 5 } })).toThrow(expected)
    const { tide } = createTestTidemark()
    await expect(tide.open('a', { model, limits: { dollars: 5 } })).rejects.toThrow(expected)
    const session = await createTidemark({ model, memory: true }).open('a')
    expect(() => session.run('Hello.', { limits: { dollars: 5 } })).toThrow(expected)
    const priced = await createTestTidemark({ limits: { dollars: 5 } }).tide.open('a')
    await expect(priced.switchModel(model)).rejects.toThrow(expected)
  })

  it('says so if the log has calls whose price is not known', async () => {
    const totals = { ...sumSessionCost(emptySessionCost()), calls: 3, unpricedCalls: 1 }
    const scope = { scope: 'session', limits: { dollars: 5 }, before: null } as const
    expect(findReachedLimit([scope], totals)).toEqual({
      scope: 'session',
      limit: 'dollars',
      allowed: 5,
      used: null,
      message:
        "The session's limit of $5.00 cannot be kept: the log has calls whose price or usage is not known. Limit turns instead.",
    })
    // What a run was not there for does not count in it.
    expect(findReachedLimit([{ ...scope, scope: 'run', before: totals }], totals)).toBeNull()
  })

  it('of N is never exceeded by more than one call, with summaries and notes beside the turns', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0.005, max: 0.4, noNaN: true }),
        fc.boolean(),
        fc.boolean(),
        async (dollars, notes, background) => {
          const world = createTestTidemark({
            turns: 25,
            resultTokens: 1_200,
            window: 20_000,
            limits: { dollars },
            notes: { model: notes },
            policy: { compact: { background } },
          })
          const session = await world.tide.open('a')
          let outcome = await session.run(PROMPT, world.tools).outcome
          for (let prompt = 0; prompt < 2 && outcome.ok; prompt += 1)
            outcome = await session.run('And now the next one.', world.tools).outcome
          await world.tide.close()
          const costs = listCosts(world)
          const bill = sum(costs)
          expect(bill - Math.max(...costs)).toBeLessThan(dollars)
          if (!outcome.ok) expect(outcome).toMatchObject({ reason: 'limit', limit: 'dollars' })
          else expect(bill).toBeLessThan(dollars)
        },
      ),
      { numRuns: countPropertyRuns(5, 3) },
    )
  })
})
