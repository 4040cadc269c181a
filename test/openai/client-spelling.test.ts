/** What a client of OpenAI's APIs wrote goes out as it wrote it: roles of the system, arguments of any JSON, free text. */
import OpenAI from 'openai'
import { createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

type Body = { readonly messages?: readonly unknown[]; readonly input?: readonly unknown[] }

/** A server that answers with one message or item, and keeps the bodies of the requests. */
function createWorld(api: 'chat' | 'responses', answers: readonly object[]) {
  const bodies: Body[] = []
  const server: typeof globalThis.fetch = async (_input, init) => {
    bodies.push(JSON.parse(String(init?.body)))
    const answer = answers[bodies.length - 1] ?? answers.at(-1)
    const id = `answer_${bodies.length}`
    const body =
      api === 'chat'
        ? {
            id,
            object: 'chat.completion',
            created: 0,
            model: 'gpt-5.4',
            choices: [{ index: 0, finish_reason: 'stop', message: answer }],
          }
        : { id, object: 'response', created_at: 0, model: 'gpt-5.4', status: 'completed', output: [answer] }
    return Response.json(body)
  }
  const model = openai('gpt-5.4', { apiKey: 'any', fetch: server, api })
  const tide = createTidemark({ model, memory: true })
  const fetch = tide.fetch({ session: 'spelling', fetch: server })
  return { bodies, client: new OpenAI({ apiKey: 'any', fetch, maxRetries: 0 }) }
}

const chatTools: OpenAI.ChatCompletionTool[] = [
  { type: 'function', function: { name: 'read', parameters: {} } },
]

describe('on Chat Completions', () => {
  it.each(['system', 'developer'] as const)('a prompt of the role %s keeps it', async (role) => {
    const { bodies, client } = createWorld('chat', [{ role: 'assistant', content: 'Yes.' }])
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role, content: 'You are a coder.' },
      { role: 'user', content: 'Hello.' },
    ]
    await client.chat.completions.create({ model: 'gpt-5.4', messages, tools: chatTools })
    const more: OpenAI.ChatCompletionMessageParam[] = [
      ...messages,
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: 'Go on.' },
      { role, content: 'Be short.' },
    ]
    await client.chat.completions.create({ model: 'gpt-5.4', messages: more, tools: chatTools })
    expect(bodies[0]?.messages).toEqual(messages)
    expect(bodies[1]?.messages).toEqual(more)
  })

  it.each(['[1]', '7', '"a"', 'null', 'not JSON', '', '{"a": 1.0}'])(
    'the arguments %s go back as they came',
    async (text) => {
      const call = { id: 'call_1', type: 'function' as const, function: { name: 'read', arguments: text } }
      const { bodies, client } = createWorld('chat', [
        { role: 'assistant', content: null, tool_calls: [call] },
      ])
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Hello.' }]
      await client.chat.completions.create({ model: 'gpt-5.4', messages, tools: chatTools })
      const more: OpenAI.ChatCompletionMessageParam[] = [
        ...messages,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      ]
      await client.chat.completions.create({ model: 'gpt-5.4', messages: more, tools: chatTools })
      expect(bodies[1]?.messages).toEqual(more)
    },
  )

  it('a tool of free text is called with its text', async () => {
    const call = { id: 'call_1', type: 'custom' as const, custom: { name: 'patch', input: '*** Begin\n+x' } }
    const { bodies, client } = createWorld('chat', [{ role: 'assistant', content: null, tool_calls: [call] }])
    const tools: OpenAI.ChatCompletionTool[] = [{ type: 'custom', custom: { name: 'patch' } }]
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Hello.' }]
    await client.chat.completions.create({ model: 'gpt-5.4', messages, tools })
    const more: OpenAI.ChatCompletionMessageParam[] = [
      ...messages,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ]
    await client.chat.completions.create({ model: 'gpt-5.4', messages: more, tools })
    expect(bodies[1]?.messages).toEqual(more)
  })
})

