import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDocument } from '../protocol/value-readers.ts'
import type { Fault } from './fault.ts'
import { parseDurationMs, parseFault, readFault } from './parse-fault.ts'

it.each([
  ['50ms', 50],
  ['2s', 2_000],
  ['1.5s', 1_500],
  ['1m', 60_000],
  ['0', 0],
  ['70', 70],
  [70, 70],
  [' 5 s ', 5_000],
  ['', null],
  ['fast', null],
  ['-1s', null],
  ['1h', null],
  [-1, null],
  [Number.NaN, null],
  [null, null],
  [{}, null],
])('%j is %j ms', (written, ms) => {
  expect(parseDurationMs(written)).toBe(ms)
})

const WRITTEN: readonly (readonly [string, Fault])[] = [
  ['status=429; retry-after=2', { type: 'status', status: 429, retryAfter: 2 }],
  ['status=429; retry-after=1500ms', { type: 'status', status: 429, retryAfter: 1.5 }],
  ['529', { type: 'status', status: 529 }],
  ['500', { type: 'status', status: 500 }],
  ['413', { type: 'status', status: 413 }],
  [
    'status=400; type=invalid_request_error; message="too long: 5 > 4; sorry, really"',
    {
      type: 'status',
      status: 400,
      errorType: 'invalid_request_error',
      message: 'too long: 5 > 4; sorry, really',
    },
  ],
  [
    'status=429; code=ramp_limit_exceeded; header="X-Should-Retry: false"; header="retry-after-ms: 20"',
    {
      type: 'status',
      status: 429,
      details: { error_code: 'ramp_limit_exceeded' },
      headers: { 'x-should-retry': 'false', 'retry-after-ms': '20' },
    },
  ],
  ['status=500; message="say \\"no\\""', { type: 'status', status: 500, message: 'say "no"' }],
  ['slow-start=2s', { type: 'slow-start', ms: 2_000 }],
  ['drip=50ms', { type: 'slow-drip', bytes: 16, ms: 50 }],
  ['drip=50ms; bytes=1', { type: 'slow-drip', bytes: 1, ms: 50 }],
  ['cut', { type: 'cut' }],
  ['cut=3', { type: 'cut', afterEvents: 3 }],
  ['cut=120b', { type: 'cut', afterBytes: 120 }],
  ['cut; after=3', { type: 'cut', afterEvents: 3 }],
  ['cut=utf8', { type: 'cut', insideCharacter: true }],
  ['cut=utf8; after=3', { type: 'cut', insideCharacter: true, afterEvents: 3 }],
  ['error-at=2', { type: 'error-event', afterEvents: 2 }],
  [
    'error-at=0; type=api_error; message=Broken',
    { type: 'error-event', afterEvents: 0, errorType: 'api_error', message: 'Broken' },
  ],
  ['reset', { type: 'reset' }],
  ['reset-after=3', { type: 'reset', afterEvents: 3 }],
  ['reset=10b', { type: 'reset', afterBytes: 10 }],
  ['hang', { type: 'hang' }],
  ['hang-after=3', { type: 'hang', afterEvents: 3 }],
  [' hang=0b ; ', { type: 'hang', afterBytes: 0 }],
  [
    'slow-start=1s, drip=5ms; bytes=2, cut=utf8',
    {
      type: 'several',
      faults: [
        { type: 'slow-start', ms: 1_000 },
        { type: 'slow-drip', bytes: 2, ms: 5 },
        { type: 'cut', insideCharacter: true },
      ],
    },
  ],
]

const EXAMPLES =
  '"status=429; retry-after=2", "drip=50ms", "cut=utf8", "reset-after=3", "error-at=2" or "hang"'
const ALL = 'status, slow-start, drip, cut, error-at, reset, reset-after, hang, hang-after'

