import {
  type AssembledRequest,
  assembleRequest,
  callOf,
  createPolicy,
  createProfile,
  DEFAULT_POLICY,
  type Failure,
  flatten,
  frontOf,
  type ModelCall,
  openEpoch,
  type ReplyEvent,
} from '@tidemark/core'
import { encodeFrame, framesOf } from '@tidemark/wire'
import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../testing/fake-ports.ts'
import { Teller } from '../testing/session-builder.ts'
import { createAnthropicModel, createBodyWriter, planRetry } from './anthropic-http.ts'

const call: ModelCall = {
  payload: { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] },
}
const message = {
  id: 'msg_1',
  role: 'assistant' as const,
  model: 'm',
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 2 },
}
const frames = framesOf({ message, rawBlocks: [], cutInputs: [], unfinished: [], others: [] }).map(
  encodeFrame,
)
const streamOf = (texts: readonly string[]): Response =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        for (const text of texts) controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )
const refused = (status: number, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }), {
    status,
    headers,
  })

/** A model whose server answers with these, in order; the clock runs by itself. */
function modelOf(answers: readonly (Response | Error | 'silence')[]) {
  const clock = createFakeClock(0)
  const waits: number[] = []
  const requests: RequestInit[] = []
  let at = 0
  const fetch = (async (_: unknown, init: RequestInit) => {
    requests.push(init)
    const answer = answers[at]
    at += 1
    if (answer === 'silence')
      return new Promise((_, reject) =>
        init.signal?.addEventListener('abort', () => reject(new DOMException('gone', 'AbortError'))),
      )
    if (answer instanceof Error) throw answer
    return answer
  }) as typeof globalThis.fetch
  const model = createAnthropicModel({
    credentials: { style: 'key', secret: 'k' },
    baseUrl: 'http://test',
    fetch,
    chance: () => 0,
    silenceMs: 1000,
    clock,
    onRetry: ({ delayMs }) => {
      waits.push(delayMs)
      setImmediate(() => void clock.advance(delayMs))
    },
  })
  return { model, waits, requests, clock }
}

