/** Servers that speak Chat Completions, each as it departs from OpenAI. */
import { createSimulator, type Script, type Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { toBlocks } from '../src/protocol/messages-request.ts'
import { tokens } from './ask.ts'
import { CHAT_FUNCTION, connect, postChat } from './openai-requests.ts'

const thinker: Script = ({ messages }) => ({
  blocks: [
    { type: 'thinking', thinking: 'Hm.' },
    messages.length > 1 ? { type: 'text', text: 'Done.' } : { type: 'tool_use', name: 'read', input: {} },
  ],
})

type Dialect = NonNullable<NonNullable<Parameters<typeof createSimulator>[0]>['openai']>['dialect']

function simulateDialect(dialect: NonNullable<Dialect>, script: Script = thinker): Simulator {
  return createSimulator({ script, openai: { dialect } })
}

const ask = {
  model: 'any-model',
  messages: [{ role: 'user', content: tokens(2_000) }],
  tools: [CHAT_FUNCTION],
}

describe('DeepSeek', () => {
  it('sends its reasoning, and wants it back with the calls', async () => {
    const simulator = simulateDialect('deepseek')
    const { message } = (await postChat(simulator, ask)).body.choices[0]
    expect(message.reasoning_content).toBe('Hm.')
    const answered = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'seen' }
    const send = (assistant: object): ReturnType<typeof postChat> =>
      postChat(simulator, { ...ask, messages: [...ask.messages, assistant, answered] })
    expect((await send(message)).status).toBe(200)
    expect(await send({ ...message, reasoning_content: undefined })).toMatchObject({
      status: 400,
      body: {
        error: { message: 'The reasoning_content in the thinking mode must be passed back to the API.' },
      },
    })
  })

  it('reports hits and misses, caches answers too, and only whole messages', async () => {
    const simulator = simulateDialect('deepseek')
    const first = (await postChat(simulator, ask)).body
    expect(first.usage).toMatchObject({
      prompt_cache_hit_tokens: 0,
      prompt_cache_miss_tokens: first.usage.prompt_tokens,
    })
    const { message } = first.choices[0]
    const answered = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'seen' }
    const next = (await postChat(simulator, { ...ask, messages: [...ask.messages, message, answered] })).body
      .usage
    expect(next.prompt_cache_hit_tokens + next.prompt_cache_miss_tokens).toBe(next.prompt_tokens)
    expect(next.prompt_cache_hit_tokens).toBe(Math.floor(next.prompt_tokens / 64) * 64)
    const text = ask.messages[0]?.content ?? ''
    const changed = { ...ask, messages: [{ role: 'user', content: `${text.slice(0, -4)}!!!!` }] }
    expect((await postChat(simulator, changed)).body.usage.prompt_cache_hit_tokens).toBeLessThan(64)
  })
})

describe('Ollama', () => {
  const seen: (readonly string[])[] = []
  const listener: Script = ({ system, messages }) => {
    seen.push(
      [...system, ...messages.flatMap(({ content }) => toBlocks(content))].map((each) =>
        JSON.stringify(each).slice(0, 40),
      ),
    )
    return { blocks: [{ type: 'text', text: 'ok' }] }
  }

  it('answers 200 and drops the front of a long conversation, but not the system message', async () => {
    const turn = (mark: string): readonly object[] => [
      { role: 'user', content: tokens(900, mark) },
      { role: 'assistant', content: `answer ${mark}` },
    ]
    const messages = [
      { role: 'system', content: 'Be brief.' },
      ...['a', 'b', 'c', 'd', 'e'].flatMap(turn),
      { role: 'user', content: 'last' },
    ]
    const answer = await postChat(simulateDialect('ollama', listener), {
      model: 'qwen3',
      messages,
      options: { num_ctx: 32_000 },
    })
    expect(answer.status).toBe(200)
    expect(answer.body.usage.prompt_tokens).toBeLessThanOrEqual(4_096)
    expect(answer.body.usage.prompt_tokens).toBeGreaterThan(3_000)
    const [all] = seen
    expect(all?.[0]).toContain('Be brief.')
    expect(all?.some((text) => text.includes('"a '))).toBe(false)
    expect(all?.at(-1)).toContain('last')
  })

  it('counts no more than its window of a single long message, and answers all the same', async () => {
    const messages = [{ role: 'user', content: tokens(9_000) }]
    const { body } = await postChat(simulateDialect('ollama', listener), { model: 'qwen3', messages })
    expect(body.usage.prompt_tokens).toBe(4_096)
    expect(body.usage.completion_tokens).toBeGreaterThan(0)
  })
})

describe('vLLM', () => {
  it('reports no cached tokens', async () => {
    const simulator = simulateDialect('vllm')
    await postChat(simulator, ask)
    const { body } = await postChat(simulator, ask)
    expect(Object.keys(body.usage)).toEqual(['prompt_tokens', 'completion_tokens', 'total_tokens'])
    expect(simulator.requests[1]?.usage?.cacheRead).toBeGreaterThan(1_900)
  })
})

describe('overflow', () => {
  it.each([
    [
      'openrouter',
      /^This endpoint's maximum context length is 100 tokens\. However, you requested about \d+ tokens/,
    ],
    ['vllm', /^This model's maximum context length is 100 tokens and your request has \d+ input tokens/],
    ['kimi', /exceeded model token limit: 100 \(requested: \d+\)/],
    ['llama.cpp', /^request \(\d+ tokens\) exceeds the available context size \(100 tokens\)/],
    [
      'deepseek',
      /^This model's maximum context length is 100 tokens\. However, your messages resulted in \d+ tokens/,
    ],
  ] as const)('has the text of %s', async (dialect, message) => {
    const simulator = createSimulator({ window: 100 })
    const { status, body } = await postChat(simulator, ask, { 'x-simulator-dialect': dialect })
    expect(status).toBe(400)
    expect(body.error.message).toMatch(message)
    if (dialect === 'llama.cpp')
      expect(body.error).toMatchObject({ n_prompt_tokens: expect.any(Number), n_ctx: 100 })
  })
})

it('a dialect that is not known is refused', async () => {
  const { status, body } = await postChat(createSimulator(), ask, { 'x-simulator-dialect': 'latin' })
  expect([status, body.error.message]).toEqual([
    400,
    expect.stringContaining('expected one of openai, openrouter'),
  ])
})

it('streams of reasoning are read by the SDK', async () => {
  const client = connect(simulateDialect('deepseek'))
  const stream = await client.chat.completions.create({
    model: 'deepseek-chat',
    messages: [{ role: 'user', content: 'hi' }],
    tools: [CHAT_FUNCTION],
    stream: true,
  })
  const parts: string[] = []
  for await (const { choices } of stream) {
    const delta: { readonly reasoning_content?: string } | undefined = choices[0]?.delta as object
    parts.push(delta?.reasoning_content ?? '')
  }
  expect(parts.join('')).toBe('Hm.')
})
