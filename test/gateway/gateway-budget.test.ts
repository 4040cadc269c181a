/** Budgets of the gateway, across processes. */
import Anthropic from '@anthropic-ai/sdk'
import { listKeys } from '@tidemark/gateway'
import { describe, expect, it } from 'vitest'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { OpenAI, useGatewayWorlds } from './gateway-world.ts'

const missing = explainMissingPostgres()

const PROMPT: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'claude-sonnet-5-5',
  max_tokens: 400,
  messages: [{ role: 'user', content: 'How many?' }],
}

describe.skipIf(missing !== null)('the budget of a key', () => {
  const createWorld = useGatewayWorlds()
  const answer = { script: () => ({ blocks: [{ type: 'text' as const, text: 'It is 42. '.repeat(30) }] }) }

  it('is never exceeded by 50 calls at once on two gateways, and the sum is the bill', async () => {
    const world = await createWorld(answer)
    const gateways = await Promise.all([world.startGateway(), world.startGateway()])
    const budget = 0.05
    const key = await world.addKey('team', { budget })
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const client = new Anthropic({ baseURL: gateways[index % 2]?.url ?? '', apiKey: key })
      return client.messages.create(PROMPT).then(
        () => 200,
        (error: unknown) => (error instanceof Anthropic.APIError ? error.status : String(error)),
      )
    })
    const statuses = await Promise.all(calls)
    const [listed] = await listKeys(world.pool)
    expect(new Set(statuses)).toEqual(new Set([200, 402]))
    expect(world.readBill()).toBeLessThanOrEqual(budget)
    expect(listed?.spent).toBeCloseTo(world.readBill(), 8)
    expect(listed?.reserved).toBe(0)
    // No SDK has tried a refused call again.
    const { rows } = await world.pool.query('select count(*)::int as calls from gateway_calls')
    expect(rows[0].calls).toBe(statuses.filter((status) => status === 200).length)
  })

  it('is told in the shape of each provider, and warned of at 80%', async () => {
    const world = await createWorld(answer)
    const { url } = await world.startGateway()
    const key = await world.addKey('team', { budget: 0.06 })
    const client = new Anthropic({ baseURL: url, apiKey: key })
    let warned: string | null = null
    const used = async (): Promise<unknown> => {
      for (;;) {
        const { response } = await client.messages.create(PROMPT).withResponse()
        warned = response.headers.get('x-tidemark-warning') ?? warned
      }
    }
    await expect(used()).rejects.toMatchObject({
      status: 402,
      message: expect.stringContaining(
        'The budget of the key team has too little left of its $0.06 for this month',
      ),
    })
    const [listed] = await listKeys(world.pool)
    expect(listed?.spent).toBeLessThanOrEqual(0.06)
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })
    const message = [{ role: 'user' as const, content: 'How many?' }]
    await expect(
      openai.chat.completions.create({ model: 'gpt-6-sol', messages: message, max_completion_tokens: 4000 }),
    ).rejects.toMatchObject({
      status: 402,
      error: { message: expect.stringContaining('budget of the key team') },
    })
    expect(warned).toMatch(/^\d+% of the budget/)
    expect(world.logs.filter(({ event }) => event === 'budget')).toHaveLength(1)
  })

  it('is charged for a stream that the client stops reading: its prompt as billed, and what arrived', async () => {
    const world = await createWorld({
      script: () => ({
        blocks: [{ type: 'text' as const, text: 'It is 42, or so. '.repeat(400) }],
        delays: { pieceMs: 5 },
      }),
    })
    const { url } = await world.startGateway()
    const key = await world.addKey('team', { budget: 5 })
    const client = new Anthropic({ baseURL: url, apiKey: key })
    const stream = client.messages.stream({ ...PROMPT, max_tokens: 4_000 })
    let texts = 0
    await expect(
      (async () => {
        for await (const event of stream) {
          if (event.type === 'content_block_delta') texts += 1
          if (texts === 10) stream.abort()
        }
      })(),
    ).rejects.toThrow()
    await expect.poll(async () => (await listKeys(world.pool))[0]?.reserved).toBe(0)
    const { rows } = await world.pool.query('select * from gateway_calls')
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({ is_estimated: true })
    expect(Number(rows[0].output)).toBeGreaterThan(20)
    const [billed] = world.simulator.simulator.requests
    expect(Number(rows[0].input) + Number(rows[0].cache_write)).toBe(
      (billed?.usage?.input ?? 0) + (billed?.usage?.write5m ?? 0),
    )
  })

  it('is not kept by a reservation that the database made too late: the client was refused, and nothing was sent', async () => {
    const world = await createWorld(answer)
    const { url } = await world.startGateway()
    const apiKey = await world.addKey('team', { budget: 1 })
    const { messages } = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 })
    await messages.create(PROMPT)
    const readKey = async () => (await listKeys(world.pool))[0]
    const spent = (await readKey())?.spent
    const blocker = await world.pool.connect()
    await blocker.query('begin')
    await blocker.query('select 1 from gateway_spending for update')
    await expect(messages.create(PROMPT)).rejects.toMatchObject({ status: 503 })
    await blocker.query('commit')
    blocker.release()
    await expect.poll(async () => (await readKey())?.reserved).toBeGreaterThan(0)
    await world.pool.query(
      "update gateway_calls set started_at = now() - interval '1 minute' where settled_at is null",
    )
    await expect.poll(async () => (await readKey())?.reserved).toBe(0)
    expect((await readKey())?.spent).toBe(spent)
    expect(spent).toBeCloseTo(world.readBill(), 8)
  })

  it('counts every protocol as the bill does, streams included', async () => {
    const world = await createWorld(answer)
    const { url } = await world.startGateway()
    const key = await world.addKey('team', { budget: 50 })
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })
    const messages = [{ role: 'user' as const, content: 'How many?' }]
    const chat = { model: 'gpt-6-sol', messages, max_completion_tokens: 400 }
    await openai.chat.completions.create(chat)
    for await (const _ of await openai.chat.completions.create({ ...chat, stream: true }));
    const ask = { model: 'gpt-6-sol', input: 'How many?', max_output_tokens: 400 }
    await openai.responses.create(ask)
    for await (const _ of await openai.responses.create({ ...ask, stream: true }));
    const client = new Anthropic({ baseURL: url, apiKey: key })
    await client.messages.stream(PROMPT).finalMessage()
    await client.messages.create(PROMPT)
    const [listed] = await listKeys(world.pool)
    expect(world.simulator.simulator.requests).toHaveLength(6)
    expect(listed?.spent).toBeCloseTo(world.readBill(), 8)
    expect(listed?.reserved).toBe(0)
  })
})
