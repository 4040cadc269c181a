/** Sessions on OpenAI's APIs in a window that fills up several times, against the simulator. */
import { isFullRun } from '@tidemark/core/testing'
import { createCoder, createSimulator, type Simulator, withSummaries } from '@tidemark/simulator'
import { createTidemark, openai, type Session } from 'tidemark'
import { describe, expect, it } from 'vitest'

/** The window fills up more than once, in `npm run test:full` more often. */
const TURNS = isFullRun() ? 200 : 90

const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'

async function work(
  api: 'responses' | 'chat',
  model: string,
): Promise<{ session: Session; simulator: Simulator }> {
  const coder = createCoder({ turns: TURNS, resultTokens: 1_200 })
  const simulator = createSimulator({ script: withSummaries(coder.script), window: 60_000 })
  const choice = openai(model, {
    apiKey: 'any',
    fetch: simulator.fetch,
    window: 60_000,
    maxOutput: 4_000,
    api,
  })
  const session = await createTidemark({
    model: choice,
    memory: true,
    system: 'You repair programs. '.repeat(200),
  }).open('long')
  const run = session.run(PROMPT, {
    tools: coder.tools,
    runTool: (call) => String(coder.toolResult(call).content),
  })
  for await (const _ of run);
  expect(await run.outcome).toMatchObject({ ok: true })
  return { session, simulator }
}

describe.each([
  { api: 'responses', model: 'gpt-5.4' },
  { api: 'responses', model: 'gpt-6-sol' },
  { api: 'chat', model: 'gpt-4.1' },
] as const)('a long run with $model on the $api API', ({ api, model }) => {
  it('goes on past the window, reads its cache, keeps the prompt, knows its bill, and can be undone', async () => {
    const { session, simulator } = await work(api, model)
    const statuses = simulator.requests.map(({ status }) => status)
    expect(statuses.length).toBeGreaterThanOrEqual(TURNS)
    expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(1)
    const { tokens, spent } = session.money()
    const prompt = tokens.input + tokens.cacheRead + tokens.writeShort + tokens.writeLong
    expect(tokens.cacheRead / prompt).toBeGreaterThan(0.9)
    const status = await simulator.fetch('http://simulator.test/_simulator')
    const { totals } = (await status.json()) as {
      readonly totals: { readonly cost: { readonly total: number } }
    }
    const bill = totals.cost.total
    expect(spent.total).toBeCloseTo(bill, 9)
    expect(bill).toBeGreaterThan(0)
    expect(JSON.stringify(session.messages())).toContain(PROMPT)
    const before = session.contextRemaining().tokens
    expect((await session.undo(undefined, { force: true })).ok).toBe(true)
    expect(session.contextRemaining().tokens).toBeGreaterThan(before)
  })
})
