import { createProfile } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { callAt, prompt, result } from '../../test/made-up-trace.ts'
import { isRewritten } from './rewritten.ts'
import type { TracePiece } from './trace.ts'

const keeps = createProfile({ thinking: { stripsFinishedTurns: false } })
const strips = createProfile({ thinking: { stripsFinishedTurns: true } })

/** A turn of two answers, 900 tokens said in it, and a third call of so many tokens. */
function third(sent: number, added: readonly TracePiece[]) {
  return [
    callAt(0, { written: 9_000 }, { added: [prompt(10)], outputTokens: 5_000 }),
    callAt(5, { read: 14_000, written: 100 }, { added: [prompt(10)], outputTokens: 400 }),
    callAt(10, { read: 14_500, written: 500 }, { added: [result(500)], outputTokens: 500 }),
    callAt(15, { written: sent }, { added }),
  ]
}

describe('isRewritten', () => {
  it.each([
    { name: 'it grew', sent: 15_600, added: [prompt(50)], kept: false, stripped: false },
    {
      name: 'it shrank at a prompt by what may have been thought',
      sent: 14_900,
      added: [prompt(50)],
      kept: true,
      stripped: false,
    },
    {
      name: 'it shrank at a prompt by more than was said',
      sent: 14_600,
      added: [prompt(50)],
      kept: true,
      stripped: true,
    },
    { name: 'it shrank within a turn', sent: 14_900, added: [result(50)], kept: true, stripped: true },
  ])('$name', ({ sent, added, kept, stripped }) => {
    const calls = third(sent, added)
    expect([isRewritten(calls, 3, keeps), isRewritten(calls, 3, strips)]).toEqual([kept, stripped])
  })

  it('never at the first call', () => {
    expect(isRewritten(third(1, []), 0, keeps)).toBe(false)
  })
})
