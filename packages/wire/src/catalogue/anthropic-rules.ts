/** Facts that several Claude models share, so that each catalogue entry lists only its own figures. */
import type { ModelPrices, TokenRates } from '@tidemark/core/cost/prices'
import type { CacheFacts, ModelCapabilities, ModelEntry, ThinkingFacts } from './model-entry.ts'

const BODY_BYTES = 32_000_000

/** Returns the prompt cache rules of Claude models, which differ only in the shortest prefix that can be cached. */
export function claudeCacheFacts(minimum: number | null): CacheFacts {
  const ttls = [
    { name: '5m', seconds: 300 },
    { name: '1h', seconds: 3_600 },
  ]
  return { minimum, markers: 4, lookBack: 20, ttls }
}

/**
 * Returns the prices of a Claude model from 4.6 on: the given rates, half price for batches, a surcharge for US-only
 * inference, and a factor for fast mode if given.
 */
export function claudePrices(
  rates: TokenRates,
  speed?: Readonly<Record<string, number | null>>,
): ModelPrices {
  const factors = { ...SERVICE_TIER_FACTORS, ...GEOGRAPHY_FACTORS, ...(speed === undefined ? {} : { speed }) }
  return { ...rates, factors, fees: TOOL_FEES }
}

/** Returns the prices of a Claude model before 4.6: the given rates, and half price for batches. */
export function claudePricesBefore46(rates: TokenRates): ModelPrices {
  return { ...rates, factors: SERVICE_TIER_FACTORS, fees: TOOL_FEES }
}

const SERVICE_TIER_FACTORS = { service_tier: { standard: 1, batch: 0.5 } }
const GEOGRAPHY_FACTORS = { inference_geo: { global: 1, not_available: 1, us: 1.1 } }
const TOOL_FEES = { web_search_requests: 0.01 }

const ALL_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']

const UNBOUND = { binding: 'none', isAccountBound: false } as const

/** Thinking cannot be turned off, as in Claude Fable 5 and later. */
export const ALWAYS_ON_THINKING: ThinkingFacts = {
  modes: ['adaptive'],
  isOnByDefault: true,
  efforts: ALL_EFFORTS,
  keepsPrior: true,
  ...UNBOUND,
}

/** Thinking is adaptive, and a request can turn it off. */
export const ADAPTIVE_THINKING: ThinkingFacts = { ...ALWAYS_ON_THINKING, modes: ['adaptive', 'disabled'] }

/** Thinking is adaptive or has a token budget, as in Claude 4.6. */
export const ADAPTIVE_OR_BUDGET_THINKING: ThinkingFacts = {
  modes: ['adaptive', 'enabled', 'disabled'],
  isOnByDefault: false,
  efforts: ['low', 'medium', 'high', 'max'],
  keepsPrior: true,
  ...UNBOUND,
}

/** Thinking has a token budget, as in Claude up to 4.5. The provider removes the thinking of finished turns. */
export const BUDGET_THINKING: ThinkingFacts = {
  modes: ['enabled', 'disabled'],
  isOnByDefault: false,
  efforts: [],
  keepsPrior: false,
  ...UNBOUND,
}

export const NO_THINKING: ThinkingFacts = { ...BUDGET_THINKING, modes: [] }

/** Capabilities of Claude 5.5 models. */
export const CLAUDE_5_5_CAPABILITIES: ModelCapabilities = {
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

/**
 * Capabilities of Claude Fable 5 and Opus 4.8: those of Claude 5.5, except that effort cannot be set on a single
 * message.
 */
export const CLAUDE_4_8_CAPABILITIES: ModelCapabilities = { ...CLAUDE_5_5_CAPABILITIES, messageEffort: false }

/**
 * Capabilities of Claude Sonnet 5 and Opus 4.7, which do not accept system messages or tool changes in
 * mid-conversation.
 */
export const CLAUDE_4_7_CAPABILITIES: ModelCapabilities = {
  ...CLAUDE_4_8_CAPABILITIES,
  systemMessages: false,
  toolChanges: false,
}
export const CLAUDE_4_6_CAPABILITIES: ModelCapabilities = { ...CLAUDE_4_7_CAPABILITIES, sampling: true }
export const CLAUDE_4_5_CAPABILITIES: ModelCapabilities = {
  ...CLAUDE_4_6_CAPABILITIES,
  prefill: true,
  thresholdCompaction: false,
  onDemandCompaction: false,
}
export const CLAUDE_4_CAPABILITIES: ModelCapabilities = { ...CLAUDE_4_5_CAPABILITIES, endsAtWindow: false }
export const CLAUDE_3_CAPABILITIES: ModelCapabilities = { ...CLAUDE_4_CAPABILITIES, contextEditing: false }

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

/** Factor on all prices at regional endpoints of Bedrock and Google Cloud, for Claude 4.5 and later: 10 % more. */
export const REGIONAL_PRICE_FACTOR = 1.1
