/** How well the context's growth could be foretold on this session, with what was known at each time. */
import { apiCalls, DEFAULT_POLICY, estimatedTurns, estimatorError, type SessionRecord } from '@tidemark/core'
import { claudeCodeReminder, isClaudeCodeRestart, type LogFormat } from '@tidemark/wire'
import type { Estimates } from './estimates.ts'
import type { EstimatorReport } from './report.ts'

export function estimatorReport(
  records: readonly SessionRecord[],
  format: LogFormat,
  estimates: Estimates,
): EstimatorReport {
  const isClaudeCodes = format === 'claude-code'
  const reminder = isClaudeCodes ? claudeCodeReminder(records) : undefined
  const turns = estimatedTurns(apiCalls(records, isClaudeCodes ? isClaudeCodeRestart : undefined), {
    policy: DEFAULT_POLICY.estimate,
    forModel: estimates.forModel,
    ...(reminder === undefined ? {} : { reminder }),
  })
  const { turns: counted, medianAbsError, bias, excluded } = estimatorError(turns)
  return {
    turns: counted,
    medianAbsError: counted === 0 ? null : medianAbsError,
    bias: counted === 0 ? null : Math.round(bias * 1e4) / 1e4,
    excluded,
  }
}
