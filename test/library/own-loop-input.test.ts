/** What a host with its own loop gives: a system prompt in the format of the API, parameters, and its message list. */
import type Anthropic from '@anthropic-ai/sdk'
import { anthropic, assistant, type Message, toolResult, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

type Body = Anthropic.MessageCreateParamsNonStreaming

const TOOLS = [{ name: 'Read', description: 'Reads.', input_schema: { type: 'object' } }]

async function respond(world: TestTidemark, body: unknown, betas: readonly string[]): Promise<object> {
  const response = await world.simulator.fetch('http://simulator.test/v1/messages', {
    method: 'POST',
    headers: {
      'x-api-key': 'any',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      'anthropic-beta': betas.join(','),
    },
    body: JSON.stringify(body),
  })
  return JSON.parse(await response.text())
}

describe('system in the format of the API', () => {
  const system = [
    { type: 'text', text: 'Be exact.', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'Be brief.' },
  ] as const

  it('is taken by createTidemark, open and next, and gets the cache markers of the engine', async () => {
    const world = createTestTidemark({ system })
    const texts: unknown[] = []
    for (const [id, open] of Object.entries({ one: {}, two: { system } })) {
      const session = await world.tide.open(id, open)
      await session.append(user('Hello.'))
      const request = await session.next<Body>({ tools: TOOLS, system })
      texts.push(request.ok && request.body.system)
    }
    const expected = [{ type: 'text', text: 'Be exact.\n\nBe brief.', cache_control: { type: 'ephemeral' } }]
    expect(texts).toEqual([expected, expected])
  })

  it.each([[[{ type: 'image' }]], [[{ type: 'text' }]], [[1]], [{ parts: [] }]])(
    'that is none (%j) is named in one line',
    async (given) => {
      const message =
        'system: expected text, a list of texts or of { type: "text", text } blocks, or { sections, attribution, identity }.'
      const expected = expect.objectContaining({ code: 'bad-option', message })
      expect(() => createTestTidemark({ system: given as never })).toThrow(expected)
      const session = await createTestTidemark().tide.open('talk')
      await session.append(user('Hello.'))
      await expect(session.next({ system: given as never })).rejects.toThrow(expected)
    },
  )
})

describe('next({ parameters })', () => {
  it('changes the request, and a cache break is explained by the change', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('talk', { system: 'Be exact. '.repeat(3_000) })
    const causes: string[] = []
    session.on('cache-break', ({ event }) => causes.push(event.sentence))
    for (const effort of ['high', 'high', 'low', 'low', null]) {
      await session.append(user('Go on.'))
      const parameters = { output_config: effort === null ? null : { effort } }
      const request = await session.next<Body>({ tools: TOOLS, parameters, settle: true })
      if (!request.ok) throw new Error(request.message)
      expect(request.body.output_config).toEqual(effort === null ? undefined : { effort })
      await session.append(assistant(await respond(world, request.body, request.betas)))
    }
    for (const cause of causes) expect(cause).toContain('output_config')
    expect(world.simulator.requests.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })

  it('stays in force after a switch of model', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('talk')
    await session.append(user('Hello.'))
    await session.next({ parameters: { output_config: { effort: 'low' }, temperature: 0.5 } })
    await session.next({ parameters: { temperature: null } })
    const model = anthropic('claude-opus-5-5', {
      apiKey: 'any',
      fetch: world.simulator.fetch,
      parameters: { temperature: 1 },
    })
    expect(await session.switchModel(model)).toMatchObject({ ok: true })
    const request = await session.next<Body>()
    expect(request).toMatchObject({ body: { model: 'claude-opus-5-5', output_config: { effort: 'low' } } })
    expect(request.ok && request.body).not.toHaveProperty('temperature')
  })

  it.each<[unknown, string]>([
    ['low', 'next: parameters is "low"; expected an object.'],
    [{ messages: [] }, 'next: messages is no parameter: append them.'],
    [{ model: 'x' }, 'next: model is no parameter: call switchModel.'],
    [{ tools: [] }, 'next: tools is no parameter: give next({ tools }).'],
  ])('%j is refused', async (parameters, message) => {
    const session = await createTestTidemark().tide.open('talk')
    await expect(session.next({ parameters: parameters as never })).rejects.toThrow(message)
  })
})

describe('a tool call in an appended response', () => {
  it('is fitted to the schema of its tool, as in run, and is stored once', async () => {
    const session = await createTestTidemark().tide.open('talk')
    const properties = { limit: { type: 'integer' }, all: { type: 'boolean' } }
    const input_schema = { type: 'object', properties, additionalProperties: false }
    await session.append(user('Read.'))
    await session.next({ tools: [{ name: 'Read', input_schema }] })
    const input = { limit: '5', all: 'true', why: 'I want to' }
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Read', input }
    const response = { id: 'msg_1', role: 'assistant', content: [call] } as const
    const uuids = await session.append(response)
    expect(await session.append(response)).toEqual(uuids)
    expect(session.messages()[1]?.content).toEqual([{ ...call, input: { limit: 5, all: true } }])
    expect(input.limit).toBe('5')
  })
})

