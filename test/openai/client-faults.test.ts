/** The SDK of OpenAI with the `fetch` of Tidemark where things go wrong, on both APIs, and stored conversations. */
import { sampleCases } from '@tidemark/core/testing'
import { createCoder, createSimulator, type SimulatorOptions, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import { createTidemark, openai, type SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'

type Item = OpenAI.Responses.ResponseInputItem
type Api = 'responses' | 'chat'

/** Calls of the model until the coder is done: they fill the window about twice. */
const TURNS = 22

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'

const readTool = { type: 'function' as const, name: 'read', parameters: {}, strict: false }
const chatTool = { type: 'function' as const, function: { name: 'read', parameters: {} } }

interface WorldOptions extends Pick<SimulatorOptions, 'openai'> {
  /** Window that Tidemark believes in. */
  readonly believed?: number
  /** Bytes of a stream come in one piece. */
  readonly isBuffered?: boolean
}

function createWorld(api: Api, { believed = 30_000, isBuffered = false, ...options }: WorldOptions = {}) {
  const coder = createCoder({ turns: TURNS, resultTokens: 2_400 })
  const simulator = createSimulator({ script: withSummaries(coder.script), window: 30_000, ...options })
  const bodies: string[] = []
  const server: typeof globalThis.fetch = async (input, init) => {
    bodies.push(String(init?.body))
    const response = await simulator.fetch(input, init)
    if (!isBuffered) return response
    return new Response(await response.text(), { status: response.status, headers: response.headers })
  }
  const model = openai('gpt-5.4', { apiKey: 'any', fetch: server, window: believed, maxOutput: 2_000, api })
  const events: SessionEvent[] = []
  const sessions = new Set<string>()
  const onEvent = (event: SessionEvent, session: string): void => {
    events.push(event)
    if (event.type === 'compact' || event.type === 'answered') sessions.add(session)
  }
  const tide = createTidemark({ model, memory: true, onEvent })
  const connect = (session?: string) => {
    const fetch = tide.fetch({ fetch: server, ...(session === undefined ? {} : { session }) })
    return new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch, maxRetries: 0 })
  }
  const runTool = (id: string, name: string, text: string) =>
    String(coder.toolResult({ type: 'tool_use', id, name, input: JSON.parse(text) }).content)
  return { coder, simulator, server, tide, events, sessions, bodies, connect, runTool }
}

type World = ReturnType<typeof createWorld>

function listTools({ coder }: World): OpenAI.Responses.FunctionTool[] {
  return coder.tools.map(({ name, input_schema: schema }) => ({
    type: 'function',
    name: String(name),
    parameters: Object(schema),
    strict: false,
  }))
}

function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (key, each) => (key.startsWith('parsed') ? undefined : each)))
}

/** The loop of a streaming agent on the Responses API; returns the number of answers. */
async function workOnResponses(
  world: World,
  client: OpenAI,
  rounds = 100,
  prompt = PROMPT,
  system: readonly Item[] = [],
): Promise<number> {
  const input: Item[] = [...system, { role: 'user', content: prompt }]
  for (let answers = 1; ; answers += 1) {
    const body = {
      model: 'gpt-5.4',
      input,
      tools: listTools(world),
      store: false,
      include: ['reasoning.encrypted_content' as const],
    }
    const { output } = toPlain(await client.responses.stream(body).finalResponse())
    input.push(...(output as Item[]))
    const calls = output.filter((item) => item.type === 'function_call')
    if (calls.length === 0 || answers === rounds) return answers
    for (const { call_id, name, arguments: text } of calls)
      input.push({ type: 'function_call_output', call_id, output: world.runTool(call_id, name, text) })
  }
}

async function workOnChat(world: World, client: OpenAI, rounds = 100, prompt = PROMPT): Promise<number> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: prompt }]
  const tools = listTools(world).map(({ name, parameters }) => ({
    type: 'function' as const,
    function: { name, parameters: parameters ?? {} },
  }))
  for (let answers = 1; ; answers += 1) {
    const stream = client.chat.completions.stream({ model: 'gpt-5.4', messages, tools })
    const message = toPlain((await stream.finalChatCompletion()).choices[0]?.message)
    if (message === undefined) return answers
    messages.push(message)
    const calls = message.tool_calls?.filter((call) => call.type === 'function') ?? []
    if (calls.length === 0 || answers === rounds) return answers
    for (const {
      id,
      function: { name, arguments: text },
    } of calls)
      messages.push({ role: 'tool', tool_call_id: id, content: world.runTool(id, name, text) })
  }
}

