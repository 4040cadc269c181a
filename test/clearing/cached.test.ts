/** Deletions from the cached prefix: pinned while it lives, dropped when it has lapsed, gone with a compaction. */
import { beforeAll, describe, expect, it } from 'vitest'
import {
  contextTokens,
  type ObservedCall,
  SimulatedSession,
  tokensRead,
} from '../support/simulated-session.ts'
import { deletedIn } from './figures.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

/** Idle clearing waits for an hour here, so that the pauses of these tests only end the cache. */
const OPTIONS = {
  ...sized(wayNamed('cached'), SMALL),
  policy: { clear: { idle: { afterMinutes: 60 } } },
}
const MINUTE = 60_000

async function talked(calls: number): Promise<SimulatedSession> {
  return new SimulatedSession(OPTIONS).until(calls)
}

function last({ calls }: SimulatedSession): ObservedCall {
  const call = calls.at(-1)
  if (call === undefined) throw new Error('nothing was said')
  return call
}

/** The first call of the turn that a prompt begins after a pause. */
async function resumed(
  session: SimulatedSession,
  pauseMs: number,
): Promise<{ readonly before: ObservedCall; readonly first: ObservedCall }> {
  const before = last(session)
  const at = session.calls.length
  await session.clock.advance(pauseMs)
  await session.prompt('Go on after the pause.')
  const first = session.calls[at]
  if (first === undefined) throw new Error('nothing was said')
  return { before, first }
}

describe('deletions from a cached prefix', () => {
  let calls: readonly ObservedCall[] = []

  beforeAll(async () => {
    calls = (await talked(90)).calls
  })

  it('are sent again at the same place, and the set only grows', () => {
    const moved = calls.flatMap(({ edits }, at) => {
      const before = calls[at - 1]?.edits ?? []
      return before.every(
        (edit, index) => edit.path === edits[index]?.path && edit.text === edits[index]?.text,
      )
        ? []
        : [at]
    })
    expect(moved).toEqual([])
    expect(last({ calls } as SimulatedSession).edits.length).toBeGreaterThan(5)
  })

  it('cost nothing: all that is left of the last prompt is read', () => {
    const rebilled = calls.flatMap((call, at) => {
      const before = calls[at - 1]
      const left = before === undefined ? 0 : contextTokens(before) - (deletedIn(call) - deletedIn(before))
      return tokensRead(call) === left || at === 0 ? [] : [[at, tokensRead(call), left]]
    })
    expect(rebilled).toEqual([])
    expect(calls.flatMap(({ broke }) => broke ?? [])).toEqual([])
  })

  it('are dropped when the cache has lapsed: counted anew, and cleared by budget at once where that is too much', async () => {
    const session = await talked(105)
    const { before, first } = await resumed(session, 6 * MINUTE)
    const lines = session.host.compaction?.scaled
    if (lines?.known !== true) throw new Error('the window is known')
    const deleted = deletedIn(before)
    expect(deleted).toBeGreaterThan(lines.lines.warning)
    expect(first.dropped).toBeGreaterThan(0.9 * deleted)
    expect(first.dropped).toBeLessThan(1.1 * deleted)
    expect([first.edits, first.cleared.map(({ way }) => way)]).toEqual([[], ['budget']])
    expect(contextTokens(first)).toBeLessThan(lines.lines.warning)
    expect(first.cleared[0]?.clearing.cost).toBe(0)
  })

  it('are dropped below the line too: then their text is sent again, until an idle clearing takes it', async () => {
    const session = await talked(30)
    const { before, first } = await resumed(session, 6 * MINUTE)
    expect([first.edits, first.cleared]).toEqual([[], []])
    expect(first.dropped).toBeGreaterThan(0)
    expect(contextTokens(first)).toBeGreaterThan(contextTokens(before) + deletedIn(before))
    const idle = await resumed(session, 61 * MINUTE)
    expect(idle.first.cleared.map(({ way }) => way)).toEqual(['idle'])
    expect(idle.first.edits).toEqual([])
  })

  it('begin anew behind them, once the cache is warm again', async () => {
    const session = await talked(30)
    await resumed(session, 6 * MINUTE)
    await session.until(60)
    const ways = session.calls.slice(-20).flatMap(({ cleared }) => cleared.map(({ way }) => way))
    expect(new Set(ways)).toEqual(new Set(['cached']))
    expect(last(session).edits.length).toBeGreaterThan(0)
  })

  it('are gone with a compaction', async () => {
    const session = await talked(60)
    expect(last(session).edits.length).toBeGreaterThan(0)
    await session.compact()
    const { first } = await resumed(session, 10_000)
    expect([first.edits, first.record.status]).toEqual([[], 200])
  })
})
