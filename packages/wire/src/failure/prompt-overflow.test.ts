/** One sample of each provider's error text, from the table that the patterns were made from. */
import { describe, expect, it } from 'vitest'
import { OVERFLOW_SAMPLES } from '../../test/overflow-samples.ts'
import { readErrorBody } from './error-body.ts'
import { OVERFLOW_CODES, OVERFLOW_PATTERNS } from './overflow-patterns.ts'
import { findPromptOverflow } from './prompt-overflow.ts'

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
