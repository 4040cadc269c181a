/**
 * Catalogue entries of Google's Gemini models. The window limits only the prompt; the reply has a limit of its own.
 * Caching is automatic and not guaranteed. Explicit caches, which are billed by the hour, are not included.
 */
import type { ModelPrices, PriceTier } from '@tidemark/core/cost/prices'
import { GOOGLE_SOURCE } from './catalogue-sources.ts'
import type {
  CacheFacts,
  ModelCapabilities,
  ModelEntry,
  ThinkingFacts,
  UncertainField,
} from './model-entry.ts'

function automaticCache(minimum: number | null): CacheFacts {
  return { minimum, markers: 0, lookBack: 'unlimited', ttls: null }
}

/**
 * Returns the thinking facts of a Gemini model. `efforts` is empty up to Gemini 2.5, which has a token budget instead
 * of effort levels.
 */
function thinkingFacts(efforts: readonly string[]): ThinkingFacts {
  const unknown = { keepsPrior: null, binding: null, isAccountBound: null }
  return { modes: ['adaptive'], isOnByDefault: true, efforts, ...unknown }
}
const LOW_TO_HIGH = ['low', 'medium', 'high']
const MINIMAL_TO_HIGH = ['minimal', ...LOW_TO_HIGH]
const NO_EFFORTS: readonly string[] = []

const GEMINI_CAPABILITIES: ModelCapabilities = {
  images: true,
  forcedToolChoice: true,
  prefill: null,
  sampling: true,
  systemMessages: false,
  toolChanges: false,
  messageEffort: false,
  contextEditing: false,
  thresholdCompaction: false,
  onDemandCompaction: false,
  endsAtWindow: null,
}

interface GeminiRow {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly minimum: number | null
  readonly maxOutput?: number
  readonly prices: ModelPrices
  readonly efforts: readonly string[]
  readonly doubts?: readonly UncertainField[]
}

function geminiModel({
  id,
  aliases = [],
  minimum,
  maxOutput = 65_536,
  prices,
  efforts,
  doubts = [],
}: GeminiRow): ModelEntry {
  return {
    id,
    vendor: 'google',
    aliases,
    window: 1_048_576,
    maxInput: 1_048_576,
    maxOutput,
    prices,
    cache: automaticCache(minimum),
    thinking: thinkingFacts(efforts),
    capabilities: GEMINI_CAPABILITIES,
    limits: { bodyBytes: 20_971_520, images: 3_600 },
    tokenizer: 'gemini',
    ...GOOGLE_SOURCE,
    doubts,
  }
}

/**
 * Returns prices that do not depend on the length of the prompt. Writing to Google's automatic cache costs the input
 * price.
 */
function flatPrices(input: number, cacheRead: number, output: number): ModelPrices {
  return { input, cacheRead, writeShort: input, writeLong: null, output }
}

function tieredPrices(prices: ModelPrices, above: Omit<PriceTier, 'writeShort' | 'writeLong'>): ModelPrices {
  return { ...prices, tiers: [{ ...above, writeShort: above.input, writeLong: null }] }
}

const TIER_OVER_200K = { above: 200_000, input: 4, cacheRead: 0.4, output: 18 }
const MINIMUM_CHANGED: UncertainField = {
  field: 'cache.minimum',
  note: 'raised or lowered before: 1,024 to 4,096 on earlier pages',
}

export const GOOGLE_MODELS: readonly ModelEntry[] = [
  geminiModel({
    id: 'gemini-4-argon',
    efforts: LOW_TO_HIGH,
    minimum: 4_096,
    maxOutput: 32_768,
    prices: flatPrices(2, 0.1, 10),
    doubts: [{ field: 'maxOutput', note: '65,536 on Google Cloud' }],
  }),
  geminiModel({
    id: 'gemini-3.8-flash',
    efforts: LOW_TO_HIGH,
    minimum: 4_096,
    prices: flatPrices(0.75, 0.075, 3.75),
  }),
  geminiModel({
    id: 'gemini-3.7-flash',
    efforts: LOW_TO_HIGH,
    minimum: 4_096,
    prices: flatPrices(0.75, 0.075, 3.75),
  }),
  geminiModel({
    id: 'gemini-3.6-flash',
    efforts: MINIMAL_TO_HIGH,
    minimum: 4_096,
    prices: flatPrices(0.75, 0.075, 3.75),
  }),
  geminiModel({
    id: 'gemini-3.5-flash',
    efforts: MINIMAL_TO_HIGH,
    minimum: 4_096,
    prices: flatPrices(1.5, 0.15, 9),
  }),
  geminiModel({
    id: 'gemini-3.5-flash-lite',
    efforts: MINIMAL_TO_HIGH,
    minimum: null,
    prices: flatPrices(0.3, 0.03, 2.5),
  }),
  geminiModel({
    id: 'gemini-3.1-pro-preview',
    efforts: LOW_TO_HIGH,
    aliases: ['gemini-3.1-pro-preview-customtools'],
    minimum: 4_096,
    prices: tieredPrices(flatPrices(2, 0.2, 12), TIER_OVER_200K),
  }),
  geminiModel({
    id: 'gemini-3.1-flash-lite',
    efforts: MINIMAL_TO_HIGH,
    aliases: ['gemini-3.1-flash-lite-preview'],
    minimum: null,
    prices: flatPrices(0.25, 0.025, 1.5),
  }),
  geminiModel({
    id: 'gemini-3-flash-preview',
    efforts: MINIMAL_TO_HIGH,
    minimum: 1_024,
    prices: flatPrices(0.5, 0.05, 3),
    doubts: [MINIMUM_CHANGED],
  }),
  geminiModel({
    id: 'gemini-2.5-pro',
    efforts: NO_EFFORTS,
    minimum: 2_048,
    prices: tieredPrices(flatPrices(1.25, 0.125, 10), {
      above: 200_000,
      input: 2.5,
      cacheRead: 0.25,
      output: 15,
    }),
    doubts: [MINIMUM_CHANGED],
  }),
  geminiModel({
    id: 'gemini-2.5-flash',
    efforts: NO_EFFORTS,
    minimum: 2_048,
    prices: flatPrices(0.3, 0.03, 2.5),
    doubts: [MINIMUM_CHANGED],
  }),
  geminiModel({
    id: 'gemini-2.5-flash-lite',
    efforts: NO_EFFORTS,
    minimum: null,
    prices: flatPrices(0.1, 0.01, 0.4),
  }),
]
