/** A model as a session needs it: how to reach it, what it can do, how large it is and what it costs. */
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

/** Made by `anthropic(…)`. A provider of your own fills it in by hand. */
export interface ModelChoice {
  /** As requests name it. */
  readonly id: string
  readonly profile: Profile
  /** Tokens; null where nobody states it, and then nothing is compacted by itself. */
  readonly window: number | null
  /** Tokens of the longest answer; null where nobody states it. */
  readonly maxOutput: number | null
  /** Of this model and of those that a log may name. */
  readonly pricesOf: PriceList
  /** What token estimates start from. */
  readonly weights: (policy: Policy['estimate']) => EstimatorWeights
  /** Called once for each session, and for its summariser. */
  readonly connect: (settings: ConnectSettings) => Model
  /** Fields of every request beside tools, system and messages: `max_tokens`, `thinking` … */
  readonly parameters: JsonObject
  /** What a person should know of the choice: a window that is not sure, a price that is not known. */
  readonly notes: readonly string[]
}

export interface ConnectSettings {
  readonly clock: Clock
  readonly network: Policy['turn']['network']
  /** Told before each wait for another try. `attempt`: how many have failed. */
  readonly onRetry?: (retry: Retry) => void
}

export interface Retry {
  readonly cause: Failure
  readonly delayMs: number
  readonly attempt: number
}
