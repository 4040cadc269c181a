import { describe, expect, it } from 'vitest'
import { failureOfThrown } from './thrown.ts'

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
    ['a string', 'gone', { kind: 'network', retryable: true, message: 'gone' }],
    ['nothing', undefined, { kind: 'network', retryable: true, message: 'The connection failed' }],
  ])('%s', (_, thrown, expected) => {
    expect(failureOfThrown(thrown)).toEqual(expected)
  })

  it('knows our own signal whatever was thrown', () => {
    expect(failureOfThrown(new Error('terminated'), true).kind).toBe('aborted')
  })

  it('does not follow a chain that never ends', () => {
    const loop = new Error('again')
    loop.cause = loop
    expect(failureOfThrown(loop)).toEqual({ kind: 'network', retryable: true, message: 'again' })
  })
})
