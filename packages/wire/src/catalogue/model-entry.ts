/**
 * What is known about a model, as plain JSON. Null always means "not known"; what a model does not have is false, 0 or an
 * empty list. An optional field is absent if it does not apply.
 */
import type { ModelPrices, TokenRates } from '@tidemark/core'

export interface ModelEntry {
  readonly id: string
  /** The provider: `anthropic`, `openai`, `google`, or a name that the user chose. */
  readonly vendor: string
  /** Other names of exactly this model. `lookUpModel` removes dates, platforms and gateways itself. */
  readonly aliases: readonly string[]
  readonly window: number | null
  /** The longest prompt accepted: less than the window if the provider reserves part of it for the reply. */
  readonly maxInput: number | null
  readonly maxOutput: number | null
  /** The larger window that a `[1m]` suffix requested while it was offered. */
  readonly longWindow?: number
  readonly prices: ModelPrices
  /** Earlier price lists, oldest first. */
  readonly pastPrices?: readonly PastPrices[]
  /** Factor on every price at an endpoint tied to a region. */
  readonly regionalFactor?: number
  readonly cache: CacheFacts
  readonly thinking: ThinkingFacts
  readonly capabilities: ModelCapabilities
  readonly limits: RequestLimits
  /** Selects the weights of the token estimate. */
  readonly tokenizer: TokenizerFamily | null
  readonly source: string
  /** The day the source was read, as YYYY-MM-DD; null if the user who gave the figures did not say. */
  readonly asOf: string | null
  readonly doubts: readonly UncertainField[]
}

interface PastPrices {
  readonly before: string
  readonly prices: ModelPrices
}

/** A field whose value is disputed, or was derived instead of read from a source. */
export interface UncertainField {
  /** Path of the field, such as `prices.cacheRead`. */
  readonly field: string
  readonly note: string
}

export interface CacheFacts {
  /** The shortest prefix that is cached; below it a marker has no effect and no error. A hint: reported usage decides. */
  readonly minimum: number | null
  /** Markers allowed in a request; 0 if caching is only automatic. */
  readonly markers: number | null
  /** How many blocks before a marker the provider looks for an earlier cache entry. */
  readonly lookBack: number | 'unlimited' | null
  /** Cache lifetimes that can be requested, the default first. */
  readonly ttls: readonly CacheLifetime[] | null
}

export interface CacheLifetime {
  readonly name: string
  readonly seconds: number
}

export type ThinkingMode = 'adaptive' | 'enabled' | 'between_tools' | 'disabled'

export interface ThinkingFacts {
  /** Modes that a request may set; empty for a model that cannot think, without `disabled` if it always thinks. */
  readonly modes: readonly ThinkingMode[] | null
  readonly isOnByDefault: boolean | null
  /** The highest effort that accepts the lowest mode (`disabled` or `between_tools`); absent: any effort does. */
  readonly leastUpTo?: string
  readonly efforts: readonly string[] | null
  /** True: thinking of finished turns stays in context. False: the provider strips it at the next prompt. */
  readonly keepsPrior: boolean | null
  /** What a thinking block is bound to: nothing, the models that can read it, or every byte before it as well. */
  readonly binding: 'none' | 'model' | 'prefix' | null
  /** Whether a block is dropped when another account sends it. */
  readonly isAccountBound: boolean | null
}

export interface ModelCapabilities {
  readonly images: boolean | null
  /** `tool_choice` that forces a call. */
  readonly forcedToolChoice: boolean | null
  /** A conversation may end with the beginning of the reply. */
  readonly prefill: boolean | null
  /** `temperature`, `top_p`, `top_k`. */
  readonly sampling: boolean | null
  /** `role: "system"` messages in mid-conversation. */
  readonly systemMessages: boolean | null
  /** Tools added or removed in mid-conversation without changing `tools`. */
  readonly toolChanges: boolean | null
  /** An effort set on a single message. */
  readonly messageEffort: boolean | null
  /** The provider clears old tool results and thinking itself. */
  readonly contextEditing: boolean | null
  /** The provider summarizes when a threshold is crossed. */
  readonly thresholdCompaction: boolean | null
  /** The provider summarizes on request, and thinking in kept turns stays valid. */
  readonly onDemandCompaction: boolean | null
  /** Accepts a prompt plus `max_tokens` larger than the window; the reply ends at the window. */
  readonly endsAtWindow: boolean | null
}

interface RequestLimits {
  readonly bodyBytes: number | null
  readonly images: number | null
}

/** Families of tokenizers. Their weights are in `estimator-weights.ts`. */
export type TokenizerFamily = 'claude-to-4.6' | 'claude-from-4.7' | 'openai' | 'gemini'

/** Basis of a token estimate: fitted to recorded sessions, derived from published figures, or the fixed rule. */
type EstimateBasis = 'fitted' | 'derived' | 'fixed-rule'

export const TOKENIZER_FAMILIES: Readonly<Record<TokenizerFamily, EstimateBasis>> = {
  'claude-to-4.6': 'fitted',
  'claude-from-4.7': 'derived',
  openai: 'derived',
  gemini: 'fixed-rule',
}

/** Prices on a day (YYYY-MM-DD, or a timestamp that begins with it): old logs were billed at old prices. */
export function pricesAtDate(model: ModelEntry, day: string): ModelPrices {
  return model.pastPrices?.find(({ before }) => day < before)?.prices ?? model.prices
}

/** The model with every price, past ones included, multiplied by `factor`. */
export function scalePrices(model: ModelEntry, factor: number): ModelEntry {
  const scaled = { ...model, prices: scalePriceList(model.prices, factor) }
  if (model.pastPrices === undefined) return scaled
  const pastPrices = model.pastPrices.map((past) => ({
    ...past,
    prices: scalePriceList(past.prices, factor),
  }))
  return { ...scaled, pastPrices }
}

function scalePriceList(prices: ModelPrices, factor: number): ModelPrices {
  const scaled = { ...prices, ...scaleRates(prices, factor) }
  if (prices.tiers === undefined) return scaled
  return { ...scaled, tiers: prices.tiers.map((tier) => ({ ...tier, ...scaleRates(tier, factor) })) }
}

function scaleRates({ input, cacheRead, write5m, write1h, output }: TokenRates, factor: number): TokenRates {
  const by = (rate: number | null) => (rate === null ? null : roundRate(rate * factor))
  return {
    input: by(input),
    cacheRead: by(cacheRead),
    write5m: by(write5m),
    write1h: by(write1h),
    output: by(output),
  }
}

/** To six decimals: a multiplication adds floating-point noise. */
export function roundRate(rate: number): number {
  return Math.round(rate * 1e6) / 1e6
}
