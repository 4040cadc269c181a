/** Each way in a window of 200,000 tokens, three hundred calls, against a conversation that only grows. */
import { describe, expect, it } from 'vitest'
import { type Figures, figuresOf } from './clearing/figures.ts'
import { refusals, rewritesInARow, unforeseen, unlikePaid } from './clearing/laws.ts'
import { FULL, sized, WAYS } from './clearing/ways.ts'
import { SimulatedSession } from './support/simulated-session.ts'

const CALLS = 300

describe('three hundred calls in a window of 200,000 tokens', () => {
  it.each(WAYS)('$name', async (way) => {
    const options = sized(way, FULL)
    const { window: _, ...growing } = options
    const session = await new SimulatedSession(options).until(CALLS)
    const grown = await new SimulatedSession(growing).until(CALLS)
    expect(refusals(session.calls)).toEqual([])
    expect(rewritesInARow(session.calls)).toEqual([])
    expect(unforeseen(session.calls)).toEqual([])
    expect(unlikePaid(session.calls)).toEqual([])
    const [with_, without] = [figuresOf(session), figuresOf(grown)]
    console.info(line(way.name, with_, without))
    expect(with_.rewrites).toBeLessThanOrEqual(way.mostRewrites)
    expect(with_.hitRate).toBeGreaterThan(way.leastHitRate - 0.02)
    expect(with_.dollars).toBeLessThan(without.dollars)
  })
})

function line(
  name: string,
  { rewrites, hitRate, freedError, rewrittenError, dollars }: Figures,
  none: Figures,
): string {
  const percent = (share: number): string => `${(100 * share).toFixed(1)}%`
  const cells = [
    name,
    `${rewrites.toFixed(1)} rewrites per 100`,
    `hit rate ${percent(hitRate)} (${percent(none.hitRate)} without)`,
    `freed off by ${percent(freedError)} of the context at most`,
    `rewritten by ${percent(rewrittenError)}`,
    `$${dollars.toFixed(2)} ($${none.dollars.toFixed(2)} without)`,
  ]
  return cells.join(' | ')
}
