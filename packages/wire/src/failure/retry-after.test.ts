import { describe, expect, it } from 'vitest'
import { retryAfterMs, shouldRetry } from './retry-after.ts'

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
    expect(retryAfterMs(headers, now)).toBe(expected)
  })
})

describe('shouldRetry', () => {
  it.each([
    ['true', true],
    ['False', false],
    ['maybe', undefined],
  ])('%s: %s', (value, expected) => {
    expect(shouldRetry({ 'x-should-retry': value })).toBe(expected)
  })
})
