/** What is known of a cache that has lapsed, or that another process filled: neither is mistaken for the other. */
import { readSessionState } from '@tidemark/core/engine/session-state'
import { describe, expect, it } from 'vitest'
import { SESSION, SimulatedSession, tokensRead } from '../support/simulated-session.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

const MINUTE = 60_000

describe('a clearing after a pause that outlived the cache', () => {
  it('is not charged with what the pause cost', async () => {
    const session = await new SimulatedSession(sized(wayNamed('budget'), SMALL)).until(15)
    const at = session.calls.length
    await session.clock.advance(61 * MINUTE)
    await session.prompt('Go on after the pause.')
    const call = session.calls[at]
    expect(call?.cleared.map(({ way, clearing }) => [way, clearing.cost])).toEqual([['idle', 0]])
    expect([call?.paid, call?.broke?.reason.kind, call?.broke?.ours]).toEqual([null, 'expired', null])
  })
})

describe('a session that is opened again while its cache is warm', () => {
  it('keeps the deletions that stand, and reads what it left', async () => {
    const session = await new SimulatedSession(sized(wayNamed('cached'), SMALL)).until(30)
    const before = session.calls.at(-1)
    session.state = await readSessionState(session.journal, SESSION)
    await session.prompt('Go on in another process.')
    const call = session.calls.find(({ record }) => record.number > (before?.record.number ?? 0))
    expect([call?.dropped, call?.edits.slice(0, before?.edits.length)]).toEqual([null, before?.edits])
    expect(call === undefined ? 0 : tokensRead(call)).toBeGreaterThan(10_000)
  })

  it('clears at the price it would have had, up to the edge that the last request marked', async () => {
    const options = sized(wayNamed('budget'), SMALL)
    const plain = await new SimulatedSession(options).until(60)
    const opened = new SimulatedSession(options)
    while (opened.calls.length < 60) {
      await opened.until(opened.calls.length + 1)
      opened.state = await readSessionState(opened.journal, SESSION)
    }
    const clearings = ({ calls }: SimulatedSession) =>
      calls.flatMap((call, at) => call.cleared.map(({ way }) => [at, way, tokensRead(call)]))
    const prices = ({ calls }: SimulatedSession) =>
      calls.flatMap(({ cleared }) => cleared.map(({ clearing }) => clearing.cost ?? Number.NaN))
    expect(clearings(plain).length).toBeGreaterThan(0)
    expect(clearings(opened)).toEqual(clearings(plain))
    // Where a marker stood that was never read, sizes are read off between two that are known.
    for (const [at, price] of prices(plain).entries())
      expect(Math.abs((prices(opened)[at] ?? 0) / price - 1)).toBeLessThan(0.03)
  })
})
