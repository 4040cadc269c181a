/** The built-in scripts in a simulator: their output is valid, cached, compacted and cut short. */
import { createManualClock, createSimulator, type Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import type { Block, MessageParam } from '../src/protocol/messages-request.ts'
import { BAD_SUMMARIZER_NAMES, BAD_SUMMARIZERS } from '../src/scripts/bad-summarizers.ts'
import { createCoder } from '../src/scripts/coder.ts'
import { echo, listToolCalls } from '../src/scripts/script.ts'
import { withSummaries } from '../src/scripts/summarizer.ts'
import { postMessage, type TestResponse } from './ask.ts'

const ASK = 'Write an <analysis> block, then a <summary> block. Text only.'
const SYSTEM = 'You are a careful programmer. '.repeat(120)

async function send(
  simulator: Simulator,
  messages: readonly MessageParam[],
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<TestResponse> {
  return postMessage(simulator, { max_tokens: 8_000, messages, ...more }, { headers })
}

describe('the coder behind the simulator', () => {
  it('works to the end, with thinking, and its conversation is read from the cache', async () => {
    const coder = createCoder({ turns: 24, resultTokens: 300, thinkingTokens: 40 })
    const simulator = createSimulator({ script: withSummaries(coder.script) })
    const more = {
      system: SYSTEM,
      tools: coder.tools,
      thinking: { type: 'adaptive' },
      cache_control: { type: 'ephemeral' },
    }
    let messages: readonly MessageParam[] = [{ role: 'user', content: 'Raise the limits.' }]
    const told: TestResponse[] = []
    for (;;) {
      const answer = await send(simulator, messages, more)
      told.push(answer)
      const response: MessageParam = { role: 'assistant', content: answer.body.content }
      const calls = listToolCalls(response)
      if (calls.length === 0) break
      messages = [
        ...messages,
        response,
        { role: 'user', content: calls.map((call) => coder.toolResult(call)) },
      ]
    }
    expect(told.map(({ status }) => status)).toEqual(Array(25).fill(200))
    expect(told.map(({ body }) => body.stop_reason)).toEqual([...Array(24).fill('tool_use'), 'end_turn'])
    const missed = told.slice(1).filter(({ body }) => body.usage.cache_read_input_tokens === 0)
    expect(missed).toEqual([])
  })

  it('continues after an on-demand compaction', async () => {
    const coder = createCoder({ turns: 24, resultTokens: 100 })
    const simulator = createSimulator({ script: withSummaries(coder.script) })
    const more = { system: SYSTEM, tools: coder.tools }
    const betas = ['compact-2026-09-04']
    let messages: readonly MessageParam[] = [{ role: 'user', content: 'Raise the limits.' }]
    for (let turn = 0; turn < 5; turn += 1) {
      const { body } = await send(simulator, messages, more)
      const results = listToolCalls({ role: 'assistant', content: body.content }).map((call) =>
        coder.toolResult(call),
      )
      messages = [
        ...messages,
        { role: 'assistant', content: body.content },
        { role: 'user', content: results },
      ]
    }
    const compacted = await postMessage(
      simulator,
      { max_tokens: 8_000, messages, ...more, compaction: { type: 'summarize' } },
      { betas },
    )
    expect([compacted.status, compacted.body.stop_reason]).toEqual([200, 'compaction'])
    const after = [
      { role: 'assistant', content: compacted.body.content },
      { role: 'user', content: 'Go on.' },
    ]
    const next = await postMessage(simulator, { max_tokens: 8_000, messages: after, ...more }, { betas })
    const said = next.body.content.find(({ type }: Block) => type === 'text')
    expect(said?.text).toMatch(/^Step 6 of 24: /)
  })
})

describe('adversaries behind the simulator', () => {
  it.each(BAD_SUMMARIZER_NAMES.filter((name) => name !== 'hang'))(
    '%s comes through as a response',
    async (name) => {
      const simulator = createSimulator({ script: withSummaries(echo, BAD_SUMMARIZERS[name]) })
      const { status, body } = await send(simulator, [{ role: 'user', content: ASK }])
      const expected = await BAD_SUMMARIZERS[name](
        {
          kind: 'message',
          instructions: null,
          model: 'claude-opus-5',
          maxTokens: 8_000,
          system: [],
          tools: [],
          messages: [{ role: 'user', content: ASK }],
          body: { model: 'claude-opus-5', messages: [] },
          headers: {},
        },
        { index: 0, turn: 0, inputTokens: body.usage.input_tokens, random: () => 0, now: 0 },
      )
      expect([status, body.content.map(({ type }: Block) => type)]).toEqual([
        200,
        expected.blocks.map(({ type }) => type),
      ])
      expect(body.stop_reason).toBe(expected.stopReason ?? (name === 'tool-call' ? 'tool_use' : 'end_turn'))
    },
  )

  it('hangs until the client gives up', async () => {
    const simulator = createSimulator({ script: BAD_SUMMARIZERS.hang, clock: createManualClock() })
    const giveUp = new AbortController()
    const response = simulator.fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'k', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({
        model: 'claude-opus-5',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
      signal: giveUp.signal,
    })
    giveUp.abort(new Error('enough'))
    await expect(response).rejects.toThrow('enough')
  })
})

describe('faults by header', () => {
  const messages: readonly MessageParam[] = [{ role: 'user', content: 'naïve ☕ naïve ☕' }]

  it.each([
    ['429; retry-after=2', 429, 'rate_limit_error', '2'],
    ['529', 529, 'overloaded_error', null],
    ['500', 500, 'api_error', null],
    ['413', 413, 'request_too_large', null],
    ['drip=fast', 400, 'invalid_request_error', null],
  ])('%s', async (fault, status, type, wait) => {
    const told = await send(createSimulator(), messages, {}, { 'x-simulator-fault': fault })
    expect([told.status, told.body.error.type, told.headers.get('retry-after')]).toEqual([status, type, wait])
  })

  /** The bytes of a streamed answer up to where it breaks off. */
  async function bytesOf(fault: string): Promise<{ readonly bytes: Buffer; readonly ended: string }> {
    const response = await createSimulator().fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'k',
        'anthropic-version': '2023-06-01',
        'x-simulator-fault': fault,
      },
      body: JSON.stringify({ model: 'claude-opus-5', max_tokens: 99, stream: true, messages }),
    })
    const pieces: Uint8Array[] = []
    try {
      for await (const piece of response.body ?? []) pieces.push(piece)
      return { bytes: Buffer.concat(pieces), ended: 'closed' }
    } catch {
      return { bytes: Buffer.concat(pieces), ended: 'broken' }
    }
  }

  it('cut=utf8 ends inside a character', async () => {
    const { bytes, ended } = await bytesOf('cut=utf8')
    expect(ended).toBe('closed')
    expect(new TextDecoder().decode(bytes).endsWith('\ufffd')).toBe(true)
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes)).toThrow()
  })

  it('error-at=3 ends in an error event', async () => {
    const { bytes } = await bytesOf('error-at=3')
    expect([...bytes.toString().matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)).toEqual([
      'message_start',
      'ping',
      'content_block_start',
      'error',
    ])
  })

  it('reset-after=2 breaks the connection after two events', async () => {
    const { bytes, ended } = await bytesOf('reset-after=2')
    expect([ended, bytes.toString().match(/^event: /gm)?.length ?? 0]).toEqual(['broken', 2])
  })
})

it('scheduled faults apply when they are due, and can be deleted', async () => {
  const simulator = createSimulator()
  const control = async (method: string, body?: unknown): Promise<number> => {
    const init =
      body === undefined
        ? { method }
        : { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    return (await simulator.fetch('http://simulator/_simulator/faults', init)).status
  }
  const statuses = async (count: number): Promise<readonly number[]> => {
    const all: number[] = []
    for (let each = 0; each < count; each += 1)
      all.push((await send(simulator, [{ role: 'user', content: 'Hi' }])).status)
    return all
  }
  expect(
    await control('POST', [
      '529',
      { fault: 'status=500', times: 2, skip: 2 },
      { fault: 'status=429', every: 3 },
    ]),
  ).toBe(200)
  expect(await statuses(9)).toEqual([529, 200, 500, 500, 429, 200, 200, 429, 200])
  expect([await control('DELETE'), await statuses(4)]).toEqual([204, [200, 200, 200, 200]])
  expect(await control('POST', { fault: 'status=200' })).toBe(400)
})
