/** The receipt of a drafted compaction, told on the session as it is and as it would be. */
import { type Receipt, receiptOf } from '../../summarize/receipt.ts'
import { redact } from '../../summarize/redact.ts'
import type { SessionState } from '../session-state.ts'
import type { Drafted } from './draft.ts'
import { historyBefore } from './history-before.ts'
import type { Room } from './room.ts'

export interface ReceiptFor {
  readonly drafted: Drafted
  /** With all that has come since it was planned. */
  readonly before: SessionState
  readonly after: SessionState
}

export function receiptFor({ scaled, estimator }: Room, { drafted, before, after }: ReceiptFor): Receipt {
  const { plan, front, carried, summary } = drafted
  return receiptOf({
    before: before.view.entries.toArray(),
    history: historyBefore(before, plan),
    after: after.view.entries.toArray(),
    summarised: plan.span.summarised,
    carried: [...front, ...carried],
    unfit: summary.unfit,
    unpinned: plan.span.unpinned.map(({ record }) => record.uuid),
    clean: redact,
    messages: scaled.budgets.userMessages,
    estimate: estimator,
  })
}
