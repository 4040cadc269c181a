/**
 * Catalogue entries of Claude models from 4.6 on. Each entry names its source and date; `doubts` lists uncertain
 * figures.
 */
import {
  ADAPTIVE_OR_BUDGET_THINKING,
  ADAPTIVE_THINKING,
  ALWAYS_ON_THINKING,
  CLAUDE_4_6_CAPABILITIES,
  CLAUDE_4_7_CAPABILITIES,
  CLAUDE_4_8_CAPABILITIES,
  CLAUDE_5_5_CAPABILITIES,
  claudeCacheFacts,
  claudePrices,
  ONE_MILLION_WINDOW,
  REGIONAL_PRICE_FACTOR,
} from './anthropic-rules.ts'
import { CLAUDE_5_2_SOURCE, CLAUDE_SOURCE } from './catalogue-sources.ts'
import type { ModelEntry, UncertainField } from './model-entry.ts'

type Common = Omit<ModelEntry, 'id' | 'prices' | 'cache' | 'thinking'>

const COMMON: Common = {
  ...ONE_MILLION_WINDOW,
  aliases: [],
  regionalFactor: REGIONAL_PRICE_FACTOR,
  capabilities: CLAUDE_5_5_CAPABILITIES,
  tokenizer: 'claude-from-4.7',
  doubts: [],
  ...CLAUDE_SOURCE,
}

const PREFIX_BOUND_THINKING = { ...ALWAYS_ON_THINKING, binding: 'prefix' } as const
const NO_FORCED_TOOL_CHOICE = { ...CLAUDE_5_5_CAPABILITIES, forcedToolChoice: false }
const UNDOCUMENTED = { systemMessages: null, toolChanges: null, messageEffort: null }
const OPUS_RATES = { input: 5, cacheRead: 0.5, writeShort: 6.25, writeLong: 10, output: 25 }
const UNKNOWN_RATES = { input: null, cacheRead: null, writeShort: null, writeLong: null, output: null }

/**
 * Before this day, a prompt over 200,000 tokens cost twice the usual input price, and its output 1.5 times the usual
 * output price.
 */
const FLAT_PRICES_FROM = '2026-03-13'

const PLATFORM_WINDOW_DOUBT: UncertainField = {
  field: 'window',
  note: `200,000 without the 1M beta before ${FLAT_PRICES_FROM}, and still on some cloud platforms`,
}

const FABLE_5_2_MODELS: readonly ModelEntry[] = [
  {
    ...COMMON,
    id: 'claude-fable-5-2',
    prices: claudePrices({ input: 8, cacheRead: 0.2, writeShort: 10, writeLong: 16, output: 40 }),
    cache: claudeCacheFacts(null),
    thinking: { ...PREFIX_BOUND_THINKING, isAccountBound: null },
    capabilities: { ...NO_FORCED_TOOL_CHOICE, ...UNDOCUMENTED },
    doubts: [
      { field: 'prices.writeLong', note: 'derived: twice the input price, as on every other Claude' },
      { field: 'thinking.binding', note: 'taken from Fable 5.1; no page read says it of 5.2' },
    ],
    ...CLAUDE_5_2_SOURCE,
  },
  {
    ...COMMON,
    id: 'claude-mythos-5-2',
    prices: claudePrices(UNKNOWN_RATES),
    cache: claudeCacheFacts(null),
    thinking: { ...ALWAYS_ON_THINKING, binding: null, isAccountBound: null },
    capabilities: { ...CLAUDE_5_5_CAPABILITIES, forcedToolChoice: null, ...UNDOCUMENTED },
    ...CLAUDE_5_2_SOURCE,
  },
]

const FABLE_MODELS: readonly ModelEntry[] = [
  {
    ...COMMON,
    id: 'claude-fable-5-1',
    prices: claudePrices({ input: 10, cacheRead: 0.25, writeShort: 12.5, writeLong: 20, output: 50 }),
    cache: claudeCacheFacts(512),
    thinking: PREFIX_BOUND_THINKING,
    capabilities: NO_FORCED_TOOL_CHOICE,
  },
  {
    ...COMMON,
    id: 'claude-mythos-5-1',
    prices: claudePrices({ input: 10, cacheRead: 0.25, writeShort: 12.5, writeLong: 20, output: 50 }),
    cache: claudeCacheFacts(512),
    thinking: { ...ALWAYS_ON_THINKING, binding: 'model' },
    capabilities: NO_FORCED_TOOL_CHOICE,
  },
  {
    ...COMMON,
    id: 'claude-fable-5',
    prices: claudePrices({ input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }),
    cache: claudeCacheFacts(512),
    thinking: ALWAYS_ON_THINKING,
    capabilities: CLAUDE_4_8_CAPABILITIES,
    doubts: [{ field: 'cache.minimum', note: '1,024 was reported on Bedrock' }],
  },
  {
    ...COMMON,
    id: 'claude-mythos-5',
    prices: claudePrices({ input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }),
    cache: claudeCacheFacts(512),
    thinking: ALWAYS_ON_THINKING,
    capabilities: CLAUDE_4_8_CAPABILITIES,
  },
]

