/** Catalogue entries of Claude models up to 4.5. They are retired or will be, but still occur in logs. */
import {
  BUDGET_THINKING,
  CLAUDE_3_CAPABILITIES,
  CLAUDE_4_5_CAPABILITIES,
  CLAUDE_4_CAPABILITIES,
  claudeCacheFacts,
  claudePricesBefore46,
  NO_THINKING,
  REGIONAL_PRICE_FACTOR,
  twoHundredThousandWindow,
} from './anthropic-rules.ts'
import { CLAUDE_SOURCE, OLDER_CLAUDE_SOURCE } from './catalogue-sources.ts'
import type { ModelEntry, UncertainField } from './model-entry.ts'

type Common = Omit<ModelEntry, 'id' | 'prices' | 'cache' | keyof ReturnType<typeof twoHundredThousandWindow>>

const CLAUDE_4: Common = {
  aliases: [],
  thinking: BUDGET_THINKING,
  capabilities: CLAUDE_4_CAPABILITIES,
  tokenizer: 'claude-to-4.6',
  doubts: [],
  ...CLAUDE_SOURCE,
}
const CLAUDE_4_5: Common = {
  ...CLAUDE_4,
  capabilities: CLAUDE_4_5_CAPABILITIES,
  regionalFactor: REGIONAL_PRICE_FACTOR,
}
const CLAUDE_3: Common = {
  ...CLAUDE_4,
  thinking: NO_THINKING,
  capabilities: CLAUDE_3_CAPABILITIES,
  ...OLDER_CLAUDE_SOURCE,
}

const OPUS_RATES = { input: 15, cacheRead: 1.5, writeShort: 18.75, writeLong: 30, output: 75 }
const SONNET_RATES = { input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }

/** Prices of Sonnet 4 and 4.5. With the beta for a 1M context window, prompts over 200,000 tokens cost more. */
const SONNET_PRICES = {
  ...claudePricesBefore46(SONNET_RATES),
  tiers: [{ above: 200_000, input: 6, cacheRead: 0.6, writeShort: 7.5, writeLong: 12, output: 22.5 }],
}
const ONE_MILLION_BETA_DOUBT: UncertainField = {
  field: 'longWindow',
  note: 'the 1M beta ended on 2026-04-30; since then prompts over 200,000 tokens are refused',
}

export const ANTHROPIC_OLDER_MODELS: readonly ModelEntry[] = [
  {
    ...CLAUDE_4_5,
    ...twoHundredThousandWindow(64_000),
    id: 'claude-opus-4-5',
    prices: claudePricesBefore46({ input: 5, cacheRead: 0.5, writeShort: 6.25, writeLong: 10, output: 25 }),
    cache: claudeCacheFacts(4_096),
    thinking: { ...BUDGET_THINKING, efforts: ['low', 'medium', 'high'], keepsPrior: true },
  },
  {
    ...CLAUDE_4_5,
    ...twoHundredThousandWindow(64_000),
    id: 'claude-sonnet-4-5',
    longWindow: 1_000_000,
    prices: SONNET_PRICES,
    cache: claudeCacheFacts(1_024),
    doubts: [ONE_MILLION_BETA_DOUBT],
  },
  {
    ...CLAUDE_4_5,
    ...twoHundredThousandWindow(64_000),
    id: 'claude-haiku-4-5',
    prices: claudePricesBefore46({ input: 1, cacheRead: 0.1, writeShort: 1.25, writeLong: 2, output: 5 }),
    cache: claudeCacheFacts(4_096),
  },
  {
    ...CLAUDE_4,
    ...twoHundredThousandWindow(32_000),
    id: 'claude-opus-4-1',
    prices: claudePricesBefore46(OPUS_RATES),
    cache: claudeCacheFacts(1_024),
  },
  {
    ...CLAUDE_4,
    ...twoHundredThousandWindow(32_000),
    id: 'claude-opus-4',
    aliases: ['claude-opus-4-0'],
    prices: claudePricesBefore46(OPUS_RATES),
    cache: claudeCacheFacts(1_024),
  },
  {
    ...CLAUDE_4,
    ...twoHundredThousandWindow(64_000),
    id: 'claude-sonnet-4',
    aliases: ['claude-sonnet-4-0'],
    longWindow: 1_000_000,
    prices: SONNET_PRICES,
    cache: claudeCacheFacts(1_024),
    doubts: [
      ONE_MILLION_BETA_DOUBT,
      { field: 'prices.tiers', note: 'as announced with the 1M beta in August 2025' },
    ],
  },
  {
    ...CLAUDE_3,
    ...twoHundredThousandWindow(64_000),
    id: 'claude-3-7-sonnet',
    prices: claudePricesBefore46(SONNET_RATES),
    cache: claudeCacheFacts(1_024),
    thinking: BUDGET_THINKING,
    doubts: [{ field: 'maxOutput', note: '128,000 with a beta header while it lasted' }],
  },
  {
    ...CLAUDE_3,
    ...twoHundredThousandWindow(8_192),
    id: 'claude-3-5-sonnet',
    aliases: ['claude-3-5-sonnet-v2'],
    prices: claudePricesBefore46(SONNET_RATES),
    cache: claudeCacheFacts(1_024),
  },
  {
    ...CLAUDE_3,
    ...twoHundredThousandWindow(8_192),
    id: 'claude-3-5-haiku',
    prices: claudePricesBefore46({ input: 0.8, cacheRead: 0.08, writeShort: 1, writeLong: 1.6, output: 4 }),
    cache: claudeCacheFacts(2_048),
    ...CLAUDE_SOURCE,
  },
  {
    ...CLAUDE_3,
    ...twoHundredThousandWindow(4_096),
    id: 'claude-3-opus',
    prices: claudePricesBefore46(OPUS_RATES),
    cache: claudeCacheFacts(1_024),
  },
  {
    ...CLAUDE_3,
    ...twoHundredThousandWindow(4_096),
    id: 'claude-3-haiku',
    prices: claudePricesBefore46({
      input: 0.25,
      cacheRead: 0.03,
      writeShort: 0.3,
      writeLong: 0.5,
      output: 1.25,
    }),
    cache: claudeCacheFacts(2_048),
  },
]
