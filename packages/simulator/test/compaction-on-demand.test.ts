import { describe, expect, it } from 'vitest'
import {
  assistant,
  call,
  MARK,
  postMessage,
  readUsageFigures,
  result,
  simulate,
  text,
  tokens,
  user,
} from './ask.ts'
import {
  BETA,
  COMPACT,
  createCompactionBlock,
  HISTORY,
  REQUEST,
  summaryScript,
  WITH_COMPACTION_BETA,
} from './summaries.ts'

describe('a summary on demand', () => {
  it('is a signed block and nothing else', async () => {
    const simulator = simulate({ script: summaryScript })
    const { body } = await postMessage(
      simulator,
      { ...REQUEST, ...COMPACT, messages: HISTORY },
      WITH_COMPACTION_BETA,
    )
    expect(body).toMatchObject({
      stop_reason: 'compaction',
      content: [{ type: 'compaction', content: 'It was about looking.', signature: expect.any(String) }],
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
      },
    })
    expect(body.usage.iterations).toEqual([
      {
        type: 'compaction',
        input_tokens: expect.any(Number),
        output_tokens: 10,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      },
    ])
  })

  it('comes in one piece in a stream', async () => {
    const simulator = simulate({ script: summaryScript })
    const response = await simulator.fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'anthropic-beta': BETA },
      body: JSON.stringify({ ...REQUEST, ...COMPACT, messages: HISTORY, stream: true }),
    })
    const events = (await response.text()).match(/^event: .*$/gm)
    expect(events).toEqual(
      [
        'message_start',
        'ping',
        'content_block_start',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ].map((name) => `event: ${name}`),
    )
  })

  it('follows instructions instead of the provider’s own prompt', async () => {
    const seen: (string | null)[] = []
    const simulator = simulate({
      script: ({ instructions }) => {
        seen.push(instructions)
        return { blocks: [{ type: 'text', text: 'short' }] }
      },
    })
    for (const instructions of ['Keep names.', '  ', undefined])
      await postMessage(
        simulator,
        { ...REQUEST, compaction: { type: 'summarize', instructions }, messages: HISTORY },
        WITH_COMPACTION_BETA,
      )
    expect(seen[0]).toBe('Keep names.')
    expect(seen[1]).toBe(seen[2])
    expect(seen[1]).toContain('<summary>')
  })

  it('reads the cache of the conversation it summarizes', async () => {
    const simulator = simulate({ script: summaryScript })
    const messages = [user(text(tokens(600), MARK)), assistant('seen'), user('good')]
    await postMessage(simulator, { ...REQUEST, messages })
    const { body } = await postMessage(simulator, { ...REQUEST, ...COMPACT, messages }, WITH_COMPACTION_BETA)
    expect(body.usage.iterations[0].cache_read_input_tokens).toBeGreaterThan(600)
  })

  it('replaces what it summarizes for the model', async () => {
    const shown: unknown[] = []
    const simulator = simulate({
      script: (request, context) => {
        shown.push(request.messages)
        return summaryScript(request, context)
      },
    })
    const block = await createCompactionBlock(simulator, HISTORY)
    const next = [assistant(block), user('go on')]
    const told = await postMessage(simulator, { ...REQUEST, messages: next }, WITH_COMPACTION_BETA)
    expect(told.status).toBe(200)
    expect(shown[1]).toEqual(next)
  })

  it.each([
    {
      name: 'cut off',
      reply: { blocks: [{ type: 'text' as const, text: tokens(500) }] },
      stop: 'max_tokens',
    },
    {
      name: 'a call instead',
      reply: { blocks: [{ type: 'tool_use' as const, name: 'look', input: {} }] },
      stop: 'tool_use',
    },
    { name: 'a refusal', reply: { blocks: [], stopReason: 'refusal' as const }, stop: 'refusal' },
    { name: 'no text', reply: { blocks: [] }, stop: 'end_turn' },
  ])('is missing after $name', async ({ reply, stop }) => {
    const simulator = simulate({ script: () => reply })
    const { body, status } = await postMessage(
      simulator,
      { ...REQUEST, ...COMPACT, messages: HISTORY },
      WITH_COMPACTION_BETA,
    )
    expect({ status, content: body.content, stop: body.stop_reason }).toEqual({
      status: 200,
      content: [],
      stop,
    })
    expect(body.usage.iterations).toHaveLength(1)
  })

  it('may carry a marker', async () => {
    const simulator = simulate({ script: summaryScript })
    const block = await createCompactionBlock(simulator, HISTORY)
    const system = tokens(600)
    const body = { ...REQUEST, system, messages: [assistant({ ...block, ...MARK }), user('go on')] }
    await postMessage(simulator, body, WITH_COMPACTION_BETA)
    expect(readUsageFigures(await postMessage(simulator, body, WITH_COMPACTION_BETA)).read).toBeGreaterThan(
      600,
    )
  })

  it('is ignored when tokens are only counted', async () => {
    const path = '/v1/messages/count_tokens'
    const { max_tokens: _, ...base } = REQUEST
    const plain = await postMessage(simulate(), { ...base, messages: HISTORY }, { path })
    const told = await postMessage(
      simulate(),
      { ...base, ...COMPACT, messages: HISTORY },
      { path, ...WITH_COMPACTION_BETA },
    )
    expect(told.body).toEqual(plain.body)
  })
})

it('results of tools are no part of a summary’s block', async () => {
  const simulator = simulate({ script: summaryScript })
  const messages = [user('x'), assistant(call('a')), user(result('a'))]
  const block = await createCompactionBlock(simulator, messages)
  expect(Object.keys(block)).toEqual(['type', 'content', 'signature'])
})
