import { describe, expect, it } from 'vitest'
import type { Usage } from '../conversation/record.ts'
import { contextOf, outputOf } from './usage-figures.ts'

describe('the figures of a usage', () => {
  it.each<[string, Usage | null | undefined, number, number]>([
    ['no usage', undefined, 0, 0],
    ['null', null, 0, 0],
    ['plain input', { input_tokens: 10, output_tokens: 5 }, 10, 5],
    [
      'cached tokens fill the window too',
      { input_tokens: 1, cache_creation_input_tokens: 20, cache_read_input_tokens: 300, output_tokens: 7 },
      321,
      7,
    ],
    [
      'fields that are null',
      { input_tokens: 4, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 1 },
      4,
      1,
    ],
    [
      'iterations: the last message',
      {
        input_tokens: 900,
        output_tokens: 90,
        iterations: [
          { type: 'message', input_tokens: 700, output_tokens: 50 },
          { type: 'compaction', input_tokens: 700, output_tokens: 60 },
          { type: 'message', input_tokens: 30, cache_read_input_tokens: 170, output_tokens: 40 },
          { type: 'advisor', input_tokens: 5_000, output_tokens: 9 },
        ],
      },
      200,
      40,
    ],
    ['figures without end', { input_tokens: Number('1e999'), output_tokens: Number('1e999') }, 0, 0],
    ['figures that no counter shows', { input_tokens: 1e300, output_tokens: -3 }, 0, 0],
    ['a list of nothing', { input_tokens: 10, output_tokens: 5, iterations: [null] }, 10, 5],
    ['no iterations', { input_tokens: 10, output_tokens: 5, iterations: [] }, 10, 5],
    [
      'a compaction alone measured no context of ours',
      {
        input_tokens: 0,
        output_tokens: 0,
        iterations: [{ type: 'compaction', input_tokens: 700, output_tokens: 60 }],
      },
      0,
      0,
    ],
  ])('%s', (_, usage, context, output) => {
    expect([contextOf(usage), outputOf(usage)]).toEqual([context, output])
  })
})
