/** The simulated APIs as the `openai` SDK reads them: bodies, streams and helpers. */
import { createSimulator, type Script } from '@tidemark/simulator'
import OpenAI, { APIError } from 'openai'
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions'
import type {
  Response,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses'
import { describe, expect, it } from 'vitest'
import { agent, PROMPT } from './clients.ts'
import { CHAT_FUNCTION, connect, FUNCTION, NEW_MODEL, OLD_MODEL } from './openai-requests.ts'

/** Collects the events of a stream. */
async function collect<Event>(stream: AsyncIterable<Event>): Promise<readonly Event[]> {
  const events: Event[] = []
  for await (const event of stream) events.push(event)
  return events
}

const ask = { model: NEW_MODEL, input: PROMPT, tools: [FUNCTION], reasoning: { summary: 'auto' as const } }

/** The shape of an output without ids and sealed content. */
function describeOutput(output: readonly ResponseOutputItem[]): readonly unknown[] {
  return output.map((item) => {
    if (item.type === 'message') return item.content
    if (item.type === 'function_call') return [item.name, item.arguments, item.status]
    return item.type === 'reasoning' ? item.summary : item.type
  })
}

const FIRST_OUTPUT = [
  [{ type: 'summary_text', text: 'Two files, so two calls.' }],
  [{ type: 'output_text', text: 'Reading.', annotations: [], logprobs: [] }],
  ['read', '{"path":"a.txt","lines":[1,2]}', 'completed'],
  ['read', '{"path":"b.txt"}', 'completed'],
]

describe('responses', () => {
  it('are read by create', async () => {
    const response: Response = await connect(createSimulator({ script: agent })).responses.create(ask)
    expect(describeOutput(response.output)).toEqual(FIRST_OUTPUT)
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model: NEW_MODEL,
      output_text: 'Reading.',
      usage: { output_tokens_details: { reasoning_tokens: 6 } },
    })
  })

  it('are read by create with a stream, each event once and numbered', async () => {
    const client = connect(createSimulator({ script: agent, deltaSize: 4 }))
    const events: readonly ResponseStreamEvent[] = await collect(
      await client.responses.create({ ...ask, stream: true }),
    )
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_event, index) => index))
    const last = events.at(-1)
    expect(last?.type).toBe('response.completed')
    const deltas = events.flatMap((event) =>
      event.type === 'response.output_text.delta' ? [event.delta] : [],
    )
    expect(deltas).toEqual(['Read', 'ing.'])
    const text = (type: string): string =>
      events.flatMap((event) => (event.type === type && 'delta' in event ? [event.delta] : [])).join('')
    expect(text('response.reasoning_summary_text.delta')).toBe('Two files, so two calls.')
    expect(text('response.function_call_arguments.delta')).toBe(
      '{"path":"a.txt","lines":[1,2]}{"path":"b.txt"}',
    )
  })

  it('are put together by the stream helper as they are sent without a stream', async () => {
    const whole = await connect(createSimulator({ script: agent })).responses.create(ask)
    const client = connect(createSimulator({ script: agent, deltaSize: 3 }))
    const final = await client.responses.stream(ask).finalResponse()
    expect(final.output.map(({ id }) => id)).toEqual(whole.output.map(({ id }) => id))
    expect(describeOutput(final.output as ResponseOutputItem[])).toMatchObject(describeOutput(whole.output))
    expect(final.usage).toEqual(whole.usage)
  })

  it('have the whole encrypted reasoning only when the item is done', async () => {
    const events = await collect(
      await connect(createSimulator({ script: agent })).responses.create({ ...ask, stream: true }),
    )
    const sealed = (type: string): unknown =>
      events.flatMap((event) =>
        event.type === type && 'item' in event && event.item.type === 'reasoning'
          ? [event.item.encrypted_content]
          : [],
      )[0]
    expect(String(sealed('response.output_item.done'))).toMatch(/^gAAAAA.{60,}/)
    expect(String(sealed('response.output_item.done'))).toMatch(
      new RegExp(`^${String(sealed('response.output_item.added'))}.`),
    )
  })

  it.each([
    ['effort none', { ...ask, reasoning: { effort: 'none' as const } }],
    ['a model that does not reason', { model: 'gpt-4.1', input: PROMPT, tools: [FUNCTION] }],
  ])('have no reasoning with %s', async (_name, body) => {
    const { output, usage } = await connect(createSimulator({ script: agent })).responses.create(body)
    expect(output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call'])
    expect(usage?.output_tokens_details.reasoning_tokens).toBe(0)
  })

  it('go on with all items of the output sent back', async () => {
    const simulator = createSimulator({ script: agent })
    const client = connect(simulator)
    const first = await client.responses.create({ ...ask, store: false })
    const outputs = first.output.flatMap((item): ResponseInputItem[] =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output', call_id: item.call_id, output: 'text' }]
        : [],
    )
    const input: ResponseInputItem[] = [
      { role: 'user', content: PROMPT },
      ...(first.output as ResponseInputItem[]),
      ...outputs,
    ]
    const second = await client.responses.create({ ...ask, store: false, input })
    expect(second.output_text).toBe('Both are in – done ✓.')
  })

  it('go on with only what is new after previous_response_id', async () => {
    const client = connect(createSimulator({ script: agent }))
    const first = await client.responses.create(ask)
    const input = first.output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: 'text' }]
        : [],
    )
    const second = await client.responses.create({ ...ask, input, previous_response_id: first.id })
    expect(second.output_text).toBe('Both are in – done ✓.')
    expect(second.previous_response_id).toBe(first.id)
  })

  it('are kept until they are deleted, unless store is false', async () => {
    const client = connect(createSimulator({ script: agent }))
    const kept = await client.responses.create(ask)
    expect((await client.responses.retrieve(kept.id)).output).toEqual(kept.output)
    await client.responses.delete(kept.id)
    await expect(client.responses.retrieve(kept.id)).rejects.toMatchObject({ status: 404 })
    const passing = await client.responses.create({ ...ask, store: false })
    await expect(client.responses.retrieve(passing.id)).rejects.toMatchObject({ status: 404 })
  })

  it('that the limit cuts are incomplete, in a stream too', async () => {
    const script: Script = () => ({ blocks: [{ type: 'text', text: 'word '.repeat(100) }] })
    const client = connect(createSimulator({ script }))
    const cut = { model: OLD_MODEL, input: 'hi', max_output_tokens: 20 }
    const final = await client.responses.stream(cut).finalResponse()
    expect(final).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage: { output_tokens: 20 },
      output: [{ type: 'message', status: 'incomplete' }],
    })
  })

  it('call tools of free text and tools in a namespace', async () => {
    const script: Script = () => ({
      blocks: [
        { type: 'tool_use', name: 'patch', input: { input: '*** Begin' } },
        { type: 'tool_use', name: 'read', input: { path: 'a' } },
      ],
    })
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'custom', name: 'patch' },
      { type: 'namespace', name: 'files', description: 'Files', tools: [FUNCTION] },
    ]
    const final = await connect(createSimulator({ script }))
      .responses.stream({ model: NEW_MODEL, input: 'go', tools })
      .finalResponse()
    expect(final.output).toMatchObject([
      { type: 'custom_tool_call', name: 'patch', input: '*** Begin' },
      { type: 'function_call', name: 'read', namespace: 'files' },
    ])
  })

  it('count the tokens of a prompt as they are billed', async () => {
    const client = connect(createSimulator({ script: agent }))
    const { model, input, tools } = ask
    const counted = await client.responses.inputTokens.count({ model, input, tools })
    const { usage } = await client.responses.create(ask)
    expect(counted).toMatchObject({ object: 'response.input_tokens', input_tokens: usage?.input_tokens })
  })
})

