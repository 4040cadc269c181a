/**
 * Types of a model catalogue entry, which is plain JSON. Null means that a fact is not known; a missing capability is
 * false, 0 or an empty list. An optional field is absent if it does not apply.
 */
import type { ModelPrices, TokenRates } from '@tidemark/core/cost/prices'

export interface ModelEntry {
  readonly id: string
  /** Provider of the model: `anthropic`, `openai`, `google`, or a name that the user chose. */
  readonly vendor: string
  /**
   * Other names of this model. Names with a date, platform or gateway need no alias, because `lookUpModel` removes
   * these parts.
   */
  readonly aliases: readonly string[]
  readonly window: number | null
  /**
   * Longest prompt in tokens. It is shorter than the window if the provider reserves part of the window for the reply.
   */
  readonly maxInput: number | null
  readonly maxOutput: number | null
  /** Larger window in tokens that the model name suffix `[1m]` requests. */
  readonly longWindow?: number
  readonly prices: ModelPrices
  /** Earlier price lists, oldest first. Each has the first day on which it was no longer valid. */
  readonly pastPrices?: readonly PastPrices[]
  /** Factor on all prices at an endpoint with a fixed region, such as 1.1 for 10 % more. */
  readonly regionalFactor?: number
  readonly cache: CacheFacts
  readonly thinking: ThinkingFacts
  readonly capabilities: ModelCapabilities
  readonly limits: RequestLimits
  /** Tokenizer family, which selects the weights of the token estimator. */
  readonly tokenizer: TokenizerFamily | null
  readonly source: string
  /** Day on which the source was read, as YYYY-MM-DD; null if the figures come from a user who gave no date. */
  readonly asOf: string | null
  readonly doubts: readonly UncertainField[]
}

interface PastPrices {
  readonly before: string
  readonly prices: ModelPrices
}

/** A field of a catalogue entry whose value is uncertain: sources disagree, or the value was derived. */
export interface UncertainField {
  /** Path of the field in the catalogue entry, such as `prices.cacheRead`. */
  readonly field: string
  readonly note: string
}

export interface CacheFacts {
  /**
   * Length in tokens of the shortest prefix that the provider caches (approximate). A cache marker on a shorter prefix
   * has no effect.
   */
  readonly minimum: number | null
  /** Number of cache markers allowed in a request; 0 if the provider only caches automatically. */
  readonly markers: number | null
  /** Number of blocks before a cache marker that the provider searches for an earlier cache entry. */
  readonly lookBack: number | 'unlimited' | null
  /** Cache entry lifetimes (TTLs) that a request can choose from; the first is the default. */
  readonly ttls: readonly CacheLifetime[] | null
}

interface CacheLifetime {
  readonly name: string
  readonly seconds: number
}

export type ThinkingMode = 'adaptive' | 'enabled' | 'between_tools' | 'disabled'

export interface ThinkingFacts {
  /**
   * Thinking modes that a request may set. Empty if the model cannot think. Does not contain `disabled` if the model
   * always thinks.
   */
  readonly modes: readonly ThinkingMode[] | null
  readonly isOnByDefault: boolean | null
  /**
   * Highest effort at which thinking can be set to its lowest mode (`disabled` or `between_tools`); absent if this is
   * possible at every effort.
   */
  readonly leastUpTo?: string
  readonly efforts: readonly string[] | null
  /**
   * True if the thinking of finished turns stays in the context. False if the provider removes it at the next user
   * prompt.
   */
  readonly keepsPrior: boolean | null
  /**
   * When the provider accepts a thinking block from an earlier response. `none`: always. `model`: if the model can read
   * the block. `prefix`: if the model can read the block and all bytes before it are unchanged.
   */
  readonly binding: 'none' | 'model' | 'prefix' | null
  /** True if the provider drops a thinking block that was created for another account. */
  readonly isAccountBound: boolean | null
}

export interface ModelCapabilities {
  readonly images: boolean | null
  /** True if `tool_choice` can force a tool call. */
  readonly forcedToolChoice: boolean | null
  /** True if the messages may end with an assistant message, which the reply then continues (prefill). */
  readonly prefill: boolean | null
  /** True if the model accepts `temperature`, `top_p` and `top_k`. */
  readonly sampling: boolean | null
  /** True if the model accepts messages with `role: "system"` in mid-conversation. */
  readonly systemMessages: boolean | null
  /** True if tools can be added or removed in mid-conversation without changing the `tools` field. */
  readonly toolChanges: boolean | null
  /** True if an effort can be set on a single message. */
  readonly messageEffort: boolean | null
  /** True if the provider can clear old tool results and thinking from the context (context editing). */
  readonly contextEditing: boolean | null
  /** True if the provider can summarize the conversation when it reaches a given size. */
  readonly thresholdCompaction: boolean | null
  /**
   * True if the provider can summarize the conversation on request. The thinking in the turns that are kept then stays
   * valid.
   */
  readonly onDemandCompaction: boolean | null
  /** True if prompt and `max_tokens` together may exceed the window. The reply is then cut off at the window. */
  readonly endsAtWindow: boolean | null
}

interface RequestLimits {
  readonly bodyBytes: number | null
  readonly images: number | null
}

/** A family of models with the same tokenizer. `estimator-weights.ts` has the weights of each. */
export type TokenizerFamily = 'claude-to-4.6' | 'claude-from-4.7' | 'openai' | 'gemini'

/** Returns the model with all its prices, including past prices, multiplied by `factor`. */
export function scaleModelPrices(model: ModelEntry, factor: number): ModelEntry {
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

function scaleRates(
  { input, cacheRead, writeShort, writeLong, output }: TokenRates,
  factor: number,
): TokenRates {
  const by = (rate: number | null) => (rate === null ? null : roundRate(rate * factor))
  return {
    input: by(input),
    cacheRead: by(cacheRead),
    writeShort: by(writeShort),
    writeLong: by(writeLong),
    output: by(output),
  }
}

/** Rounds a price to six decimals, to remove floating-point noise after a multiplication. */
export function roundRate(rate: number): number {
  return Math.round(rate * 1e6) / 1e6
}
