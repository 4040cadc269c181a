/** What the provider clears by itself: where it ends is held, it is noted once, and the cache is read in between. */
import { setImmediate } from 'node:timers/promises'
import { measureContext } from '@tidemark/core/engine/measure-context'
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isMicrocompactBoundary } from '@tidemark/core/log/record'
import { countPropertyRuns } from '@tidemark/core/testing'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  contextTokens,
  type ObservedCall,
  SimulatedSession,
  tokensRead,
} from '../support/simulated-session.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

interface Edit {
  readonly type: string
  readonly keep?: { readonly value: number }
}

function editsOf({ management }: ObservedCall): readonly Edit[] {
  return (management as { readonly edits?: readonly Edit[] } | undefined)?.edits ?? []
}

/** Calls whose results are to be cleared: where the provider's clearing ends. */
function cutOf(call: ObservedCall): number {
  const keep = editsOf(call).find(({ type }) => type.startsWith('clear_tool_uses'))?.keep?.value ?? Number.NaN
  return Math.max(0, call.toolUses - keep)
}

describe('what the provider clears by itself', () => {
  const session = new SimulatedSession(sized(wayNamed('native'), SMALL))
  let calls: readonly ObservedCall[] = []
  let first = 0

  beforeAll(async () => {
    calls = (await session.until(countPropertyRuns(150, 110))).calls
    first = calls.findIndex(({ noted }) => noted.length > 0)
  })

  it('is asked for from the trigger on, thinking first, and not while the trigger is far', () => {
    const asked = calls.map((call) => editsOf(call).map(({ type }) => type))
    const start = asked.findIndex((types) => types.length === 2)
    const both = ['clear_thinking_20251015', 'clear_tool_uses_20250919']
    expect(start).toBeGreaterThan(10)
    expect(asked).toEqual(asked.map((_, at) => (at < start ? both.slice(0, 1) : both)))
  })

  it('keeps the number of results that it first asked to keep until the provider has cleared', () => {
    const kept = calls
      .slice(0, first + 1)
      .flatMap((call) => editsOf(call).flatMap(({ keep }) => keep?.value ?? []))
    expect(new Set(kept).size).toBe(1)
  })

  it('ends where it ended until the next clearing', () => {
    const slid = calls.flatMap((call, at) => {
      const before = calls[at - 1]
      const isHeld = at <= first || call.noted.length > 0 || before === undefined
      return isHeld || cutOf(call) === cutOf(before) ? [] : [[at, cutOf(before), cutOf(call)]]
    })
    expect(slid).toEqual([])
  })

  it('is noted once for each clearing, with all that the provider says it freed', () => {
    const noted = session.state?.view.entries
      .toArray()
      .flatMap(({ record }) =>
        record.type === 'system' && isMicrocompactBoundary(record) ? [record.microcompactMetadata] : [],
      )
    const applied = calls.at(-1)?.record.appliedEdits ?? []
    const freed = (noted ?? []).reduce((sum, { tokensSaved = 0 }) => sum + tokensSaved, 0)
    expect(calls.filter((call) => call.noted.length > 0)).toHaveLength(noted?.length ?? -1)
    expect(noted?.length).toBeGreaterThan(1)
    expect(freed).toBe(applied.reduce((sum, edit) => sum + edit.cleared_input_tokens, 0))
  })

  it('costs nothing in between: all of the last prompt is read', () => {
    const rebilled = calls.flatMap((call, at) => {
      const before = calls[at - 1]
      if (before === undefined || call.noted.length > 0) return []
      return tokensRead(call) === contextTokens(before) ? [] : [[at, tokensRead(call), contextTokens(before)]]
    })
    expect(rebilled).toEqual([])
  })

  it('is no break, and every call is judged: the first, those that clear, and all after them', () => {
    const kinds = calls.map(({ broke, paid, judged }) => broke?.reason.kind ?? (paid ? 'paid' : judged?.kind))
    expect(kinds).toEqual(
      calls.map(({ noted }, at) => (at === 0 ? 'first' : noted.length > 0 ? 'paid' : 'read')),
    )
  })

  it('is in the bill: what each clearing left and the cache had to write again', () => {
    const figures = calls.flatMap((call, at) => {
      const [clearing] = call.noted
      const before = calls[at - 1]
      if (clearing === undefined || before === undefined) return []
      const kept = contextTokens(before) - (clearing.clearing.freedTokens ?? 0)
      return [[call.paid?.tokensRewritten, kept - tokensRead(call)]]
    })
    expect(figures.map(([paid]) => paid)).toEqual(figures.map(([, rewritten]) => rewritten))
    const paid = calls.reduce((sum, call) => sum + (call.paid?.moneySpent ?? 0), 0)
    expect(paid).toBeGreaterThan(0)
    expect(session.totals?.spentOnClearing.total).toBeCloseTo(paid, 9)
  })

  it('leaves no break unseen behind it: a lost cache entry is told as lost by the provider', async () => {
    const broken = await new SimulatedSession(sized(wayNamed('native'), SMALL)).until(first + 3)
    await broken.simulator.fetch('http://simulator.test/_simulator/cache', { method: 'DELETE' })
    await broken.prompt('Go on.')
    expect(broken.calls.flatMap(({ broke }) => broke?.reason.kind ?? [])).toEqual(['evicted'])
  })

  it('is no break either where the reply that clears is cut off before the provider reports it', async () => {
    const cut = new SimulatedSession(sized(wayNamed('native'), SMALL))
    await cut.simulator.fetch('http://simulator.test/_simulator/faults', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([{ fault: 'cut', skip: first }]),
    })
    const running = cut.until(first + 3)
    // The request is sent again after a pause.
    while (cut.calls.length < first + 3) await Promise.all([cut.clock.advance(1_000), setImmediate()])
    await running
    expect(cut.requests.flatMap(({ fault }, at) => (fault === null ? [] : [[at, fault]]))).toEqual([
      [first, 'cut'],
    ])
    expect(cut.calls.flatMap(({ broke }) => broke ?? [])).toEqual([])
    const paid = cut.calls.flatMap((call) => (call.paid === null ? [] : [call.paid.tokensRewritten]))
    expect(paid).toHaveLength(1)
    // How much was cleared is estimated, since it was not reported.
    expect((paid[0] ?? 0) / (calls[first]?.paid?.tokensRewritten ?? 0)).toBeCloseTo(1, 1)
  })
})

