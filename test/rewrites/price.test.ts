/** What a plan says that a compaction costs, held against what the simulator's provider then bills for it. */
import type { PricedCall } from '@tidemark/core/cost/session-cost'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemarkOptions } from '../support/test-tidemark.ts'

interface Bill {
  readonly planned: number
  readonly billed: number
}

/** The calls for the summary, and what the next request then writes that nobody has said since. */
async function billOf({
  again = false,
  ...options
}: TestTidemarkOptions & { again?: boolean }): Promise<Bill> {
  const world = createTestTidemark(options)
  const session = await world.tide.open('a')
  const calls: PricedCall[] = []
  session.on('priced', ({ call }) => calls.push(call))
  await session.run('Mend the sums of orders.', world.tools).outcome
  if (again) {
    await session.compact()
    await session.run('Mend those of returns.', world.tools).outcome
  }
  const plan = await session.planCompaction()
  if (!plan.ok || plan.price === null) throw new Error('a price is known')
  const before = calls.length
  const end = await session.compact()
  if (!end.ok) throw new Error(end.message)
  const summaries = calls.slice(before)
  await session.run('Go on.', world.tools).outcome
  const [next] = calls.slice(before + summaries.length)
  if (next === undefined) throw new Error('the next request is priced')
  const { writeShort, writeLong } = next.money.byClass
  const asked = summaries.reduce((sum, { money }) => sum + money.priced, 0)
  return { planned: plan.price.cost, billed: asked + (writeShort ?? 0) + (writeLong ?? 0) }
}

describe('the price of a compaction in its plan', () => {
  it.each([
    ['a short session', { turns: 6, resultTokens: 400 }],
    ['a long session that knows its summaries', { turns: 20, resultTokens: 2_000, again: true }],
  ])('is within a factor of two of the bill: %s', async (_, options) => {
    const { planned, billed } = await billOf(options)
    expect(planned / billed).toBeGreaterThan(0.5)
    expect(planned / billed).toBeLessThan(2)
  })
})
