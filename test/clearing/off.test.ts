/** The switches that turn clearing off, each way; and taking a clearing back. */

import type { TurnHost } from '@tidemark/core/engine/host'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import type { Switches } from '@tidemark/core/policy/switches'
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { type ObservedCall, SimulatedSession } from '../support/simulated-session.ts'
import { refusals } from './laws.ts'
import { SMALL, sized, WAYS, wayNamed } from './ways.ts'

/** All that any way would leave a trace of. */
function traces({ cleared, noted, edits, management, dropped, isExtended }: ObservedCall): boolean {
  return (
    cleared.length + noted.length + edits.length > 0 ||
    management !== undefined ||
    dropped !== null ||
    !isExtended
  )
}

const SINGLE = WAYS.filter(({ name }) => !name.includes(','))

it.each(
  sampleCases(
    SINGLE.flatMap((way) =>
      (['DISABLE_MICROCOMPACT', 'DISABLE_COMPACT'] as const).map((name) => [way.name, name, way] as const),
    ),
    3,
  ),
)('%s does nothing with %s', async (_, name, way) => {
  const switches: Switches = { set: [name], autoCompactPercent: null }
  const session = await new SimulatedSession({ ...sized(way, SMALL), switches }).until(55)
  expect(session.calls.filter(traces)).toEqual([])
})

describe.each(sampleCases(SINGLE, 3))('$name', (way) => {
  it('clears in as many calls without them', async () => {
    const session = await new SimulatedSession(sized(way, SMALL)).until(55)
    expect(session.calls.some(traces)).toBe(true)
  })
})

describe.each(sampleCases(['budget', 'idle', 'budget, thinking bound'], 2))('%s, undone', (name) => {
  it('sends what it had sent, to the byte, and is not refused', async () => {
    const { before, cleared } = await untilCleared(name)
    await cleared.undo()
    await cleared.clock.advance(10_000)
    await cleared.prompt('Go on with all of it.', roomier(cleared.host))
    const again = cleared.sent.slice(0, before.length)
    expect(again.filter((text, at) => text !== before[at])).toEqual([])
    expect(cleared.calls.at(-1)?.cleared).toEqual([])
    expect(refusals(cleared.calls)).toEqual([])
  })
})

/** In a window where nothing has to be cleared, so that it is not done again with the next prompt. */
function roomier(host: TurnHost): TurnHost {
  const scaled = computeScaledLimits(host.policy, { window: 1_000_000, maxOutput: 64_000 })
  return { ...host, compaction: { ...host.compaction, scaled } }
}

interface ClearedSession {
  /** The messages of the last request before the clearing. */
  readonly before: readonly string[]
  readonly cleared: SimulatedSession
}

async function untilCleared(name: string): Promise<ClearedSession> {
  const session = new SimulatedSession(sized(wayNamed(name), SMALL))
  let before: readonly string[] = []
  let isOver = false
  session.onSend = (sent, isExtended) => {
    isOver ||= !isExtended
    if (!isOver) before = sent
  }
  while (!session.calls.some(({ cleared }) => cleared.length > 0))
    await session.until(session.calls.length + 1)
  session.onSend = () => undefined
  return { before, cleared: session }
}