describe('on the Responses API', () => {
  const tools: OpenAI.Responses.Tool[] = [{ type: 'function', name: 'read', parameters: {}, strict: false }]

  it('messages of the system keep their role', async () => {
    const said = {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Yes.', annotations: [] }],
    }
    const { bodies, client } = createWorld('responses', [{ id: 'msg_1', status: 'completed', ...said }])
    const start = [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'You are a coder.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] },
    ]
    await client.responses.create({ model: 'gpt-5.4', input: start as OpenAI.Responses.ResponseInput, tools })
    const more = [
      ...start,
      said,
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Go on.' }] },
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be short.' }] },
    ]
    await client.responses.create({ model: 'gpt-5.4', input: more as OpenAI.Responses.ResponseInput, tools })
    expect(bodies[0]?.input).toEqual(start)
    expect(bodies[1]?.input).toEqual(more)
  })

  it.each(['[1]', '7', 'not JSON', '{"a": 1.0}'])('the arguments %s go back as they came', async (text) => {
    const call = { type: 'function_call', call_id: 'call_1', name: 'read', arguments: text }
    const { bodies, client } = createWorld('responses', [{ id: 'fc_1', status: 'completed', ...call }])
    const start = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] }]
    await client.responses.create({ model: 'gpt-5.4', input: start as OpenAI.Responses.ResponseInput, tools })
    const more = [...start, call, { type: 'function_call_output', call_id: 'call_1', output: 'done' }]
    await client.responses.create({ model: 'gpt-5.4', input: more as OpenAI.Responses.ResponseInput, tools })
    expect(bodies[1]?.input).toEqual(more)
  })
})

