import { describe, expect, it } from 'vitest'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type ClearableMarkerInput,
  type MessagesWithCalls,
  NO_FIRST_CLEARABLE,
  updateFirstClearable,
} from './cache-markers.ts'

function flatWith(...ids: readonly string[]): MessagesWithCalls {
  const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'x' }))
  const message = { message: { role: 'user' as const, content: results }, origins: ids }
  return { frozen: AppendList.of([message]), tail: [], calls: { get: () => 0 } }
}

const at = (
  firstClearable: string | null,
  given: Partial<ClearableMarkerInput> = {},
): ClearableMarkerInput => ({
  firstClearable,
  rewrittenAt: 5,
  isAnswered: true,
  flat: flatWith('a', 'b', 'c'),
  ...given,
})

describe('the edge', () => {
  const held = updateFirstClearable(NO_FIRST_CLEARABLE, at('b'))

  it('stands at the first result that could be cleared, once there is one', () => {
    expect(updateFirstClearable(NO_FIRST_CLEARABLE, at(null))).toEqual({
      result: null,
      left: null,
      rewrittenAt: 5,
    })
    expect(updateFirstClearable(updateFirstClearable(NO_FIRST_CLEARABLE, at(null)), at('b'))).toEqual(held)
    expect(held).toEqual({ result: 'b', left: null, rewrittenAt: 5 })
  })

  it('stays when something before it becomes clearable, or it no longer is', () => {
    expect(updateFirstClearable(held, at('a'))).toBe(held)
    expect(updateFirstClearable(held, at(null))).toBe(held)
  })

  it('moves with a rewrite, and is in both places until that is answered', () => {
    const moved = updateFirstClearable(held, at('c', { rewrittenAt: 9, isAnswered: false }))
    expect(moved).toEqual({ result: 'c', left: 'b', rewrittenAt: 9 })
    expect(updateFirstClearable(moved, at('c', { rewrittenAt: 9, isAnswered: false }))).toBe(moved)
    expect(updateFirstClearable(moved, at('c', { rewrittenAt: 9 }))).toEqual({
      result: 'c',
      left: null,
      rewrittenAt: 9,
    })
  })

  it('is looked for anew where the conversation no longer has it', () => {
    expect(updateFirstClearable(held, at('x', { flat: flatWith('x') }))).toEqual({
      result: 'x',
      left: null,
      rewrittenAt: 5,
    })
  })
})
