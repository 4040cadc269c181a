/**
 * Google's models. Caching is automatic and best effort. The window is the longest prompt; the reply has its own limit.
 * Explicit caches, which are billed by the hour, are not covered.
 */
import type { Prices, PriceTier } from '@tidemark/core'
import type { CacheFacts, Capabilities, Doubt, ModelEntry, ThinkingFacts } from './model-entry.ts'
import { GOOGLE_PAGES } from './sources.ts'

function cache(minimum: number | null): CacheFacts {
  return { minimum, markers: 0, lookBack: 'unlimited', ttls: null }
}

/** Up to 2.5, thinking has a token budget instead of an effort: `efforts` is empty. */
function thinks(efforts: readonly string[]): ThinkingFacts {
  const unknown = { keepsPrior: null, binding: null, isAccountBound: null }
  return { modes: ['adaptive'], isOnByDefault: true, efforts, ...unknown }
}
const LOW_TO_HIGH = ['low', 'medium', 'high']
const MINIMAL_TO_HIGH = ['minimal', ...LOW_TO_HIGH]
const NONE: readonly string[] = []

const CAPABLE: Capabilities = {
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

interface Row {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly minimum: number | null
  readonly maxOutput?: number
  readonly prices: Prices
  readonly efforts: readonly string[]
  readonly doubts?: readonly Doubt[]
}

function gemini({
  id,
  aliases = [],
  minimum,
  maxOutput = 65_536,
  prices,
  efforts,
  doubts = [],
}: Row): ModelEntry {
  return {
    id,
    vendor: 'google',
    aliases,
    window: 1_048_576,
    maxInput: 1_048_576,
    maxOutput,
    prices,
    cache: cache(minimum),
    thinking: thinks(efforts),
    capabilities: CAPABLE,
    limits: { bodyBytes: 20_971_520, images: 3_600 },
    tokenizer: 'gemini',
    ...GOOGLE_PAGES,
    doubts,
  }
}

/** A write to the automatic cache costs the input price. */
function flat(input: number, cacheRead: number, output: number): Prices {
  return { input, cacheRead, write5m: input, write1h: null, output }
}

function stepped(prices: Prices, above: Omit<PriceTier, 'write5m' | 'write1h'>): Prices {
  return { ...prices, tiers: [{ ...above, write5m: above.input, write1h: null }] }
}

const OVER_200K = { above: 200_000, input: 4, cacheRead: 0.4, output: 18 }
const MOVED: Doubt = {
  field: 'cache.minimum',
  note: 'raised or lowered before: 1,024 to 4,096 on earlier pages',
}

export const GOOGLE_MODELS: readonly ModelEntry[] = [
  gemini({
    id: 'gemini-4-argon',
    efforts: LOW_TO_HIGH,
    minimum: 4_096,
    maxOutput: 32_768,
    prices: flat(2, 0.1, 10),
    doubts: [{ field: 'maxOutput', note: '65,536 on Google Cloud' }],
  }),
  gemini({ id: 'gemini-3.8-flash', efforts: LOW_TO_HIGH, minimum: 4_096, prices: flat(0.75, 0.075, 3.75) }),
  gemini({ id: 'gemini-3.7-flash', efforts: LOW_TO_HIGH, minimum: 4_096, prices: flat(0.75, 0.075, 3.75) }),
  gemini({
    id: 'gemini-3.6-flash',
    efforts: MINIMAL_TO_HIGH,
    minimum: 4_096,
    prices: flat(0.75, 0.075, 3.75),
  }),
  gemini({ id: 'gemini-3.5-flash', efforts: MINIMAL_TO_HIGH, minimum: 4_096, prices: flat(1.5, 0.15, 9) }),
  gemini({
    id: 'gemini-3.5-flash-lite',
    efforts: MINIMAL_TO_HIGH,
    minimum: null,
    prices: flat(0.3, 0.03, 2.5),
  }),
  gemini({
    id: 'gemini-3.1-pro-preview',
    efforts: LOW_TO_HIGH,
    aliases: ['gemini-3.1-pro-preview-customtools'],
    minimum: 4_096,
    prices: stepped(flat(2, 0.2, 12), OVER_200K),
  }),
  gemini({
    id: 'gemini-3.1-flash-lite',
    efforts: MINIMAL_TO_HIGH,
    aliases: ['gemini-3.1-flash-lite-preview'],
    minimum: null,
    prices: flat(0.25, 0.025, 1.5),
  }),
  gemini({
    id: 'gemini-3-flash-preview',
    efforts: MINIMAL_TO_HIGH,
    minimum: 1_024,
    prices: flat(0.5, 0.05, 3),
    doubts: [MOVED],
  }),
  gemini({
    id: 'gemini-2.5-pro',
    efforts: NONE,
    minimum: 2_048,
    prices: stepped(flat(1.25, 0.125, 10), { above: 200_000, input: 2.5, cacheRead: 0.25, output: 15 }),
    doubts: [MOVED],
  }),
  gemini({
    id: 'gemini-2.5-flash',
    efforts: NONE,
    minimum: 2_048,
    prices: flat(0.3, 0.03, 2.5),
    doubts: [MOVED],
  }),
  gemini({ id: 'gemini-2.5-flash-lite', efforts: NONE, minimum: null, prices: flat(0.1, 0.01, 0.4) }),
]
