/** The summary after the gate: what the log knows for certain is in it, and what is secret is not. */
import { passGate } from '../../summarize/gate.ts'
import { ledgerOf } from '../../summarize/ledger.ts'
import { redact } from '../../summarize/redact.ts'
import type { TurnRun } from '../turn-run.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { factsBefore, historyBefore } from './history-before.ts'
import type { Room } from './room.ts'
import type { RawSummary, WrittenSummary } from './written-summary.ts'

export interface GateQuestion {
  readonly plan: CompactionPlan
  readonly written: RawSummary
}

export function gated({ state, host }: TurnRun, room: Room, { plan, written }: GateQuestion): WrittenSummary {
  const history = historyBefore(state, plan)
  const facts = factsBefore(state, plan)
  const { userMessages, ledger } = room.scaled.budgets
  const { text, repairs, unfit } = passGate(written.text, facts, {
    messages: userMessages,
    files: ledger.files,
    errors: host.policy.ledger.errors,
    tokens: userMessages.total + ledger.files + ledger.names,
    estimate: room.estimator,
  })
  const names = ledgerOf(history, { tokens: ledger.names, estimate: room.estimator })
  const listed = names.text === '' ? [] : [redact(names.text)]
  const lines = names.lines.map(redact)
  if (written.block !== null)
    return { ...written, beside: [...repairs, ...listed].join('\n\n'), ledger: lines, unfit }
  return { ...written, text: [text, ...listed].join('\n\n'), beside: '', ledger: lines, unfit }
}
