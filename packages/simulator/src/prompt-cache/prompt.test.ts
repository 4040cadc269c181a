import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CacheBreakpoint, type Prompt, splitPromptTokens } from './prompt.ts'

function promptOf(tokens: readonly number[], breakpoints: readonly CacheBreakpoint[]): Prompt {
  let sum = 0
  const positions = tokens.map((each) => {
    sum += each
    return { tokens: sum }
  })
  return { positions, breakpoints, starts: { system: 0, messages: 0 }, pathOf: String } as unknown as Prompt
}

describe('the bill', () => {
  it('adds up to the prompt, whatever was hit and marked, and no part is negative', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 1, maxLength: 30 })
    const marks = fc.array(fc.tuple(fc.nat(29), fc.constantFrom('5m' as const, '1h' as const)), {
      maxLength: 6,
    })
    fc.assert(
      fc.property(sizes, marks, fc.option(fc.nat(29)), fc.nat(4_000), (tokens, marked, hit, minimum) => {
        const breakpoints = marked
          .filter(([position]) => position < tokens.length)
          .map(([position, ttl]) => ({ position, ttl, explicit: true }))
          .sort((one, other) => one.position - other.position)
        const at = hit === null || hit >= tokens.length ? null : hit
        const split = splitPromptTokens(promptOf(tokens, breakpoints), at, minimum)
        expect(split.read + split.write5m + split.write1h + split.input).toBe(
          tokens.reduce((a, b) => a + b, 0),
        )
        expect(Math.min(...Object.values(split))).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
