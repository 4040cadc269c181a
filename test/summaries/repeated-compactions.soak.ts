/** The same chains as in the test, in windows of every size. */
import { expect, it } from 'vitest'
import { compactRepeatedly, expectBounded, expectLasting, ROUNDS } from './repeated-compactions.ts'

const BY = ['local', 'model'] as const

it.each(
  [8_000, 16_000, 32_000, 200_000, 1_000_000].flatMap((window) => BY.map((by) => [window, by] as const)),
)('twenty compactions in %d tokens, by %s', async (window, summarizer) => {
  const end = await compactRepeatedly({ rounds: ROUNDS, window, compact: { summarizer } })
  console.log(window, summarizer, end.target, end.sizes.join(' '))
  expect(end.sizes.length).toBe(ROUNDS)
  expectLasting(end)
})

it.each([8_000, 16_000, 32_000].map((window) => [window, 'model'] as const))(
  'more words than %d tokens have room for, by %s',
  (window, summarizer) => expectBounded({ window, compact: { summarizer } }),
)