/** How a server says within a stream that a prompt is too long. */
const OVERFLOWS = ['error-event', 'flat-error-event', 'failed-event'] as const

const WAYS = { responses: workOnResponses, chat: workOnChat }

describe('a prompt that is refused within a stream', () => {
  it.each(sampleCases(OVERFLOWS, 1))('is compacted and sent again under a client: %s', async (overflow) => {
    const world = createWorld('responses', { openai: { overflow }, believed: 60_000 })
    expect(await workOnResponses(world, world.connect('client'))).toBeGreaterThanOrEqual(TURNS)
    expect(world.events.some(({ type }) => type === 'compact')).toBe(true)
  })

  it.each(OVERFLOWS)('is compacted and sent again by a session: %s', async (overflow) => {
    const { coder, tide, runTool, events } = createWorld('responses', {
      openai: { overflow },
      believed: 60_000,
    })
    const session = await tide.open('run')
    const run = session.run(PROMPT, {
      tools: coder.tools,
      runTool: ({ id, name, input }) => runTool(id, name, JSON.stringify(input)),
    })
    for await (const _ of run);
    expect(await run.outcome).toMatchObject({ ok: true })
    expect(events.some(({ type }) => type === 'reactive-compact')).toBe(true)
  })
})

describe.each(['responses', 'chat'] as const)('on the %s API', (api) => {
  const work = WAYS[api]

  it('streams that come in one piece are recorded', async () => {
    const world = createWorld(api, { isBuffered: true })
    expect(await work(world, world.connect('client'))).toBeGreaterThanOrEqual(TURNS)
  })

  it('two conversations at once are two sessions', async () => {
    const world = createWorld(api)
    const client = world.connect()
    const ends = await Promise.all([
      work(world, client, 12, `${PROMPT} First.`),
      work(world, client, 12, `${PROMPT} Second.`),
    ])
    expect(ends).toEqual([12, 12])
    expect(world.sessions.size).toBe(2)
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })

  it('a stream that the client aborts leaves a conversation that goes on', async () => {
    const world = createWorld(api)
    const client = world.connect('client')
    await work(world, client, 3)
    const stop = new AbortController()
    const tools = listTools(world)
    const question = { role: 'user' as const, content: PROMPT }
    const aborted =
      api === 'responses'
        ? client.responses.create(
            { model: 'gpt-5.4', input: [question], tools, stream: true },
            { signal: stop.signal },
          )
        : client.chat.completions.create(
            {
              model: 'gpt-5.4',
              messages: [question],
              tools: tools.map(({ name }) => ({ type: 'function' as const, function: { name } })),
              stream: true,
            },
            { signal: stop.signal },
          )
    const read = async () => {
      for await (const _ of await aborted) stop.abort()
    }
    await read().catch(() => undefined)
    expect(await work(world, client)).toBeGreaterThanOrEqual(TURNS)
    // A prompt of just the window is refused once, and made shorter.
    expect(world.simulator.requests.filter(({ status }) => status !== 200).length).toBeLessThanOrEqual(1)
  })
})

