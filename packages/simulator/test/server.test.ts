/** HTTP: request and response headers, paths, bodies and rate limits. */
import { gzipSync } from 'node:zlib'
import { createManualClock, type ServeOptions, type Simulator, serve } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { MARK, MODEL, postMessage, simulate, text, tokens, user } from './ask.ts'

const HEADERS = { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'content-type': 'application/json' }

function post(simulator: Simulator, path: string, init: RequestInit = {}): Promise<Response> {
  return simulator.fetch(`http://simulator${path}`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ model: MODEL, max_tokens: 9, messages: [user('x')] }),
    ...init,
  })
}

describe('authentication and version', () => {
  it.each([
    { name: 'x-api-key', headers: { 'x-api-key': 'k' }, status: 200 },
    { name: 'a bearer token', headers: { authorization: 'Bearer k' }, status: 200 },
    { name: 'nothing', headers: {}, status: 401 },
    { name: 'some other scheme', headers: { authorization: 'Basic k' }, status: 401 },
  ])('with $name: $status', async ({ headers, status }) => {
    const response = await post(simulate(), '/v1/messages', {
      headers: { 'anthropic-version': '2023-06-01', ...headers },
    })
    expect(response.status).toBe(status)
  })

  it.each([
    { version: '2023-06-01', status: 200 },
    { version: '2026-10-21', status: 200 },
    { version: '2024-01-01', status: 400 },
    { version: undefined, status: 400 },
  ])('in version $version: $status', async ({ version, status }) => {
    const headers = { 'x-api-key': 'k', ...(version === undefined ? {} : { 'anthropic-version': version }) }
    expect((await post(simulate(), '/v1/messages', { headers })).status).toBe(status)
  })

  it('accepts only the given keys', async () => {
    const simulator = simulate({ accounts: { good: { organization: 'o', workspace: 'w' } } })
    const told = await postMessage(simulator, { messages: [user('x')] }, { headers: { 'x-api-key': 'bad' } })
    expect(told).toMatchObject({
      status: 401,
      body: { error: { type: 'authentication_error', message: 'invalid x-api-key' } },
    })
    const elsewhere = { 'x-api-key': 'good', 'anthropic-workspace-id': 'other' }
    expect((await postMessage(simulator, { messages: [user('x')] }, { headers: elsewhere })).status).toBe(403)
  })
})

describe('paths', () => {
  it.each([
    { path: '/v1/messages', method: 'POST', status: 200 },
    { path: '/v1/messages?beta=true', method: 'POST', status: 200 },
    { path: '/v1/messages', method: 'GET', status: 405 },
    { path: '/v1/messages/batches', method: 'POST', status: 404 },
    { path: '/v1/models', method: 'GET', status: 200 },
    { path: '/v1/models/claude-opus-5', method: 'GET', status: 200 },
    { path: '/v1/models/claude-nobody', method: 'GET', status: 404 },
    { path: '/api/hello', method: 'HEAD', status: 200 },
    { path: '/', method: 'HEAD', status: 200 },
    { path: '/', method: 'GET', status: 404 },
  ])('$method $path: $status', async ({ path, method, status }) => {
    const init = method === 'POST' ? {} : { method, body: null }
    const response = await post(simulate(), path, init)
    expect(response.status).toBe(status)
    if (method !== 'HEAD' && status >= 400)
      expect(await response.json()).toMatchObject({
        type: 'error',
        request_id: response.headers.get('request-id'),
      })
  })

  it('lists models page by page', async () => {
    const simulator = simulate()
    const read = async (query: string) =>
      (await post(simulator, `/v1/models?${query}`, { method: 'GET', body: null })).json()
    const all = (await read('limit=1000')) as { data: { id: string }[]; has_more: boolean }
    expect(all.has_more).toBe(false)
    const first = (await read('limit=2')) as { last_id: string; has_more: boolean }
    const second = (await read(`limit=2&after_id=${first.last_id}`)) as { data: { id: string }[] }
    expect(first.has_more).toBe(true)
    expect(second.data.map(({ id }) => id)).toEqual(all.data.slice(2, 4).map(({ id }) => id))
    const before = (await read(`limit=2&before_id=${all.data[3]?.id}`)) as { data: { id: string }[] }
    expect(before.data.map(({ id }) => id)).toEqual(all.data.slice(1, 3).map(({ id }) => id))
  })

  it.each(['after_id', 'before_id'])('refuses a %s that is no model', async (name) => {
    const response = await post(simulate(), `/v1/models?${name}=nobody`, { method: 'GET', body: null })
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({
        error: { type: 'invalid_request_error', message: `${name}: there is no model \`nobody\`` },
      }),
    ])
  })
})

