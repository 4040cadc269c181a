/** What holds of twenty compactions in a chain, whoever writes the summaries. */
import { expect } from 'vitest'
import { type ChainEnd, type ChainOptions, compactAgainAndAgain, PLANTED, SECRETS } from './long-chain.ts'

export const ROUNDS = 20

/** What the person said and a summary does not have: all of a message, or both ends of a long one. */
function missingFrom(summary: string, said: readonly string[]): readonly string[] {
  return said.filter((text) => {
    const parts = text.length > 4_000 ? [text.slice(0, 500), text.slice(-500)] : [text]
    return !parts.every((part) => summary.includes(part))
  })
}

/** It stays small, everything that must last is there to the end, and no secret is anywhere. */
export function expectLasting({ sizes, summaries, said, target }: ChainEnd): void {
  expect([sizes.length, summaries.length]).toEqual([ROUNDS, ROUNDS])
  expect(sizes.filter((size) => size > target)).toEqual([])
  const last = summaries.at(-1) ?? ''
  expect(missingFrom(last, said)).toEqual([])
  expect(Object.values(PLANTED).filter((text) => !last.includes(text))).toEqual([])
  expect(last).toContain('changed since: module-15/part.ts, module-16/part.ts')
  expect(last).toContain('The key of the service is [redacted')
  const all = summaries.join('\n')
  expect(SECRETS.filter((secret) => all.includes(secret))).toEqual([])
}

/** More words of the person's than there is room for: it stays bounded, and the receipts name what went. */
export async function expectBounded(options: Omit<ChainOptions, 'rounds' | 'promptTokens'>): Promise<void> {
  const end = await compactAgainAndAgain({ ...options, rounds: ROUNDS, promptTokens: 900 })
  const { sizes, summaries, said, lost, target } = end
  expect(Math.max(...sizes)).toBeLessThan(target * 1.25)
  const missing = missingFrom(summaries.at(-1) ?? '', said)
  expect(missing.length).toBeGreaterThan(0)
  expect(missing.filter((text) => !lost.has(text))).toEqual([])
  expect(missing).not.toContain(said.at(-1))
}
