/** Threshold compaction: a summary before the answer, once the prompt is long enough. */
import type { SimulatorOptions } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { assistant, postMessage, simulate, tokens, user } from './ask.ts'
import { BETA, createCompactionBlock, HISTORY, REQUEST, summaryScript } from './summaries.ts'

describe('compaction at a threshold', () => {
  const EDIT = 'compact-2026-01-12'
  const edit = (more: object = {}): object => ({
    context_management: {
      edits: [{ type: 'compact_20260112', trigger: { type: 'input_tokens', value: 50_000 }, ...more }],
    },
  })
  const long = [user(tokens(51_000)), assistant('seen'), user('go on')]
  const asked = { betas: [EDIT] }
  const options: SimulatorOptions = { script: summaryScript }

  it('writes a summary before the answer', async () => {
    const { body } = await postMessage(simulate(options), { ...REQUEST, ...edit(), messages: long }, asked)
    expect(body.content.map((block: { type: string }) => block.type)).toEqual([
      'compaction',
      'thinking',
      'text',
    ])
    expect(body.content[0]).toEqual({
      type: 'compaction',
      content: 'It was about looking.',
      encrypted_content: null,
    })
    expect(body.usage.iterations.map((each: { type: string }) => each.type)).toEqual([
      'compaction',
      'message',
    ])
    expect(body.usage.iterations[0].input_tokens).toBeGreaterThan(51_000)
    expect(body.usage.input_tokens).toBe(body.usage.iterations[1].input_tokens)
    expect(body.usage.input_tokens).toBeLessThan(100)
  })

  it('is in the record: its tokens count as billed and are listed separately', async () => {
    const simulator = simulate(options)
    const { body } = await postMessage(simulator, { ...REQUEST, ...edit(), messages: long }, asked)
    const [summary, message] = body.usage.iterations
    const [record] = simulator.requests
    expect(record?.compactions).toMatchObject([
      { input: summary.input_tokens, output: summary.output_tokens },
    ])
    expect(record?.usage).toMatchObject({
      input: summary.input_tokens + message.input_tokens,
      output: summary.output_tokens + message.output_tokens,
    })
  })

  it('counts against the rate limits with its tokens', async () => {
    const limits = { inputTokens: 100_000, outputTokens: 50_000 }
    const simulator = simulate({ ...options, limits })
    const { body } = await postMessage(simulator, { ...REQUEST, ...edit(), messages: long }, asked)
    const [summary, message] = body.usage.iterations
    const { headers } = await postMessage(simulator, { messages: [user('x')] })
    const charged = 100_000 - summary.input_tokens - message.input_tokens
    expect(headers.get('anthropic-ratelimit-input-tokens-remaining')).toBe(
      String(Math.round(charged / 1_000) * 1_000),
    )
    expect(charged).toBeLessThan(50_000)
  })

  it('stops after the summary with pause_after_compaction', async () => {
    const { body } = await postMessage(
      simulate(options),
      { ...REQUEST, ...edit({ pause_after_compaction: true }), messages: long },
      asked,
    )
    expect(body).toMatchObject({
      stop_reason: 'compaction',
      content: [{ type: 'compaction' }],
      usage: { input_tokens: 0 },
    })
  })

  it('does nothing below the threshold', async () => {
    const { body } = await postMessage(simulate(options), { ...REQUEST, ...edit(), messages: HISTORY }, asked)
    expect(body.content.map((block: { type: string }) => block.type)).toEqual(['thinking', 'text'])
    expect(body.usage.iterations).toHaveLength(1)
  })

  it.each([
    { name: 'with the old messages in front', front: long },
    { name: 'without them', front: [] },
  ])('can be continued, $name', async ({ front }) => {
    const simulator = simulate(options)
    const { body } = await postMessage(simulator, { ...REQUEST, ...edit(), messages: long }, asked)
    const messages = [...front, { role: 'assistant', content: body.content }, user('next')]
    const told = await postMessage(simulator, { ...REQUEST, ...edit(), messages }, asked)
    expect(told.status).toBe(200)
    expect(told.body.usage.input_tokens).toBeLessThan(100)
  })

  it('can be paused and continued at once', async () => {
    const simulator = simulate(options)
    const { body } = await postMessage(
      simulator,
      { ...REQUEST, ...edit({ pause_after_compaction: true }), messages: long },
      asked,
    )
    const messages = [...long, { role: 'assistant', content: body.content }]
    expect((await postMessage(simulator, { ...REQUEST, ...edit(), messages }, asked)).status).toBe(200)
  })

  it('leaves an empty block if the script wrote no summary, which is ignored when sent back', async () => {
    const simulator = simulate({
      script: ({ kind }) =>
        kind === 'compaction'
          ? { blocks: [{ type: 'tool_use', name: 'look', input: {} }] }
          : { blocks: [{ type: 'text', text: 'ok' }] },
    })
    const { body } = await postMessage(simulator, { ...REQUEST, ...edit(), messages: long }, asked)
    expect(body.content[0]).toEqual({ type: 'compaction', content: null, encrypted_content: null })
    const messages = [...long, { role: 'assistant', content: body.content }, user('next')]
    const told = await postMessage(
      simulator,
      { ...REQUEST, ...edit({ pause_after_compaction: true }), messages },
      asked,
    )
    expect(told.body.usage.iterations[0].input_tokens).toBeGreaterThan(51_000)
  })

  it('cannot run on a conversation that begins with a signed block', async () => {
    const simulator = simulate(options)
    const block = await createCompactionBlock(simulator, HISTORY)
    const body = { ...REQUEST, ...edit(), messages: [assistant(block), user('x')] }
    expect((await postMessage(simulator, body, { betas: [BETA, EDIT] })).status).toBe(400)
  })

  it('streams the summary in one delta', async () => {
    const response = await simulate(options).fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'anthropic-beta': EDIT },
      body: JSON.stringify({
        ...REQUEST,
        ...edit({ pause_after_compaction: true }),
        messages: long,
        stream: true,
      }),
    })
    const body = await response.text()
    expect(body.match(/compaction_delta/g)).toHaveLength(1)
  })
})