describe('bodies', () => {
  it('must be JSON', async () => {
    const response = await post(simulate(), '/v1/messages', { body: '{"model":' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  })

  it('may be 32 MB and no more', async () => {
    const simulator = simulate({ window: 100_000_000 })
    const body = (size: number): string => {
      const empty = JSON.stringify({ model: MODEL, max_tokens: 9, messages: [user('x')] })
      return JSON.stringify({
        model: MODEL,
        max_tokens: 9,
        messages: [user('x'.repeat(size - empty.length + 1))],
      })
    }
    expect((await post(simulator, '/v1/messages', { body: body(32_000_000) })).status).toBe(200)
    const response = await post(simulator, '/v1/messages', { body: body(32_000_001) })
    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({
      error: { type: 'request_too_large', message: 'Request exceeds the maximum size' },
    })
  })

  it('may be compressed', async () => {
    const body = gzipSync(JSON.stringify({ model: MODEL, max_tokens: 9, messages: [user('x')] }))
    const headers = (encoding: string) => ({ ...HEADERS, 'content-encoding': encoding })
    expect((await post(simulate(), '/v1/messages', { body, headers: headers('gzip') })).status).toBe(200)
    const broken = await post(simulate(), '/v1/messages', {
      body: body.subarray(5),
      headers: headers('gzip'),
    })
    expect(await broken.json()).toMatchObject({
      error: { details: { error_code: 'request_body_encoding_invalid' } },
    })
    const text = await post(simulate(), '/v1/messages', { body: '{}', headers: headers('gzip') })
    expect(await text.json()).toMatchObject({
      error: { details: { error_code: 'request_body_encoding_invalid' } },
    })
    const strange = await post(simulate(), '/v1/messages', { body, headers: headers('compress') })
    expect(await strange.json()).toMatchObject({
      error: { details: { error_code: 'request_body_encoding_unsupported' } },
    })
  })
})

describe('limits', () => {
  it('are reported in headers that count down', async () => {
    const simulator = simulate({
      clock: createManualClock(Date.UTC(2026, 10, 15, 12)),
      limits: { requests: 10, inputTokens: 10_000 },
    })
    const { headers } = await postMessage(simulator, { messages: [user(tokens(3_000))] })
    expect(Object.fromEntries([...headers].filter(([name]) => name.startsWith('anthropic')))).toEqual({
      'anthropic-organization-id': 'org_simulated',
      'anthropic-workspace-id': 'wrkspc_simulated',
      'anthropic-ratelimit-requests-limit': '10',
      'anthropic-ratelimit-requests-remaining': '9',
      'anthropic-ratelimit-requests-reset': '2026-11-15T12:01:00Z',
      'anthropic-ratelimit-input-tokens-limit': '10000',
      'anthropic-ratelimit-input-tokens-remaining': '10000',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-15T12:01:00Z',
      'anthropic-ratelimit-output-tokens-limit': '400000',
      'anthropic-ratelimit-output-tokens-remaining': '400000',
      'anthropic-ratelimit-output-tokens-reset': '2026-11-15T12:01:00Z',
      'anthropic-ratelimit-tokens-limit': '410000',
      'anthropic-ratelimit-tokens-remaining': '410000',
      'anthropic-ratelimit-tokens-reset': '2026-11-15T12:01:00Z',
    })
    const second = await postMessage(simulator, { messages: [user('x')] })
    expect(second.headers.get('anthropic-ratelimit-input-tokens-remaining')).toBe('7000')
  })

  it('are enforced if set, until the minute is over', async () => {
    const clock = createManualClock()
    const simulator = simulate({ clock, limits: { requests: 1, enforced: true } })
    expect((await postMessage(simulator, { messages: [user('x')] })).status).toBe(200)
    await clock.advance(20_000)
    const told = await postMessage(simulator, { messages: [user('x')] })
    expect([told.status, told.headers.get('retry-after')]).toEqual([429, '40'])
    await clock.advance(40_000)
    expect((await postMessage(simulator, { messages: [user('x')] })).status).toBe(200)
  })

  it('do not count tokens read from the cache', async () => {
    const simulator = simulate({ limits: { inputTokens: 5_000 } })
    const prompt = { messages: [user(text(tokens(2_000), MARK))] }
    await postMessage(simulator, prompt)
    await postMessage(simulator, prompt)
    const told = await postMessage(simulator, prompt)
    expect(told.headers.get('anthropic-ratelimit-input-tokens-remaining')).toBe('3000')
  })
})

describe('the answer', () => {
  it('stops at a stop sequence', async () => {
    const simulator = simulate({ script: () => ({ blocks: [{ type: 'text', text: 'one STOP two END' }] }) })
    const { body } = await postMessage(simulator, { stop_sequences: ['END', 'STOP'], messages: [user('x')] })
    expect(body).toMatchObject({
      content: [{ text: 'one ' }],
      stop_reason: 'stop_sequence',
      stop_sequence: 'STOP',
    })
  })

  it('is cut at max_tokens, between characters', async () => {
    const simulator = simulate({ script: () => ({ blocks: [{ type: 'text', text: 'ééééééé' }] }) })
    const { body } = await postMessage(simulator, { max_tokens: 2, messages: [user('x')] })
    expect(body).toMatchObject({
      content: [{ text: 'éééé' }],
      stop_reason: 'max_tokens',
      usage: { output_tokens: 2 },
    })
  })

  it('is cut at the end of the window', async () => {
    const simulator = simulate({
      window: 100,
      script: () => ({ blocks: [{ type: 'text', text: 'x'.repeat(400) }] }),
    })
    const { body } = await postMessage(simulator, { max_tokens: 200, messages: [user(tokens(56))] })
    expect(body).toMatchObject({
      stop_reason: 'model_context_window_exceeded',
      usage: { input_tokens: 60, output_tokens: 40 },
    })
  })

  it('breaks off inside a call', async () => {
    const simulator = simulate({
      script: () => ({ blocks: [{ type: 'tool_use', name: 'look', input: { at: 'x'.repeat(100) } }] }),
    })
    const { body } = await postMessage(simulator, { max_tokens: 12, messages: [user('x')] })
    expect(body).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ type: 'tool_use', name: 'look', input: {} }],
    })
  })

  it('is a 500 if the script throws', async () => {
    const simulator = simulate({
      script: () => {
        throw new Error('out of ideas')
      },
    })
    const told = await postMessage(simulator, { messages: [user('x')] })
    expect(told).toMatchObject({
      status: 500,
      body: { error: { type: 'api_error', message: 'The script failed: out of ideas' } },
    })
  })

  it('is the same in every run', async () => {
    const run = async () => {
      const simulator = simulate({ clock: createManualClock(), seed: 's' })
      const told = [
        await postMessage(simulator, { messages: [user('x')] }),
        await postMessage(simulator, { messages: [] }),
      ]
      return told.map(({ body, headers }) => ({ body, headers: [...headers] }))
    }
    expect(await run()).toEqual(await run())
  })
})

