import { describe, expect, it } from 'vitest'
import { classifyException, readRetryAfterMs, readShouldRetry } from './classify-failure.ts'

const DATE = 'Wed, 21 Oct 2026 07:28:00 GMT'
const AT = Date.parse(DATE)

describe('retryAfterMs', () => {
  it.each<[string, Record<string, string>, number | undefined, number | undefined]>([
    ['nothing', {}, AT, undefined],
    ['seconds', { 'retry-after': '7' }, undefined, 7000],
    ['parts of a second', { 'retry-after': '0.5' }, undefined, 500],
    ['any case', { 'Retry-After': '7' }, undefined, 7000],
    ['milliseconds first', { 'retry-after-ms': '250', 'retry-after': '7' }, undefined, 250],
    ['bad milliseconds', { 'retry-after-ms': 'x', 'retry-after': '7' }, undefined, 7000],
    ['a date, from now', { 'retry-after': DATE }, AT - 5000, 5000],
    [
      'a date, from the response',
      { 'retry-after': DATE, date: 'Wed, 21 Oct 2026 07:27:50 GMT' },
      undefined,
      10_000,
    ],
    ['a date gone by', { 'retry-after': DATE }, AT + 5000, 0],
    ['a date and no clock', { 'retry-after': DATE }, undefined, undefined],
    ['rubbish', { 'retry-after': 'soon' }, AT, undefined],
    ['a negative wait', { 'retry-after-ms': '-5' }, AT, undefined],
  ])('%s', (_, headers, now, expected) => {
    expect(readRetryAfterMs(headers, now)).toBe(expected)
  })
})

describe('shouldRetry', () => {
  it.each([
    ['true', true],
    ['False', false],
    ['maybe', undefined],
  ])('%s: %s', (value, expected) => {
    expect(readShouldRetry({ 'x-should-retry': value })).toBe(expected)
  })
})

function withCode(message: string, code: string): Error {
  return Object.assign(new Error(message), { code })
}

describe('failureOfThrown', () => {
  it.each<[string, unknown, object]>([
    [
      'our own abort',
      new DOMException('This operation was aborted', 'AbortError'),
      { kind: 'aborted', retryable: false, message: 'This operation was aborted' },
    ],
    [
      'a deadline',
      new DOMException('The operation timed out', 'TimeoutError'),
      { kind: 'timeout', retryable: true, message: 'The operation timed out' },
    ],
    [
      'a broken connection',
      new TypeError('fetch failed', { cause: withCode('read ECONNRESET', 'ECONNRESET') }),
      { kind: 'network', retryable: true, message: 'read ECONNRESET', errorCode: 'ECONNRESET' },
    ],
    [
      'a slow connection',
      new TypeError('fetch failed', { cause: withCode('Headers Timeout Error', 'UND_ERR_HEADERS_TIMEOUT') }),
      {
        kind: 'timeout',
        retryable: true,
        message: 'Headers Timeout Error',
        errorCode: 'UND_ERR_HEADERS_TIMEOUT',
      },
    ],
    [
      'a port that fetch never uses',
      new TypeError('fetch failed', { cause: new Error('bad port') }),
      { kind: 'network', retryable: false, message: 'bad port' },
    ],
    ['a string', 'gone', { kind: 'network', retryable: true, message: 'gone' }],
    ['nothing', undefined, { kind: 'network', retryable: true, message: 'The connection failed' }],
  ])('%s', (_, thrown, expected) => {
    expect(classifyException(thrown)).toEqual(expected)
  })

  it('knows our own signal whatever was thrown', () => {
    expect(classifyException(new Error('terminated'), true).kind).toBe('aborted')
  })

  it('does not follow a chain that never ends', () => {
    const loop = new Error('again')
    loop.cause = loop
    expect(classifyException(loop)).toEqual({ kind: 'network', retryable: true, message: 'again' })
  })
})