describe('what the engine does not record goes out as the client wrote it', () => {
  const said = { type: 'output_text' as const, text: 'Yes.', annotations: [], logprobs: [] }
  const items = [
    { role: 'developer', content: 'Be kind.' },
    { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] },
    { role: 'user', content: 'Hello.' },
    { role: 'user', content: [{ type: 'input_text', text: 'Are you there?' }] },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      phase: 'final_answer',
      content: [said, { ...said, text: 'And you?' }],
    },
    { role: 'user', content: '' },
    { role: 'user', content: 'Read it.' },
    { type: 'function_call', id: 'fc_1', status: 'completed', call_id: 'c', name: 'read', arguments: '{}' },
    {
      type: 'function_call_output',
      call_id: 'c',
      output: [{ type: 'input_text', text: 'one' }],
      status: null,
    },
    { role: 'user', content: 'Go on.' },
  ]
  const messages = [
    { role: 'system', content: 'Be kind.', name: 'house' },
    { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
    { role: 'user', name: 'ada', content: 'Hello.' },
    { role: 'user', name: 'bob', content: [{ type: 'text', text: 'Are you there?' }] },
    { role: 'assistant', name: 'bot', content: 'Yes.', refusal: null, reasoning_content: 'They greet.' },
    { role: 'assistant', content: [{ type: 'text', text: 'And you?' }], annotations: [] },
    { role: 'user', content: 'Read it.' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'read', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'one' }] },
    { role: 'user', content: 'Go on.' },
  ]

  it('on the Responses API: ids, states, phases, short forms, messages in a row', async () => {
    const { bodies, client } = createWorld('responses', [
      { type: 'message', role: 'assistant', content: [said] },
    ])
    await client.responses.create({ model: 'gpt-5.4', input: items as OpenAI.Responses.ResponseInput })
    await client.responses.create({ model: 'gpt-5.4', input: 'Hello.', tools: [{ type: 'web_search' }] })
    expect(bodies.map(({ input }) => input)).toEqual([items, 'Hello.'])
  })

  it('on Chat Completions: names, reasoning, refusals, parts, messages in a row', async () => {
    const { bodies, client } = createWorld('chat', [{ role: 'assistant', content: 'Done.' }])
    await client.chat.completions.create({
      model: 'gpt-5.4',
      messages: messages as OpenAI.ChatCompletionMessageParam[],
      tools: chatTools,
    })
    expect(bodies[0]?.messages).toEqual(messages)
  })

  it('only the end of the system prompt is marked for the cache, on models that know marks, unless it is', async () => {
    const part = { type: 'input_text', text: 'Be brief.', prompt_cache_breakpoint: { mode: 'explicit' } }
    const marked = [items[0], { ...items[1], content: [part] }, ...items.slice(2)]
    for (const list of [items, marked]) {
      const { bodies, client } = createWorld('responses', [
        { type: 'message', role: 'assistant', content: [said] },
      ])
      const input = list as OpenAI.Responses.ResponseInput
      await client.responses.create({ model: 'gpt-6-sol', input })
      expect(bodies[0]?.input).toEqual(marked)
    }
  })

  it.each([
    ['a greeting of the assistant', { role: 'assistant', content: 'Hello, what shall I do?' }],
    ['an empty prompt', { role: 'user', content: '' }],
    ['the answer to a system prompt alone', null],
  ])('a list that begins with %s, which gets no other beginning', async (_, first) => {
    const system = { role: 'developer', content: 'You are a coder.' }
    const said = { role: 'assistant', content: 'Yes.', id: 'msg_1', status: 'completed' }
    const { bodies, client } = createWorld('responses', [
      {
        ...said,
        type: 'message',
        content: [{ type: 'output_text', text: 'Yes.', annotations: [], logprobs: [] }],
      },
    ])
    const start = first === null ? [system] : [system, first]
    const more = [...start, said, { role: 'user', content: 'Go on.' }]
    for (const list of [start, more]) {
      const input = list as OpenAI.Responses.ResponseInput
      await client.responses.create({ model: 'gpt-5.4', input, tools: [{ type: 'web_search' }] })
    }
    expect(bodies.map(({ input }) => input)).toEqual([start, more])

    const chat = createWorld('chat', [{ role: 'assistant', content: 'Yes.' }])
    const answered = [...start, { role: 'assistant', content: 'Yes.', refusal: null }]
    for (const list of [start, [...answered, { role: 'user', content: 'Go on.' }]]) {
      const messages = list as OpenAI.ChatCompletionMessageParam[]
      await chat.client.chat.completions.create({ model: 'gpt-5.4', messages, tools: chatTools })
    }
    expect(chat.bodies.map(({ messages }) => messages)).toEqual([
      start,
      [...answered, { role: 'user', content: 'Go on.' }],
    ])
  })

  const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'read', arguments: '{}' }
  const shell = { type: 'shell_call', id: 'sh_1', call_id: 'call_2', action: { commands: ['ls'] } }
  const outputs = [
    { type: 'shell_call_output', call_id: 'call_2', output: [] },
    { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  ]
  it.each([
    ['another result before that of a function', [call, shell, ...outputs]],
    ['a remark before a result', [call, { role: 'user', content: 'Wait.' }, outputs[1]]],
    [
      'instructions before a prompt',
      [
        { role: 'developer', content: 'Be short.' },
        { role: 'user', content: 'Go.' },
      ],
    ],
    [
      'instructions at the end',
      [
        { role: 'assistant', content: 'Yes.' },
        { role: 'system', content: 'Go on.' },
      ],
    ],
    [
      'reasoning at the end of an answer',
      [
        { role: 'assistant', content: 'Yes.' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' },
        { role: 'user', content: 'Go.' },
      ],
    ],
  ])('a list with %s, an order that the Messages API does not have', async (_, rest) => {
    const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes.' }] }
    const { bodies, client } = createWorld('responses', [said])
    const start = [{ role: 'user', content: 'Hello.' }]
    for (const list of [start, [...start, said, ...rest]]) {
      const input = list as OpenAI.Responses.ResponseInput
      await client.responses.create({ model: 'gpt-5.4', input, tools: [{ type: 'web_search' }] })
    }
    expect(bodies[1]?.input).toEqual([...start, said, ...rest])
  })

  it.each(['gpt-4.1', 'a-model-of-no-catalogue'])(
    'instructions within a conversation, also for %s, whose conversation stays managed',
    async (model) => {
      const bodies: Body[] = []
      const message = { role: 'assistant', content: 'Yes.' }
      const server: typeof globalThis.fetch = async (_input, init) => {
        bodies.push(JSON.parse(String(init?.body)))
        return Response.json({
          id: `c${bodies.length}`,
          object: 'chat.completion',
          choices: [{ index: 0, finish_reason: 'stop', message }],
        })
      }
      const passed: string[] = []
      const tide = createTidemark({
        model: openai(model, {
          apiKey: 'any',
          fetch: server,
          api: 'chat',
          window: 100_000,
          maxOutput: 4_000,
        }),
        memory: true,
        onEvent: (event) => event.type === 'request-passed' && passed.push(event.message),
      })
      const client = new OpenAI({ apiKey: 'any', fetch: tide.fetch({ fetch: server }), maxRetries: 0 })
      const start = [
        { role: 'system', content: 'You are a coder.' },
        { role: 'user', content: 'Hello.' },
      ]
      const more = [
        ...start,
        message,
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Go on.' },
      ]
      for (const list of [start, more, [...more, message, { role: 'developer', content: 'Stop soon.' }]]) {
        const asked = list as OpenAI.ChatCompletionMessageParam[]
        await client.chat.completions.create({ model, messages: asked, tools: chatTools, max_tokens: 900 })
        expect(bodies.at(-1)).toEqual({ model, messages: asked, tools: chatTools, max_tokens: 900 })
      }
      expect(passed).toEqual([])
    },
  )

  it.each([
    [
      'a web search',
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'sum' } },
    ],
    [
      'a file search without results',
      { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['sum'], results: null },
    ],
    [
      'a call of a remote tool',
      {
        type: 'mcp_call',
        id: 'mcp_1',
        name: 'find',
        arguments: '{}',
        server_label: 's',
        output: 'x',
        error: null,
      },
    ],
    ['an item that nobody knows', { type: 'future_call', id: 'f_1', payload: { deep: [null] } }],
  ])('an answer with %s that the client sends back is the one that it got', async (_, item) => {
    const bodies: Body[] = []
    const server: typeof globalThis.fetch = async (_input, init) => {
      bodies.push(JSON.parse(String(init?.body)))
      const said = {
        type: 'message',
        id: `msg_${bodies.length}`,
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Yes.', annotations: [] }],
      }
      return Response.json({
        id: `r${bodies.length}`,
        object: 'response',
        status: 'completed',
        model: 'gpt-5.4',
        output: [item, said],
      })
    }
    const changes: string[] = []
    const tide = createTidemark({
      model: openai('gpt-5.4', { apiKey: 'any', fetch: server }),
      memory: true,
      onEvent: (event) => event.type === 'host-history-changed' && changes.push(event.message),
    })
    const client = new OpenAI({
      apiKey: 'any',
      fetch: tide.fetch({ session: 'items', fetch: server }),
      maxRetries: 0,
    })
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Hello.' }]
    for (const prompt of ['Go on.', 'And?', 'Done?']) {
      const { output } = await client.responses.create({
        model: 'gpt-5.4',
        input,
        tools: [{ type: 'web_search' }],
      })
      input.push(...(output as OpenAI.Responses.ResponseInput), { role: 'user', content: prompt })
    }
    expect(changes).toEqual([])
    const session = await tide.open('items')
    const answers = (await session.records()).filter(({ record }) => record.type === 'assistant')
    expect(answers).toHaveLength(6)
  })

  it('session.take gives it back too', async () => {
    const tide = createTidemark({ model: openai('gpt-5.4', { apiKey: 'any' }), memory: true })
    const session = await tide.open('by-hand')
    const request = await session.take({ model: 'gpt-5.4', input: items })
    expect(request.ok && [request.body, JSON.parse(request.text)]).toEqual([
      { model: 'gpt-5.4', input: items },
      { model: 'gpt-5.4', input: items },
    ])
  })
})

