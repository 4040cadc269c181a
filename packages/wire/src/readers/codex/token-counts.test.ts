import { describe, expect, it } from 'vitest'
import { createTokenCounts } from './token-counts.ts'

const usage = (input: number, cached: number, output: number, more: object = {}): object => ({
  input_tokens: input,
  cached_input_tokens: cached,
  output_tokens: output,
  ...more,
})

describe('what a notice of tokens says', () => {
  it.each([
    [
      'cached input is no input',
      usage(100, 90, 5),
      { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 5 },
    ],
    [
      'nor is what was written to the cache',
      usage(100, 60, 5, { cache_write_input_tokens: 30 }),
      { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30, output_tokens: 5 },
    ],
    [
      'reasoning is part of the output and told beside it',
      usage(100, 0, 5, { reasoning_output_tokens: 4 }),
      { input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 5, reasoning_output_tokens: 4 },
    ],
    [
      'figures that cannot be are none',
      usage(10, 20, -5),
      { input_tokens: 0, cache_read_input_tokens: 20, output_tokens: 0 },
    ],
  ])('%s', (_, last, expected) => {
    const taken = createTokenCounts().take(
      { info: { total_token_usage: last, last_token_usage: last } },
      false,
    )
    expect(taken?.usage).toEqual({ reasoning_output_tokens: 0, ...expected })
  })

  it('without the last call it is the difference of the totals', () => {
    const counts = createTokenCounts()
    counts.take({ info: { total_token_usage: usage(100, 40, 5) } }, false)
    const second = counts.take({ info: { total_token_usage: usage(300, 140, 9) } }, false)
    expect(second?.usage).toEqual({
      input_tokens: 100,
      cache_read_input_tokens: 100,
      output_tokens: 4,
      reasoning_output_tokens: 0,
    })
  })

  it('totals that were there before are no call, and neither is nothing', () => {
    const counts = createTokenCounts()
    const notices = [usage(0, 0, 0), usage(10, 0, 1), usage(10, 0, 1), usage(20, 0, 2), usage(10, 0, 1)]
    const calls = notices.map(
      (total) => counts.take({ info: { total_token_usage: total } }, false)?.key ?? null,
    )
    expect(calls).toEqual([null, '10.0.1.0', null, '20.0.2.0', null])
  })

  it('one call told by two kinds of line is one', () => {
    const counts = createTokenCounts()
    const last = usage(10, 0, 1)
    const event = { info: { total_token_usage: usage(510, 0, 51), last_token_usage: last } }
    const record = { usage: last, thread_token_usage: last }
    expect(counts.take(event, false)?.key).toBe('510.0.51.0')
    expect(counts.take(record, true)).toBeNull()
    expect(counts.take({ usage: last, thread_token_usage: usage(20, 0, 2) }, false)?.key).toBe('20.0.2.0')
  })

  it.each([{}, { info: null }, { info: 'x' }, { info: { total_token_usage: 7 } }])(
    '%j tells of no call',
    (notice) => {
      const counts = createTokenCounts()
      expect(counts.take(notice, false)).toBeNull()
      expect(counts.areTold).toBe(true)
    },
  )
})
