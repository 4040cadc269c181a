/** Summaries in tests: default budgets, a plain estimator, and work that is done in slices elsewhere, done at once. */

import type { SessionFacts } from '../../src/facts/session-facts.ts'
import type { KnownRecord } from '../../src/log/record.ts'
import { runStepsAtOnce, type WorkInSteps } from '../../src/log/work-steps.ts'
import { DEFAULT_POLICY } from '../../src/policy/create-policy.ts'
import * as ledger from '../../src/summary/ledger.ts'
import * as local from '../../src/summary/local-summary.ts'
import * as receipt from '../../src/summary/receipt.ts'
import * as repair from '../../src/summary/repair-summary.ts'
import { createDefaultWeights, createEstimator, type Estimator } from '../../src/tokens/estimator.ts'

export const estimate: Estimator = createEstimator(createDefaultWeights(DEFAULT_POLICY.estimate))

const messages = { each: 20_000, total: 20_000 }

export const summaryRules: local.LocalSummaryOptions = {
  form: 'full',
  tokens: 20_000,
  messages,
  files: 2_000,
  estimate,
}

export const gateRules: repair.RepairRules = {
  author: 'model',
  messages,
  files: 2_000,
  errors: 10,
  tokens: 25_000,
  estimate,
}

function doAtOnce<Input extends readonly unknown[], Result>(
  work: (...input: Input) => WorkInSteps<Result>,
): (...input: Input) => Result {
  return (...input) => runStepsAtOnce(work(...input))
}

export const writeLocalSummary = doAtOnce(function* (facts: SessionFacts, rules: local.LocalSummaryOptions) {
  return yield* local.writeLocalSummary(
    { facts, pieces: yield* local.createLocalSummaryPieces(facts) },
    rules,
  )
})
export const repairSummary = doAtOnce(repair.repairSummary)
export const buildLedger = doAtOnce(function* (
  history: readonly KnownRecord[],
  rules: { readonly tokens: number; readonly estimate: Estimator },
) {
  return yield* ledger.buildLedger(yield* ledger.rankNames(history, rules.estimate), rules)
})
export const createReceipt = doAtOnce(receipt.createReceipt)
