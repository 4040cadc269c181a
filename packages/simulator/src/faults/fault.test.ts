import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HttpAnswer } from '../protocol/answer.ts'
import { applyFault, FAULT_NOTE_HEADER, type Fault, toBytes } from './fault.ts'

const EVENTS = ['start', 'naïve ☕', 'stop'].map((data) => `event: e\ndata: ${data}\n\n`)

function stream(events: readonly string[] = EVENTS): HttpAnswer {
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'request-id': 'req_1' },
    chunks: events.map((bytes, index) => ({ bytes, delayMs: index })),
    ending: 'close',
  }
}

function body(text: string): HttpAnswer {
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'request-id': 'req_1' },
    chunks: [{ bytes: text, delayMs: 0 }],
    ending: 'close',
  }
}

function sent({ chunks }: HttpAnswer): Buffer {
  return Buffer.concat(chunks.map((chunk) => toBytes(chunk.bytes)))
}

function textSent(answer: HttpAnswer): string {
  return sent(answer).toString('utf8')
}

function apply(fault: Fault, answer: HttpAnswer = stream()): HttpAnswer {
  return applyFault(answer, fault, 'req_1')
}

describe('an error instead of the answer', () => {
  it.each([
    [
      429,
      'rate_limit_error',
      'This request would exceed the rate limit for your organization. Try again later.',
    ],
    [529, 'overloaded_error', 'Overloaded'],
    [500, 'api_error', 'Internal server error'],
    [413, 'request_too_large', 'Request exceeds the maximum size'],
    [401, 'authentication_error', 'invalid x-api-key'],
    [402, 'billing_error', 'There is an issue with your billing or payment information.'],
    [403, 'permission_error', 'Your API key does not have permission to use the specified resource.'],
    [404, 'not_found_error', 'The requested resource was not found.'],
    [409, 'conflict_error', 'The request conflicts with the current state of the resource.'],
    [503, 'api_error', 'Service Unavailable'],
    [504, 'timeout_error', 'The request timed out while processing.'],
    [599, 'api_error', 'HTTP status 599'],
  ])('%i', (status, type, message) => {
    const answer = apply({ type: 'status', status })
    expect({ ...answer, chunks: textSent(answer) }).toEqual({
      status,
      headers: { 'content-type': 'application/json', 'request-id': 'req_1' },
      chunks: JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }),
      ending: 'close',
    })
  })

  it('has a retry-after, and other headers and details', () => {
    const answer = apply({
      type: 'status',
      status: 429,
      retryAfter: 2,
      errorType: 'odd_error',
      message: 'No.',
      headers: { 'x-should-retry': 'false' },
      details: { error_code: 'odd' },
    })
    expect(answer.headers).toMatchObject({ 'retry-after': '2', 'x-should-retry': 'false' })
    expect(JSON.parse(textSent(answer))).toEqual({
      type: 'error',
      error: { type: 'odd_error', message: 'No.', details: { error_code: 'odd' } },
      request_id: 'req_1',
    })
  })
})

describe('a slow answer', () => {
  it('starts late and is otherwise the same', () => {
    const answer = apply({ type: 'slow-start', ms: 500 })
    expect(answer.chunks.map((chunk) => chunk.delayMs)).toEqual([500, 1, 2])
    expect(textSent(answer)).toBe(EVENTS.join(''))
  })

  it('arrives in parts of the given size, each after its pause, and completely', () => {
    const answer = apply({ type: 'slow-drip', bytes: 7, ms: 50 })
    expect(textSent(answer)).toBe(EVENTS.join(''))
    expect(Math.max(...answer.chunks.map((chunk) => toBytes(chunk.bytes).length))).toBe(7)
    expect(new Set(answer.chunks.map((chunk) => chunk.delayMs))).toEqual(new Set([50, 51, 52]))
  })
})

describe('an answer that breaks off', () => {
  it.each<[string, Fault, string, HttpAnswer['ending']]>([
    ['after events', { type: 'cut', afterEvents: 1 }, EVENTS[0] ?? '', 'close'],
    ['after bytes', { type: 'cut', afterBytes: 7 }, 'event: ', 'close'],
    ['bytes win over events', { type: 'cut', afterBytes: 7, afterEvents: 2 }, 'event: ', 'close'],
    [
      'not at all, where the place lies behind the end',
      { type: 'cut', afterEvents: 9 },
      EVENTS.join(''),
      'close',
    ],
    ['torn down at once', { type: 'reset' }, '', 'reset'],
    ['torn down after events', { type: 'reset', afterEvents: 2 }, EVENTS.slice(0, 2).join(''), 'reset'],
    ['silent from the start', { type: 'hang' }, '', 'hang'],
    ['silent after bytes', { type: 'hang', afterBytes: 5 }, 'event', 'hang'],
  ])('%s', (_, fault, text, ending) => {
    const answer = apply(fault)
    expect([textSent(answer), answer.ending]).toEqual([text, ending])
  })

  it.each<[string, Fault, string | undefined]>([
    ['a cut at the end', { type: 'cut', afterEvents: 3 }, 'not applied: the answer ends after 3 events'],
    ['a cut behind it', { type: 'cut', afterEvents: 9 }, 'not applied: the answer ends after 3 events'],
    [
      'a cut behind it, in bytes',
      { type: 'cut', afterBytes: 999 },
      `not applied: the answer ends after ${Buffer.byteLength(EVENTS.join(''))} bytes`,
    ],
    ['a cut before it', { type: 'cut', afterEvents: 2 }, undefined],
    ['a reset at the end', { type: 'reset', afterEvents: 3 }, undefined],
    [
      'a reset behind it',
      { type: 'reset', afterEvents: 4 },
      'reset at the end: the answer has only 3 events',
    ],
    [
      'a silence behind it',
      { type: 'hang', afterEvents: 4 },
      'hang at the end: the answer has only 3 events',
    ],
    ['an error before the last event', { type: 'error-event', afterEvents: 2 }, undefined],
    [
      'an error behind it',
      { type: 'error-event', afterEvents: 3 },
      'error after 2 events: the answer has 3, and there is nothing after the last',
    ],
  ])('reports what happened to %s', (_, fault, note) => {
    expect(apply(fault).headers[FAULT_NOTE_HEADER]).toBe(note)
  })

  it('half-way without a place', () => {
    expect(sent(apply({ type: 'cut' })).length).toBe(Math.floor(Buffer.byteLength(EVENTS.join('')) / 2))
  })
})

