/** The official SDK, in the current and in the previous major version, over a real connection. */
import { createServer } from 'node:net'
import Newer from '@anthropic-ai/sdk'
import { type ServeOptions, type SimulatorServer, serve } from '@tidemark/simulator'
import Older from 'anthropic-sdk-old'
import { afterEach, describe, expect, it } from 'vitest'
import { agent, PROMPT, READ } from './clients.ts'

const MODEL = 'claude-opus-5-5'

let served: SimulatorServer | undefined

afterEach(async () => {
  await served?.close()
  served = undefined
})

async function startServer(options: ServeOptions = {}): Promise<SimulatorServer> {
  served = await serve(options)
  return served
}

const CLIENTS = [
  { name: '1.8', Client: Newer, older: false },
  { name: '0.137', Client: Older as unknown as typeof Newer, older: true },
]

describe.each(CLIENTS)('@anthropic-ai/sdk $name', ({ Client, older }) => {
  async function connect(options: ServeOptions = {}, more: object = {}) {
    const { url } = await startServer(options)
    return new Client({ apiKey: 'key', baseURL: url, maxRetries: 0, ...more })
  }

  it('creates a message', async () => {
    const client = await connect()
    const message = await client.messages.create({
      model: MODEL,
      max_tokens: 50,
      messages: [{ role: 'user', content: 'say it back' }],
    })
    expect(message.content).toEqual([{ type: 'text', text: 'say it back' }])
    expect(message).toMatchObject({ role: 'assistant', stop_reason: 'end_turn', usage: { output_tokens: 3 } })
    expect(message._request_id).toMatch(/^req_/)
  })

  it('streams one', async () => {
    const client = await connect({ deltaSize: 3 })
    const pieces: string[] = []
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 50,
      messages: [{ role: 'user', content: 'naïve café ☕ and more' }],
    })
    stream.on('text', (piece) => pieces.push(piece))
    const message = await stream.finalMessage()
    expect(pieces.length).toBeGreaterThan(3)
    expect(pieces.join('')).toBe('naïve café ☕ and more')
    expect(message.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 })
  })

  it('gets thinking and two parallel calls, and sends their results back', async () => {
    const client = await connect({ script: agent })
    const base = { model: MODEL, max_tokens: 500, tools: [READ] }
    const first = await client.messages
      .stream({ ...base, messages: [{ role: 'user', content: PROMPT }] })
      .finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    expect(first.content.map((block) => block.type)).toEqual(['thinking', 'text', 'tool_use', 'tool_use'])
    const calls = first.content.filter((block) => block.type === 'tool_use')
    expect(calls.map((each) => each.input)).toEqual([{ path: 'a.txt', lines: [1, 2] }, { path: 'b.txt' }])
    const results = calls.map(({ id }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: 'text',
    }))
    const second = await client.messages.create({
      ...base,
      messages: [
        { role: 'user', content: PROMPT },
        { role: 'assistant', content: first.content },
        { role: 'user', content: results },
      ],
    })
    expect(second.content).toEqual([{ type: 'text', text: 'Both are in – done ✓.' }])
  })

  it('shows the text of thinking when asked to', async () => {
    const client = await connect({ script: agent })
    const ask = (display: 'summarized' | 'omitted') =>
      client.messages.create({
        model: MODEL,
        max_tokens: 500,
        thinking: { type: 'adaptive', display },
        tools: [READ],
        messages: [{ role: 'user', content: PROMPT }],
      })
    const [shown, omitted] = [await ask('summarized'), await ask('omitted')]
    expect(shown.content[0]).toMatchObject({ type: 'thinking', thinking: 'Two files, so two calls.' })
    expect(omitted.content[0]).toMatchObject({ type: 'thinking', thinking: '' })
    expect(shown.usage.output_tokens_details).toEqual({ thinking_tokens: 6 })
  })

  it('counts as many tokens as are billed', async () => {
    const client = await connect()
    const body = {
      model: MODEL,
      system: 'be brief',
      messages: [{ role: 'user' as const, content: 'hello there' }],
    }
    const { input_tokens: counted } = await client.messages.countTokens(body)
    const { usage } = await client.messages.create({ ...body, max_tokens: 20 })
    expect(usage.input_tokens).toBe(counted)
  })

  it('lists models', async () => {
    const client = await connect({ window: 12_345 })
    const model = await client.models.retrieve('claude-haiku-4-5-20251001')
    expect(model).toMatchObject({ id: 'claude-haiku-4-5', display_name: 'Claude Haiku 4.5' })
    const ids: string[] = []
    for await (const each of client.models.list({ limit: 5 })) ids.push(each.id)
    expect(ids).toContain(MODEL)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it.each([
    { status: 400, name: 'BadRequestError' },
    { status: 401, name: 'AuthenticationError' },
    { status: 403, name: 'PermissionDeniedError' },
    { status: 404, name: 'NotFoundError' },
    { status: 409, name: 'ConflictError' },
    { status: 429, name: 'RateLimitError' },
    { status: 500, name: 'InternalServerError' },
    { status: 504, name: older ? 'InternalServerError' : 'GatewayTimeoutError' },
    { status: 529, name: older ? 'InternalServerError' : 'OverloadedError' },
  ])('throws $name for $status', async ({ status, name }) => {
    const client = await connect()
    served?.simulator.queueFaults({ type: 'status', status })
    const failure = await client.messages
      .create({ model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'x' }] })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ status })
    expect((failure as Error).constructor.name).toBe(name)
  })

  it('reports what is wrong with a request', async () => {
    const client = await connect()
    const failure = await client.messages
      .create({ model: 'claude-nobody', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error', message: 'model: claude-nobody' } },
    })
  })

  it.each([
    {
      name: '429 with retry-after',
      fault: { type: 'status', status: 429, headers: { 'retry-after': '0.01' } } as const,
    },
    {
      name: '429 with retry-after-ms',
      fault: { type: 'status', status: 429, headers: { 'retry-after-ms': '1' } } as const,
    },
    { name: '529', fault: { type: 'status', status: 529, headers: { 'retry-after-ms': '1' } } as const },
    { name: '500', fault: { type: 'status', status: 500, headers: { 'retry-after-ms': '1' } } as const },
    { name: 'a connection torn down', fault: { type: 'reset' } as const },
  ])('retries after $name', async ({ fault }) => {
    const client = await connect({}, { maxRetries: 2 })
    served?.simulator.queueFaults(fault)
    const message = await client.messages.create({
      model: MODEL,
      max_tokens: 5,
      messages: [{ role: 'user', content: 'again' }],
    })
    expect(message.content).toEqual([{ type: 'text', text: 'again' }])
    expect(served?.simulator.requests).toHaveLength(2)
  })

  it('does not retry with x-should-retry: false', async () => {
    const client = await connect({}, { maxRetries: 2 })
    served?.simulator.queueFaults({ type: 'status', status: 529, headers: { 'x-should-retry': 'false' } })
    await expect(
      client.messages.create({ model: MODEL, max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }),
    ).rejects.toMatchObject({ status: 529 })
    expect(served?.simulator.requests).toHaveLength(1)
  })

  it('detects a stream that breaks off', async () => {
    const client = await connect()
    served?.simulator.queueFaults({ type: 'reset', afterBytes: 900 })
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 500,
      messages: [{ role: 'user', content: 'long '.repeat(100) }],
    })
    await expect(stream.finalMessage()).rejects.toThrow()
  })

  it('detects a stream that ends too early', async () => {
    const client = await connect()
    served?.simulator.queueFaults({ type: 'cut', afterBytes: 1_500 })
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 500,
      messages: [{ role: 'user', content: 'long '.repeat(100) }],
    })
    await expect(stream.finalMessage()).rejects.toThrow('stream ended without producing a Message')
  })

  it('throws the error of an error event', async () => {
    const client = await connect()
    served?.simulator.queueFaults({ type: 'error-event', afterEvents: 4 })
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 500,
      messages: [{ role: 'user', content: 'long '.repeat(100) }],
    })
    await expect(stream.finalMessage()).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    })
  })

  it('keeps a message thread of its tool runner', async () => {
    const client = await connect({ script: agent })
    const helpers = older
      ? 'anthropic-sdk-old/helpers/beta/json-schema'
      : '@anthropic-ai/sdk/helpers/beta/json-schema'
    const { betaTool } = (await import(helpers)) as { betaTool(tool: object): object }
    const read = betaTool({ ...READ, inputSchema: READ.input_schema, run: () => 'some text' })
    const runner = client.beta.messages as unknown as {
      toolRunner(body: object): PromiseLike<{ readonly content: unknown }>
    }
    const message = await runner.toolRunner({
      model: MODEL,
      max_tokens: 500,
      tools: [read],
      messages: [{ role: 'user', content: PROMPT }],
    })
    expect(message.content).toMatchObject([{ type: 'text', text: 'Both are in – done ✓.' }])
    const requests = served?.simulator.requests ?? []
    expect(requests.map(({ status }) => status)).toEqual([200, 200])
  })

  it('compacts on demand and continues from the block', async () => {
    const client = await connect({
      script: ({ kind }) => ({
        blocks: [{ type: 'text', text: kind === 'compaction' ? 'They greeted each other.' : 'hello' }],
      }),
    })
    const base = { model: MODEL, max_tokens: 500, betas: ['compact-2026-09-04' as const] }
    const history = [
      { role: 'user' as const, content: 'hi' },
      { role: 'assistant' as const, content: 'hello' },
    ]
    const compaction = await client.beta.messages.create({
      ...base,
      messages: history,
      compaction: { type: 'summarize' },
    } as never)
    expect(compaction).toMatchObject({
      stop_reason: 'compaction',
      content: [{ type: 'compaction', content: 'They greeted each other.' }],
      usage: { input_tokens: 0, output_tokens: 0, iterations: [{ type: 'compaction', output_tokens: 6 }] },
    })
    const next = await client.beta.messages.create({
      ...base,
      messages: [
        { role: 'assistant', content: compaction.content as never },
        { role: 'user', content: 'and now?' },
      ],
    })
    expect(next).toMatchObject({ stop_reason: 'end_turn', usage: { iterations: [{ type: 'message' }] } })
  })
})

