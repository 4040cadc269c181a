import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CleanSession, type Step } from '../../test/breaks/clean-session.ts'

const size = fc.integer({ min: 10, max: 4_000 })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('round'),
      calls: fc.integer({ min: 1, max: 30 }),
      size,
      thinking: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('prompt', 'delta'), size }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear'), results: fc.integer({ min: 1, max: 8 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rewind'), back: fc.integer({ min: 0, max: 12 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('agent'), which: fc.integer({ min: 0, max: 12 }), size }),
  },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ do: fc.constant('fork') }),
      fc.record({ do: fc.constantFrom('compact', 'fail') }),
    ),
  },
)
const timed = fc.record({ step, gap: fc.double({ min: 0, max: 0.3, noNaN: true }) })

describe('law: no false alarm', () => {
  it('a session in which nothing breaks is never said to have broken', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(timed, { maxLength: 40 }), (isHour, steps) => {
        const session = new CleanSession(isHour)
        for (const each of steps) {
          const outcome = session.take(each)
          expect(outcome.kind === 'broke' && outcome.event).toBe(false)
        }
      }),
      { numRuns: countPropertyRuns(60) },
    )
  })
})