const chat = {
  model: OLD_MODEL,
  messages: [{ role: 'user' as const, content: PROMPT }],
  tools: [CHAT_FUNCTION],
}

describe('chat completions', () => {
  it('are read by create', async () => {
    const completion: ChatCompletion = await connect(
      createSimulator({ script: agent }),
    ).chat.completions.create(chat)
    expect(completion).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          finish_reason: 'tool_calls',
          message: {
            content: 'Reading.',
            tool_calls: [
              { type: 'function', function: { name: 'read', arguments: '{"path":"a.txt","lines":[1,2]}' } },
              { type: 'function', function: { name: 'read', arguments: '{"path":"b.txt"}' } },
            ],
          },
        },
      ],
      usage: { completion_tokens_details: { reasoning_tokens: 6 } },
    })
  })

  it('are put together by the stream helper as they are sent without a stream', async () => {
    const whole = await connect(createSimulator({ script: agent })).chat.completions.create(chat)
    const client = connect(createSimulator({ script: agent, deltaSize: 3 }))
    const options = { stream_options: { include_usage: true } }
    const final = await client.chat.completions.stream({ ...chat, ...options }).finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe(whole.choices[0]?.message.content)
    expect(final.choices[0]?.message.tool_calls).toMatchObject(whole.choices[0]?.message.tool_calls ?? [])
    expect(final.usage).toEqual(whole.usage)
  })

  it('have usage in a stream only if it is asked for, in a last chunk without choices', async () => {
    const client = connect(createSimulator({ script: agent }))
    const plain: readonly ChatCompletionChunk[] = await collect(
      await client.chat.completions.create({ ...chat, stream: true }),
    )
    const asked = await collect(
      await client.chat.completions.create({
        ...chat,
        stream: true,
        stream_options: { include_usage: true },
      }),
    )
    expect(plain.every((chunk) => chunk.usage === undefined)).toBe(true)
    expect(asked.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } })
    expect(asked.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true)
  })

  it('are run to the end by the tool runner', async () => {
    const simulator = createSimulator({ script: agent })
    const read: string[] = []
    const runner = connect(simulator).chat.completions.runTools({
      model: OLD_MODEL,
      messages: chat.messages,
      tools: [
        {
          type: 'function',
          function: {
            name: 'read',
            description: 'Reads a file',
            parameters: FUNCTION.parameters,
            parse: JSON.parse,
            function: ({ path }: { readonly path: string }) => {
              read.push(path)
              return `text of ${path}`
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('Both are in – done ✓.')
    expect(read).toEqual(['a.txt', 'b.txt'])
    expect(simulator.requests.map(({ status }) => status)).toEqual([200, 200])
  })
})

it('models are listed', async () => {
  const ids = (await connect(createSimulator()).models.list()).data.map(({ id }) => id)
  expect(ids).toEqual(expect.arrayContaining([OLD_MODEL, NEW_MODEL]))
  expect(ids.some((id) => id.startsWith('claude'))).toBe(false)
})

describe('errors', () => {
  it('are those that the SDK knows', async () => {
    const client = connect(createSimulator())
    const error = await client.responses.create({ model: 'gpt-none', input: 'hi' }).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error).toMatchObject({ status: 400, code: 'model_not_found', param: 'model' })
    expect(error.requestID).toMatch(/^req_/)
  })

  it.each(['error-event', 'flat-error-event', 'failed-event'] as const)(
    'of a prompt over the window can come in the stream as %s',
    async (overflow) => {
      const simulator = createSimulator({ window: 100, openai: { overflow } })
      const body = { model: OLD_MODEL, input: 'word '.repeat(200) }
      const stream = connect(simulator).responses.stream(body)
      const thrown: unknown = await stream.finalResponse().catch((error) => error)
      if (overflow === 'failed-event')
        expect(thrown).toMatchObject({ status: 'failed', error: { code: 'context_length_exceeded' } })
      else {
        expect(thrown).toBeInstanceOf(APIError)
        expect(thrown).toMatchObject({ code: 'context_length_exceeded' })
      }
      expect(simulator.requests[0]).toMatchObject({ status: 200, error: { type: 'context_length_exceeded' } })
      await expect(connect(simulator).responses.create(body)).rejects.toMatchObject({ status: 400 })
    },
  )
})

describe('compaction', () => {
  const summary: Script = ({ kind, messages }) => {
    const seen = JSON.stringify(messages)
    if (kind === 'compaction') return { blocks: [{ type: 'text', text: '<summary>It was blue.</summary>' }] }
    return {
      blocks: [{ type: 'text', text: seen.includes('It was blue.') ? 'from the summary' : 'from the text' }],
    }
  }
  const input: ResponseInputItem[] = [
    { role: 'user', content: 'Which colour?' },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Blue.', annotations: [] }],
    },
    { role: 'user', content: 'Sure?' },
  ]

  it('returns all messages of the user and one sealed item, which a later request can use', async () => {
    const client = connect(createSimulator({ script: summary }))
    const compacted = await client.responses.compact({ model: NEW_MODEL, input })
    expect(compacted).toMatchObject({
      object: 'response.compaction',
      output: [
        { type: 'message', role: 'user' },
        { type: 'message', role: 'user' },
        { type: 'compaction', encrypted_content: expect.stringMatching(/^gAAAAA/) },
      ],
    })
    const next = [...(compacted.output as ResponseInputItem[]), { role: 'user' as const, content: 'Again?' }]
    expect((await client.responses.create({ model: NEW_MODEL, input: next })).output_text).toBe(
      'from the summary',
    )
  })

  it('answers a trigger with exactly one item', async () => {
    const client = connect(createSimulator({ script: summary }))
    const triggered = [...input, { type: 'compaction_trigger' as const }]
    const final = await client.responses.stream({ model: NEW_MODEL, input: triggered }).finalResponse()
    expect(final.output.map(({ type }) => type)).toEqual(['compaction'])
  })

  it('comes before the answer from the threshold on, and both are billed', async () => {
    const simulator = createSimulator({ script: summary })
    const context_management = [{ type: 'compaction', compact_threshold: 10 }]
    const response = await connect(simulator).responses.create({
      model: NEW_MODEL,
      input,
      context_management,
    })
    expect(response.output.map(({ type }) => type)).toEqual(['compaction', 'message'])
    expect(response.output_text).toBe('from the summary')
    expect(simulator.requests[0]?.compactions).toHaveLength(1)
    const { usage } = simulator.requests[0] ?? {}
    expect(usage?.output).toBe(response.usage?.output_tokens)
  })
})