async function eventsFrom(stream: AsyncIterable<ReplyEvent>): Promise<readonly ReplyEvent[]> {
  const events: ReplyEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

const closing = (events: readonly ReplyEvent[]): readonly string[] =>
  events
    .filter((event) => event.type === 'reply-ended' || event.type === 'reply-failed')
    .map((event) => event.type)

describe('the Messages API over HTTP', () => {
  it('streams a reply to its one end', async () => {
    const { model, requests } = modelOf([streamOf(frames)])
    const events = await eventsFrom(model.stream(call))
    expect(closing(events)).toEqual(['reply-ended'])
    expect(events.at(-1)).toMatchObject({
      reply: { message: { content: [{ type: 'text', text: 'hello' }], stop_reason: 'end_turn' } },
    })
    expect(JSON.parse(String(requests[0]?.body))).toMatchObject({ model: 'm', stream: true })
    expect(requests[0]?.headers).toMatchObject({ 'x-api-key': 'k', 'anthropic-version': '2023-06-01' })
  })

  it('takes a reply in one body as well', async () => {
    const body = new Response(JSON.stringify({ type: 'message', ...message }), {
      headers: { 'content-type': 'application/json' },
    })
    expect(closing(await eventsFrom(modelOf([body]).model.stream(call)))).toEqual(['reply-ended'])
  })

  it('tries again after a refusal, a fault and a connection that failed, as long as each asks', async () => {
    const { model, waits } = modelOf([
      refused(529),
      refused(429, { 'retry-after': '7' }),
      new TypeError('fetch failed'),
      streamOf(frames),
    ])
    expect(closing(await eventsFrom(model.stream(call)))).toEqual(['reply-ended'])
    expect(waits).toEqual([500, 7000, 2000])
  })

  it('does not try again once something has come', async () => {
    const { model, waits } = modelOf([streamOf(frames.slice(0, 3)), streamOf(frames)])
    const events = await eventsFrom(model.stream(call))
    expect([closing(events), waits]).toEqual([['reply-failed'], []])
    expect(events.at(-1)).toMatchObject({ failure: { kind: 'network' } })
  })

  it('does not try again what would be refused again', async () => {
    const { model, waits } = modelOf([
      new Response(
        '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 5 maximum"}}',
        { status: 400 },
      ),
    ])
    expect(await eventsFrom(model.stream(call))).toMatchObject([
      { type: 'reply-failed', failure: { kind: 'overflow', gap: { actual: 9, limit: 5 } } },
    ])
    expect(waits).toEqual([])
  })

  it('calls off a silence that lasts too long, and tries again', async () => {
    const { model, waits, clock } = modelOf(['silence', streamOf(frames)])
    const reading = eventsFrom(model.stream(call))
    await clock.advance(1000)
    expect(closing(await reading)).toEqual(['reply-ended'])
    expect(waits).toEqual([500])
  })

  it('does not take a slow reader for a silent provider', async () => {
    const { model, clock } = modelOf([streamOf(frames)])
    const types: string[] = []
    for await (const event of model.stream(call)) {
      types.push(event.type)
      await clock.advance(5000)
    }
    expect(types.at(-1)).toBe('reply-ended')
  })

  it('a sign of life alone is no answer: what fails behind it is tried again', async () => {
    const failure =
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    const { model, waits } = modelOf([
      streamOf(['event: ping\ndata: {"type":"ping"}\n\n', failure]),
      streamOf(frames),
    ])
    expect([closing(await eventsFrom(model.stream(call))), waits]).toEqual([['reply-ended'], [500]])
  })

  it('hears a signal that is none of the platform’s', async () => {
    const { model } = modelOf(['silence'])
    const listeners: (() => void)[] = []
    const signal = {
      aborted: false,
      addEventListener: (_: string, heard: () => void) => listeners.push(heard),
      removeEventListener: () => {},
    }
    const reading = eventsFrom(model.stream(call, signal))
    setImmediate(() => {
      signal.aborted = true
      for (const heard of listeners) heard()
    })
    expect(await reading).toMatchObject([{ type: 'reply-failed', failure: { kind: 'aborted' } }])
  })

  it('lets go at once when called off', async () => {
    const { model } = modelOf(['silence'])
    const controller = new AbortController()
    const reading = eventsFrom(model.stream(call, controller.signal))
    setImmediate(() => controller.abort())
    expect(await reading).toMatchObject([{ type: 'reply-failed', failure: { kind: 'aborted' } }])
  })
})

const profile = createProfile()
const epoch = openEpoch(
  {
    sections: [{ name: 'rules', part: 'static', text: 'You help.' }],
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    model: 'model-a',
    parameters: { max_tokens: 1000, betas: ['b-1'] },
  },
  profile,
)
const front = frontOf({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })

function requestOf(teller: Teller): AssembledRequest {
  const { markers } = createPolicy({}).cache
  return assembleRequest({ front, flat: flatten(teller.view), profile, markers, ttl: '5m', clears: true })
}

function tellerOf(name: string): Teller {
  const teller = new Teller(name)
  teller.user(`hello from ${name}`)
  return teller
}

describe('the body of a call', () => {
  it('is the same whether it is grown or spelled from the payload, also where sessions take turns', () => {
    const tellers = [tellerOf('one'), tellerOf('two')]
    const write = createBodyWriter()
    for (let turn = 0; turn < 6; turn += 1) {
      for (const teller of tellers) {
        const call = callOf(requestOf(teller))
        const plain = createBodyWriter()({ payload: call.payload, raw: call.raw })
        expect(write(call)).toEqual(plain)
        expect(JSON.parse(plain.text)).toMatchObject({ model: 'model-a', stream: true })
        teller.assistant(teller.id('msg'), [{ type: 'text', text: `answer ${turn}` }])
        teller.user('go on')
      }
    }
  })

  it('spells no payload where the request is there', () => {
    const call = callOf(requestOf(tellerOf('one')))
    const refusing = {
      request: call.request,
      get payload(): never {
        throw new Error('nobody asked for it')
      },
    }
    expect(createBodyWriter()(refusing).betas).toEqual(['b-1'])
  })
})

const { network } = DEFAULT_POLICY.turn
const overloaded: Failure = { kind: 'overloaded', retryable: true, message: 'busy' }

describe('planRetry', () => {
  it('doubles the wait up to the most, less what chance takes off', () => {
    const delays = [0, 1, 2, 3, 4, 5].map((attempt) => planRetry(overloaded, attempt, network, 0))
    expect(delays.map((retry) => (retry.again ? retry.delayMs : null))).toEqual([
      500, 1000, 2000, 4000, 8000, 8000,
    ])
    expect(planRetry(overloaded, 1, network, 0.5)).toEqual({ again: true, delayMs: 875 })
  })

  it('waits as long as the provider asks, if that is bearable', () => {
    expect(planRetry({ ...overloaded, retryAfterMs: 20_000 }, 0, network, 0.9)).toEqual({
      again: true,
      delayMs: 20_000,
    })
    expect(planRetry({ ...overloaded, retryAfterMs: 301_000 }, 0, network, 0)).toEqual({
      again: false,
      why: 'the provider asks to wait 301 s',
    })
  })

  it('gives up where it cannot help, or has tried often enough', () => {
    expect(planRetry({ ...overloaded, retryable: false }, 0, network, 0)).toMatchObject({ again: false })
    expect(planRetry(overloaded, network.retries, network, 0)).toEqual({ again: false, why: 'tried 9 times' })
  })
})
