import { describe, expect, it } from 'vitest'
import { type FirstClearableInput, NO_FIRST_CLEARABLE, updateFirstClearable } from './cache-markers.ts'

const at = (
  firstClearable: string | null,
  given: Partial<FirstClearableInput> = {},
): FirstClearableInput => ({
  firstClearable,
  position: 6,
  answeredAt: null,
  isAnswered: false,
  restore: () => {
    throw new Error('the request is known')
  },
  ...given,
})
const places = (edge: typeof NO_FIRST_CLEARABLE) => [edge.result, edge.left]

describe('the marker before the first clearable result', () => {
  const asked = updateFirstClearable(NO_FIRST_CLEARABLE, at('b'))
  const rewritten = { position: 9, answeredAt: 6, isAnswered: false }
  const moved = updateFirstClearable(asked, at('c', rewritten))

  it('stands at the first result that could be cleared, once there is one', () => {
    expect(places(updateFirstClearable(NO_FIRST_CLEARABLE, at(null)))).toEqual([null, null])
    expect(places(asked)).toEqual(['b', null])
  })

  it('moves with a rewrite, and is in both places until that is answered', () => {
    expect(places(moved)).toEqual(['c', 'b'])
    expect(places(updateFirstClearable(moved, at('c', rewritten)))).toEqual(['c', 'b'])
    const answered = { position: 12, answeredAt: 9, isAnswered: true }
    expect(places(updateFirstClearable(moved, at('c', answered)))).toEqual(['c', null])
  })

  it('does not keep the place of a request that nobody answered', () => {
    const undone = updateFirstClearable(moved, at('b', { ...rewritten, position: 10 }))
    expect(places(undone)).toEqual(['b', 'b'])
  })

  it('is found in the log by a process that has not sent the request', () => {
    const restored = updateFirstClearable(NO_FIRST_CLEARABLE, at('c', { ...rewritten, restore: () => 'b' }))
    expect(places(restored)).toEqual(['c', 'b'])
    expect(places(updateFirstClearable(restored, at('c', rewritten)))).toEqual(['c', 'b'])
  })
})
