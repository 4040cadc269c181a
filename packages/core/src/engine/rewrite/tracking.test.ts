import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY } from '../../policy/create-policy.ts'
import { chainLink, compactedNow, nextTurn, startTracking } from './tracking.ts'

const { auto } = DEFAULT_POLICY.turn

describe('tracking', () => {
  it('counts turns since the last compaction and names the turn it was made in', () => {
    const started = nextTurn(nextTurn(startTracking('a'), 'b'), 'c')
    expect(chainLink(started, auto)).toEqual({ isClose: false, turnsBetween: 2, previousTurn: null })
    const compacted = compactedNow(started, 'd')
    expect(compacted).toEqual({ turns: 0, turnId: 'd', compactedIn: 'c' })
    expect(chainLink(nextTurn(compacted, 'e'), auto)).toEqual({
      isClose: true,
      turnsBetween: 1,
      previousTurn: 'c',
    })
  })

  it.each([
    [auto.closeTurns, true],
    [auto.closeTurns + 1, false],
  ])('is close after %i turns: %s', (turns, isClose) => {
    let tracking = compactedNow(startTracking('a'), 'b')
    for (let turn = 0; turn < turns; turn += 1) tracking = nextTurn(tracking, `t${turn}`)
    expect(chainLink(tracking, auto).isClose).toBe(isClose)
  })
})
