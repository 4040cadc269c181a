/** What summaries are made by in tests: the default budgets and a plain estimator. */
import {
  createEstimator,
  DEFAULT_POLICY,
  type Estimator,
  fixedRule,
  type GateRules,
  type LocalSummaryRules,
} from '../../src/index.ts'

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
