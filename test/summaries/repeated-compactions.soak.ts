/** The same chains as in the test, in windows of every size. */
import { expect, it } from 'vitest'
import {
  compactRepeatedly,
  compactWithNotesRepeatedly,
  expectBounded,
  expectLasting,
  expectLastingNotes,
  ROUNDS,
} from './repeated-compactions.ts'

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

it.each([16_000, 32_000, 200_000])('twenty-five compactions in %d tokens, with notes', async (window) => {
  const end = await compactWithNotesRepeatedly({ compactions: 25, window })
  console.log(window, end.target, end.said.length, end.lost.size, end.sizes.join(' '))
  expectLastingNotes(end, 25)
})
