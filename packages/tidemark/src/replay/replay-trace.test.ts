import { lookUpModel, modelCatalogue, profileFor } from '@tidemark/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { callAt, host, prompt, result, traceOf } from '../../test/made-up-trace.ts'
import { replayTrace } from './replay-trace.ts'
import { sentTokens, type TraceCall, type TracePiece } from './trace.ts'

function profile(model: string) {
  const found = lookUpModel(modelCatalogue, model)
  if (!found.found) throw new Error(`${model} is not in the catalogue`)
  return profileFor(found.model)
}

const opus = profile('claude-opus-4-5')

function replayed(calls: readonly TraceCall[], rules = opus) {
  return replayTrace(traceOf(calls), rules).calls.map(({ why, foreseen }) => [why, foreseen])
}

/** 20,000 in front, a prompt of 1,000 and an answer of 200. */
const first = callAt(0, { input: 3, written: 20_997 }, { added: [prompt(1_000)], outputTokens: 200 })
/** Goes on from it, and says that nothing was read: no forecast may come from that. */
const next = (seconds: number, added: readonly TracePiece[] = [result(500)]) =>
  callAt(seconds, { input: 3, written: 21_697 }, { added, outputTokens: 100 })

describe('replayTrace', () => {
  it('gives the first call what it found, and foresees that the next reads all that it left', () => {
    expect(replayed([first, next(10)])).toEqual([
      ['given', 0],
      ['warm', 20_997],
    ])
  })

  it('takes what the first call found from its usage', () => {
    const found = callAt(
      0,
      { input: 3, read: 16_000, written: 4_997 },
      { added: [prompt(1_000)], outputTokens: 200 },
    )
    expect(replayed([found, next(10)])).toEqual([
      ['given', 16_000],
      ['warm', 20_997],
    ])
  })

  it.each([
    { seconds: 299, expected: ['warm', 20_997] },
    { seconds: 300, expected: ['expired', 0] },
  ])('knows when entries lapse: after $seconds s', ({ seconds, expected }) => {
    expect(replayed([first, next(seconds)]).at(-1)).toEqual(expected)
  })

  it('keeps alive what is used', () => {
    const calls = [first, next(200), callAt(400, { written: 22_000 }, { added: [result(200)] })]
    expect(replayed(calls).at(-1)).toEqual(['warm', 21_697])
  })

  it('looks back as far as a marker does', () => {
    // What the system prompt comes to is read off between figures that usage told, by what the trace says it weighs.
    const many = Array.from({ length: 25 }, () => host(20))
    expect(replayed([first, next(10, many)]).at(-1)).toEqual(['out-of-reach', 19_997])
    const results = Array.from({ length: 25 }, () => result(20))
    expect(replayed([first, next(10, results)]).at(-1)).toEqual(['warm', 20_997])
  })

  it('foresees no more than the front where the conversation shrank', () => {
    const shrunk = callAt(20, { written: 20_700 }, { added: [result(10)] })
    expect(replayed([first, next(10), shrunk]).at(-1)?.[0]).toBe('rewritten')
    expect(Number(replayed([first, next(10), shrunk]).at(-1)?.[1])).toBeCloseTo(20_000, -2)
  })

  it('foresees all that is left where the thinking of a finished turn went', () => {
    const prompted = callAt(20, { input: 3, written: 21_597 }, { added: [prompt(50)] })
    expect(replayed([first, next(10), prompted], profile('claude-sonnet-4-5')).at(-1)).toEqual([
      'warm',
      21_547,
    ])
  })

  it('leaves calls without figures out', () => {
    expect(replayed([callAt(0, {}), first, callAt(5, {}), next(10)])).toHaveLength(2)
    expect(replayTrace(traceOf([]), opus).calls).toEqual([])
  })

  it('never foresees more than was sent before, whatever the trace', () => {
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
        const told = calls.filter((each) => sentTokens(each) > 0)
        for (const [index, { foreseen, sent, why }] of replayTrace(traceOf(calls), opus).calls.entries()) {
          const largest = Math.max(0, ...told.slice(0, index).map(sentTokens))
          expect(foreseen).toBeLessThanOrEqual(why === 'given' ? sent : Math.min(sent, largest))
        }
      }),
      { numRuns: 200 },
    )
  })
})
