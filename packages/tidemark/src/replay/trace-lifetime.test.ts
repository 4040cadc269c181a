import { strictProfile } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { callAt, traceOf } from '../../test/made-up-trace.ts'
import { lifetimeOfTrace } from './trace-lifetime.ts'

/** Pauses in seconds, and whether what was there before was read behind them. */
function found(...pauses: readonly (readonly [seconds: number, isRead: boolean])[]) {
  let seconds = 0
  const calls = pauses.map(([pause, isRead]) => {
    seconds += pause
    return callAt(seconds, { read: isRead ? 1_000 : 0, written: isRead ? 0 : 1_000 })
  })
  const { name, survived, lost } = lifetimeOfTrace(
    traceOf([callAt(0, { written: 1_000 }), ...calls]),
    strictProfile.cache,
  )
  return [name, survived, lost]
}

describe('lifetimeOfTrace', () => {
  it.each([
    {
      name: 'no pause that tells',
      pauses: [
        [300, true],
        [3_601, false],
      ],
      expected: ['5m', 0, 0],
    },
    { name: 'a pause survived', pauses: [[301, true]], expected: ['1h', 1, 0] },
    { name: 'a pause not survived', pauses: [[3_600, false]], expected: ['5m', 0, 1] },
    {
      name: 'more survived than not',
      pauses: [
        [400, true],
        [400, false],
        [400, true],
      ],
      expected: ['1h', 2, 1],
    },
    {
      name: 'as many survived as not',
      pauses: [
        [400, true],
        [400, false],
      ],
      expected: ['5m', 1, 1],
    },
  ] as const)('$name: $expected', ({ pauses, expected }) => {
    expect(found(...pauses)).toEqual(expected)
  })
})
