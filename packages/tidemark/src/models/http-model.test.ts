import { flattenContext } from '@tidemark/core/context/flatten-context'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { ReplyEvent } from '@tidemark/core/engine/reply'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import {
  type AssembledRequest,
  assembleRequest,
  toModelCallInput,
} from '@tidemark/core/request/build-request'
import { buildRequestPrefix, createPrefixSnapshot } from '@tidemark/core/request/prefix-snapshot'
import { createFakeClock, SessionBuilder } from '@tidemark/core/testing'
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { encodeReplyFrames } from '@tidemark/wire/anthropic/reply-frames'
import { encodeSseFrame } from '@tidemark/wire/http/sse'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { createBodyEncoder, createHttpModel } from './http-model.ts'

const call: ModelStreamInput = {
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
const frames = encodeReplyFrames({ message, rawBlocks: [], cutInputs: [], unfinished: [], others: [] }).map(
  encodeSseFrame,
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

/** A model whose server gives these answers in order; the clock advances by itself. */
function modelOf(answers: readonly (Response | Error | 'silence')[], baseUrl = 'http://test') {
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
  const model = createHttpModel({
    codec: anthropicCodec,
    credentials: { style: 'key', secret: 'k' },
    baseUrl,
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
  it('streams a reply to its single closing event', async () => {
    const { model, requests } = modelOf([streamOf(frames)])
    const events = await eventsFrom(model.stream(call))
    expect(closing(events)).toEqual(['reply-ended'])
    expect(events.at(-1)).toMatchObject({
      reply: { message: { content: [{ type: 'text', text: 'hello' }], stop_reason: 'end_turn' } },
    })
    expect(JSON.parse(String(requests[0]?.body))).toMatchObject({ model: 'm', stream: true })
    expect(requests[0]?.headers).toMatchObject({ 'x-api-key': 'k', 'anthropic-version': '2023-06-01' })
  })

  it('accepts a reply in one body', async () => {
    const body = new Response(JSON.stringify({ type: 'message', ...message }), {
      headers: { 'content-type': 'application/json' },
    })
    expect(closing(await eventsFrom(modelOf([body]).model.stream(call)))).toEqual(['reply-ended'])
  })

  it('retries after a refusal, a fault and a failed connection, with the delay that each asks for', async () => {
    const { model, waits } = modelOf([
      refused(529),
      refused(429, { 'retry-after': '7' }),
      new TypeError('fetch failed'),
      streamOf(frames),
    ])
    expect(closing(await eventsFrom(model.stream(call)))).toEqual(['reply-ended'])
    expect(waits).toEqual([500, 7000, 2000])
  })

  it('does not retry after part of the reply has arrived', async () => {
    const { model, waits } = modelOf([streamOf(frames.slice(0, 3)), streamOf(frames)])
    const events = await eventsFrom(model.stream(call))
    expect([closing(events), waits]).toEqual([['reply-failed'], []])
    expect(events.at(-1)).toMatchObject({ failure: { kind: 'network' } })
  })

  it('does not retry a request that would be refused again', async () => {
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

  it.each([
    [
      '404 page not found',
      'No API answers at http://test/v1/messages, so check the base URL (404 page not found)',
    ],
    ['{"type":"error","error":{"type":"not_found_error","message":"model: m"}}', 'model: m'],
  ])('says which address has no API, unless the model is not found: %s', async (body, expected) => {
    const { model } = modelOf([new Response(body, { status: 404 })])
    expect(await eventsFrom(model.stream(call))).toMatchObject([
      { type: 'reply-failed', failure: { kind: 'not-found', message: expected } },
    ])
  })

  it('aborts after too long a silence, and retries', async () => {
    const { model, waits, clock } = modelOf(['silence', streamOf(frames)])
    const reading = eventsFrom(model.stream(call))
    await clock.advance(1000)
    expect(closing(await reading)).toEqual(['reply-ended'])
    expect(waits).toEqual([500])
  })

  it('does not mistake a slow reader for a silent provider', async () => {
    const { model, clock } = modelOf([streamOf(frames)])
    const types: string[] = []
    for await (const event of model.stream(call)) {
      types.push(event.type)
      await clock.advance(5000)
    }
    expect(types.at(-1)).toBe('reply-ended')
  })

  it('retries after a failure that only a ping came before', async () => {
    const failure =
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    const { model, waits } = modelOf([
      streamOf(['event: ping\ndata: {"type":"ping"}\n\n', failure]),
      streamOf(frames),
    ])
    expect([closing(await eventsFrom(model.stream(call))), waits]).toEqual([['reply-ended'], [500]])
  })

  it('accepts a signal that is not an AbortSignal', async () => {
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
    expect(await reading).toMatchObject([
      { type: 'reply-lost' },
      { type: 'reply-failed', failure: { kind: 'aborted' } },
    ])
  })

  it('ends at once when aborted, even if fetch or the body ignores its signal', async () => {
    const never = new Promise<never>(() => {})
    const deaf = new Response(new ReadableStream({ pull: () => never }), {
      headers: { 'content-type': 'text/event-stream' },
    })
    for (const answer of [never, Promise.resolve(deaf)]) {
      const options = {
        codec: anthropicCodec,
        credentials: { style: 'key', secret: 'k' } as const,
        fetch: () => answer,
      }
      const controller = new AbortController()
      const reading = eventsFrom(createHttpModel(options).stream(call, controller.signal))
      setImmediate(() => controller.abort())
      expect(await reading).toMatchObject([
        { type: 'reply-lost' },
        { type: 'reply-failed', failure: { kind: 'aborted' } },
      ])
    }
  })

  it.each([
    ['http://127.0.0.1:9', 3],
    ['http://localhost:9', 3],
    ['http://[::1]:9', 3],
    ['http://10.0.0.1:9', 9],
  ])('asks %s at most %i times if the connection is refused', async (baseUrl, times) => {
    const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const failing = Array.from({ length: 30 }, () => new TypeError('fetch failed', { cause: error }))
    const { model, requests } = modelOf(failing, baseUrl)
    expect(closing(await eventsFrom(model.stream(call)))).toEqual(['reply-failed'])
    expect(requests).toHaveLength(times)
  })

  it('ends at once when aborted', async () => {
    const { model } = modelOf(['silence'])
    const controller = new AbortController()
    const reading = eventsFrom(model.stream(call, controller.signal))
    setImmediate(() => controller.abort())
    expect(await reading).toMatchObject([
      { type: 'reply-lost' },
      { type: 'reply-failed', failure: { kind: 'aborted' } },
    ])
  })
})

const profile = defineMessagesProfile()
const epoch = createPrefixSnapshot(
  {
    sections: [{ name: 'rules', part: 'static', text: 'You help.' }],
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    model: 'model-a',
    parameters: { max_tokens: 1000, betas: ['b-1'] },
  },
  profile,
)
const front = buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })

function requestOf(builder: SessionBuilder): AssembledRequest {
  const { markers } = createPolicy({}).cache
  return assembleRequest({
    front,
    flat: flattenContext(builder.view),
    profile,
    markers,
    ttl: '5m',
    clears: true,
  })
}

function tellerOf(name: string): SessionBuilder {
  const builder = new SessionBuilder(name)
  builder.user(`hello from ${name}`)
  return builder
}

describe('the body of a call', () => {
  it('is the same whether it is extended or encoded from the payload, also with alternating sessions', () => {
    const tellers = [tellerOf('one'), tellerOf('two')]
    const write = createBodyEncoder(anthropicCodec)
    for (let turn = 0; turn < 6; turn += 1) {
      for (const builder of tellers) {
        const call = toModelCallInput(requestOf(builder))
        const plain = runStepsAtOnce(
          createBodyEncoder(anthropicCodec)({ payload: call.payload, raw: call.raw }),
        )
        const { text, headers } = plain
        expect(runStepsAtOnce(write(call))).toMatchObject({ text, headers })
        expect(JSON.parse(plain.text)).toMatchObject({ model: 'model-a', stream: true })
        builder.assistant(builder.id('msg'), [{ type: 'text', text: `answer ${turn}` }])
        builder.user('go on')
      }
    }
  })

  it('does not build the payload if there is a request', () => {
    const call = toModelCallInput(requestOf(tellerOf('one')))
    const refusing = {
      request: call.request,
      get payload(): never {
        throw new Error('nobody asked for it')
      },
    }
    expect(runStepsAtOnce(createBodyEncoder(anthropicCodec)(refusing)).headers).toEqual({
      'anthropic-beta': 'b-1',
    })
  })
})
