/** Each way in a window of 200,000 tokens, three hundred calls, against a conversation that only grows. */
import { describe, expect, it } from 'vitest'
import { type Figures, figuresOf } from './clearing/figures.ts'
import { refusals, rewritesInARow, unforeseen, unlikePaid } from './clearing/laws.ts'
import { LongTalk } from './clearing/long-talk.ts'
import { FULL, sized, WAYS } from './clearing/ways.ts'

const CALLS = 300

describe('three hundred calls in a window of 200,000 tokens', () => {
  it.each(WAYS)('$name', async (way) => {
    const setUp = sized(way, FULL)
    const talk = await new LongTalk(setUp).until(CALLS)
    const grown = await new LongTalk({ ...setUp, isRoomless: true }).until(CALLS)
    expect(refusals(talk.calls)).toEqual([])
    expect(rewritesInARow(talk.calls)).toEqual([])
    expect(unforeseen(talk.calls)).toEqual([])
    expect(unlikePaid(talk.calls)).toEqual([])
    const [with_, without] = [figuresOf(talk), figuresOf(grown)]
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
