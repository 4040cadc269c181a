/** A session that moves between the made-up provider, its accounts, and Claude: nothing that only its maker can read is sent to another. */
import { createSimulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type ModelChoice, type Session } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createMadeUpWorld, type MadeUpWorld } from '../support/made-up-provider/talk-world.ts'
import type { Entry } from '../support/made-up-provider/words.ts'

/** Runs until some tools have run, so that the next model takes up a turn in the middle. */
async function runTools(session: Session, world: MadeUpWorld, prompt: string | null, most: number) {
  const stop = new AbortController()
  let count = 0
  const run = session.run(prompt, {
    ...world.tools,
    signal: stop.signal,
    runTool: (call) => {
      count += 1
      if (count === most) stop.abort()
      return String(world.coder.toolResult(call).content)
    },
  })
  return await run.outcome
}

function countSeals({ server }: MadeUpWorld, from: number): readonly number[] {
  const seals = ({ who, ...entry }: Entry): number =>
    who === 'engine' && 'mused' in entry ? (entry.mused?.length ?? 0) : 0
  return server.records
    .slice(from)
    .map(({ talk }) => talk.entries.reduce((sum, entry) => sum + seals(entry), 0))
}

describe('a switch', () => {
  it.each([
    ['in the middle of tools', 3],
    ['between two prompts', Number.POSITIVE_INFINITY],
  ])('to Claude and back %s is never refused and sends no item of the other', async (_, most) => {
    const world = createMadeUpWorld({ turns: 8 })
    const simulator = createSimulator({ script: withSummaries(world.coder.script) })
    const bodies: string[] = []
    const claude: ModelChoice = anthropic('claude-opus-5', {
      apiKey: 'any',
      fetch(input, init) {
        bodies.push(String(init?.body))
        return simulator.fetch(String(input), init)
      },
    })
    const own: ModelChoice = {
      ...world.choose(),
      priceList: (model, at) => world.choose().priceList(model, at) ?? claude.priceList(model, at),
    }
    const session = await createTidemark({ model: own, memory: true, env: {} }).open('a')
    await runTools(session, world, 'Fix the sum of orders.', most)
    expect(countSeals(world, 0).at(-1)).toBeGreaterThan(0)
    expect(await session.switchModel(claude)).toMatchObject({ ok: true })
    await runTools(session, world, most === 3 ? null : 'And the tests?', most)
    const there = world.server.records.length
    expect(await session.switchModel(own)).toMatchObject({ ok: true })
    await runTools(session, world, most === 3 ? null : 'And the documents?', Number.POSITIVE_INFINITY)

    expect(bodies.length).toBeGreaterThan(1)
    for (const body of bodies) expect(body).not.toMatch(/made-up|"seal"|"origin"/)
    expect(simulator.requests.filter(({ status }) => status >= 400)).toEqual([])
    const back = world.server.records.slice(there)
    expect(back.length).toBeGreaterThan(0)
    expect(world.server.records.filter(({ trouble }) => trouble !== null)).toEqual([])
    for (const { text } of back) expect(text).not.toMatch(/signature|"thinking"/)
    const bill = simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), world.server.bill())
    expect(session.money().spent.total).toBeCloseTo(bill, 9)
  })

  it('to another account of the same provider leaves the sealed items of the first behind', async () => {
    const world = createMadeUpWorld({ turns: 8 })
    const session = await createTidemark({ model: world.choose('north'), memory: true, env: {} }).open('a')
    await runTools(session, world, 'Fix the sum of orders.', 3)
    const there = world.server.records.length
    expect(await session.switchModel(world.choose('south'))).toMatchObject({ ok: true })
    await runTools(session, world, null, Number.POSITIVE_INFINITY)
    expect(world.server.records.filter(({ trouble }) => trouble !== null)).toEqual([])
    const [first = -1, ...rest] = countSeals(world, there)
    expect(first).toBe(0)
    expect(rest.at(-1)).toBeGreaterThan(0)
  })
})
