/** What stands in the place of a history when it is compacted without a model: summary and ledger, by the defaults. */

import { extractSessionFacts } from '../../packages/core/src/facts/session-facts.ts'
import type { KnownRecord } from '../../packages/core/src/log/record.ts'
import { DEFAULT_POLICY } from '../../packages/core/src/policy/create-policy.ts'
import { computeContentBudgets } from '../../packages/core/src/policy/scale-policy.ts'
import { computeUserMessageBudget } from '../../packages/core/src/summary/summary-pieces.ts'
import { createEstimator, type Estimator } from '../../packages/core/src/tokens/estimator.ts'
import { buildLedger, writeLocalSummary } from '../../packages/core/test/summarize/summary-rules.ts'
import { lookUpModel, modelCatalogue } from '../../packages/wire/src/catalogue/catalogue.ts'
import { createEstimatorWeights } from '../../packages/wire/src/catalogue/estimator-weights.ts'

/** The estimator of the model a session ran on. */
export function estimatorFor(model: string | undefined): Estimator {
  const found = lookUpModel(modelCatalogue, model ?? '')
  return createEstimator(
    createEstimatorWeights(found.found ? found.model.tokenizer : null, DEFAULT_POLICY.estimate),
  )
}

export interface Summarised {
  readonly text: string
  readonly tokens: number
  readonly milliseconds: number
}

export function summarise(history: readonly KnownRecord[], estimate: Estimator): Summarised {
  const started = performance.now()
  const { ledger } = computeContentBudgets(DEFAULT_POLICY, null)
  const { outputTokens } = DEFAULT_POLICY.compact.direct
  const rules = {
    form: 'full' as const,
    tokens: outputTokens,
    messages: computeUserMessageBudget(DEFAULT_POLICY.ledger, null),
    files: ledger.files,
    estimate,
  }
  const summary = writeLocalSummary(extractSessionFacts(history), rules)
  const names = buildLedger(history, { tokens: ledger.names, estimate })
  const text = `${summary.text}\n\n${names.text}`
  return { text, tokens: estimate.text(text), milliseconds: performance.now() - started }
}
