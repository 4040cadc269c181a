/**
 * Catalogue entries of OpenAI's models. Prompt and reply share the window, so the longest prompt is the window minus
 * the longest reply. A cache write costs the input price before GPT-5.6, and more from GPT-5.6 on.
 */
import type { ModelPrices, TokenRates } from '@tidemark/core/cost/prices'
import { OPENAI_SOURCE } from './catalogue-sources.ts'
import {
  type CacheFacts,
  type ModelCapabilities,
  type ModelEntry,
  roundRate,
  type ThinkingFacts,
  type UncertainField,
} from './model-entry.ts'

/**
 * Prompt cache of GPT-5.6 and later, where a request can set cache markers. Caching in earlier models is only
 * automatic.
 */
const MARKER_CACHE: CacheFacts = {
  minimum: 1_024,
  markers: 4,
  lookBack: 'unlimited',
  ttls: [
    { name: '30m', seconds: 1_800 },
    { name: '12h', seconds: 43_200 },
  ],
}
const AUTOMATIC_CACHE: CacheFacts = {
  minimum: 1_024,
  markers: 0,
  lookBack: 'unlimited',
  ttls: [{ name: '24h', seconds: 86_400 }],
}

const RETENTION_DOUBT: UncertainField = {
  field: 'cache.ttls',
  note: 'without extended retention an entry lives for 5 to 10 idle minutes, an hour at most',
}
const OPENAI_CAPABILITIES: ModelCapabilities = {
  images: true,
  forcedToolChoice: true,
  prefill: false,
  sampling: false,
  systemMessages: null,
  toolChanges: false,
  messageEffort: false,
  contextEditing: false,
  // OpenAI offers compaction with an encrypted summary, but does not document which models support it.
  thresholdCompaction: null,
  onDemandCompaction: false,
  endsAtWindow: false,
}

const NO_REASONING: ThinkingFacts = {
  modes: [],
  isOnByDefault: false,
  efforts: [],
  keepsPrior: false,
  binding: 'none',
  isAccountBound: false,
}

function reasoningFacts(efforts: readonly string[]): ThinkingFacts {
  if (efforts.length === 0) return NO_REASONING
  const modes = efforts.includes('none') ? (['adaptive', 'disabled'] as const) : (['adaptive'] as const)
  return { modes, isOnByDefault: true, efforts, keepsPrior: null, binding: null, isAccountBound: null }
}

type Sizes = Pick<ModelEntry, 'window' | 'maxInput' | 'maxOutput'>

const MILLION_WINDOW: Sizes = { window: 1_050_000, maxInput: 922_000, maxOutput: 128_000 }
const FOUR_HUNDRED_THOUSAND_WINDOW: Sizes = { window: 400_000, maxInput: 272_000, maxOutput: 128_000 }

/**
 * Returns window and limits of a model before GPT-5. A prompt may fill the whole window, because only prompt and reply
 * together are limited.
 */
function sharedWindow(window: number, maxOutput: number): Sizes {
  return { window, maxInput: window, maxOutput }
}

interface OpenaiRow {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly sizes: Sizes
  readonly prices: ModelPrices
  readonly efforts: readonly string[]
  /** True if the model accepts system messages in mid-conversation. */
  readonly hasSystemMessages?: boolean
}

/** Returns the catalogue entry of a model from GPT-5.6 on, which accepts cache markers. */
function openaiModelWithMarkers(row: OpenaiRow): ModelEntry {
  return { ...openaiModel({ ...row, hasSystemMessages: true }), cache: MARKER_CACHE, doubts: [] }
}

function openaiModel({ id, aliases = [], sizes, prices, efforts, hasSystemMessages }: OpenaiRow): ModelEntry {
  const sampling = efforts.length === 0
  return {
    id,
    vendor: 'openai',
    aliases,
    ...sizes,
    prices,
    cache: AUTOMATIC_CACHE,
    thinking: reasoningFacts(efforts),
    capabilities: { ...OPENAI_CAPABILITIES, sampling, systemMessages: hasSystemMessages ?? null },
    limits: { bodyBytes: 536_870_912, images: 1_500 },
    tokenizer: 'openai',
    ...OPENAI_SOURCE,
    doubts: [RETENTION_DOUBT],
  }
}

const SERVICE_TIER_FACTORS = { service_tier: { default: 1, standard: 1, batch: 0.5, flex: 0.5 } }

/**
 * Returns prices with cache writes at 1.25 times the input price. The price of writes with the longer cache lifetime is
 * not published.
 */
function pricesWithWrites(input: number, cacheRead: number, output: number): ModelPrices {
  return withLongPromptTier({
    input,
    cacheRead,
    writeShort: roundRate(input * 1.25),
    writeLong: null,
    output,
    factors: SERVICE_TIER_FACTORS,
  })
}

function pricesWithoutWrites(input: number, cacheRead: number, output: number): ModelPrices {
  return { input, cacheRead, writeShort: input, writeLong: input, output, factors: SERVICE_TIER_FACTORS }
}

/** Adds the price tier for prompts over 272,000 tokens: input costs twice as much and output 1.5 times as much. */
function withLongPromptTier(prices: ModelPrices): ModelPrices {
  const times = (rate: TokenRates[keyof TokenRates], by: number) =>
    rate === null ? null : roundRate(rate * by)
  const tier = {
    above: 272_000,
    input: times(prices.input, 2),
    cacheRead: times(prices.cacheRead, 2),
    writeShort: times(prices.writeShort, 2),
    writeLong: times(prices.writeLong, 2),
    output: times(prices.output, 1.5),
  }
  return { ...prices, tiers: [tier] }
}