it.each(['manage', 'observe', 'off'] as const)(
  'a Request object given to fetch is answered once: %s',
  async (mode) => {
    const { simulator, tide } = createWorld('responses')
    const sent: string[] = []
    const upstream: typeof globalThis.fetch = async (input, init) => {
      const request = new Request(input, init)
      sent.push(await request.clone().text())
      return simulator.fetch(request)
    }
    const fetch = tide.fetch({ session: 'requests', fetch: upstream, mode })
    const body = { model: 'gpt-5.4', input: PROMPT, tools: [readTool] }
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json' }
    const request = new Request('http://simulator.test/v1/responses', {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const response = await fetch(request)
    expect(await response.json()).toMatchObject({ status: 'completed' })
    expect(sent.map((text) => JSON.parse(text).input)).toEqual([PROMPT])
    expect(simulator.requests.map(({ status }) => status)).toEqual([200])
  },
)

it.each(['responses', 'chat'] as const)(
  'a request on the %s API that the client aborts is in the bill',
  async (api) => {
    const { simulator, tide } = createWorld(api)
    const session = await tide.open('aborted')
    const stop = new AbortController()
    const waiting: typeof globalThis.fetch = async (input, init) => {
      const { signal, ...rest } = init ?? {}
      await simulator.fetch(input, rest)
      stop.abort()
      signal?.throwIfAborted()
      throw new Error('The request had no signal.')
    }
    const fetch = tide.fetch({ session, fetch: waiting })
    const client = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch, maxRetries: 0 })
    const answer =
      api === 'responses'
        ? client.responses.create(
            { model: 'gpt-5.4', input: PROMPT, tools: [readTool] },
            { signal: stop.signal },
          )
        : client.chat.completions.create(
            { model: 'gpt-5.4', messages: [{ role: 'user', content: PROMPT }], tools: [chatTool] },
            { signal: stop.signal },
          )
    await expect(answer).rejects.toThrow()
    await expect.poll(() => session.money().calls).toBe(1)
    expect(session.money().spent.priced).toBeGreaterThan(0)
  },
)

it('a system prompt with an image stays as the client wrote it, and the run goes on past the window', async () => {
  const world = createWorld('responses')
  const image = { type: 'input_image' as const, image_url: PIXEL, detail: 'low' as const }
  const content = [{ type: 'input_text' as const, text: 'Be kind. Our logo:' }, image]
  const system: Item = { role: 'developer', content }
  expect(await workOnResponses(world, world.connect('client'), 100, PROMPT, [system])).toBeGreaterThanOrEqual(
    TURNS,
  )
  expect(world.events.some(({ type }) => type === 'compact')).toBe(true)
  expect(world.events.filter(({ type }) => type === 'request-passed')).toEqual([])
  const firsts = world.bodies.map((body) => JSON.parse(body).input[0])
  expect(new Set(firsts.map((first) => JSON.stringify(first)))).toEqual(new Set([JSON.stringify(system)]))
})

