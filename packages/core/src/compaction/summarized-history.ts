/**
 * The records that a compaction summarizes, the facts in them, and the names in them. A long log is read in slices, once
 * for all steps of the compaction.
 */
import type { CompactionServices } from '../engine/host.ts'
import type { SessionState } from '../engine/session-state.ts'
import { runTurnSteps, type TurnContext } from '../engine/session-writer.ts'
import {
  addRecords,
  createFactsKeeper,
  extractSessionFacts,
  type SessionFacts,
} from '../facts/session-facts.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { readRecordAt } from '../log/session-log.ts'
import { rankNames } from '../summary/ledger.ts'
import { listPieces } from '../summary/local-summary.ts'
import type { CompactionSpan } from '../summary/select-span.ts'
import type { CompactionPlan } from './plan-compaction.ts'

/**
 * Reads the records to summarize in slices: their facts, the names in them, and, unless the summary is the notes, the
 * pieces of a local summary. The steps that follow find them ready. Returns false if the turn was aborted.
 */
export async function cacheSummarizedHistory(
  turn: TurnContext,
  { estimator }: CompactionServices,
  plan: CompactionPlan,
): Promise<boolean> {
  const history = listSummarizedRecords(turn.state, plan)
  const keeper = createFactsKeeper()
  const known = factsBySpan.get(plan.span)
  if (known === undefined && (await runTurnSteps(turn, addRecords(keeper, history))) === null) return false
  const facts = known ?? withAnsweredMessages(keeper.read())
  factsBySpan.set(plan.span, facts)
  if ((await runTurnSteps(turn, rankNames(history, estimator))) === null) return false
  return plan.request.notesText !== undefined || (await runTurnSteps(turn, listPieces(facts))) !== null
}

// Caches the records to summarize and their facts. Both stay the same for a plan: new records come later, and after a
// rewind the plan is stale.
const historyBySpan = new WeakMap<CompactionSpan, readonly KnownRecord[]>()
const factsBySpan = new WeakMap<CompactionSpan, SessionFacts>()

/**
 * Returns the facts (user messages, files, errors, todos) of the records to summarize. They are cached because several
 * steps need them and reading a long log takes time.
 */
export function readFacts(state: SessionState, plan: CompactionPlan): SessionFacts {
  const facts =
    factsBySpan.get(plan.span) ??
    withAnsweredMessages(extractSessionFacts(listSummarizedRecords(state, plan)))
  factsBySpan.set(plan.span, facts)
  return facts
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
  const known = historyBySpan.get(span)
  if (known !== undefined) return known
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
  historyBySpan.set(span, records)
  return records
}