const REFUSED: readonly (readonly [string, string])[] = [
  ['', `expected a fault such as ${EXAMPLES}, found nothing`],
  [' , ', `expected a fault such as ${EXAMPLES}, found nothing`],
  ['stauts=429', `"stauts" is no fault; faults are ${ALL}: ${EXAMPLES}`],
  ['toString', `"toString" is no fault; faults are ${ALL}: ${EXAMPLES}`],
  ['status', '"status" needs a whole number from 400 to 599, not ""'],
  ['status=200', '"status" needs a whole number from 400 to 599, not "200"'],
  ['status=429; retry-after=soon', '"retry-after" needs seconds, such as 2, not "soon"'],
  ['status=429; message', '"message" of "status" needs a value: message=…'],
  [
    'status=429; header=x-should-retry',
    '"header" needs a name and a value in quotes, such as "x-should-retry: true", not "x-should-retry"',
  ],
  ['drip', '"drip" needs a time, such as 50ms or 2s, not ""'],
  ['drip=fast', '"drip" needs a time, such as 50ms or 2s, not "fast"'],
  ['drip=5ms; bytes=0', '"bytes" needs a whole number of at least 1, not "0"'],
  ['cut=half', '"cut" needs utf8, a number of events, such as 3, or of bytes, such as 120b, not "half"'],
  ['reset-after', '"reset-after" needs a number of events, such as 3, or of bytes, such as 120b, not ""'],
  ['error-at', '"error-at" needs a whole number of at least 0, not ""'],
  [
    'hang; retry-after=2',
    '"retry-after" says nothing about "hang"; it takes nothing more (a comma begins another fault)',
  ],
  ['drip=5ms; cut=utf8', '"cut" says nothing about "drip"; it takes bytes (a comma begins another fault)'],
]

describe('a fault in one line', () => {
  it.each(WRITTEN)('%s', (text, fault) => {
    expect(parseFault(text)).toEqual({ ok: true, fault })
  })

  it.each(REFUSED)('is refused: %s', (text, message) => {
    expect(parseFault(text)).toEqual({ ok: false, message })
  })

  it('has at most one line of error, for any text', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ -~]{0,40}$/), (text) => {
        const parsed = parseFault(text)
        return parsed.ok || !parsed.message.includes('\n')
      }),
    )
  })
})

describe('a fault as data', () => {
  it.each([
    ['status=429; retry-after=2', { type: 'status', status: 429, retryAfter: 2 }],
    [529, { type: 'status', status: 529 }],
    [{ type: 'hang' }, { type: 'hang' }],
    [
      { type: 'slow-drip', bytes: 3, ms: '20ms' },
      { type: 'slow-drip', bytes: 3, ms: 20 },
    ],
    [
      {
        type: 'status',
        status: 429,
        retryAfter: 0.5,
        headers: { 'x-should-retry': 'false' },
        details: { a: 1 },
      },
      {
        type: 'status',
        status: 429,
        retryAfter: 0.5,
        headers: { 'x-should-retry': 'false' },
        details: { a: 1 },
      },
    ],
    [
      ['drip=5ms', { type: 'cut', insideCharacter: true }],
      {
        type: 'several',
        faults: [
          { type: 'slow-drip', bytes: 16, ms: 5 },
          { type: 'cut', insideCharacter: true },
        ],
      },
    ],
    [
      { type: 'several', faults: ['hang', 'slow-start=1s'] },
      { type: 'several', faults: [{ type: 'hang' }, { type: 'slow-start', ms: 1_000 }] },
    ],
  ])('%j', (value, fault) => {
    expect(readDocument(readFault, value)).toEqual({ ok: true, value: fault })
  })

  it.each([
    [true, [], 'expected a fault, such as "status=429; retry-after=2", found true'],
    [[], [], 'expected at least one fault'],
    [
      {},
      ['type'],
      'expected one of status, slow-start, slow-drip, cut, error-event, reset, hang, several, found nothing',
    ],
    [{ type: 'status' }, ['status'], 'is needed for a fault of type status'],
    [{ type: 'status', status: 200 }, ['status'], 'expected a whole number from 400 to 599, found 200'],
    [{ type: 'hang', after: 3 }, ['after'], 'is not known here; known: afterBytes, afterEvents'],
    [{ type: 'slow-start', ms: 'soon' }, ['ms'], 'expected a time, such as 50ms, 2s or 50, found "soon"'],
    [['hang', 'slow'], [1], expect.stringContaining('"slow" is no fault')],
  ])('%j is refused', (value, path, message) => {
    expect(readDocument(readFault, value)).toEqual({ ok: false, problems: [{ path, message }] })
  })
})