describe('a conversation that is stored at the provider', () => {
  it('passes unchanged until the first rewrite; then the whole list is sent without the id', async () => {
    const world = createWorld('responses')
    const client = world.connect('stored')
    const tools = listTools(world)
    let previous: string | null = null
    let input: Item[] = [{ role: 'user', content: PROMPT }]
    for (let answers = 0; answers < 60; answers += 1) {
      const response: OpenAI.Responses.Response = await client.responses.create({
        model: 'gpt-5.4',
        input,
        tools,
        ...(previous === null ? {} : { previous_response_id: previous }),
      })
      const calls = response.output.filter((item) => item.type === 'function_call')
      if (calls.length === 0) break
      previous = response.id
      input = calls.map(({ call_id, name, arguments: text }) => ({
        type: 'function_call_output',
        call_id,
        output: world.runTool(call_id, name, text),
      }))
    }
    const firstRewrite = world.events.findIndex(({ type }) => type === 'compact' || type === 'microcompact')
    expect(firstRewrite).toBeGreaterThan(0)
    const named = world.bodies.map((body) => body.includes('"previous_response_id"'))
    const change = named.lastIndexOf(true)
    expect(change).toBeGreaterThan(8)
    expect(named.slice(1, change + 1).every(Boolean)).toBe(true)
    expect(named.slice(change + 1).some(Boolean)).toBe(false)
    expect(named.length).toBeGreaterThan(TURNS)
    expect(world.simulator.requests.filter(({ status }) => status !== 200).length).toBeLessThanOrEqual(1)
  })

  it.each([0, 3])(
    'goes on in another way after a request that failed, with all that was said before (%s rounds later)',
    async (rounds) => {
      const world = createWorld('responses')
      const client = world.connect('stored')
      const tools = listTools(world)
      const ask = (input: string | Item[], previous?: string) =>
        client.responses.create({
          model: 'gpt-5.4',
          input,
          tools,
          ...(previous === undefined ? {} : { previous_response_id: previous }),
        })
      let response = await ask(PROMPT)
      const answerCalls = (): Item[] =>
        response.output.flatMap((item) =>
          item.type === 'function_call'
            ? [
                {
                  type: 'function_call_output',
                  call_id: item.call_id,
                  output: world.runTool(item.call_id, item.name, item.arguments),
                },
              ]
            : [],
        )
      for (let round = 0; round < rounds; round += 1) response = await ask(answerCalls(), response.id)
      const session = await world.tide.open('stored')
      const before = session.messages().length
      world.simulator.queueFaults({ type: 'status', status: 500 })
      await expect(
        ask([...answerCalls(), { role: 'user', content: 'Try one.' }], response.id),
      ).rejects.toThrow()
      response = await ask([...answerCalls(), { role: 'user', content: 'Try two.' }], response.id)
      const shown = JSON.stringify(session.messages())
      expect(shown).toContain(PROMPT)
      expect(shown).toContain('Try two.')
      expect(shown).not.toContain('Try one.')
      expect(session.messages()).toHaveLength(before + 2)
      // What is sent after a rewrite is the whole list.
      const isWhole = () => world.bodies.at(-1)?.includes('previous_response_id') === false
      for (let round = 0; round < 30 && !isWhole(); round += 1)
        response = await ask(answerCalls(), response.id)
      expect(isWhole()).toBe(true)
      expect(world.bodies.at(-1)).toContain(PROMPT)
      expect(world.bodies.at(-1)).toContain('Try two.')
      expect(world.bodies.at(-1)).not.toContain('Try one.')
    },
  )

  it('can have its compaction undone: the next answer is to the whole list again', async () => {
    const world = createWorld('responses')
    const session = await world.tide.open('stored')
    const fetch = world.tide.fetch({ session, fetch: world.server })
    const client = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch, maxRetries: 0 })
    const tools = [{ ...readTool, name: 'forecast_weather' }]
    let previous: string | undefined
    const ask = async (input: string): Promise<string> => {
      const chain = previous === undefined ? {} : { previous_response_id: previous }
      const { id, output_text } = await client.responses.create({ model: 'gpt-5.4', input, tools, ...chain })
      previous = id
      return output_text
    }
    // Prompts above the target of a compaction: below it none of the user's words would be cut, and nothing else is here.
    for (let round = 0; round < 8; round += 1)
      await ask(`Question ${round}. ${'It rains in the north. '.repeat(380)}`)
    expect(world.bodies.slice(1).every((body) => body.includes('previous_response_id'))).toBe(true)
    const whole = session.messages()
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(session.messages()).not.toEqual(whole)
    expect((await session.undo(undefined, { force: true })).ok).toBe(true)
    expect(session.messages()).toEqual(whole)
    await ask('And now?')
    const { input, ...rest } = JSON.parse(world.bodies.at(-1) ?? '{}')
    expect(rest).not.toHaveProperty('previous_response_id')
    expect(input).toHaveLength(whole.length + 1)
    await ask('And then?')
    expect(session.messages()).toHaveLength(whole.length + 4)
    expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
    expect(world.events.filter(({ type }) => type === 'host-history-changed')).toEqual([])
  })

  it('whose beginning was never seen is passed on, which is said once', async () => {
    const world = createWorld('responses')
    const tools = listTools(world)
    const bare = new OpenAI({ apiKey: 'any', fetch: world.simulator.fetch, maxRetries: 0 })
    const first = await bare.responses.create({ model: 'gpt-5.4', input: PROMPT, tools })
    const client = world.connect('late')
    const calls = first.output.filter((item) => item.type === 'function_call')
    const input = calls.map(
      ({ call_id }): Item => ({ type: 'function_call_output', call_id, output: 'done' }),
    )
    for (let time = 0; time < 2; time += 1)
      await client.responses.create({ model: 'gpt-5.4', input, tools, previous_response_id: first.id })
    expect(world.events.filter(({ type }) => type === 'request-passed')).toHaveLength(1)
  })

  it('that has a name there is passed on, which is said once', async () => {
    const world = createWorld('responses')
    const client = world.connect('named')
    for (let time = 0; time < 2; time += 1)
      await client.responses
        .create({ model: 'gpt-5.4', input: 'Hi.', conversation: 'conv_1' })
        .catch(() => undefined)
    expect(world.bodies).toHaveLength(2)
    expect(world.events.filter(({ type }) => type === 'request-passed')).toHaveLength(1)
  })
})

