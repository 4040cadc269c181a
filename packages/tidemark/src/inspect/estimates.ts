/** How large a block is, by the model of whose conversation it is part. */
import {
  type Block,
  createEstimator,
  DEFAULT_POLICY,
  type Estimator,
  type ModelEstimator,
} from '@tidemark/core'
import { type Catalogue, estimatorWeights, lookUpModel, type TokenizerFamily } from '@tidemark/wire'

export type EstimateBlock = (block: Block) => number

export interface Estimates {
  forModel(model: string): ModelEstimator
}

/** Models of one family of tokenizer share an estimator; those nobody knows share the fixed rule. */
export function createEstimates(catalogue: Catalogue): Estimates {
  const families = new Map<TokenizerFamily | null, Estimator>()
  const models = new Map<string, ModelEstimator>()
  function estimatorOf(family: TokenizerFamily | null): Estimator {
    const known = families.get(family) ?? createEstimator(estimatorWeights(family, DEFAULT_POLICY.estimate))
    families.set(family, known)
    return known
  }
  return {
    forModel(model) {
      const known = models.get(model)
      if (known !== undefined) return known
      const found = lookUpModel(catalogue, model)
      const made = {
        estimator: estimatorOf(found.found ? found.model.tokenizer : null),
        stripsThinking: found.found && found.model.thinking.keepsPrior === false,
      }
      models.set(model, made)
      return made
    },
  }
}
