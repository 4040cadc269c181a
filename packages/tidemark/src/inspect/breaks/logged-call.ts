/** What a logged call is judged and priced by. */
import { type BreakRules, DEFAULT_POLICY, type Prices, strictProfile, type Usage } from '@tidemark/core'
import { type Catalogue, lookUpModel, pricesOn, profileFor } from '@tidemark/wire'
import type { Call } from '../calls.ts'

export interface CallRules extends BreakRules {
  /** The catalogue has the model: what the profile says is said of it. */
  readonly isDescribed: boolean
}

export function rulesFor(catalogue: Catalogue, call: Call): CallRules {
  const found = lookUpModel(catalogue, call.model)
  const entry = found.found ? found.model : null
  const prices = entry === null ? null : pricesOn(entry, call.at)
  return {
    isDescribed: entry !== null,
    policy: DEFAULT_POLICY.cache.breaks,
    profile: entry === null ? strictProfile : profileFor(entry),
    prices: prices === null || !isWrittenUntold(call) ? prices : writtenAsInput(prices),
  }
}

/**
 * Some providers cache by themselves all that is sent, and tell only what was read. What they do not tell is then
 * as good as written, at the price of input.
 */
export function loggedUsage(call: Call): Usage | null {
  const { usage } = call
  if (usage === null || !isWrittenUntold(call)) return usage
  return { ...usage, input_tokens: 0, cache_creation_input_tokens: usage.input_tokens }
}

function isWrittenUntold({ usage }: Call): boolean {
  return typeof usage?.cache_read_input_tokens === 'number' && usage.cache_creation_input_tokens === undefined
}

function writtenAsInput(prices: Prices): Prices {
  const tiers = prices.tiers?.map((tier) => ({ ...tier, write5m: tier.input }))
  return { ...prices, write5m: prices.input, ...(tiers === undefined ? {} : { tiers }) }
}