describe('a cut inside a character', () => {
  const cut: Fault = { type: 'cut', insideCharacter: true, afterBytes: 0 }

  it('leaves bytes that are not valid UTF-8', () => {
    const bytes = sent(apply(cut))
    expect(bytes.at(-1)).toBe(0xc3)
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes)).toThrow()
  })

  it('takes the first one after the place, otherwise the last one before it', () => {
    const at = (afterBytes: number): number => sent(apply({ ...cut, afterBytes })).length
    const whole = Buffer.from(EVENTS.join(''))
    const [first, second] = [whole.indexOf('ï') + 1, whole.indexOf('☕') + 1]
    expect([at(0), at(first), at(whole.length)]).toEqual([first, second, second])
  })

  it('cuts between characters if there is no multi-byte one, and reports it', () => {
    const answer = apply(cut, stream(['data: plain\n\n']))
    expect([textSent(answer), answer.headers[FAULT_NOTE_HEADER]]).toEqual([
      '',
      'cut after 0 bytes, between characters: the answer has none of several bytes',
    ])
  })

  it('is inside a multi-byte character for every text that has one, at any place', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(200), (text, afterBytes) => {
        const answer = apply({ ...cut, afterBytes }, stream([`data: ${text}ö\n\n`]))
        const bytes = sent(answer)
        const decoded = new TextDecoder().decode(bytes)
        return decoded.endsWith('\ufffd') && answer.headers[FAULT_NOTE_HEADER] === undefined
      }),
    )
  })
})

describe('an error in the middle of a stream', () => {
  const ERROR =
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'

  it.each([
    [0, ERROR],
    [2, `${EVENTS[0]}${EVENTS[1]}${ERROR}`],
    [9, `${EVENTS[0]}${EVENTS[1]}${ERROR}`],
  ])('after %i events, and never after the last', (afterEvents, text) => {
    expect(textSent(apply({ type: 'error-event', afterEvents }))).toBe(text)
  })

  it('counts events and not chunks', () => {
    const dripped = apply({ type: 'slow-drip', bytes: 3, ms: 1 })
    expect(textSent(apply({ type: 'error-event', afterEvents: 1 }, dripped))).toBe(`${EVENTS[0]}${ERROR}`)
  })

  it.each([
    ['authentication_error', 401],
    ['billing_error', 402],
    ['permission_error', 403],
    ['not_found_error', 404],
    ['conflict_error', 409],
    ['request_too_large', 413],
    ['api_error', 500],
    ['an_error_of_our_own', 500],
  ])(
    'of type %s is status %i if the answer is no stream, with the same message as in a stream',
    (errorType, status) => {
      const fault: Fault = { type: 'error-event', afterEvents: 0, errorType }
      const answer = apply(fault, body('{}'))
      const { error } = JSON.parse(textSent(answer)) as { readonly error: { readonly message: string } }
      expect(answer.status).toBe(status)
      expect(textSent(apply(fault))).toContain(JSON.stringify({ type: errorType, message: error.message }))
    },
  )

  it('is an error response if the answer is no stream', () => {
    const answer = apply(
      { type: 'error-event', afterEvents: 1, errorType: 'api_error', message: 'Oh' },
      body('{}'),
    )
    expect([answer.status, JSON.parse(textSent(answer)), answer.headers[FAULT_NOTE_HEADER]]).toEqual([
      500,
      { type: 'error', error: { type: 'api_error', message: 'Oh' }, request_id: 'req_1' },
      'status 500 instead of an error event: the answer is no stream',
    ])
  })
})

it('several faults: those that end the answer come before those that slow it, in any order', () => {
  const faults: readonly Fault[] = [
    { type: 'slow-start', ms: 100 },
    { type: 'slow-drip', bytes: 8, ms: 1 },
    { type: 'cut', afterBytes: 10 },
  ]
  const expected = {
    chunks: ['event: e', '\nd'],
    delays: [101, 1],
    ending: 'close',
  }
  for (const given of [faults, faults.toReversed()]) {
    const { chunks, ending } = apply({ type: 'several', faults: given })
    expect({
      chunks: chunks.map((chunk) => Buffer.from(toBytes(chunk.bytes)).toString()),
      delays: chunks.map((chunk) => chunk.delayMs),
      ending,
    }).toEqual(expected)
  }
})
