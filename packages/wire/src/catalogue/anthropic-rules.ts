/** What generations of Claude have in common, so that a model's entry lists only its own figures. */
import type { Prices, Rates } from '@tidemark/core'
import type { CacheFacts, Capabilities, ModelEntry, ThinkingFacts } from './model-entry.ts'

const BODY_BYTES = 32_000_000

/** The same for every Claude model, except the minimum. */
export function claudeCache(minimum: number | null): CacheFacts {
  const ttls = [
    { name: '5m', seconds: 300 },
    { name: '1h', seconds: 3_600 },
  ]
  return { minimum, markers: 4, lookBack: 20, ttls }
}

/** From 4.6 on: batches at half price, US-only inference, and fast mode for models with a price for it. */
export function claudePrices(rates: Rates, speed?: Readonly<Record<string, number | null>>): Prices {
  const factors = { ...TIERS, ...GEOGRAPHY, ...(speed === undefined ? {} : { speed }) }
  return { ...rates, factors, fees: FEES }
}

/** Before 4.6: no choice of inference region and no fast mode. */
export function claudeOldPrices(rates: Rates): Prices {
  return { ...rates, factors: TIERS, fees: FEES }
}

const TIERS = { service_tier: { standard: 1, batch: 0.5 } }
const GEOGRAPHY = { inference_geo: { global: 1, not_available: 1, us: 1.1 } }
const FEES = { web_search_requests: 0.01 }

const ALL_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']

const BOUND_TO_NOTHING = { binding: 'none', isAccountBound: false } as const

/** From Fable 5 on: thinking is always on. */
export const ALWAYS_THINKS: ThinkingFacts = {
  modes: ['adaptive'],
  isOnByDefault: true,
  efforts: ALL_EFFORTS,
  keepsPrior: true,
  ...BOUND_TO_NOTHING,
}

/** Adaptive thinking that can be turned off. */
export const ADAPTIVE: ThinkingFacts = { ...ALWAYS_THINKS, modes: ['adaptive', 'disabled'] }

/** 4.6: adaptive thinking or a token budget. */
export const ADAPTIVE_OR_BUDGET: ThinkingFacts = {
  modes: ['adaptive', 'enabled', 'disabled'],
  isOnByDefault: false,
  efforts: ['low', 'medium', 'high', 'max'],
  keepsPrior: true,
  ...BOUND_TO_NOTHING,
}

/** Up to 4.5: a token budget; thinking of finished turns is stripped. */
export const BUDGET: ThinkingFacts = {
  modes: ['enabled', 'disabled'],
  isOnByDefault: false,
  efforts: [],
  keepsPrior: false,
  ...BOUND_TO_NOTHING,
}

export const CANNOT_THINK: ThinkingFacts = { ...BUDGET, modes: [] }

/** The 5.5 generation. */
export const CAPABLE: Capabilities = {
  images: true,
  forcedToolChoice: true,
  prefill: false,
  sampling: false,
  systemMessages: true,
  toolChanges: true,
  messageEffort: true,
  contextEditing: true,
  thresholdCompaction: true,
  onDemandCompaction: true,
  endsAtWindow: true,
}

/** Fable 5 and Opus 4.8: no effort on a single message. */
export const CAPABLE_4_8: Capabilities = { ...CAPABLE, messageEffort: false }

/** Sonnet 5 and Opus 4.7: no system messages in mid-conversation. */
export const CAPABLE_4_7: Capabilities = { ...CAPABLE_4_8, systemMessages: false, toolChanges: false }
export const CAPABLE_4_6: Capabilities = { ...CAPABLE_4_7, sampling: true }
export const CAPABLE_4_5: Capabilities = {
  ...CAPABLE_4_6,
  prefill: true,
  thresholdCompaction: false,
  onDemandCompaction: false,
}
export const CAPABLE_4: Capabilities = { ...CAPABLE_4_5, endsAtWindow: false }
export const CAPABLE_3: Capabilities = { ...CAPABLE_4, contextEditing: false }

type Sizes = Pick<ModelEntry, 'vendor' | 'window' | 'maxInput' | 'maxOutput' | 'limits'>

export const ONE_MILLION: Sizes = {
  vendor: 'anthropic',
  window: 1_000_000,
  maxInput: 1_000_000,
  maxOutput: 128_000,
  limits: { bodyBytes: BODY_BYTES, images: 600 },
}

export function twoHundredThousand(maxOutput: number): Sizes {
  const limits = { bodyBytes: BODY_BYTES, images: 100 }
  return { vendor: 'anthropic', window: 200_000, maxInput: 200_000, maxOutput, limits }
}

/** From 4.5 on, regional endpoints of Bedrock and Google Cloud cost 10 % more. */
export const REGIONAL_FACTOR = 1.1
