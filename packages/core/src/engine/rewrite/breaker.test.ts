import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY } from '../../policy/create-policy.ts'
import { type AttemptEnd, afterAttempt, type Breaker, CLOSED, isOpen } from './breaker.ts'

const { auto } = DEFAULT_POLICY.turn
const failed: AttemptEnd = { kind: 'failed', reason: 'no_summary' }
const after = (ends: readonly AttemptEnd[]): Breaker =>
  ends.reduce((breaker, end, index) => afterAttempt(breaker, end, index), CLOSED)

describe('the breaker', () => {
  it.each<[string, readonly AttemptEnd[], boolean]>([
    ['nothing tried', [], false],
    ['two failures', [failed, failed], false],
    ['three in a row', [failed, failed, failed], true],
    ['a success between', [failed, failed, { kind: 'committed' }, failed], false],
    [
      'what is no failure neither counts nor resets',
      [failed, { kind: 'aborted' }, failed, { kind: 'blocked' }, { kind: 'nothing-to-do' }, failed],
      true,
    ],
  ])('%s', (_, ends, open) => {
    expect(isOpen(after(ends), auto)).toBe(open)
  })

  it('remembers why, and when', () => {
    expect(after([{ kind: 'aborted' }, failed])).toEqual({ failures: 1, lastReason: 'no_summary', at: 1 })
  })
})
