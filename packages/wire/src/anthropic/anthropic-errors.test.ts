import { describe, expect, it } from 'vitest'
import { readAnthropicFailure, toAnthropicErrorObject } from './anthropic-errors.ts'

function body(type: string, message: string, details?: object): string {
  return JSON.stringify({ type: 'error', error: { type, message, details }, request_id: 'req_1' })
}

describe('toFailure', () => {
  it.each<[number | undefined, string, string, boolean]>([
    [
      400,
      body('invalid_request_error', 'messages: at least one message is required'),
      'invalid-request',
      false,
    ],
    [401, body('authentication_error', 'invalid x-api-key'), 'auth', false],
    [402, body('billing_error', 'pay first'), 'billing', false],
    [403, body('permission_error', 'no'), 'permission', false],
    [404, body('not_found_error', 'model: claude-9'), 'not-found', false],
    [409, body('conflict_error', 'busy'), 'conflict', true],
    [413, body('request_too_large', 'Request exceeds the maximum size'), 'too-large', false],
    [
      429,
      body('rate_limit_error', 'Number of request tokens has exceeded your per-minute rate limit'),
      'rate-limit',
      true,
    ],
    [
      429,
      body('rate_limit_error', 'spent', { error_code: 'enforced_spend_limit_reached' }),
      'billing',
      false,
    ],
    [429, body('rate_limit_error', 'slower', { error_code: 'ramp_limit_exceeded' }), 'rate-limit', true],
    [500, body('api_error', 'Internal server error'), 'server', true],
    [504, body('timeout_error', 'late'), 'timeout', true],
    [529, body('overloaded_error', 'Overloaded'), 'overloaded', true],
    [529, body('overloaded_error', 'later', { error_code: 'compaction_unavailable' }), 'overloaded', true],
    [undefined, body('overloaded_error', 'Overloaded'), 'overloaded', true],
    [undefined, body('api_error', 'Internal server error'), 'server', true],
    [undefined, 'rubbish', 'unknown', false],
    [
      400,
      body('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
      'billing',
      false,
    ],
    [
      400,
      body(
        'invalid_request_error',
        'You have reached your specified API usage limits. You will regain access on 2026-12-01.',
      ),
      'billing',
      false,
    ],
    [
      400,
      body('invalid_request_error', 'You have reached your specified workspace API usage limits.'),
      'billing',
      false,
    ],
    [
      400,
      body(
        'invalid_request_error',
        'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
      ),
      'thinking-binding',
      false,
    ],
    [
      400,
      body(
        'invalid_request_error',
        'messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
      ),
      'thinking-binding',
      false,
    ],
    [
      400,
      body(
        'invalid_request_error',
        'messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > 5242880 bytes',
      ),
      'media',
      false,
    ],
    [
      400,
      body(
        'invalid_request_error',
        'messages.21.content.94.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
      ),
      'media',
      false,
    ],
    [400, body('invalid_request_error', 'A maximum of 100 PDF pages may be provided.'), 'media', false],
    [400, body('invalid_request_error', 'prompt is too long: 5 tokens > 4 maximum'), 'overflow', false],
    [413, body('invalid_request_error', 'Prompt is too long'), 'overflow', false],
    [429, '{"__type":"ThrottlingException","message":"Too many tokens, please wait"}', 'rate-limit', true],
    [
      400,
      body('invalid_request_error', 'no', { error_code: 'compaction_signature_invalid' }),
      'invalid-request',
      false,
    ],
    [400, body('rate_limit_error', 'Too many tokens, please wait before trying again.'), 'rate-limit', true],
    [413, '{"error":{"message":"Request too large on tokens per minute (TPM)"}}', 'rate-limit', true],
    [413, '', 'too-large', false],
    [418, '', 'invalid-request', false],
    [408, '', 'timeout', true],
    [502, '<html>Bad gateway</html>', 'server', true],
    [503, '', 'overloaded', true],
    [302, '', 'unknown', false],
  ])('%s %s: %s', (status, text, kind, retryable) => {
    const { kind: found, retryable: again } = readAnthropicFailure({
      ...(status === undefined ? {} : { status }),
      body: text,
    })
    expect([found, again]).toEqual([kind, retryable])
  })

  it('has everything that is known', () => {
    const call = {
      status: 400,
      body: body('invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum', {
        error_code: 'x',
      }),
      headers: { 'x-should-retry': 'false', 'retry-after': '3', 'request-id': 'req_2' },
    }
    expect(readAnthropicFailure(call)).toEqual({
      kind: 'overflow',
      retryable: false,
      message: 'prompt is too long: 208310 tokens > 200000 maximum',
      status: 400,
      gap: { actual: 208310, limit: 200000, over: 8310 },
      errorType: 'invalid_request_error',
      errorCode: 'x',
      details: { error_code: 'x' },
      retryAfterMs: 3000,
      requestId: 'req_1',
    })
  })

  it('names the part that was refused', () => {
    const path = (message: string) =>
      readAnthropicFailure({ status: 400, body: body('invalid_request_error', message) }).path
    expect(path('messages.1.content.0: Invalid `signature` in `thinking` block')).toBe('messages.1.content.0')
    expect(path('messages.363: `tool_use` ids were found without')).toBe('messages.363')
    expect(path('messages: roles must alternate')).toBe('messages')
    expect(path('Something else: messages.1')).toBe(undefined)
  })

  it('lets the provider decide whether to try again', () => {
    const call = (status: number, word: string) =>
      readAnthropicFailure({ status, body: '', headers: { 'x-should-retry': word } })
    expect([call(400, 'true').retryable, call(529, 'false').retryable]).toEqual([true, false])
  })

  it('has a message even if the response has none', () => {
    expect(readAnthropicFailure({ status: 502, body: '' }).message).toBe(
      'The provider answered 502 and nothing else',
    )
  })
})

describe('errorObject', () => {
  it.each([
    'overloaded',
    'rate-limit',
    'server',
    'timeout',
    'auth',
    'billing',
    'permission',
    'not-found',
    'conflict',
    'too-large',
    'invalid-request',
  ] as const)('says %s so that it is understood', (kind) => {
    const failed = { kind, retryable: false, message: 'no' }
    expect(
      readAnthropicFailure({ body: JSON.stringify({ error: toAnthropicErrorObject(failed) }) }).kind,
    ).toBe(kind)
  })

  it.each([
    ['network', true, 'api_error'],
    ['unknown', false, 'invalid_request_error'],
  ] as const)('has the nearest type for %s', (kind, retryable, type) => {
    expect(toAnthropicErrorObject({ kind, retryable, message: 'no' })).toEqual({ type, message: 'no' })
  })

  it('keeps type, code and details', () => {
    const failed = {
      kind: 'invalid-request',
      retryable: false,
      message: 'no',
      errorType: 'x_error',
      errorCode: 'y',
    } as const
    expect(toAnthropicErrorObject(failed)).toEqual({
      type: 'x_error',
      message: 'no',
      details: { error_code: 'y' },
    })
  })
})

it.each(['constructor', 'toString', '__proto__'])('a type or code named %s is no known kind', (word) => {
  const error = { type: word, message: 'odd', details: { error_code: word } }
  expect(readAnthropicFailure({ status: 400, body: JSON.stringify({ type: 'error', error }) }).kind).toBe(
    'invalid-request',
  )
})
