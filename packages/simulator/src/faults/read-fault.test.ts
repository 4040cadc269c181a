import { describe, expect, it } from 'vitest'
import { readAll } from '../script/fields.ts'
import { readFault } from './read-fault.ts'

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
    expect(readAll(readFault, value)).toEqual({ ok: true, value: fault })
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
    expect(readAll(readFault, value)).toEqual({ ok: false, problems: [{ path, message }] })
  })
})
