import { describe, expect, it } from 'vitest'
import { findTruncatedCount, type PromptSizeEstimate } from './truncated-prompt.ts'

const SIZE: PromptSizeEstimate = {
  expected: 20_000,
  high: 22_000,
  before: 18_000,
  added: { expected: 2_000, high: 2_600 },
  isExtended: false,
  countLeast: () => 11_000,
}

function judge(input: number, changes: Partial<PromptSizeEstimate> = {}): number | null {
  return findTruncatedCount(
    { ...SIZE, ...changes },
    { input, read: 0, writes: { short: 0, long: 0 }, output: 10 },
  )
}

describe('a prompt of which the server counted fewer tokens', () => {
  it.each([
    ['the estimate may be wrong by so much', judge(18_500), null],
    ['the estimate is wrong, but the text may have so few tokens', judge(11_000), null],
    ['no tokenizer makes so few tokens of the text', judge(8_000), 8_000],
    ['a prompt that was only extended counts less than before', judge(17_000, { isExtended: true }), 17_000],
    ['a prompt that was only extended counts the same', judge(17_900, { isExtended: true }), null],
    ['the server counts only what its cache did not have', judge(2_100, { isExtended: true }), null],
    ['that is less than any window', judge(600), null],
    ['the server reports nothing', judge(0), null],
  ])('%s', (_case, found, expected) => expect(found).toBe(expected))
})