describe('after a compaction, an odd answer in between', () => {
  const refusals: readonly [string, () => Response][] = [
    [
      'a refusal that passes',
      () => Response.json({ error: { message: 'Invalid output. Please retry.' } }, { status: 400 }),
    ],
    ['a page of a gateway', () => new Response('<h1>Bad request</h1>', { status: 400 })],
    ['a redirect', () => new Response(null, { status: 302, headers: { location: 'http://login.test' } })],
    [
      'a model that is not there for a moment',
      () => Response.json({ error: { message: 'No such model', code: 'model_not_found' } }, { status: 404 }),
    ],
  ]
  /** The window is full well before, and the client's own list does not fit it any more. */
  const ROUNDS = TURNS
  /** The client repeats a request that failed, and returns the status of each failure. */
  async function workOnRepeating(api: Api, answer: () => Response, options: WorldOptions = {}) {
    const world = createWorld(api, options)
    let isOdd = false
    const server: typeof globalThis.fetch = async (input, init) => {
      const response = isOdd ? answer() : await world.server(input, init)
      isOdd = false
      return response
    }
    const { tide, events } = world
    const fetch = tide.fetch({ session: 'client', fetch: server })
    const failures: unknown[] = []
    const repeating: typeof globalThis.fetch = async (input, init) => {
      const isFirst = failures.length === 0 && events.some(({ type }) => type === 'compact')
      isOdd = isFirst
      const response = await fetch(input, init)
      if (response.ok && !isFirst) return response
      failures.push(response.status)
      await response.body?.cancel()
      return fetch(input, init)
    }
    const client = new OpenAI({
      apiKey: 'any',
      baseURL: 'http://simulator.test/v1',
      fetch: repeating,
      maxRetries: 0,
    })
    return { answers: await WAYS[api](world, client, ROUNDS), failures }
  }

  it.each(
    sampleCases(
      refusals.flatMap(([name, answer]) =>
        (['chat', 'responses'] as const).map((api) => [name, api, answer] as const),
      ),
      3,
    ),
  )('reaches the client, whose next try goes on: %s, %s', async (_, api, answer) => {
    const { status } = answer()
    const { answers, failures } = await workOnRepeating(api, answer)
    expect(answers).toBe(ROUNDS)
    expect(failures).toEqual([status])
  })

  it.each(sampleCases(OVERFLOWS.toReversed(), 1))(
    'reaches it also where the server says within a stream that a prompt is too long: %s',
    async (overflow) => {
      const [, answer] = refusals[0] ?? []
      const { answers, failures } = await workOnRepeating('responses', answer ?? Response.error, {
        openai: { overflow },
      })
      expect(answers).toBe(ROUNDS)
      expect(failures).toEqual([400])
    },
  )
})

it.each(['chat', 'responses'] as const)(
  'a client on the %s API gets a stream as it comes, not at its end',
  async (api) => {
    const { server, tide } = createWorld(api)
    const rest = Promise.withResolvers<void>()
    const slow: typeof globalThis.fetch = async (input, init) => {
      const response = await server(input, init)
      const frames = (await response.text()).split(/(?<=\n\n)/)
      async function* send() {
        for (const [index, frame] of frames.entries()) {
          if (index === frames.length - 2) await rest.promise
          yield new TextEncoder().encode(frame)
        }
      }
      return new Response(ReadableStream.from(send()), { headers: response.headers })
    }
    const fetch = tide.fetch({ session: 'slow', fetch: slow })
    const client = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch, maxRetries: 0 })
    const model = 'gpt-5.4'
    const stream: AsyncIterable<unknown> =
      api === 'chat'
        ? await client.chat.completions.create({
            model,
            messages: [{ role: 'user', content: PROMPT }],
            tools: [chatTool],
            stream: true,
          })
        : await client.responses.create({ model, input: PROMPT, tools: [readTool], stream: true })
    let events = 0
    for await (const _ of stream) {
      events += 1
      if (events === 3) rest.resolve()
    }
    expect(events).toBeGreaterThan(3)
  },
)
