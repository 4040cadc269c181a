/** What calls used, added up. */
import { countOf, type Usage } from '@tidemark/core'
import type { UsageTotals } from './report.ts'

export const NO_USAGE: UsageTotals = { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 }

export function usageOf(usage: Usage | null): UsageTotals {
  if (usage === null) return NO_USAGE
  return {
    input: countOf(usage.input_tokens),
    cacheRead: countOf(usage.cache_read_input_tokens),
    cacheCreation: countOf(usage.cache_creation_input_tokens),
    output: countOf(usage.output_tokens),
  }
}

export function addUsage(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheCreation: one.cacheCreation + other.cacheCreation,
    output: one.output + other.output,
  }
}

/** Share of the prompts that was read from cache, to four places; null where nothing was sent. */
export function hitRateOf({ input, cacheRead, cacheCreation }: UsageTotals): number | null {
  const sent = input + cacheRead + cacheCreation
  return sent === 0 ? null : Math.round((cacheRead / sent) * 1e4) / 1e4
}

export function promptOf({ input, cacheRead, cacheCreation }: UsageTotals): number {
  return input + cacheRead + cacheCreation
}
