/** The AI SDK with its Anthropic provider, without a port: the simulator is its `fetch`. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createSimulator, type Simulator, type SimulatorOptions } from '@tidemark/simulator'
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { agent, PROMPT } from './clients.ts'

const MODEL = 'claude-opus-5-5'

function connect(options: SimulatorOptions = {}) {
  const simulator: Simulator = createSimulator(options)
  const provider = createAnthropic({
    apiKey: 'key',
    baseURL: 'http://simulator/v1',
    fetch: simulator.fetch as typeof fetch,
  })
  return { simulator, model: provider(MODEL) }
}

const tools = {
  read: tool({
    description: 'Reads a file',
    inputSchema: jsonSchema<{ path: string }>({ type: 'object', properties: { path: { type: 'string' } } }),
    execute: ({ path }) => Promise.resolve(`content of ${path}`),
  }),
}

describe('ai 7 with @ai-sdk/anthropic 4', () => {
  it('generates text', async () => {
    const { model } = connect()
    const { text, usage, finishReason } = await generateText({ model, prompt: 'say it back' })
    expect({ text, finishReason }).toEqual({ text: 'say it back', finishReason: 'stop' })
    expect(usage).toMatchObject({ inputTokens: 7, outputTokens: 3 })
  })

  it('streams text', async () => {
    const { model } = connect({ deltaSize: 4 })
    const { textStream, usage } = streamText({ model, prompt: 'naïve café ☕ and more' })
    const pieces: string[] = []
    for await (const piece of textStream) pieces.push(piece)
    expect(pieces.join('')).toBe('naïve café ☕ and more')
    expect(pieces.length).toBeGreaterThan(3)
    expect(await usage).toMatchObject({ inputTokens: 11, outputTokens: 7 })
  })

  it('thinks, calls two tools in parallel and continues with their results', async () => {
    const { model, simulator } = connect({ script: agent })
    const { text, steps } = await generateText({ model, prompt: PROMPT, tools, stopWhen: stepCountIs(3) })
    expect(text).toBe('Both are in – done ✓.')
    expect(steps[0]?.toolCalls.map(({ input }) => input)).toEqual([
      { path: 'a.txt', lines: [1, 2] },
      { path: 'b.txt' },
    ])
    expect(simulator.requests.map(({ status, stopReason }) => [status, stopReason])).toEqual([
      [200, 'tool_use'],
      [200, 'end_turn'],
    ])
  })

  it('does the same in a stream', async () => {
    const { model, simulator } = connect({ script: agent })
    const result = streamText({ model, prompt: PROMPT, tools, stopWhen: stepCountIs(3) })
    expect(await result.text).toBe('Both are in – done ✓.')
    expect(simulator.requests).toHaveLength(2)
  })

  it('splits usage into cached and not', async () => {
    const { model } = connect()
    const marked = { anthropic: { cacheControl: { type: 'ephemeral' as const } } }
    const ask = () =>
      generateText({
        model,
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'word '.repeat(600), providerOptions: marked },
              { type: 'text', text: 'go' },
            ],
          },
        ],
      })
    expect((await ask()).usage.inputTokenDetails).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 754 })
    expect((await ask()).usage.inputTokenDetails).toMatchObject({ cacheReadTokens: 754, cacheWriteTokens: 0 })
  })

  it('maps errors, and marks those that can be retried', async () => {
    const { model, simulator } = connect()
    simulator.queueFaults({ type: 'status', status: 529 }, { type: 'status', status: 400, message: 'no' })
    const failed = () => generateText({ model, prompt: 'x', maxRetries: 0 }).catch((error: unknown) => error)
    const [overloaded, refused] = [await failed(), await failed()]
    expect(APICallError.isInstance(overloaded) && overloaded).toMatchObject({
      statusCode: 529,
      isRetryable: true,
    })
    expect(APICallError.isInstance(refused) && refused).toMatchObject({ statusCode: 400, isRetryable: false })
  })

  it('retries after 429, at the time of retry-after', async () => {
    const { model, simulator } = connect()
    simulator.queueFaults({ type: 'status', status: 429, headers: { 'retry-after-ms': '1' } })
    expect((await generateText({ model, prompt: 'again' })).text).toBe('again')
    expect(simulator.requests).toHaveLength(2)
  })

  it('detects a stream that breaks off', async () => {
    const { model, simulator } = connect()
    simulator.queueFaults({ type: 'reset', afterBytes: 900 })
    const errors: unknown[] = []
    const { textStream } = streamText({
      model,
      prompt: 'long '.repeat(100),
      onError: ({ error }) => {
        errors.push(error)
      },
    })
    const read = (async () => {
      for await (const _ of textStream);
    })()
    await read.catch((error: unknown) => errors.push(error))
    expect(errors).not.toEqual([])
  })
})
