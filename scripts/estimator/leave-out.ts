/** How each recorded session fares with constants fitted to all the others. */

import { DEFAULT_POLICY } from '../../packages/core/src/policy/create-policy.ts'
import { createEstimator } from '../../packages/core/src/tokens/estimator.ts'
import { lookUpModel, modelCatalogue } from '../../packages/wire/src/catalogue/catalogue.ts'
import type { FittedConstants } from '../../packages/wire/src/catalogue/estimator-constants.ts'
import { createFittedWeights } from '../../packages/wire/src/catalogue/estimator-weights.ts'
import type { ModelEntry } from '../../packages/wire/src/catalogue/model-entry.ts'
import { CLAUDE_CODE_REMINDER, type PredictedGrowth, predictGrowth } from './estimator-error.ts'
import { type Row, rowsOf } from './features.ts'
import { fitConstants } from './fitted.ts'
import type { RecordedSession } from './sessions.ts'

export const FAMILY = 'claude-to-4.6'

export function entryOf(model: string): ModelEntry | null {
  const found = lookUpModel(modelCatalogue, model)
  return found.found ? found.model : null
}

/** The rows of each session that a fit can learn from. */
export function rowsOfEach(sessions: readonly RecordedSession[]): readonly (readonly Row[])[] {
  return sessions.map((session) => rowsOf(session, { stripsThinking, reminder: CLAUDE_CODE_REMINDER }))
}

export function leftOutTurns(sessions: readonly RecordedSession[]): readonly (readonly PredictedGrowth[])[] {
  const rows = rowsOfEach(sessions)
  return sessions.map((session, index) =>
    turnsWith(fitConstants(rows.filter((_, other) => other !== index).flat()), session),
  )
}

function turnsWith(fitted: FittedConstants, { calls }: RecordedSession): readonly PredictedGrowth[] {
  const policy = DEFAULT_POLICY.estimate
  const estimator = createEstimator(createFittedWeights(fitted, policy))
  return predictGrowth(calls, {
    policy,
    forModel: (model) => ({ estimator, stripsThinking: stripsThinking(model) }),
    reminder: { ...CLAUDE_CODE_REMINDER, tokens: fitted.reminder },
  })
}

function stripsThinking(model: string): boolean {
  return entryOf(model)?.thinking.keepsPrior === false
}
