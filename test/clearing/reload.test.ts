/** A session that another process takes up goes on as this one would, whatever was cleared or is due. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type Moment, nextBodies } from '../support/two-processes.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

const MINUTE = 60_000

interface NamedMoment extends Moment {
  readonly name: string
}

const moment = (name: string, calls: number, pauseMs = 45_000): NamedMoment => ({ name, calls, pauseMs })

const MOMENTS: readonly (readonly [way: string, moments: readonly NamedMoment[]])[] = [
  ['budget', [moment('after a clearing', 60)]],
  ['budget, thinking bound', [moment('after a clearing', 60)]],
  ['idle', [moment('when a clearing is due', 29, 61 * MINUTE), moment('after a clearing', 40)]],
  [
    'cached',
    [
      moment('with deletions that stand', 45),
      moment('with deletions whose cache has lapsed', 45, 6 * MINUTE),
    ],
  ],
  [
    'native',
    [
      moment('before any', 30),
      moment('after a clearing', 60),
      moment('after more than an hour', 60, 61 * MINUTE),
    ],
  ],
]

describe.each(MOMENTS)('%s, taken up by another process', (way, moments) => {
  let bodies: Awaited<ReturnType<typeof nextBodies>> = []

  beforeAll(async () => {
    bodies = await nextBodies(way, sized(wayNamed(way), SMALL), moments)
  })

  it.each(moments.map(({ name }, index) => [name, index] as const))(
    '%s: the next request is the same, to the byte',
    (_, index) => {
      expect(bodies[index]?.here.length).toBeGreaterThan(1_000)
      expect(bodies[index]?.there).toBe(bodies[index]?.here)
    },
  )
})
