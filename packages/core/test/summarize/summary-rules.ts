/** The rules for summaries in tests: default budgets and a plain estimator. */

import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'
import type { LocalSummaryOptions } from '../../src/summary/local-summary.ts'
import type { RepairRules } from '../../src/summary/repair-summary.ts'
import { createEstimator, createFixedWeights, type Estimator } from '../../src/tokens/estimator.ts'

export const estimate: Estimator = createEstimator(createFixedWeights(DEFAULT_POLICY.estimate))

const messages = { each: 20_000, total: 20_000 }

export const summaryRules: LocalSummaryOptions = {
  form: 'full',
  tokens: 20_000,
  messages,
  files: 2_000,
  estimate,
}

export const gateRules: RepairRules = {
  author: 'model',
  messages,
  files: 2_000,
  errors: 10,
  tokens: 25_000,
  estimate,
}