describe('thinking of a script', () => {
  const script = () => ({
    blocks: [
      { type: 'thinking' as const, thinking: 'hm' },
      { type: 'text' as const, text: 'x' },
    ],
  })
  it.each([
    { name: 'on by default', body: {}, types: ['thinking', 'text'] },
    { name: 'switched off', body: { thinking: { type: 'disabled' } }, types: ['text'] },
    { name: 'off by default', body: { model: 'claude-opus-4-8' }, types: ['text'] },
    {
      name: 'between tools, before there were any',
      body: { model: 'claude-sonnet-5-5', thinking: { type: 'between_tools' } },
      types: ['text'],
    },
  ])('$name', async ({ body, types }) => {
    const told = await postMessage(simulate({ script }), { messages: [user('x')], ...body })
    expect(told.body.content.map(({ type }: { type: string }) => type)).toEqual(types)
  })
})

describe('ids', () => {
  async function readIds(options: ServeOptions): Promise<readonly string[]> {
    const served = await serve(options)
    try {
      const response = await fetch(`${served.url}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'content-type': 'application/json' },
        body: JSON.stringify({ model: MODEL, max_tokens: 9, messages: [user('x')] }),
      })
      const { id } = (await response.json()) as { readonly id: string }
      return [id, response.headers.get('request-id') ?? '']
    } finally {
      await served.close()
    }
  }

  it('of two servers differ, so that a log with answers of both has no id twice', async () => {
    const ids = [...(await readIds({})), ...(await readIds({}))]
    expect(new Set(ids).size).toBe(4)
  })

  it('are the same with the same seed', async () => {
    expect(await readIds({ seed: 'a' })).toEqual(await readIds({ seed: 'a' }))
  })
})

it.each([-1, 1.5, Number.NaN])('keepRequests: %d is refused', (keepRequests) => {
  expect(() => simulate({ keepRequests })).toThrow('keepRequests: expected a whole number of at least 0')
})
