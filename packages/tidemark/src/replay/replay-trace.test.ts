import { defineProviderProfile, strictProfile } from '@tidemark/core'
import { createProviderProfile, lookUpModel, modelCatalogue } from '@tidemark/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTrace, createTraceCall, host, prompt, result } from '../../test/trace-fixtures.ts'
import {
  compareCacheHitRates,
  detectCacheTtl,
  isContextRewritten,
  type ReplayedCall,
  replayTrace,
} from './replay-trace.ts'
import { countSentTokens, type TraceCall, type TraceInputBlock } from './trace-file.ts'

function profile(model: string) {
  const found = lookUpModel(modelCatalogue, model)
  if (!found.found) throw new Error(`${model} is not in the catalogue`)
  return createProviderProfile(found.model)
}

const opus = profile('claude-opus-4-5')

function forecastCalls(calls: readonly TraceCall[], rules = opus) {
  return replayTrace(createTrace(calls), rules).calls.map(({ why, foreseen }) => [why, foreseen])
}

/** A prefix of 20,000 tokens, a prompt of 1,000 and a response of 200. */
const first = createTraceCall(0, { input: 3, written: 20_997 }, { added: [prompt(1_000)], outputTokens: 200 })
/** The next call. Its usage reports no cache read, so a correct forecast cannot come from it. */
const next = (seconds: number, added: readonly TraceInputBlock[] = [result(500)]) =>
  createTraceCall(seconds, { input: 3, written: 21_697 }, { added, outputTokens: 100 })

describe('replayTrace', () => {
  it('takes the cache read of the first call from its usage, and forecasts that the next call reads all it wrote', () => {
    expect(forecastCalls([first, next(10)])).toEqual([
      ['given', 0],
      ['warm', 20_997],
    ])
  })

  it('takes a cache read of the first call that other sessions left', () => {
    const found = createTraceCall(
      0,
      { input: 3, read: 16_000, written: 4_997 },
      { added: [prompt(1_000)], outputTokens: 200 },
    )
    expect(forecastCalls([found, next(10)])).toEqual([
      ['given', 16_000],
      ['warm', 20_997],
    ])
  })

  it.each([
    { seconds: 299, expected: ['warm', 20_997] },
    { seconds: 300, expected: ['expired', 0] },
  ])('knows when cache entries expire: after $seconds s', ({ seconds, expected }) => {
    expect(forecastCalls([first, next(seconds)]).at(-1)).toEqual(expected)
  })

  it('extends the life of entries that are read', () => {
    const calls = [first, next(200), createTraceCall(400, { written: 22_000 }, { added: [result(200)] })]
    expect(forecastCalls(calls).at(-1)).toEqual(['warm', 21_697])
  })

  it('looks back as far as a cache marker does', () => {
    // The size of the system prompt lies between reported figures and is interpolated by the weights of the trace.
    const many = Array.from({ length: 25 }, () => host(20))
    expect(forecastCalls([first, next(10, many)]).at(-1)).toEqual(['out-of-reach', 19_997])
    const results = Array.from({ length: 25 }, () => result(20))
    expect(forecastCalls([first, next(10, results)]).at(-1)).toEqual(['warm', 20_997])
  })

  it('forecasts no more than the prefix when the conversation shrank', () => {
    const shrunk = createTraceCall(20, { written: 20_700 }, { added: [result(10)] })
    expect(forecastCalls([first, next(10), shrunk]).at(-1)?.[0]).toBe('rewritten')
    expect(Number(forecastCalls([first, next(10), shrunk]).at(-1)?.[1])).toBeCloseTo(20_000, -2)
  })

  it('forecasts everything that remains when the thinking of a finished turn was dropped', () => {
    const prompted = createTraceCall(20, { input: 3, written: 21_597 }, { added: [prompt(50)] })
    expect(forecastCalls([first, next(10), prompted], profile('claude-sonnet-4-5')).at(-1)).toEqual([
      'warm',
      21_547,
    ])
  })

  it('leaves out calls without usage', () => {
    expect(forecastCalls([createTraceCall(0, {}), first, createTraceCall(5, {}), next(10)])).toHaveLength(2)
    expect(replayTrace(createTrace([]), opus).calls).toEqual([])
  })

  it('never forecasts more than was sent before, for any trace', () => {
    const piece = fc.record({
      kind: fc.constantFrom('result' as const, 'prompt' as const, 'host' as const),
      tokens: fc.nat(5_000),
    })
    const usage = fc.record({ input: fc.nat(50), read: fc.nat(90_000), written: fc.nat(90_000) })
    const call = fc.record({
      at: fc.nat(1_000_000),
      added: fc.array(piece, { maxLength: 25 }),
      outputTokens: fc.nat(3_000),
      usage,
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 12 }), (calls) => {
        const sentCalls = calls.filter((each) => countSentTokens(each) > 0)
        for (const [index, { foreseen, sent, why }] of replayTrace(
          createTrace(calls),
          opus,
        ).calls.entries()) {
          const largest = Math.max(0, ...sentCalls.slice(0, index).map(countSentTokens))
          expect(foreseen).toBeLessThanOrEqual(why === 'given' ? sent : Math.min(sent, largest))
        }
      }),
      { numRuns: 200 },
    )
  })
})

