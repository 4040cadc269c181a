/** What generations of Claude have in common, so that a model's entry lists only its own figures. */
import type { ModelPrices, TokenRates } from '@tidemark/core'
import type { CacheFacts, ModelCapabilities, ModelEntry, ThinkingFacts } from './model-entry.ts'

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
export function claudePrices(
  rates: TokenRates,
  speed?: Readonly<Record<string, number | null>>,
): ModelPrices {
  const factors = { ...SERVICE_TIER_FACTORS, ...GEOGRAPHY_FACTORS, ...(speed === undefined ? {} : { speed }) }
  return { ...rates, factors, fees: TOOL_FEES }
}

/** Before 4.6: no choice of inference region and no fast mode. */
export function claudeOldPrices(rates: TokenRates): ModelPrices {
  return { ...rates, factors: SERVICE_TIER_FACTORS, fees: TOOL_FEES }
}

const SERVICE_TIER_FACTORS = { service_tier: { standard: 1, batch: 0.5 } }
const GEOGRAPHY_FACTORS = { inference_geo: { global: 1, not_available: 1, us: 1.1 } }
const TOOL_FEES = { web_search_requests: 0.01 }

const ALL_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']

const UNBOUND = { binding: 'none', isAccountBound: false } as const

/** From Fable 5 on: thinking is always on. */
export const ALWAYS_ON_THINKING: ThinkingFacts = {
  modes: ['adaptive'],
  isOnByDefault: true,
  efforts: ALL_EFFORTS,
  keepsPrior: true,
  ...UNBOUND,
}

/** Adaptive thinking that can be turned off. */
export const ADAPTIVE_THINKING: ThinkingFacts = { ...ALWAYS_ON_THINKING, modes: ['adaptive', 'disabled'] }

/** 4.6: adaptive thinking or a token budget. */
export const ADAPTIVE_OR_BUDGET_THINKING: ThinkingFacts = {
  modes: ['adaptive', 'enabled', 'disabled'],
  isOnByDefault: false,
  efforts: ['low', 'medium', 'high', 'max'],
  keepsPrior: true,
  ...UNBOUND,
}

/** Up to 4.5: a token budget; thinking of finished turns is stripped. */
export const BUDGET_THINKING: ThinkingFacts = {
  modes: ['enabled', 'disabled'],
  isOnByDefault: false,
  efforts: [],
  keepsPrior: false,
  ...UNBOUND,
}

export const NO_THINKING: ThinkingFacts = { ...BUDGET_THINKING, modes: [] }

/** The 5.5 generation. */
export const CAPABILITIES_5_5: ModelCapabilities = {
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
export const CAPABILITIES_4_8: ModelCapabilities = { ...CAPABILITIES_5_5, messageEffort: false }

/** Sonnet 5 and Opus 4.7: no system messages in mid-conversation. */
export const CAPABILITIES_4_7: ModelCapabilities = {
  ...CAPABILITIES_4_8,
  systemMessages: false,
  toolChanges: false,
}
export const CAPABILITIES_4_6: ModelCapabilities = { ...CAPABILITIES_4_7, sampling: true }
export const CAPABILITIES_4_5: ModelCapabilities = {
  ...CAPABILITIES_4_6,
  prefill: true,
  thresholdCompaction: false,
  onDemandCompaction: false,
}
export const CAPABILITIES_4: ModelCapabilities = { ...CAPABILITIES_4_5, endsAtWindow: false }
export const CAPABILITIES_3: ModelCapabilities = { ...CAPABILITIES_4, contextEditing: false }

type WindowSizes = Pick<ModelEntry, 'vendor' | 'window' | 'maxInput' | 'maxOutput' | 'limits'>

export const ONE_MILLION_WINDOW: WindowSizes = {
  vendor: 'anthropic',
  window: 1_000_000,
  maxInput: 1_000_000,
  maxOutput: 128_000,
  limits: { bodyBytes: BODY_BYTES, images: 600 },
}

export function twoHundredThousandWindow(maxOutput: number): WindowSizes {
  const limits = { bodyBytes: BODY_BYTES, images: 100 }
  return { vendor: 'anthropic', window: 200_000, maxInput: 200_000, maxOutput, limits }
}

/** From 4.5 on, regional endpoints of Bedrock and Google Cloud cost 10 % more. */
export const REGIONAL_FACTOR = 1.1