const OPUS_MODELS: readonly ModelEntry[] = [
  {
    ...COMMON,
    id: 'claude-opus-5-5',
    prices: claudePrices(
      { input: 4, cacheRead: 0.2, writeShort: 5, writeLong: 8, output: 20 },
      { standard: 1, fast: 2 },
    ),
    cache: claudeCacheFacts(512),
    thinking: PREFIX_BOUND_THINKING,
    capabilities: NO_FORCED_TOOL_CHOICE,
  },
  {
    ...COMMON,
    id: 'claude-opus-5',
    prices: claudePrices(OPUS_RATES, { standard: 1, fast: 2 }),
    cache: claudeCacheFacts(512),
    thinking: { ...ADAPTIVE_THINKING, leastUpTo: 'high' },
  },
  {
    ...COMMON,
    id: 'claude-opus-4-8',
    prices: claudePrices(OPUS_RATES, { standard: 1, fast: 2 }),
    cache: claudeCacheFacts(1_024),
    thinking: { ...ADAPTIVE_THINKING, isOnByDefault: false },
    capabilities: CLAUDE_4_8_CAPABILITIES,
  },
  {
    ...COMMON,
    id: 'claude-opus-4-7',
    prices: claudePrices(OPUS_RATES, { standard: 1, fast: null }),
    cache: claudeCacheFacts(2_048),
    thinking: { ...ADAPTIVE_THINKING, isOnByDefault: false },
    capabilities: CLAUDE_4_7_CAPABILITIES,
  },
  {
    ...COMMON,
    id: 'claude-opus-4-6',
    prices: claudePrices(OPUS_RATES, { standard: 1, fast: 6 }),
    pastPrices: [
      {
        before: FLAT_PRICES_FROM,
        prices: {
          ...claudePrices(OPUS_RATES, { standard: 1, fast: 6 }),
          tiers: [{ above: 200_000, input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 37.5 }],
        },
      },
    ],
    cache: claudeCacheFacts(4_096),
    thinking: ADAPTIVE_OR_BUDGET_THINKING,
    capabilities: CLAUDE_4_6_CAPABILITIES,
    tokenizer: 'claude-to-4.6',
    doubts: [PLATFORM_WINDOW_DOUBT],
  },
]

const SONNET_MODELS: readonly ModelEntry[] = [
  {
    ...COMMON,
    id: 'claude-sonnet-5-5',
    prices: claudePrices({ input: 2, cacheRead: 0.1, writeShort: 2.5, writeLong: 4, output: 10 }),
    cache: claudeCacheFacts(512),
    thinking: {
      ...PREFIX_BOUND_THINKING,
      modes: ['adaptive', 'between_tools'],
      leastUpTo: 'high',
      isAccountBound: true,
    },
    capabilities: NO_FORCED_TOOL_CHOICE,
    doubts: [
      {
        field: 'prices.cacheRead',
        note: '0.20 on the page of 2026-09-29, the day after launch; 0.10 on the price list of 2026-10-10',
      },
    ],
  },
  {
    ...COMMON,
    id: 'claude-sonnet-5',
    prices: claudePrices({ input: 2, cacheRead: 0.2, writeShort: 2.5, writeLong: 4, output: 10 }),
    cache: claudeCacheFacts(1_024),
    thinking: ADAPTIVE_THINKING,
    capabilities: CLAUDE_4_7_CAPABILITIES,
  },
  {
    ...COMMON,
    id: 'claude-sonnet-4-6',
    prices: claudePrices({ input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }),
    pastPrices: [
      {
        before: FLAT_PRICES_FROM,
        prices: {
          ...claudePrices({ input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }),
          tiers: [{ above: 200_000, input: 6, cacheRead: 0.6, writeShort: 7.5, writeLong: 12, output: 22.5 }],
        },
      },
    ],
    cache: claudeCacheFacts(1_024),
    thinking: ADAPTIVE_OR_BUDGET_THINKING,
    capabilities: CLAUDE_4_6_CAPABILITIES,
    tokenizer: 'claude-to-4.6',
    doubts: [
      PLATFORM_WINDOW_DOUBT,
      { field: 'cache.minimum', note: 'seen to cache from 2,048 only (public report)' },
    ],
  },
]

const HAIKU_MODELS: readonly ModelEntry[] = [
  {
    ...COMMON,
    id: 'claude-haiku-5-5',
    prices: {
      ...claudePrices({ input: 0.1, cacheRead: 0.01, writeShort: 0.125, writeLong: 0.2, output: 0.5 }),
      tiers: [{ above: 100_000, input: 0.5, cacheRead: 0.05, writeShort: 0.625, writeLong: 1, output: 2.5 }],
    },
    cache: claudeCacheFacts(512),
    thinking: { ...ADAPTIVE_THINKING, binding: 'prefix', isAccountBound: true, leastUpTo: 'high' },
  },
]

export const ANTHROPIC_MODELS: readonly ModelEntry[] = [
  ...FABLE_5_2_MODELS,
  ...FABLE_MODELS,
  ...OPUS_MODELS,
  ...SONNET_MODELS,
  ...HAIKU_MODELS,
]
