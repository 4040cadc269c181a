/** One sample of each provider's words, from the table the patterns were made from. */
import { describe, expect, it } from 'vitest'
import { OVERFLOW_SAMPLES } from '../../test/overflow-samples.ts'
import { readErrorBody } from './error-body.ts'
import { OVERFLOW_CODES, OVERFLOW_PATTERNS } from './overflow-patterns.ts'
import { findPromptOverflow, findSilentOverflow } from './prompt-overflow.ts'

describe('findOverflow', () => {
  it.each(OVERFLOW_SAMPLES)('$from', ({ status, body, gap }) => {
    expect(findPromptOverflow({ status, body: readErrorBody(body) })).toEqual(gap)
  })

  it('has a sample for every pattern and every code', () => {
    const bodies = OVERFLOW_SAMPLES.filter(({ gap }) => gap !== null).map(({ body }) => readErrorBody(body))
    const unused = OVERFLOW_PATTERNS.filter(({ text }) => !bodies.some(({ message }) => text.test(message)))
    const unnamed = OVERFLOW_CODES.filter(
      (row) => !bodies.some(({ code, type }) => row.code === code || row.code === type),
    )
    expect([unused, unnamed]).toEqual([[], []])
  })

  it('takes an empty refusal for one only from a provider that means it so', () => {
    const body = readErrorBody('')
    const from = (provider: string, status: number) => findPromptOverflow({ status, body, provider })
    expect([
      from('cerebras', 400),
      from('cerebras', 413),
      from('cerebras', 500),
      from('anthropic', 413),
    ]).toEqual([{}, {}, null, null])
  })
})

describe('findSilentOverflow', () => {
  it.each([
    ['fits', { inputTokens: 99_999, outputTokens: 10, stoppedByLength: true }, null],
    ['exactly full, and answered', { inputTokens: 100_000, outputTokens: 10, stoppedByLength: false }, null],
    [
      'more than the window',
      { inputTokens: 100_001, outputTokens: 10, stoppedByLength: false },
      { actual: 100_001, limit: 100_000, over: 1 },
    ],
    [
      'full, and nothing said',
      { inputTokens: 99_000, outputTokens: 0, stoppedByLength: true },
      { actual: 99_000, limit: 100_000, over: 0 },
    ],
    ['nearly full, nothing said', { inputTokens: 98_999, outputTokens: 0, stoppedByLength: true }, null],
    [
      'full, nothing said, but it meant to stop',
      { inputTokens: 99_000, outputTokens: 0, stoppedByLength: false },
      null,
    ],
  ])('%s', (_, success, gap) => {
    expect(findSilentOverflow(success, 100_000)).toEqual(gap)
  })
})
