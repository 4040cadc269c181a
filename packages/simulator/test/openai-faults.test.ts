/** Faults on the simulated OpenAI APIs, as the SDK meets them, and what they cost. */
import { createSimulator, type Fault, type Script, serve } from '@tidemark/simulator'
import OpenAI, { APIError } from 'openai'
import { describe, expect, it } from 'vitest'
import { connect, OLD_MODEL, postResponse } from './openai-requests.ts'

const script: Script = () => ({ blocks: [{ type: 'text', text: 'word '.repeat(80) }] })
const body = { model: OLD_MODEL, input: 'hi' }
const chat = { model: OLD_MODEL, messages: [{ role: 'user' as const, content: 'hi' }] }

describe('a status', () => {
  it.each([
    [{ type: 'status', status: 429, retryAfter: 2 }, OpenAI.RateLimitError, 'rate_limit_exceeded'],
    [{ type: 'status', status: 500 }, OpenAI.InternalServerError, 'server_error'],
    [{ type: 'status', status: 503 }, OpenAI.InternalServerError, 'server_is_overloaded'],
    [
      { type: 'status', status: 400, errorType: 'invalid_prompt', message: 'No.' },
      OpenAI.BadRequestError,
      'invalid_prompt',
    ],
  ] as const)('%j is the error that the SDK knows', async (fault: Fault, kind, code) => {
    const simulator = createSimulator({ script })
    simulator.queueFaults(fault, fault)
    for (const request of [
      () => connect(simulator).responses.create(body),
      () => connect(simulator).chat.completions.create(chat),
    ]) {
      const error = await request().catch((thrown) => thrown)
      expect(error).toBeInstanceOf(kind)
      expect(error.code).toBe(code)
    }
    expect(simulator.requests.map(({ cost }) => cost)).toEqual([null, null])
  })

  it('with a wait is tried again by the SDK', async () => {
    const simulator = createSimulator({ script })
    simulator.queueFaults({ type: 'status', status: 429, headers: { 'retry-after-ms': '1' } })
    const client = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator/v1', fetch: simulator.fetch })
    expect((await client.responses.create(body)).status).toBe('completed')
    expect(simulator.requests.map(({ status }) => status)).toEqual([429, 200])
  })
})

describe('an error in the stream', () => {
  const fault: Fault = { type: 'error-event', afterEvents: 6 }

  it('is thrown by the helpers of both APIs', async () => {
    const simulator = createSimulator({ script })
    simulator.queueFaults(fault, fault)
    const response = connect(simulator).responses.stream(body).finalResponse()
    await expect(response).rejects.toMatchObject({ code: 'server_error' })
    const completion = connect(simulator).chat.completions.stream(chat).finalChatCompletion()
    await expect(completion).rejects.toBeInstanceOf(APIError)
  })

  it('replaces an answer that is no stream', async () => {
    const simulator = createSimulator({ script })
    simulator.queueFaults({ ...fault, errorType: 'context_length_exceeded' })
    await expect(connect(simulator).responses.create(body)).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    })
  })
})

describe('a stream that is cut', () => {
  it('has no end, and is billed up to the cut', async () => {
    const simulator = createSimulator({ script })
    simulator.queueFaults({ type: 'cut', afterEvents: 8 }, { type: 'cut', afterEvents: 5 })
    const types: string[] = []
    for await (const event of await connect(simulator).responses.create({ ...body, stream: true }))
      types.push(event.type)
    expect(types).toHaveLength(8)
    expect(types.at(-1)).toBe('response.output_text.delta')
    for await (const _chunk of await connect(simulator).chat.completions.create({ ...chat, stream: true })) {
      // Read to the end.
    }
    // Four deltas of 24 characters each.
    expect(simulator.requests.map(({ usage }) => usage?.output)).toEqual([24, 24])
  })

  it('is reset on a port', async () => {
    const served = await serve({ script })
    try {
      served.simulator.queueFaults({ type: 'reset', afterEvents: 5 })
      const client = new OpenAI({ apiKey: 'any', baseURL: `${served.url}/v1`, maxRetries: 0 })
      await expect(client.responses.stream(body).finalResponse()).rejects.toThrow()
      expect((await client.responses.stream(body).finalResponse()).status).toBe('completed')
    } finally {
      await served.close()
    }
  })
})

describe('other faults', () => {
  it('slow an answer down', async () => {
    const simulator = createSimulator({ script })
    simulator.queueFaults({ type: 'slow-start', ms: 30 })
    const start = performance.now()
    await connect(simulator).responses.create(body)
    expect(performance.now() - start).toBeGreaterThan(25)
  })

  it('can be asked for by a script or a header', async () => {
    const failing = createSimulator({
      script: () => ({ blocks: [], fault: { type: 'status', status: 500 } }),
    })
    expect((await postResponse(failing, { input: 'hi' })).status).toBe(500)
    const simulator = createSimulator({ script })
    const asked = await postResponse(simulator, { input: 'hi' }, { 'x-simulator-fault': 'status=503' })
    expect(asked).toMatchObject({ status: 503, body: { error: { code: 'server_is_overloaded' } } })
  })

  it('of a script that throws are a server error', async () => {
    const simulator = createSimulator({
      script: () => {
        throw new Error('oops')
      },
    })
    expect(await postResponse(simulator, { input: 'hi' })).toMatchObject({
      status: 500,
      body: { error: { type: 'server_error', message: 'The script failed: oops' } },
    })
  })
})

it('rate limits are enforced with the headers of the provider', async () => {
  const simulator = createSimulator({ script, limits: { requests: 1, enforced: true } })
  const first = await postResponse(simulator, { input: 'hi' })
  expect(first.headers.get('x-ratelimit-limit-requests')).toBe('1')
  expect(await postResponse(simulator, { input: 'hi' })).toMatchObject({
    status: 429,
    body: { error: { code: 'rate_limit_exceeded' } },
  })
})
