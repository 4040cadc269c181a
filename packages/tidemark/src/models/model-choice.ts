/** A model as a session uses it: how to reach it, what it can do, its window and its prices. */
import type {
  Clock,
  EstimatorWeights,
  JsonObject,
  Model,
  ModelFailure,
  Policy,
  PriceList,
  ProviderProfile,
} from '@tidemark/core'

/** Created by `anthropic(…)`; for another provider, fill in the fields yourself. */
export interface ModelChoice {
  /** The model id sent in requests. */
  readonly id: string
  readonly profile: ProviderProfile
  /** Context window in tokens; null if unknown, and then nothing is compacted automatically. */
  readonly window: number | null
  /** Output limit in tokens; null if unknown. */
  readonly maxOutput: number | null
  /** Prices of this model and of other models named in a log. */
  readonly priceList: PriceList
  /** Initial weights of the token estimator. */
  readonly weights: (policy: Policy['estimate']) => EstimatorWeights
  /** Called once per session, and once for its summarizer. */
  readonly connect: (settings: ConnectOptions) => Model
  /** Request fields other than tools, system and messages: `max_tokens`, `thinking` … */
  readonly parameters: JsonObject
  /** Shown to the user: an uncertain window, an unknown price. */
  readonly notes: readonly string[]
}

export interface ConnectOptions {
  readonly clock: Clock
  readonly network: Policy['turn']['network']
  /** Called before the wait of each retry. `attempt`: how many attempts have failed. */
  readonly onRetry?: (retry: RetryInfo) => void
}

export interface RetryInfo {
  readonly cause: ModelFailure
  readonly delayMs: number
  readonly attempt: number
}
