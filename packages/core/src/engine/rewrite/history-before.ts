/** All that was said before a cut, whatever of it is still shown: what facts are made from. */
import { isKnown, type KnownRecord } from '../../conversation/record.ts'
import { recordAt } from '../../conversation/tree.ts'
import { type Facts, factsOf } from '../../summarize/facts.ts'
import type { Span } from '../../summarize/span.ts'
import type { SessionState } from '../session-state.ts'
import type { CompactionPlan } from './compaction-plan.ts'

/**
 * The records of the branch that the summary answers for: up to its last summarised record; for `from`, from the
 * first summarised one on. What stays verbatim in the view is left out.
 */
export function historyBefore(state: SessionState, { span }: CompactionPlan): readonly KnownRecord[] {
  return remembered(histories, span, () => historyOf(state, span))
}

/** The facts of it. Summary and gate ask for the same, and reading them off a long history takes its time. */
export function factsBefore(state: SessionState, plan: CompactionPlan): Facts {
  return remembered(facts, plan.span, () => factsOf(historyBefore(state, plan)))
}

/** What lies before a cut never changes: what comes later comes behind it, and a rewind leaves the plan void. */
const histories = new WeakMap<Span, readonly KnownRecord[]>()
const facts = new WeakMap<Span, Facts>()

function remembered<T>(known: WeakMap<Span, T>, span: Span, make: () => T): T {
  const value = known.get(span) ?? make()
  known.set(span, value)
  return value
}

function historyOf({ session, view }: SessionState, span: Span): readonly KnownRecord[] {
  const shown = new Set([...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record.uuid))
  const last = span.summarised.reduce((most, { index }) => Math.max(most, index), -1)
  const least = span.summarised.reduce((so, { index }) => Math.min(so, index), last)
  const first = span.form === 'from' ? least : 0
  const records: KnownRecord[] = []
  for (let position = 0; position < view.branch.length; position += 1) {
    const index = view.branch.at(position) ?? -1
    if (index < first || index > last) continue
    const record = recordAt(session, index)
    if (isKnown(record) && !shown.has(record.uuid)) records.push(record)
  }
  return records
}
