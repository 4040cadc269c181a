/**
 * What is known of a model, as plain JSON. Null always means "not known", never "none" and never 0; what a
 * model does not have is false, 0 or an empty list. A field that is optional is absent where it does not apply.
 */
import type { Prices, Rates } from '@tidemark/core'

export interface ModelEntry {
  readonly id: string
  /** Whose API: `anthropic`, `openai`, `google`, or the user's own word. */
  readonly vendor: string
  /** Other names that mean exactly this model. Dates, platforms and gateways are peeled off by the look-up. */
  readonly aliases: readonly string[]
  readonly window: number | null
  /** The longest prompt that is accepted, where room for the answer is set aside from the window; else the window. */
  readonly maxInput: number | null
  readonly maxOutput: number | null
  /** The larger window that a `[1m]` suffix asked for, while there was one. */
  readonly longWindow?: number
  readonly prices: Prices
  /** What was charged before that day, oldest first. */
  readonly pastPrices?: readonly PastPrices[]
  /** What an endpoint tied to a region does to every price. */
  readonly regionalFactor?: number
  readonly cache: CacheFacts
  readonly thinking: ThinkingFacts
  readonly capabilities: Capabilities
  readonly limits: RequestLimits
  /** Whose constants a token estimate starts from. */
  readonly tokenizer: TokenizerFamily | null
  readonly source: string
  /** The day the source was read, as YYYY-MM-DD; null where the user who gave the figures did not say. */
  readonly asOf: string | null
  readonly doubts: readonly Doubt[]
}

interface PastPrices {
  readonly before: string
  readonly prices: Prices
}

/** A value that is given but contested, or that was derived and not read. */
export interface Doubt {
  /** Path of the field, as in `prices.cacheRead`. */
  readonly field: string
  readonly note: string
}

export interface CacheFacts {
  /** The shortest prefix that is cached; below it a marker is silently without effect. A hint: usage decides. */
  readonly minimum: number | null
  /** The most markers a request may carry; 0 where caching is automatic only. */
  readonly markers: number | null
  /** How many positions before a marker an earlier entry is still found. */
  readonly lookBack: number | 'unlimited' | null
  /** Lifetimes that can be asked for, the default first. */
  readonly ttls: readonly Ttl[] | null
}

export interface Ttl {
  readonly name: string
  readonly seconds: number
}

export type ThinkingMode = 'adaptive' | 'enabled' | 'between_tools' | 'disabled'

export interface ThinkingFacts {
  /** What a request may ask for; empty for a model that cannot think, without `disabled` where it always does. */
  readonly modes: readonly ThinkingMode[] | null
  readonly isOnByDefault: boolean | null
  /** The highest effort at which the least mode (`disabled` or `between_tools`) is accepted; absent: any. */
  readonly leastUpTo?: string
  readonly efforts: readonly string[] | null
  /** True: thinking of finished turns stays in context. False: it is stripped at the next prompt. */
  readonly keepsPrior: boolean | null
  /** What a thinking block is tied to: nothing, the models that can read it, or also every byte before it. */
  readonly binding: 'none' | 'model' | 'prefix' | null
  /** Whether a block is dropped when another account sends it. */
  readonly isAccountBound: boolean | null
}

export interface Capabilities {
  readonly images: boolean | null
  /** `tool_choice` that forces a call. */
  readonly forcedToolChoice: boolean | null
  /** A conversation that ends in a half-written answer. */
  readonly prefill: boolean | null
  /** `temperature` and its like. */
  readonly sampling: boolean | null
  /** `role: "system"` in mid-conversation. */
  readonly systemMessages: boolean | null
  /** Tools added or removed in mid-conversation without touching the list in front. */
  readonly toolChanges: boolean | null
  /** An effort for one message, in mid-conversation. */
  readonly messageEffort: boolean | null
  /** The provider clears old tool results and thinking itself. */
  readonly contextEditing: boolean | null
  /** The provider summarises when a threshold is crossed. */
  readonly thresholdCompaction: boolean | null
  /** The provider summarises when asked, and thinking in kept turns stays valid. */
  readonly onDemandCompaction: boolean | null
  /** A prompt plus output cap over the window is accepted, and the answer ends at the window. */
  readonly endsAtWindow: boolean | null
}

interface RequestLimits {
  readonly bodyBytes: number | null
  readonly images: number | null
}

/** Families of tokenizers, and what the estimate of each rests on. The weights are in `estimator-weights`. */
export type TokenizerFamily = 'claude-to-4.6' | 'claude-from-4.7' | 'openai' | 'gemini'

/** Fitted to recorded sessions, derived from figures measured elsewhere, or the fixed rule and nothing more. */
type EstimateBasis = 'fitted' | 'derived' | 'fixed-rule'

export const TOKENIZER_FAMILIES: Readonly<Record<TokenizerFamily, EstimateBasis>> = {
  'claude-to-4.6': 'fitted',
  'claude-from-4.7': 'derived',
  openai: 'derived',
  gemini: 'fixed-rule',
}

// What a model costs on a day and at a place.

/** On a day (YYYY-MM-DD, or a timestamp that begins with it): old logs were billed at old prices. */
export function pricesOn(model: ModelEntry, day: string): Prices {
  return model.pastPrices?.find(({ before }) => day < before)?.prices ?? model.prices
}

/** The model at an endpoint that multiplies every price, past ones too. */
export function timesFactor(model: ModelEntry, factor: number): ModelEntry {
  const scaled = { ...model, prices: pricesTimes(model.prices, factor) }
  if (model.pastPrices === undefined) return scaled
  const pastPrices = model.pastPrices.map((past) => ({ ...past, prices: pricesTimes(past.prices, factor) }))
  return { ...scaled, pastPrices }
}

function pricesTimes(prices: Prices, factor: number): Prices {
  const scaled = { ...prices, ...ratesTimes(prices, factor) }
  if (prices.tiers === undefined) return scaled
  return { ...scaled, tiers: prices.tiers.map((tier) => ({ ...tier, ...ratesTimes(tier, factor) })) }
}

function ratesTimes({ input, cacheRead, write5m, write1h, output }: Rates, factor: number): Rates {
  const by = (rate: number | null) => (rate === null ? null : exact(rate * factor))
  return {
    input: by(input),
    cacheRead: by(cacheRead),
    write5m: by(write5m),
    write1h: by(write1h),
    output: by(output),
  }
}

/** Prices have a few decimals; what a multiplication adds behind them is noise. */
export function exact(rate: number): number {
  return Math.round(rate * 1e6) / 1e6
}
