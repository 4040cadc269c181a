/** Each way of clearing on the simulator, for three hundred calls (fewer in `npm test`). */
import { countPropertyRuns, sampleCases } from '@tidemark/core/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import { SimulatedSession } from '../support/simulated-session.ts'
import { figuresOf, pricedClearings, rewrittenCalls } from './figures.ts'
import { refusals, rewritesInARow, unforeseen, unlikePaid } from './laws.ts'
import { SMALL, sized, WAYS } from './ways.ts'

describe.each(sampleCases(WAYS, 3))('$name, call after call', (way) => {
  const session = new SimulatedSession(sized(way, SMALL))

  beforeAll(async () => {
    await session.until(countPropertyRuns(300, way.quickCalls ?? 150))
  })

  it('no request is refused', () => {
    expect(refusals(session.calls)).toEqual([])
  })

  it('clears, and more than once', () => {
    expect(pricedClearings(session.calls).length).toBeGreaterThan(2)
  })

  it('rewrites seldom, and never twice in a row while the cache is warm', () => {
    const { calls } = session
    expect(rewritesInARow(calls)).toEqual([])
    expect((100 * rewrittenCalls(calls).length) / calls.length).toBeLessThanOrEqual(way.mostRewrites)
  })

  it('frees and costs what was foreseen', () => {
    expect(unforeseen(session.calls)).toEqual([])
    expect(unlikePaid(session.calls)).toEqual([])
  })

  it('clears no result twice', () => {
    const ids = session.calls.flatMap(({ cleared, noted }) =>
      [...cleared, ...noted].flatMap(({ clearing }) => clearing.metadata.compactedToolIds),
    )
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
  })

  it('reads nearly all of its prompts from the cache', () => {
    expect(figuresOf(session).hitRate).toBeGreaterThan(way.leastHitRate)
  })
})