const LOW_TO_HIGH = ['low', 'medium', 'high']
const MINIMAL_TO_HIGH = ['minimal', ...LOW_TO_HIGH]
const LOW_TO_MAX = [...LOW_TO_HIGH, 'xhigh', 'max']
const NONE_TO_HIGH = ['none', ...LOW_TO_HIGH]
const NONE_TO_XHIGH = [...NONE_TO_HIGH, 'xhigh']
const NONE_TO_MAX = [...NONE_TO_XHIGH, 'max']
const NO_EFFORTS: readonly string[] = []

const MODELS_WITH_MARKERS: readonly ModelEntry[] = [
  { id: 'gpt-6.1-sol', prices: pricesWithWrites(2, 0.1, 10), efforts: LOW_TO_MAX },
  { id: 'gpt-6.1-terra', prices: pricesWithWrites(1, 0.05, 5), efforts: NONE_TO_MAX },
  { id: 'gpt-6-astra', prices: pricesWithWrites(10, 1, 50), efforts: LOW_TO_MAX },
  { id: 'gpt-6-sol', prices: pricesWithWrites(2, 0.2, 10), efforts: NONE_TO_MAX },
  { id: 'gpt-6-luna', prices: pricesWithWrites(0.1, 0.01, 0.5), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-sol', prices: pricesWithWrites(4, 0.4, 20), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-terra', prices: pricesWithWrites(2, 0.2, 12), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-luna', prices: pricesWithWrites(0.2, 0.02, 1.2), efforts: NONE_TO_MAX },
].map((row) => openaiModelWithMarkers({ ...row, sizes: MILLION_WINDOW }))

const GPT_5_MODELS: readonly ModelEntry[] = [
  {
    id: 'gpt-5.5',
    sizes: MILLION_WINDOW,
    prices: withLongPromptTier(pricesWithoutWrites(5, 0.5, 30)),
    efforts: NONE_TO_XHIGH,
    hasSystemMessages: true,
  },
  {
    id: 'gpt-5.4',
    sizes: MILLION_WINDOW,
    prices: withLongPromptTier(pricesWithoutWrites(2.5, 0.25, 15)),
    efforts: NONE_TO_XHIGH,
    hasSystemMessages: true,
  },
  {
    id: 'gpt-5.4-mini',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(0.75, 0.075, 4.5),
    efforts: NONE_TO_XHIGH,
    hasSystemMessages: true,
  },
  {
    id: 'gpt-5.4-nano',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(0.2, 0.02, 1.25),
    efforts: NONE_TO_XHIGH,
  },
  {
    id: 'gpt-5.3-codex',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(1.75, 0.175, 14),
    efforts: NONE_TO_XHIGH,
  },
  {
    id: 'gpt-5.2',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(1.75, 0.175, 14),
    efforts: NONE_TO_XHIGH,
  },
  {
    id: 'gpt-5.1',
    aliases: ['gpt-5.1-codex'],
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(1.25, 0.125, 10),
    efforts: NONE_TO_HIGH,
  },
  {
    id: 'gpt-5',
    aliases: ['gpt-5-codex'],
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(1.25, 0.125, 10),
    efforts: MINIMAL_TO_HIGH,
  },
  {
    id: 'gpt-5-mini',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(0.25, 0.025, 2),
    efforts: MINIMAL_TO_HIGH,
  },
  {
    id: 'gpt-5-nano',
    sizes: FOUR_HUNDRED_THOUSAND_WINDOW,
    prices: pricesWithoutWrites(0.05, 0.005, 0.4),
    efforts: MINIMAL_TO_HIGH,
  },
].map(openaiModel)

const OLDER_MODELS: readonly ModelEntry[] = [
  {
    id: 'gpt-4.1',
    sizes: sharedWindow(1_047_576, 32_768),
    prices: pricesWithoutWrites(2, 0.5, 8),
    efforts: NO_EFFORTS,
  },
  {
    id: 'gpt-4.1-mini',
    sizes: sharedWindow(1_047_576, 32_768),
    prices: pricesWithoutWrites(0.4, 0.1, 1.6),
    efforts: NO_EFFORTS,
  },
  {
    id: 'gpt-4.1-nano',
    sizes: sharedWindow(1_047_576, 32_768),
    prices: pricesWithoutWrites(0.1, 0.025, 0.4),
    efforts: NO_EFFORTS,
  },
  {
    id: 'gpt-4o',
    sizes: sharedWindow(128_000, 16_384),
    prices: pricesWithoutWrites(2.5, 1.25, 10),
    efforts: NO_EFFORTS,
  },
  // This model charges the full price for cached input.
  {
    id: 'gpt-4o-2024-05-13',
    sizes: sharedWindow(128_000, 4_096),
    prices: pricesWithoutWrites(5, 5, 15),
    efforts: NO_EFFORTS,
  },
  {
    id: 'gpt-4o-mini',
    sizes: sharedWindow(128_000, 16_384),
    prices: pricesWithoutWrites(0.15, 0.075, 0.6),
    efforts: NO_EFFORTS,
  },
  {
    id: 'o3',
    sizes: sharedWindow(200_000, 100_000),
    prices: pricesWithoutWrites(2, 0.5, 8),
    efforts: LOW_TO_HIGH,
  },
  {
    id: 'o4-mini',
    sizes: sharedWindow(200_000, 100_000),
    prices: pricesWithoutWrites(1.1, 0.275, 4.4),
    efforts: LOW_TO_HIGH,
  },
].map(openaiModel)

export const OPENAI_MODELS: readonly ModelEntry[] = [...MODELS_WITH_MARKERS, ...GPT_5_MODELS, ...OLDER_MODELS]
