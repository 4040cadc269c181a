/** Each way of clearing on the simulator, for three hundred calls. */
import { beforeAll, describe, expect, it } from 'vitest'
import { figuresOf, pricedClearings, rewrittenCalls } from './figures.ts'
import { refusals, rewritesInARow, unforeseen, unlikePaid } from './laws.ts'
import { LongTalk } from './long-talk.ts'
import { SMALL, sized, WAYS } from './ways.ts'

const CALLS = 300

describe.each(WAYS)('$name, for three hundred calls', (way) => {
  const talk = new LongTalk(sized(way, SMALL))

  beforeAll(async () => {
    await talk.until(CALLS)
  })

  it('no request is refused', () => {
    expect(refusals(talk.calls)).toEqual([])
  })

  it('clears, and more than once', () => {
    expect(pricedClearings(talk.calls).length).toBeGreaterThan(2)
  })

  it('rewrites seldom, and never twice in a row while the cache is warm', () => {
    const { calls } = talk
    expect(rewritesInARow(calls)).toEqual([])
    expect((100 * rewrittenCalls(calls).length) / calls.length).toBeLessThanOrEqual(way.mostRewrites)
  })

  it('frees and costs what was foreseen', () => {
    expect(unforeseen(talk.calls)).toEqual([])
    expect(unlikePaid(talk.calls)).toEqual([])
  })

  it('clears no result twice', () => {
    const ids = talk.calls.flatMap(({ cleared, noted }) =>
      [...cleared, ...noted].flatMap(({ clearing }) => clearing.metadata.compactedToolIds),
    )
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
  })

  it('reads nearly all of its prompts from the cache', () => {
    expect(figuresOf(talk).hitRate).toBeGreaterThan(way.leastHitRate)
  })
})
