import {
  createManualClock,
  createSimulator,
  formatRequestLine,
  type RequestRecord,
  type Simulator,
} from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { assistant, call, MARK, postMessage, result, simulate, TOOL, text, tokens, user } from './ask.ts'

describe('the request log', () => {
  const long = (mark: string): string => tokens(700, mark)
  async function seen(simulator: Simulator): Promise<readonly RequestRecord[]> {
    const response = await simulator.fetch('http://simulator/_simulator/requests')
    return ((await response.json()) as { requests: RequestRecord[] }).requests
  }

  it('shows for each request what the cache did and what it cost', async () => {
    const simulator = createSimulator({ clock: createManualClock(Date.UTC(2026, 10, 15)) })
    await postMessage(simulator, { model: 'claude-opus-5-5', messages: [user(text(long('a'), MARK))] })
    await postMessage(simulator, {
      model: 'claude-opus-5-5',
      messages: [user(text(long('a'), MARK), 'and?')],
    })
    const [first, second] = await seen(simulator)
    expect(first).toMatchObject({
      number: 1,
      at: '2026-11-15T00:00:00.000Z',
      endpoint: '/v1/messages',
      status: 200,
      usage: { input: 0, cacheRead: 0, write5m: 704, write1h: 0 },
      cache: {
        hit: null,
        breakpoints: [{ path: 'messages.0.content.0', ttl: '5m', tokens: 704, fate: 'written' }],
        miss: null,
      },
    })
    expect(second?.cache).toEqual({
      hit: { path: 'messages.0.content.0', tokens: 704, from: 'messages.0.content.0' },
      breakpoints: [{ path: 'messages.0.content.0', ttl: '5m', tokens: 704, fate: 'read' }],
      minimum: 512,
      miss: null,
    })
    // Reads cost 0.20, input 4.00, output 20.00 a million.
    expect(second?.cost?.total).toBeCloseTo((704 * 0.2 + 1 * 4 + 64 * 20) / 1e6, 9)
    expect(second?.cost?.saved).toBeCloseTo((704 * (4 - 0.2)) / 1e6, 9)
  })

  it.each([
    {
      name: 'a changed block, to the byte',
      first: { messages: [user(text('hi')), assistant(long('a')), user(text('go', MARK))] },
      second: { messages: [user(text('hi')), assistant(long('b')), user(text('go', MARK))] },
      miss: {
        reason: 'content-changed',
        why: 'the prompt changed at messages.1.content.0',
        // After `{"text":"`, and after the block before: `{"text":"hi","type":"text"}`.
        divergence: { path: 'messages.1.content.0', blockByte: 9, promptByte: 27 + 9 },
      },
    },
    {
      name: 'a changed setting',
      first: { messages: [user(text(long('a'), MARK))] },
      second: { messages: [user(text(long('a'), MARK))], output_config: { effort: 'low' } },
      miss: { reason: 'key-changed', why: 'effort: high → low' },
    },
    {
      name: 'a lifetime that is over',
      first: { messages: [user(text(long('a'), MARK))] },
      second: { messages: [user(text(long('a'), MARK))] },
      wait: 310_000,
      miss: { reason: 'expired', why: 'its lifetime (5m) was over 10 s ago' },
    },
    {
      name: 'an entry too far back',
      first: { messages: [user(text(long('a'), MARK))] },
      second: {
        messages: [
          user(
            text(long('a')),
            ...Array.from({ length: 25 }, (_, at) => text(`${at}`, at === 24 ? MARK : {})),
          ),
        ],
      },
      miss: {
        reason: 'beyond-look-back',
        why: 'the entry is 25 positions before the nearest breakpoint; 20 positions are looked at',
      },
    },
    {
      name: 'breakpoints that are all before the entry',
      first: { system: [text(long('s'), MARK)], messages: [user(text(long('a'), MARK))] },
      second: { system: [text(long('s'), MARK)], messages: [user(text(long('a')), 'more')] },
      miss: {
        reason: 'no-breakpoint',
        why: 'the entry ends at messages.0.content.0, and the request has no cache_control there or after it',
      },
    },
    {
      name: 'no marker',
      first: { messages: [user(text(long('a'), MARK))] },
      second: { messages: [user(text(long('a')))] },
      miss: { reason: 'no-breakpoint' },
    },
  ])('explains $name', async ({ first, second, wait = 0, miss }) => {
    const clock = createManualClock()
    const simulator = simulate({ clock })
    await postMessage(simulator, first)
    await clock.advance(wait)
    await postMessage(simulator, second)
    const [, last] = await seen(simulator)
    expect(last?.cache?.miss).toMatchObject({ ...miss, comparedWith: 1 })
  })

  it('explains a changed system.0, even if a small request was sent in between that has the new one', async () => {
    const simulator = simulate()
    const ask = (system: string, marked: object, ...more: readonly object[]): Promise<unknown> =>
      postMessage(simulator, { system: [text(system)], messages: [user(text('hi'), marked), ...more] })
    const work = [assistant(long('b')), user(text(long('c'), MARK))]
    await ask('version 1', text(long('a')), ...work)
    await ask('version 2', text(long('a'), MARK))
    await ask('version 2', text('no cache'))
    await ask('version 2', text(long('a'), MARK), ...work, assistant('ok'), user(text('go on', MARK)))
    const last = (await seen(simulator)).at(-1)
    expect(last?.cache?.miss).toMatchObject({
      reason: 'content-changed',
      why: 'the prompt changed at system.0',
      comparedWith: 1,
      divergence: { path: 'system.0', was: '{"text":"version 1","type":"text"}' },
    })
    expect(last?.cache?.miss?.tokens).toBeGreaterThan(1_000)
  })

  it.each([
    ['in the last response', 'b'],
    ['in an earlier request', 'a'],
  ])('explains the first request after a compaction by the client, which kept a call %s', async (_, kept) => {
    const simulator = simulate({
      script: () => ({ blocks: [{ type: 'tool_use', id: 'b', name: 'look', input: {} }] }),
    })
    const send = (
      version: string,
      messages: readonly object[],
      ...betas: readonly string[]
    ): Promise<unknown> =>
      postMessage(simulator, { system: [text(version)], tools: [TOOL], messages }, { betas })
    const work = [user('Fix it.'), assistant(call('a'))]
    await send('version 1', [...work, user(result('a', long('r'), MARK))])
    await send('version 1', [...work, user(result('a', long('r')), 'Summarize.')], 'another-beta')
    await send('version 2', [user('The summary.'), assistant(call(kept)), user(result(kept, 'ok', MARK))])
    const last = (await seen(simulator)).at(-1)
    expect(last?.cache?.miss).toMatchObject({
      reason: 'content-changed',
      why: 'the prompt changed at system.0',
      comparedWith: 1,
    })
    expect(last?.cache?.miss?.tokens).toBeGreaterThan(700)
  })

  it('explains content that changed before the part of the prompt that a changed setting affects', async () => {
    const simulator = simulate()
    const send = (version: string, effort: string): Promise<unknown> =>
      postMessage(simulator, {
        system: [text(version)],
        messages: [user(text(long('a'), MARK))],
        output_config: { effort },
      })
    await send('version 1', 'high')
    await send('version 2', 'low')
    await send('version 2', 'high')
    const [, second, third] = await seen(simulator)
    expect(second?.cache?.miss?.why).toBe('the prompt changed at system.0')
    expect(third?.cache?.miss?.why).toBe('effort: low → high')
  })

  it('explains two concurrent requests', async () => {
    const simulator = simulate()
    const prompt = { messages: [user(text(long('a'), MARK))] }
    await Promise.all([postMessage(simulator, prompt), postMessage(simulator, prompt)])
    const [, second] = await seen(simulator)
    expect(second?.cache?.miss?.reason).toBe('not-yet-written')
  })

  it('does not compare different conversations', async () => {
    const simulator = simulate()
    await postMessage(simulator, {
      system: long('s'),
      messages: [user(text(long('a'), MARK)), assistant('x'), user('y')],
    })
    await postMessage(simulator, {
      system: long('s'),
      messages: [user(text(long('b'), MARK)), assistant('z'), user('y')],
    })
    const [, second] = await seen(simulator)
    expect(second?.cache?.miss).toBeNull()
  })

  it('shows rejected requests too, with one line each', async () => {
    const lines: string[] = []
    const simulator = simulate({
      clock: createManualClock(Date.UTC(2026, 10, 15)),
      onRequest: (record) => lines.push(formatRequestLine(record)),
    })
    await postMessage(simulator, { messages: [] })
    await postMessage(simulator, { messages: [user(text(long('a'), MARK))] })
    await postMessage(simulator, { messages: [user(text('a', MARK))] })
    await postMessage(simulator, { messages: [user('a')] }, { path: '/v1/messages/count_tokens' })
    expect(lines).toEqual([
      '#1 00:00:00 claude-opus-5 400 invalid_request_error: messages: at least one message is required',
      '#2 00:00:00 claude-opus-5  1 msgs  read 0 wrote 704 input 0 → 1  end_turn  $0.0044',
      '#3 00:00:00 claude-opus-5  1 msgs  read 0 wrote 0 input 5 → 1  end_turn  $0.0001  not cached: below the minimum of 512 tokens',
      '#4 00:00:00 claude-opus-5  count_tokens: 5',
    ])
  })

  it('shows bodies that could not be read', async () => {
    const simulator = simulate()
    await simulator.fetch('http://simulator/v1/messages', {
      method: 'POST',
      headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21' },
      body: 'no JSON',
    })
    expect(await seen(simulator)).toMatchObject([{ number: 1, status: 400, model: null }])
  })

  it('keeps as many requests as configured', async () => {
    const simulator = simulate({ keepRequests: 2 })
    for (const _ of [1, 2, 3]) await postMessage(simulator, { messages: [user('x')] })
    expect((await seen(simulator)).map(({ number }) => number)).toEqual([2, 3])
    const one = await simulator.fetch('http://simulator/_simulator/requests/3')
    expect(await one.json()).toMatchObject({ number: 3 })
    expect((await simulator.fetch('http://simulator/_simulator/requests/1')).status).toBe(404)
  })
})

