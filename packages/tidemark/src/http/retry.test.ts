import { DEFAULT_POLICY, type Failure } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { planRetry } from './retry.ts'

const { network } = DEFAULT_POLICY.turn
const overloaded: Failure = { kind: 'overloaded', retryable: true, message: 'busy' }

describe('planRetry', () => {
  it('doubles the wait up to the most, less what chance takes off', () => {
    const delays = [0, 1, 2, 3, 4, 5].map((attempt) => planRetry(overloaded, attempt, network, 0))
    expect(delays.map((retry) => (retry.again ? retry.delayMs : null))).toEqual([
      500, 1000, 2000, 4000, 8000, 8000,
    ])
    expect(planRetry(overloaded, 1, network, 0.5)).toEqual({ again: true, delayMs: 875 })
  })

  it('waits as long as the provider asks, if that is bearable', () => {
    expect(planRetry({ ...overloaded, retryAfterMs: 20_000 }, 0, network, 0.9)).toEqual({
      again: true,
      delayMs: 20_000,
    })
    expect(planRetry({ ...overloaded, retryAfterMs: 301_000 }, 0, network, 0)).toEqual({
      again: false,
      why: 'the provider asks to wait 301 s',
    })
  })

  it('gives up where it cannot help, or has tried often enough', () => {
    expect(planRetry({ ...overloaded, retryable: false }, 0, network, 0)).toMatchObject({ again: false })
    expect(planRetry(overloaded, network.retries, network, 0)).toEqual({ again: false, why: 'tried 9 times' })
  })
})