const keeps = defineProviderProfile({ thinking: { stripsFinishedTurns: false } })
const strips = defineProviderProfile({ thinking: { stripsFinishedTurns: true } })

/** A finished turn of two responses with 900 output tokens, then a call that sends `sent` tokens. */
function third(sent: number, added: readonly TraceInputBlock[]) {
  return [
    createTraceCall(0, { written: 9_000 }, { added: [prompt(10)], outputTokens: 5_000 }),
    createTraceCall(5, { read: 14_000, written: 100 }, { added: [prompt(10)], outputTokens: 400 }),
    createTraceCall(10, { read: 14_500, written: 500 }, { added: [result(500)], outputTokens: 500 }),
    createTraceCall(15, { written: sent }, { added }),
  ]
}

describe('isRewritten', () => {
  it.each([
    { name: 'it grew', sent: 15_600, added: [prompt(50)], kept: false, stripped: false },
    {
      name: 'it shrank at a prompt by no more than the thinking of the turn',
      sent: 14_900,
      added: [prompt(50)],
      kept: true,
      stripped: false,
    },
    {
      name: 'it shrank at a prompt by more than the output of the turn',
      sent: 14_600,
      added: [prompt(50)],
      kept: true,
      stripped: true,
    },
    { name: 'it shrank within a turn', sent: 14_900, added: [result(50)], kept: true, stripped: true },
  ])('$name', ({ sent, added, kept, stripped }) => {
    const calls = third(sent, added)
    expect([isContextRewritten(calls, 3, keeps), isContextRewritten(calls, 3, strips)]).toEqual([
      kept,
      stripped,
    ])
  })

  it('is never true of the first call', () => {
    expect(isContextRewritten(third(1, []), 0, keeps)).toBe(false)
  })
})

/** Pauses in seconds, and whether the prefix was still read after each. */
function detectTtl(...pauses: readonly (readonly [seconds: number, isRead: boolean])[]) {
  let seconds = 0
  const calls = pauses.map(([pause, isRead]) => {
    seconds += pause
    return createTraceCall(seconds, { read: isRead ? 1_000 : 0, written: isRead ? 0 : 1_000 })
  })
  const { name, survived, lost } = detectCacheTtl(
    createTrace([createTraceCall(0, { written: 1_000 }), ...calls]),
    strictProfile.cache,
  )
  return [name, survived, lost]
}

describe('detectCacheTtl', () => {
  it.each([
    {
      name: 'no conclusive pause',
      pauses: [
        [300, true],
        [3_601, false],
      ],
      expected: ['5m', 0, 0],
    },
    { name: 'a pause survived', pauses: [[301, true]], expected: ['1h', 1, 0] },
    { name: 'a pause not survived', pauses: [[3_600, false]], expected: ['5m', 0, 1] },
    {
      name: 'more survived than not',
      pauses: [
        [400, true],
        [400, false],
        [400, true],
      ],
      expected: ['1h', 2, 1],
    },
    {
      name: 'as many survived as not',
      pauses: [
        [400, true],
        [400, false],
      ],
      expected: ['5m', 1, 1],
    },
  ] as const)('$name: $expected', ({ pauses, expected }) => {
    expect(detectTtl(...pauses)).toEqual(expected)
  })
})

function replayedCall(sent: number, foreseen: number, logged: number): ReplayedCall {
  return { at: 0, sent, foreseen, logged, why: 'warm' }
}

it('hit rates are shares of all tokens sent', () => {
  const { points, ...rates } = compareCacheHitRates([
    replayedCall(1_000, 0, 0),
    replayedCall(3_000, 3_000, 2_960),
  ])
  expect(rates).toEqual({ foreseen: 0.75, logged: 0.74 })
  expect(points).toBeCloseTo(1, 9)
})

it('hit rates are null when nothing was sent', () => {
  expect(compareCacheHitRates([])).toEqual({ foreseen: null, logged: null, points: null })
})
