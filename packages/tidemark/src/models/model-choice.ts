/** Describes the model of a session: how to call it, its rules, its context window and its prices. */
import type { FindModelPrices } from '@tidemark/core/cost/session-cost'
import type { Clock, Model } from '@tidemark/core/engine/ports'
import type { UpcomingRetry } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import type { Policy } from '@tidemark/core/policy/policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { EstimatorWeights } from '@tidemark/core/tokens/estimator'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'

/** A model as a session uses it. `anthropic(…)` creates one; for another provider, fill in the fields. */
export interface ModelChoice {
  /** Model id that is sent in API requests. */
  readonly id: string
  readonly profile: ProviderProfile
  /** Context window in tokens; null if unknown, in which case nothing is compacted automatically. */
  readonly window: number | null
  /** Output limit in tokens; null if unknown. */
  readonly maxOutput: number | null
  /** Returns the prices of a model by its name: of this model, or of other models that occur in a log. */
  readonly priceList: FindModelPrices
  /** Returns the weights that the token estimator starts with, before it is calibrated by reported usage. */
  readonly weights: (policy: Policy['estimate']) => EstimatorWeights
  /**
   * Returns true if another model, named as in a log, has the same tokenizer. After a switch between tokenizers the
   * context is estimated until the new model has reported its size. Default: all models have the same.
   */
  readonly hasTokenizerOf?: (model: string) => boolean
  /** The protocol of the provider, in which clients are answered and requests are encoded. Default: the Messages API. */
  readonly codec?: ProviderCodec
  /** Creates the connection to the model. Called once per session, and once more for the summarizer. */
  readonly connect: (settings: ConnectOptions) => Model
  /** Replaces the key of the model in a text. Applied to the results of tools before they are logged. Default: none is. */
  readonly hideKey?: (text: string) => string
  /** Fields of every API request other than tools, system and messages, such as the output limit and `thinking`. */
  readonly parameters: JsonObject
  /** True if requests go to Amazon Bedrock, which has its own switch for the 1-hour cache lifetime. Default: false. */
  readonly isBedrock?: boolean
  /**
   * Returns another model of the same provider, called in the same way. Needed only for the policy field `compact.direct.model`.
   */
  readonly sibling?: (id: string) => ModelChoice
  /** Notes for the user about uncertain figures, such as an unknown price. */
  readonly notes: readonly string[]
}

interface ConnectOptions {
  /** Id of the session, which keeps it on one machine of some providers. Absent for connections of no session. */
  readonly session?: string
  readonly clock: Clock
  readonly network: Policy['turn']['network']
  /** Called before the wait that precedes each retry. */
  readonly onRetry?: (retry: UpcomingRetry) => void
}
