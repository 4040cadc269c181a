import { describe, expect, it } from 'vitest'
import { NONE_PINNED, withPins } from './pins.ts'

const word = (target: unknown, pinned: boolean, more: object = {}) =>
  ({ type: 'system', subtype: 'pin', pin: { target, pinned }, ...more }) as never

describe('pins', () => {
  it('are by the newest word on each, in the order of pinning', () => {
    const pins = withPins(NONE_PINNED, [word('a', true), word('b', true), word('a', false), word('a', true)])
    expect([...pins]).toEqual(['b', 'a'])
    expect([...withPins(pins, [word('b', false)])]).toEqual(['a'])
  })

  it('stay the same object where nothing is said of them', () => {
    const others = [word(7, true), word('a', true, { isSidechain: true }), { type: 'user' } as never]
    expect(withPins(NONE_PINNED, others)).toBe(NONE_PINNED)
  })
})