it('a session sends the phase of an answer back, which models that set it want', async () => {
  const bodies: Body[] = []
  const answer = (id: string, text: string, phase: string): object => ({
    type: 'message',
    id,
    role: 'assistant',
    phase,
    content: [{ type: 'output_text', text, annotations: [] }],
  })
  const fetch: typeof globalThis.fetch = async (_input, init) => {
    bodies.push(JSON.parse(String(init?.body)))
    const output = [answer('msg_1', 'I look.', 'commentary'), answer('msg_2', 'Done.', 'final_answer')]
    const body = { id: `resp_${bodies.length}`, object: 'response', created_at: 0, model: 'gpt-5.4' }
    return Response.json({ ...body, status: 'completed', output })
  }
  const tide = createTidemark({ model: openai('gpt-5.4', { apiKey: 'any', fetch }), memory: true })
  const session = await tide.open('phases')
  for (const prompt of ['Hello.', 'Go on.']) for await (const _ of session.run(prompt));
  const answers = bodies[1]?.input?.filter((item) => Object(item).role === 'assistant')
  expect(answers).toEqual([
    expect.objectContaining({ phase: 'commentary', content: [expect.objectContaining({ text: 'I look.' })] }),
    expect.objectContaining({ phase: 'final_answer', content: [expect.objectContaining({ text: 'Done.' })] }),
  ])
})
