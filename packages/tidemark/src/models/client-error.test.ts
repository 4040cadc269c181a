import Anthropic from '@anthropic-ai/sdk'
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { describe, expect, it } from 'vitest'
import { classifyClientError, createRefusalResponse, LIMIT_STATUS } from './client-error.ts'
import { PROVIDERS } from './providers.ts'

const TOO_LONG = {
  type: 'error',
  error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
}

describe('classifyClientError', () => {
  it.each<[string, unknown, object]>([
    [
      'an error of the SDK',
      Anthropic.APIError.generate(400, TOO_LONG, undefined, new Headers()),
      { kind: 'overflow', status: 400 },
    ],
    [
      'an error of the AI SDK',
      { statusCode: 400, responseBody: JSON.stringify(TOO_LONG), responseHeaders: {}, message: 'no' },
      { kind: 'overflow', gap: { actual: 210_000, limit: 200_000 } },
    ],
    ['an error body', TOO_LONG, { kind: 'overflow' }],
    [
      'a status with headers as an object',
      { status: 429, headers: { 'retry-after': '3' }, message: 'slow down' },
      { kind: 'rate-limit', retryable: true, retryAfterMs: 3_000, message: 'slow down' },
    ],
    ['a failed connection', new TypeError('fetch failed'), { kind: 'network', retryable: true }],
    ['an abort of the SDK', new Anthropic.APIUserAbortError(), { kind: 'aborted', retryable: false }],
    [
      'a failure of another provider',
      { kind: 'billing', retryable: false, message: 'Pay.' },
      { kind: 'billing' },
    ],
    [
      'a response under an error, as axios keeps it',
      Object.assign(new Error('Request failed'), { response: { status: 400, data: TOO_LONG } }),
      { kind: 'overflow', status: 400 },
    ],
    ['a status that is a text', { status: '400', body: TOO_LONG }, { kind: 'overflow', status: 400 }],
    [
      'an error that quotes the body',
      new Error(`400 ${JSON.stringify(TOO_LONG)}`),
      { kind: 'overflow', status: 400 },
    ],
    ['a body as a text', JSON.stringify(TOO_LONG), { kind: 'overflow' }],
    [
      'a response under the error that wraps it',
      new Error('The agent failed', { cause: Anthropic.APIError.generate(400, TOO_LONG, '', new Headers()) }),
      { kind: 'overflow', status: 400 },
    ],
    [
      'the last error of several tries',
      Object.assign(new Error('Failed after 3 attempts'), {
        lastError: { statusCode: 529, message: 'busy' },
      }),
      { kind: 'overloaded', retryable: true },
    ],
    [
      'a connection that broke, by its code',
      Object.assign(new Error('oh'), { code: 'ECONNRESET' }),
      { kind: 'network', retryable: true },
    ],
    ['a failed connection of the SDK', new Anthropic.APIConnectionError({}), { kind: 'network' }],
    ['a time limit', new DOMException('late', 'TimeoutError'), { kind: 'timeout', retryable: true }],
    ['a status alone', { status: 503 }, { kind: 'overloaded', retryable: true }],
  ])('reads %s', (_, error, expected) => {
    expect(classifyClientError(error, anthropicCodec, 0)).toMatchObject(expected)
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['nothing', undefined],
    ['an object without fields', {}],
    ['a text', 'it did not work'],
    ['a number', 7],
    ['an error of the program', new Error('x is not a function')],
    ['an error that wraps itself', createLoop()],
  ])('does not guess what %s means, and says what to give instead', (_, error) => {
    const failure = classifyClientError(error, anthropicCodec, 0)
    expect(failure).toMatchObject({ kind: 'unknown', retryable: false })
    expect(failure.message).toContain('Call refused again with the error that your client threw')
  })
})

function createLoop(): Error {
  const error = new Error('again')
  error.cause = error
  return error
}

describe('a request that is refused at a limit', () => {
  it.each([
    ['anthropic-messages', { type: 'error', error: { type: 'billing_error', message: 'Enough.' } }],
    [
      'openai-responses',
      { error: { message: 'Enough.', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } },
    ],
    [
      'openai-chat',
      { error: { message: 'Enough.', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } },
    ],
  ])('has the shape of %s, and is not sent again', async (name, body) => {
    const codec = PROVIDERS.find((provider) => provider.codec.name === name)?.codec
    if (codec === undefined) throw new Error(`no codec ${name}`)
    const response = createRefusalResponse(codec, LIMIT_STATUS, 'Enough.')
    expect(response.status).toBe(402)
    expect(response.headers.get('x-should-retry')).toBe('false')
    const text = await response.text()
    expect(JSON.parse(text)).toEqual(body)
    const failure = classifyClientError({ status: 402, body: text }, codec, 0)
    expect(failure).toMatchObject({ kind: 'billing', retryable: false, message: 'Enough.' })
  })

  it('reaches a caller of the official SDK after one request', async () => {
    let requests = 0
    const fetch = async (): Promise<Response> => {
      requests += 1
      return createRefusalResponse(anthropicCodec, LIMIT_STATUS, 'The limit is reached.')
    }
    const client = new Anthropic({ apiKey: 'any', fetch })
    const message = { model: 'any', max_tokens: 1, messages: [{ role: 'user' as const, content: 'Hello.' }] }
    await expect(client.messages.create(message)).rejects.toMatchObject({
      status: 402,
      message: expect.stringContaining('The limit is reached.'),
    })
    expect(requests).toBe(1)
  })
})
