import { describe, expect, it } from 'vitest'
import { List } from '../log/persistent-collections.ts'
import { type CallPlaces, type EdgeQuestion, holdEdge, NO_EDGE } from './cache-markers.ts'

function flatWith(...ids: readonly string[]): CallPlaces {
  const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'x' }))
  const message = { message: { role: 'user' as const, content: results }, origins: ids }
  return { frozen: List.of([message]), tail: [], calls: { get: () => 0 } }
}

const at = (firstClearable: string | null, given: Partial<EdgeQuestion> = {}): EdgeQuestion => ({
  firstClearable,
  rewrittenAt: 5,
  isAnswered: true,
  flat: flatWith('a', 'b', 'c'),
  ...given,
})

describe('the edge', () => {
  const held = holdEdge(NO_EDGE, at('b'))

  it('stands at the first result that could be cleared, once there is one', () => {
    expect(holdEdge(NO_EDGE, at(null))).toEqual({ result: null, left: null, rewrittenAt: 5 })
    expect(holdEdge(holdEdge(NO_EDGE, at(null)), at('b'))).toEqual(held)
    expect(held).toEqual({ result: 'b', left: null, rewrittenAt: 5 })
  })

  it('stays when something before it becomes clearable, or it no longer is', () => {
    expect(holdEdge(held, at('a'))).toBe(held)
    expect(holdEdge(held, at(null))).toBe(held)
  })

  it('moves with a rewrite, and is in both places until that is answered', () => {
    const moved = holdEdge(held, at('c', { rewrittenAt: 9, isAnswered: false }))
    expect(moved).toEqual({ result: 'c', left: 'b', rewrittenAt: 9 })
    expect(holdEdge(moved, at('c', { rewrittenAt: 9, isAnswered: false }))).toBe(moved)
    expect(holdEdge(moved, at('c', { rewrittenAt: 9 }))).toEqual({ result: 'c', left: null, rewrittenAt: 9 })
  })

  it('is looked for anew where the conversation no longer has it', () => {
    expect(holdEdge(held, at('x', { flat: flatWith('x') }))).toEqual({
      result: 'x',
      left: null,
      rewrittenAt: 5,
    })
  })
})
