/** What a compaction costs and when it has paid for itself, from its real sizes. */
import type { Rates } from '@tidemark/core'

export interface CompactionPrice {
  /** Dollars: for the summary where a model writes it, and for writing the new view into the cache. */
  readonly costUsd: number
  /** Dollars that each later call costs less, as long as both views would be read from the cache. */
  readonly savedPerCallUsd: number
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
}

export interface PriceQuestion {
  readonly before: number
  /** With system prompt and tools, as `before` is. */
  readonly after: number
  /** Tokens of the summary that a model wrote; null where none did. */
  readonly asked: { readonly input: number; readonly output: number } | null
  readonly rates: Rates
}

/** Null where a price is not known. */
export function priceOf({ before, after, asked, rates }: PriceQuestion): CompactionPrice | null {
  const { cacheRead, write5m, input, output } = rates
  if (cacheRead === null || write5m === null || input === null || output === null) return null
  const summary = asked === null ? 0 : asked.input * input + asked.output * output
  const costUsd = (summary + after * write5m) / 1_000_000
  const savedPerCallUsd = ((before - after) * cacheRead) / 1_000_000
  const breakEvenCalls = savedPerCallUsd <= 0 ? null : Math.ceil(costUsd / savedPerCallUsd)
  return { costUsd, savedPerCallUsd, breakEvenCalls }
}
