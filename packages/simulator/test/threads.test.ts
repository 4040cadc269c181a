/** Message threads: the server stores the conversation; each response can be continued once, within five minutes. */
import { createManualClock, type Simulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  MARK,
  MODEL,
  postMessage,
  type RequestSettings,
  result,
  simulate,
  type TestResponse,
  TOOL,
  user,
} from './ask.ts'

const BETA = 'message-threads-2026-08-12'
const ASKED: RequestSettings = { betas: [BETA] }
const CREATE = { thread: { type: 'create' } }
const REQUEST = { system: 'You help.', tools: [TOOL] }

function on(id: string): object {
  return { thread: { type: 'continue', previous_message_id: id } }
}

async function start(simulator: Simulator, more: object = {}): Promise<string> {
  const { body } = await postMessage(
    simulator,
    { ...REQUEST, ...CREATE, messages: [user('hi')], ...more },
    ASKED,
  )
  return body.id
}

describe('a thread', () => {
  it('continues with only the new messages', async () => {
    const simulator = simulate()
    const id = await start(simulator)
    const told = await postMessage(simulator, { ...on(id), messages: [user('and?')] }, ASKED)
    const whole = await postMessage(
      simulator,
      { ...REQUEST, messages: [user('hi'), assistant('ok'), user('and?')] },
      ASKED,
    )
    expect(told.status).toBe(200)
    expect(told.body.usage).toEqual(whole.body.usage)
    const next = await postMessage(simulator, { ...on(told.body.id), messages: [user('more')] }, ASKED)
    expect(next.status).toBe(200)
  })

  it('answers the calls of the response it continues', async () => {
    const simulator = simulate({
      script: ({ messages }) => ({
        blocks:
          messages.length === 1
            ? [{ type: 'tool_use', name: 'look', input: {}, id: 'toolu_1' }]
            : [{ type: 'text', text: 'done' }],
      }),
    })
    const id = await start(simulator)
    const told = await postMessage(simulator, { ...on(id), messages: [user(result('toolu_1'))] }, ASKED)
    expect(told.body.content).toEqual([{ type: 'text', text: 'done' }])
  })

  it('is cached like any other conversation if it has markers', async () => {
    const simulator = simulate()
    const long = 'word '.repeat(600)
    const id = await start(simulator, { ...MARK, messages: [user(long)] })
    const told = await postMessage(simulator, { ...on(id), ...MARK, messages: [user('and?')] }, ASKED)
    expect(told.body.usage.cache_read_input_tokens).toBeGreaterThan(700)
  })

  it('expires five minutes after the last request', async () => {
    const clock = createManualClock()
    const simulator = simulate({ clock })
    const id = await start(simulator)
    await clock.advance(299_000)
    const second = await postMessage(simulator, { ...on(id), messages: [user('x')] }, ASKED)
    await clock.advance(299_000)
    const third = await postMessage(simulator, { ...on(second.body.id), messages: [user('x')] }, ASKED)
    expect(third.status).toBe(200)
    await clock.advance(301_000)
    const late = await postMessage(simulator, { ...on(third.body.id), messages: [user('x')] }, ASKED)
    expect(late).toMatchObject({
      status: 404,
      body: { error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } },
    })
  })
})

