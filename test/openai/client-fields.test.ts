/** What a client of OpenAI's APIs sends reaches the provider as it is until the first rewrite, whichever model the engine has. */
import { createCoder, createSimulator, type Script, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { ResponseInput } from 'openai/resources/responses/responses'
import { anthropic, compatible, createTidemark, type ModelChoice, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

const WINDOW = 30_000
const DONE: Script = () => ({ blocks: [{ type: 'text', text: 'Done.' }] })
const ADDRESS = 'http://simulator.test/v1'

type Models = (fetch: typeof globalThis.fetch) => ModelChoice

function createWorld(
  createModel: Models,
  script: Script,
  dialect: 'openai' | 'deepseek' | 'kimi' = 'openai',
) {
  const simulator = createSimulator({ script, window: WINDOW, openai: { dialect } })
  const bodies: Record<string, unknown>[] = []
  const send: typeof globalThis.fetch = (input, init) => {
    bodies.push(JSON.parse(String(init?.body)))
    return simulator.fetch(input, init)
  }
  const events: string[] = []
  const onEvent = ({ type }: { readonly type: string }): void => void events.push(type)
  const tide = createTidemark({ model: createModel(simulator.fetch), memory: true, onEvent })
  const fetch = tide.fetch({ session: 'client', fetch: send })
  const client = new OpenAI({ apiKey: 'any', baseURL: ADDRESS, fetch, maxRetries: 0 })
  const refused = (): readonly unknown[] => simulator.requests.filter(({ status }) => status !== 200)
  return { simulator, bodies, client, refused, events, tide }
}

const readTool = { type: 'function' as const, name: 'read', parameters: { type: 'object' }, strict: false }
const ofOpenai =
  (api: 'responses' | 'chat'): Models =>
  (fetch) =>
    openai('gpt-5.4', { apiKey: 'any', fetch, window: WINDOW, maxOutput: 2_000, api })
const ofClaude: Models = (fetch) => anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch, window: WINDOW })
const ofServer =
  (dialect: 'deepseek' | 'kimi'): Models =>
  (fetch) =>
    compatible('gpt-5.4', { baseUrl: ADDRESS, apiKey: 'any', fetch, window: WINDOW, dialect })

/** The loop of an agent on Chat Completions that sends back whatever the server gave it; returns the number of answers. */
async function runChat(client: OpenAI, coder: ReturnType<typeof createCoder>): Promise<number> {
  const tools = coder.tools.map(({ name, description, input_schema: parameters }) => ({
    type: 'function' as const,
    function: { name: String(name), description: String(description), parameters: Object(parameters) },
  }))
  const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'Fix the sum.' }]
  for (let answers = 1; ; answers += 1) {
    const { choices } = await client.chat.completions.create({ model: 'gpt-5.4', messages, tools })
    const message = choices[0]?.message
    if (message === undefined) return answers
    messages.push(message)
    const calls = message.tool_calls?.filter((call) => call.type === 'function') ?? []
    if (calls.length === 0) return answers
    for (const { id, function: called } of calls) {
      const { content } = coder.toolResult({ id, name: called.name, input: JSON.parse(called.arguments) })
      messages.push({ role: 'tool', tool_call_id: id, content: String(content) })
    }
  }
}