describe('what the clients send', () => {
  it('differs in version, key and address, and all are accepted', async () => {
    const { url, simulator } = await startServer()
    const body = { model: MODEL, max_tokens: 5, messages: [{ role: 'user' as const, content: 'x' }] }
    await new Newer({ apiKey: 'key', baseURL: url }).messages.create(body)
    await new Newer({ authToken: 'token', apiKey: null, baseURL: url }).beta.messages.create(body)
    await new Older({ apiKey: 'key', baseURL: url }).beta.messages.create(body)
    expect(simulator.requests.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('works without a port', async () => {
    const { simulator } = await startServer()
    const client = new Newer({
      apiKey: 'key',
      baseURL: 'http://nowhere.invalid',
      fetch: simulator.fetch as typeof fetch,
    })
    const message = await client.messages.create({
      model: MODEL,
      max_tokens: 5,
      messages: [{ role: 'user', content: 'x' }],
    })
    expect(message.content).toEqual([{ type: 'text', text: 'x' }])
  })
})

describe('serving', () => {
  it('listens on loopback unless remote access is allowed', async () => {
    await expect(serve({ host: '0.0.0.0' })).rejects.toMatchObject({ code: 'bad-option' })
  })

  it('reports a port that is in use', async () => {
    const { port } = await startServer()
    await expect(serve({ port })).rejects.toMatchObject({ code: 'io-failed', details: { port } })
  })

  it('frees its port', async () => {
    const { port, close } = await startServer()
    await close()
    served = undefined
    await new Promise<void>((resolve, reject) => {
      const server = createServer()
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => server.close(() => resolve()))
    })
  })
})