describe('what is rejected', () => {
  const code = ({ status, body }: TestResponse): readonly unknown[] => [
    status,
    body.error?.details?.error_code,
  ]

  it('an unknown id', async () => {
    const told = await postMessage(simulate(), { ...on('msg_x'), messages: [user('x')] }, ASKED)
    expect(code(told)).toEqual([404, 'thread_not_found'])
  })

  it('an id of another workspace', async () => {
    const simulator = simulate()
    const id = await start(simulator)
    const headers = { 'anthropic-workspace-id': 'other' }
    expect(
      code(await postMessage(simulator, { ...on(id), messages: [user('x')] }, { ...ASKED, headers })),
    ).toEqual([404, 'thread_not_found'])
  })

  it('a second continuation', async () => {
    const simulator = simulate()
    const id = await start(simulator)
    await postMessage(simulator, { ...on(id), messages: [user('x')] }, ASKED)
    const told = await postMessage(simulator, { ...on(id), messages: [user('y')] }, ASKED)
    expect(code(told)).toEqual([400, 'thread_already_continued'])
  })

  it('two continuations at once', async () => {
    const simulator = simulate()
    const id = await start(simulator)
    const both = await Promise.all(
      ['x', 'y'].map((said) => postMessage(simulator, { ...on(id), messages: [user(said)] }, ASKED)),
    )
    expect(both.map(code)).toEqual([
      [200, undefined],
      [400, 'thread_continue_in_flight'],
    ])
  })

  it.each([
    { name: 'another model', body: { model: 'claude-opus-5-5' } },
    { name: 'another tool choice', body: { tool_choice: { type: 'none' } } },
    { name: 'other thinking', body: { thinking: { type: 'disabled' } } },
    { name: 'another system prompt', body: { system: 'Other.' } },
    { name: 'other tools', body: { tools: [{ ...TOOL, name: 'other' }] } },
    { name: 'a marker for the whole', body: MARK },
  ])('$name', async ({ body }) => {
    const simulator = simulate()
    const id = await start(simulator)
    const told = await postMessage(
      simulator,
      { model: MODEL, ...on(id), messages: [user('x')], ...body },
      ASKED,
    )
    expect(code(told)).toEqual([400, 'thread_fingerprint_mismatch'])
  })

  it('other betas', async () => {
    const simulator = simulate()
    const id = await start(simulator)
    const told = await postMessage(
      simulator,
      { ...on(id), messages: [user('x')] },
      { betas: [BETA, 'compact-2026-01-12'] },
    )
    expect(code(told)).toEqual([400, 'thread_fingerprint_mismatch'])
  })

  it('context editing', async () => {
    const context_management = { edits: [{ type: 'clear_tool_uses_20250919' }] }
    const asked = { betas: [BETA, 'context-management-2025-06-27'] }
    const told = await postMessage(
      simulate(),
      { ...REQUEST, ...CREATE, context_management, messages: [user('x')] },
      asked,
    )
    expect(code(told)).toEqual([400, 'thread_unsupported_request'])
    expect(told.body.error.details.unsupported).toEqual(['context_management'])
    const keep = { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] }
    const fine = await postMessage(
      simulate(),
      { ...REQUEST, ...CREATE, context_management: keep, messages: [user('x')] },
      asked,
    )
    expect(fine.status).toBe(200)
  })

  it('can be continued again if the continuation failed', async () => {
    const simulator = simulate({
      script: (_request, { index }) => ({
        blocks: [{ type: 'text', text: 'ok' }],
        ...(index === 1 ? { fault: { type: 'status', status: 529 } as const } : {}),
      }),
    })
    const id = await start(simulator)
    expect((await postMessage(simulator, { ...on(id), messages: [user('x')] }, ASKED)).status).toBe(529)
    expect((await postMessage(simulator, { ...on(id), messages: [user('x')] }, ASKED)).status).toBe(200)
  })
})

describe('an answer that never begins', () => {
  it.each(['reset', 'cut=0b', 'reset, slow-start=5ms'])(
    '%s: the response can be continued again',
    async (fault) => {
      const simulator = simulate()
      const id = await start(simulator)
      const next = { ...on(id), messages: [user('and?')] }
      const headers = { 'x-simulator-fault': fault }
      await postMessage(simulator, next, { ...ASKED, headers }).catch(() => null)
      expect((await postMessage(simulator, next, ASKED)).status).toBe(200)
    },
  )

  it.each(['hang', 'slow-start=1m'])(
    '%s, and the client leaves: the response can be continued again',
    async (fault) => {
      const simulator = simulate()
      const id = await start(simulator)
      const next = { ...on(id), messages: [user('and?')] }
      const leave = new AbortController()
      const waiting = simulator.fetch('http://simulator/v1/messages', {
        method: 'POST',
        headers: {
          'x-api-key': 'test-key',
          'anthropic-version': '2026-10-21',
          'anthropic-beta': BETA,
          'x-simulator-fault': fault,
        },
        body: JSON.stringify({ model: MODEL, max_tokens: 64, ...next }),
        signal: leave.signal,
      })
      while (simulator.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 1))
      const meanwhile = await postMessage(simulator, next, ASKED)
      expect(meanwhile.body.error.details.error_code).toBe('thread_continue_in_flight')
      leave.abort(new Error('enough'))
      await expect(waiting).rejects.toThrow('enough')
      expect((await postMessage(simulator, next, ASKED)).status).toBe(200)
    },
  )
})