describe('what a client of OpenAI sends', () => {
  it('gets no field that the client did not set', async () => {
    const { client, bodies } = createWorld(ofOpenai('responses'), DONE)
    await client.responses.create({ model: 'gpt-5.4', input: 'Hello.', tools: [readTool] })
    expect(Object.keys(bodies[0] ?? {}).sort()).toEqual(['input', 'model', 'tools'])
  })

  it('has its system prompt in a role that every server takes', async () => {
    const { client, bodies } = createWorld(ofOpenai('chat'), DONE)
    const tools = [{ type: 'function' as const, function: { name: 'read' } }]
    const messages = [
      { role: 'system' as const, content: 'Be kind.' },
      { role: 'user' as const, content: 'Hello.' },
    ]
    await client.chat.completions.create({ model: 'gpt-5.4', messages, tools })
    expect(bodies[0]?.messages).toEqual(messages)
  })

  it('may refer to items that the provider stores, which is on unless the client turns it off', async () => {
    const script: Script = ({ messages }) => ({
      blocks:
        messages.length > 1
          ? [{ type: 'text', text: 'Done.' }]
          : [
              { type: 'thinking', thinking: 'I read it.' },
              { type: 'tool_use', id: 'call_1', name: 'read', input: {} },
            ],
    })
    const { client, refused } = createWorld(ofOpenai('responses'), script)
    const input: ResponseInput = [{ role: 'user', content: 'Read it.' }]
    const first = await client.responses.create({ model: 'gpt-5.4', input, tools: [readTool] })
    for (const { id } of first.output) input.push({ type: 'item_reference', id: String(id) })
    input.push({ type: 'function_call_output', call_id: 'call_1', output: 'text' })
    const second = await client.responses.create({ model: 'gpt-5.4', input, tools: [readTool] })
    expect(second.output_text).toBe('Done.')
    expect(refused()).toEqual([])
  })

  it('that only names stored items is recorded with what they say, and goes out as it came', async () => {
    const script: Script = ({ messages }) => ({
      blocks:
        messages.length > 1
          ? [{ type: 'text', text: 'Done.' }]
          : [
              { type: 'thinking', thinking: 'I read it.' },
              { type: 'text', text: 'I look at the file of the sum.' },
              { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'sum.ts' } },
            ],
    })
    const { client, bodies, events, tide } = createWorld(ofOpenai('responses'), script)
    const input: ResponseInput = [{ role: 'user', content: 'Read it.' }]
    const first = await client.responses.create({ model: 'gpt-5.4', input, tools: [readTool] })
    for (const { id } of first.output) input.push({ type: 'item_reference', id: String(id) })
    input.push({ type: 'function_call_output', call_id: 'call_1', output: 'text' })
    await client.responses.create({ model: 'gpt-5.4', input, tools: [readTool] })
    expect(bodies[1]?.input).toEqual(input)
    expect(events.filter((type) => type === 'host-history-changed' || type === 'rewritten')).toEqual([])
    const session = await tide.open('client')
    const text = await session.export({ as: 'markdown' })
    expect([text.includes('I look at the file of the sum.'), text.includes('sum.ts')]).toEqual([true, true])
  })

  it('that only names stored items is sent as it came after it has changed an old result', async () => {
    let turn = 0
    const script: Script = () => {
      turn += 1
      return {
        blocks: [{ type: 'tool_use', id: `call_${turn}`, name: 'read', input: { path: `${turn}.ts` } }],
      }
    }
    const { client, bodies, events } = createWorld(ofOpenai('responses'), script)
    const input: ResponseInput = [{ role: 'user', content: 'Read them.' }]
    for (let asked = 1; asked <= 6; asked += 1) {
      if (asked === 3) input[2] = { type: 'function_call_output', call_id: 'call_1', output: '(shortened)' }
      const { output } = await client.responses.create({ model: 'gpt-5.4', input, tools: [readTool] })
      expect(bodies.at(-1)?.input).toEqual(input)
      for (const { id } of output) input.push({ type: 'item_reference', id: String(id) })
      input.push({ type: 'function_call_output', call_id: `call_${asked}`, output: `text ${asked}` })
    }
    expect(events.filter((type) => type === 'host-history-changed')).toHaveLength(1)
  })

  it.each([
    ['a model of the Responses API', ofOpenai('responses')],
    ['a model of Claude', ofClaude],
  ])('goes on in Chat Completions past the window where the engine has %s', async (_, createModel) => {
    const coder = createCoder({ turns: 25, resultTokens: 2_400 })
    const { client, bodies } = createWorld(createModel, withSummaries(coder.script))
    expect(await runChat(client, coder)).toBeGreaterThanOrEqual(25)
    expect(bodies.every(({ messages }) => Array.isArray(messages))).toBe(true)
  })

  it.each(['deepseek', 'kimi'] as const)(
    'has the reasoning that %s wants back, past the window',
    async (dialect) => {
      const coder = createCoder({ turns: 25, resultTokens: 2_400, thinkingTokens: 60 })
      const { client, refused } = createWorld(ofServer(dialect), withSummaries(coder.script), dialect)
      expect(await runChat(client, coder)).toBeGreaterThanOrEqual(25)
      expect(JSON.stringify(refused())).not.toContain('reasoning_content')
    },
  )
})

describe('the usage of a stream on Chat Completions, which a client did not ask for', () => {
  const body = {
    model: 'gpt-4.1',
    messages: [{ role: 'user' as const, content: 'Hello.' }],
    tools: [{ type: 'function' as const, function: { name: 'read' } }],
    stream: true as const,
  }
  const readChoices = async (client: OpenAI): Promise<readonly number[]> => {
    const counts = new Set<number>()
    for await (const { choices } of await client.chat.completions.create(body)) counts.add(choices.length)
    return [...counts]
  }

  it('is known to the session, and no chunk without a choice reaches the client', async () => {
    const { client, simulator, tide } = createWorld(ofOpenai('chat'), DONE)
    expect(await readChoices(client)).toEqual([1])
    const session = await tide.open('client')
    expect(session.money().spent.total).toBeCloseTo(simulator.requests[0]?.cost?.total ?? -1, 9)
    expect(session.money().spent.total).toBeGreaterThan(0)
  })

  it('reaches a client that asks for it', async () => {
    const { client } = createWorld(ofOpenai('chat'), DONE)
    const chunks: number[] = []
    const asking = { ...body, stream_options: { include_usage: true } }
    for await (const { choices } of await client.chat.completions.create(asking)) chunks.push(choices.length)
    expect(chunks.at(-1)).toBe(0)
  })

  it('is not asked for again from a server that does not know the question', async () => {
    const { simulator, tide } = createWorld(ofOpenai('chat'), DONE)
    const asked: boolean[] = []
    const server: typeof globalThis.fetch = async (input, init) => {
      asked.push(String(init?.body).includes('stream_options'))
      if (asked.at(-1) !== true) return simulator.fetch(input, init)
      const error = {
        message: 'Unrecognized request argument supplied: stream_options',
        type: 'invalid_request_error',
      }
      return Response.json({ error }, { status: 400 })
    }
    const fetch = tide.fetch({ session: 'older', fetch: server })
    const client = new OpenAI({ apiKey: 'any', baseURL: ADDRESS, fetch, maxRetries: 0 })
    expect(await readChoices(client)).toEqual([1])
    expect(await readChoices(client)).toEqual([1])
    expect(asked).toEqual([true, false, false])
  })
})