describe('the control endpoints', () => {
  const control = (simulator: Simulator, path: string, body?: object, method = 'POST'): Promise<Response> =>
    simulator.fetch(`http://simulator/_simulator${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })

  it('advance the clock', async () => {
    const simulator = simulate({ clock: createManualClock() })
    const prompt = { messages: [user(text(tokens(700), MARK))] }
    await postMessage(simulator, prompt)
    await control(simulator, '/clock', { advance_ms: 301_000 })
    expect((await postMessage(simulator, prompt)).body.usage.cache_read_input_tokens).toBe(0)
    expect((await control(simulator, '/clock', {})).status).toBe(400)
  })

  it('schedule faults', async () => {
    const simulator = simulate()
    const told = await control(simulator, '/faults', { fault: { type: 'status', status: 503 }, skip: 1 })
    expect(await told.json()).toMatchObject({ waiting: [{ skip: 1 }] })
    const statuses = []
    for (const _ of [1, 2, 3]) statuses.push((await postMessage(simulator, { messages: [user('x')] })).status)
    expect(statuses).toEqual([200, 503, 200])
    expect((await control(simulator, '/faults', { type: 'nothing' })).status).toBe(400)
  })

  it('empty the cache', async () => {
    const simulator = simulate()
    const prompt = { messages: [user(text(tokens(700), MARK))] }
    await postMessage(simulator, prompt)
    await control(simulator, '/cache', undefined, 'DELETE')
    expect((await postMessage(simulator, prompt)).body.usage.cache_read_input_tokens).toBe(0)
  })
})
