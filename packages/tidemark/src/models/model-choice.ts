/** A model as a session uses it: how to reach it, what it can do, its window and its prices. */
import type {
  Clock,
  EstimatorWeights,
  Failure,
  JsonObject,
  Model,
  Policy,
  PriceList,
  Profile,
} from '@tidemark/core'

/** Created by `anthropic(…)`; for another provider, fill in the fields yourself. */
export interface ModelChoice {
  /** The model id sent in requests. */
  readonly id: string
  readonly profile: Profile
  /** Context window in tokens; null if unknown, and then nothing is compacted automatically. */
  readonly window: number | null
  /** Output limit in tokens; null if unknown. */
  readonly maxOutput: number | null
  /** Prices of this model and of other models named in a log. */
  readonly pricesOf: PriceList
  /** Initial weights of the token estimator. */
  readonly weights: (policy: Policy['estimate']) => EstimatorWeights
  /** Called once per session, and once for its summarizer. */
  readonly connect: (settings: ConnectSettings) => Model
  /** Request fields other than tools, system and messages: `max_tokens`, `thinking` … */
  readonly parameters: JsonObject
  /** Shown to the user: an uncertain window, an unknown price. */
  readonly notes: readonly string[]
}

export interface ConnectSettings {
  readonly clock: Clock
  readonly network: Policy['turn']['network']
  /** Called before the wait of each retry. `attempt`: how many attempts have failed. */
  readonly onRetry?: (retry: Retry) => void
}

export interface Retry {
  readonly cause: Failure
  readonly delayMs: number
  readonly attempt: number
}
