/** What the provider clears by itself: where it ends is held, it is noted once, and the cache is read in between. */
import { isMicrocompactBoundary } from '@tidemark/core'
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
    calls = (await session.until(150)).calls
    first = calls.findIndex(({ noted }) => noted.length > 0)
  })

  it('is asked for with every request, thinking first', () => {
    const asked = calls.map((call) =>
      editsOf(call)
        .map(({ type }) => type)
        .join(' '),
    )
    expect(new Set(asked)).toEqual(new Set(['clear_thinking_20251015 clear_tool_uses_20250919']))
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

  it('is no break', () => {
    expect(calls.flatMap(({ broke }) => broke ?? [])).toEqual([])
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
