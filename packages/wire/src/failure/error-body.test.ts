import { describe, expect, it } from 'vitest'
import { readErrorBody } from './error-body.ts'

describe('readErrorBody', () => {
  it('reads the envelope of the Messages API', () => {
    const error = {
      type: 'invalid_request_error',
      message: 'no',
      details: { error_code: 'thread_not_found' },
    }
    expect(readErrorBody(JSON.stringify({ type: 'error', error, request_id: 'req_1' }))).toEqual({
      message: 'no',
      type: 'invalid_request_error',
      code: 'thread_not_found',
      requestId: 'req_1',
      details: { error_code: 'thread_not_found' },
      fields: error,
    })
  })

  it.each([
    ['a plain string', '"not today"', 'not today'],
    ['plain text', '  upstream connect error \n', 'upstream connect error'],
    ['nothing', '', ''],
    ['error as a string', '{"error":"no model"}', 'no model'],
    ['a message alone', '{"message":"no"}', 'no'],
    ['AWS', '{"Message":"no"}', 'no'],
    ['detail', '{"detail":"no"}', 'no'],
    ['a list of details', '{"errors":[{"message":"no"}]}', 'no'],
    ['detail as an object', '{"detail":{"message":"no"}}', 'no'],
    ['a list', '[{"error":{"message":"no","code":400}}]', 'no'],
    ['an object without words', '{"ok":false}', '{"ok":false}'],
  ])('finds the words in %s', (_, text, message) => {
    expect(readErrorBody(text).message).toBe(message)
  })

  it('cuts a page of HTML', () => {
    expect(readErrorBody(`<html>${'x'.repeat(10_000)}`).message).toHaveLength(2000)
  })

  it('takes a number for a code', () => {
    expect(readErrorBody('{"error":{"message":"no","code":1261}}').code).toBe('1261')
  })
})
