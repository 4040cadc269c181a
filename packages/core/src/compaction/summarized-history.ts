/** The records that a compaction summarizes, read once for all of its steps: the facts and the names in them. */
import { type CompactionServices, readHostToolNames } from '../engine/host.ts'
import type { SessionState } from '../engine/session-state.ts'
import { runTurnSteps, type TurnContext } from '../engine/session-writer.ts'
import { addRecords, createFactsKeeper, type SessionFacts } from '../facts/session-facts.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { readRecordAt } from '../log/session-log.ts'
import type { Steps } from '../log/work-steps.ts'
import { type RankedName, rankNames } from '../summary/ledger.ts'
import { listPieces } from '../summary/local-summary.ts'
import type { SummaryPiece } from '../summary/summary-pieces.ts'
import type { CompactionPlan } from './plan-compaction.ts'

export interface SummarizedHistory {
  readonly facts: SessionFacts
  /** The names in the records, those that are most likely to be needed first. */
  readonly names: readonly RankedName[]
  /** What a summary without a model may say; empty if the notes are the summary, since none is written then. */
  readonly pieces: readonly SummaryPiece[]
}

/** Reads the records to summarize in slices. Returns null if the turn was aborted. */
export function readSummarizedHistory(
  turn: TurnContext,
  { estimator }: Pick<CompactionServices, 'estimator'>,
  plan: CompactionPlan,
): Promise<SummarizedHistory | null> {
  const records = listSummarizedRecords(turn.state, plan)
  return runTurnSteps(turn, readInSteps())

  function* readInSteps(): Steps<SummarizedHistory> {
    const keeper = createFactsKeeper({ tools: readHostToolNames(turn.host.policy) })
    yield* addRecords(keeper, records)
    const facts = withAnsweredMessages(keeper.read())
    const names = yield* rankNames(records, estimator)
    return { facts, names, pieces: plan.request.notesText === undefined ? yield* listPieces(facts) : [] }
  }
}

/**
 * Marks all user messages as answered. Those that are not stay in the context and are not summarized; the last one here
 * may have its answer among the messages kept. So it may be cut, where an unanswered one would be left out as too long.
 */
function withAnsweredMessages(facts: SessionFacts): SessionFacts {
  return { ...facts, messages: facts.messages.map((message) => ({ ...message, isAnswered: true })) }
}

/**
 * Lists the log records that the summary replaces, including those that left the context in earlier compactions. Begins
 * with the first record of the branch or, for form `from`, with the first summarized one; ends with the last summarized
 * one. Records kept verbatim are left out.
 */
export function listSummarizedRecords(
  { session, view }: SessionState,
  { span }: CompactionPlan,
): readonly KnownRecord[] {
  const shown = new Set([...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record.uuid))
  const indexes = span.summarised.map(({ index }) => index)
  const last = indexes.reduce((most, index) => Math.max(most, index), -1)
  const first = span.form === 'from' ? indexes.reduce((least, index) => Math.min(least, index), last) : 0
  const records: KnownRecord[] = []
  for (let position = 0; position < view.branch.length; position += 1) {
    const index = view.branch.at(position) ?? -1
    if (index < first || index > last) continue
    const record = readRecordAt(session, index)
    if (isKnownRecord(record) && !shown.has(record.uuid)) records.push(record)
  }
  return records
}
