/** The rules for summaries in tests: default budgets and a plain estimator. */

import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'
import type { GateRules } from '../../src/summary/check-summary.ts'
import type { LocalSummaryRules } from '../../src/summary/local-summary.ts'
import { createEstimator, type Estimator, fixedRule } from '../../src/tokens/estimator.ts'

export const estimate: Estimator = createEstimator(fixedRule(DEFAULT_POLICY.estimate))

const messages = { each: 2_000, total: 20_000 }

export const summaryRules: LocalSummaryRules = {
  form: 'full',
  tokens: 20_000,
  messages,
  files: 2_000,
  estimate,
}

export const gateRules: GateRules = { messages, files: 2_000, errors: 10, tokens: 25_000, estimate }