describe("a host's own message list", () => {
  it('appended again is refused with a line that names the duplicate, and changes nothing', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('talk')
    const list: { role: 'user' | 'assistant'; content: string | object[] }[] = [
      { role: 'user', content: 'Mend the sums.' },
    ]
    await session.append(...list)
    const request = await session.next<Body>({ tools: TOOLS })
    if (!request.ok) throw new Error(request.message)
    const response = (await respond(world, request.body, request.betas)) as { content: object[] }
    await session.append(assistant(response))
    list.push({ role: 'assistant', content: response.content }, { role: 'user', content: 'Go on.' })
    const before = session.messages()
    await expect(session.append(...list)).rejects.toThrow(
      'append: the session talk has this user message already, and the 1 after it: "Mend the sums.". Append only what is new; the session keeps the conversation.',
    )
    expect(session.messages()).toEqual(before)
  })

  const PLAN =
    'First the sums of the orders, then the dates of the invoices, then the names of the customers, in this order.'
  const marked = { cache_control: { type: 'ephemeral' } } as const
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { path: 'a' } } as const
  const CALLS: Message[] = [
    { role: 'user', content: 'Mend the sums.' },
    { role: 'assistant', content: [{ type: 'text', text: 'I read.' }, call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] },
    { role: 'assistant', content: 'Done.' },
  ]
  const TALK: Message[] = [
    { role: 'user', content: 'What is to do?' },
    { role: 'assistant', content: PLAN },
    { role: 'user', content: 'Good.' },
    { role: 'assistant', content: 'Done.' },
  ]
  const withMarkers = (list: readonly Message[]): Message[] =>
    list.map(({ role, content }) => ({
      role,
      content:
        typeof content === 'string'
          ? [{ type: 'text', text: content, ...marked }]
          : content.map((block) => ({ ...block, ...marked })),
    }))

  it.each<[string, readonly Message[], readonly Message[]]>([
    ['whole', CALLS, CALLS],
    ['whole, without tool calls', TALK, TALK],
    ['with cache markers', CALLS, withMarkers(CALLS)],
    ['with cache markers, without tool calls', TALK, withMarkers(TALK)],
    ['from the second message on', CALLS, CALLS.slice(1)],
    ['from the second message on, without tool calls', TALK, TALK.slice(1)],
    ['from its last answer on', TALK, TALK.slice(3)],
    ['with what is new', CALLS, [...CALLS, { role: 'user', content: 'And the dates?' }]],
  ])('appended again %s, in one call or one by one, is refused', async (_, logged, list) => {
    for (const isOneByOne of [false, true]) {
      const session = await createTestTidemark().tide.open('talk')
      await session.append(...logged)
      const replay = async (): Promise<void> => {
        for (const messages of isOneByOne ? list.map((message) => [message]) : [list])
          await session.append(...messages)
      }
      await expect(replay()).rejects.toThrow('Append only what is new; the session keeps the conversation.')
      // One by one, the first prompt may be an honest repetition, so it is taken.
      expect(session.messages().length).toBeLessThanOrEqual(isOneByOne ? 5 : 4)
    }
  })

  it('appended again after run is refused, though the log has a record for each tool result', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('talk')
    await session.run('Mend the sums.', world.tools).outcome
    const before = session.messages()
    await expect(session.append(...(before as Message[]))).rejects.toThrow('has this user message already')
    expect(session.messages()).toEqual(before)
  })

  it('is no list if prompt and answer honestly repeat', async () => {
    const script = () => ({ blocks: [{ type: 'text', text: PLAN }] })
    const world = createTestTidemark({ script })
    const session = await world.tide.open('talk')
    for (let turn = 0; turn < 3; turn += 1) {
      await session.append(user('What is to do?'))
      const request = await session.next<Body>()
      if (!request.ok) throw new Error(request.message)
      const { content } = (await respond(world, request.body, request.betas)) as { content: object[] }
      await session.append({ role: 'assistant', content } as Message)
    }
    expect(session.messages()).toHaveLength(6)
    await session.append(user('yes'), user('yes'))
    await session.append(user('yes'))
  })

  it('does not hide that a response is stored once, with its new result', async () => {
    const session = await createTestTidemark().tide.open('talk')
    const response = { id: 'msg_1', role: 'assistant', content: [call] } as const
    await session.append(user('Mend the sums.'), response)
    await session.append(response, toolResult('toolu_1', 'x'))
    expect(session.messages()).toHaveLength(3)
  })

  it('is taken whole by a new session, and a prompt may be repeated', async () => {
    const session = await createTestTidemark().tide.open('talk')
    await session.append(user('Hello.'), { role: 'assistant', content: 'Hello.' }, user('Go on.'))
    await session.append({ role: 'assistant', content: 'Fine.' }, user('Hello.'))
    await session.append({ role: 'assistant', content: 'Hello.' }, user('Hello.'))
    expect(session.messages()).toHaveLength(7)
  })
})