describe('an undo behind what the provider cleared', () => {
  it('shows the size that was measured before, and the next request compacts nothing away', async () => {
    const session = await new SimulatedSession(sized(wayNamed('native'), SMALL)).until(90)
    const { host } = session
    const measured = () => measureContext(session.state as SessionState, host)
    const before = measured()
    const messages = session.calls.at(-1)?.messages ?? 0
    const count = session.calls.length
    await session.compact()
    await session.undo()
    expect(measured().expected).toBe(before.expected)
    await session.prompt('Go on.')
    const next = session.calls[count]
    expect(next).toMatchObject({ compacted: false, cleared: [] })
    expect(next?.messages).toBeGreaterThan(messages)
    expect(Math.abs(contextTokens(next as ObservedCall) - before.expected)).toBeLessThan(3_000)
  })
})

describe('a host that names the betas itself', () => {
  it('is not given them twice', async () => {
    const way = wayNamed('native')
    const parameters = { ...way.options.parameters, betas: ['context-management-2025-06-27'] }
    const session = await new SimulatedSession({ ...sized(way, SMALL), parameters }).until(15)
    expect(session.state?.prefix.current?.parameters.betas).toContain('context-management-2025-06-27')
    const betas = session.state?.prefix.current?.parameters.betas
    expect(Array.isArray(betas) && new Set(betas).size === betas.length).toBe(true)
  })
})
