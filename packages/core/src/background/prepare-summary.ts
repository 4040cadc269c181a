/**
 * Rules for a summary that is prepared beside the turns: when it may begin, what makes it stale, and when it is swapped
 * in. The host runs the preparation; nothing is appended to the log before the swap, except the cost.
 */

import {
  type CompactionResult,
  commitDraft,
  isSummarizedRecordNewlyPinned,
} from '../compaction/commit-draft.ts'
import { type CompactionDraft, listEntriesSincePlan } from '../compaction/draft.ts'
import type { CompactionOptions, CompactionPlan } from '../compaction/plan-compaction.ts'
import { refreshDraft } from '../compaction/prepare-draft.ts'
import { type SummaryDropReason, type TurnEvent, withDonePhase } from '../engine/events.ts'
import { hasPromptSince, measureContext } from '../engine/measure-context.ts'
import type { SessionState } from '../engine/session-state.ts'
import { isTurnAborted, type TurnContext, waitUnlessAborted } from '../engine/session-writer.ts'
import { canChangeTodoList, isOpenTodo, readTodoList } from '../facts/todo-list.ts'
import { listToolRuns, type ToolRun } from '../facts/tool-runs.ts'
import { type CompactCause, isPrompt } from '../log/record.ts'
import type { ContextPlan } from '../planner/context-plan.ts'
import type { PlanningMoment } from '../planner/plan-input.ts'
import { readReportedContextTokens } from '../tokens/usage.ts'
import { findNewestResponseStart } from './update-notes.ts'

/** The options with which a summary is prepared. The cause stands for one that is known only when the summary is swapped in. */
export const PREPARED_COMPACTION_OPTIONS: CompactionOptions = {
  trigger: 'auto',
  cause: 'prepared',
  firedBy: 'threshold',
}

/** A preparation that ended without a swap. */
export interface EndedPreparation {
  /** Log index of the newest record when it ended. */
  readonly newestIndex: number
  /** uuid of the newest compaction in effect then; null if there was none. */
  readonly compactionUuid: string | null
}

/** Returns where the log stands as a preparation ends, for `canPrepareSummary`. */
export function captureEndedPreparation(state: SessionState): EndedPreparation {
  return { newestIndex: state.session.records.length - 1, compactionUuid: findNewestCompactionUuid(state) }
}

/** Returns the uuid of the newest compaction in effect; null if there is none. */
export function findNewestCompactionUuid({ view }: SessionState): string | null {
  return view.rewrites.findLast(({ kind }) => kind === 'compact')?.uuid ?? null
}

/**
 * Returns true if a summary may be prepared. If the last preparation failed, was blocked or became stale, the next one
 * waits for the next prompt or compaction, so that a fault does not cost a model call at every response.
 */
export function canPrepareSummary(state: SessionState, last: EndedPreparation | null): boolean {
  return (
    last === null ||
    last.compactionUuid !== findNewestCompactionUuid(state) ||
    hasPromptSince(state.view, last.newestIndex)
  )
}

/**
 * Returns why a summary that was planned for an earlier state can no longer be used; null if it can. Messages appended
 * since do not matter: they stay after the summary.
 */
export function findSummaryDropReason(
  plan: CompactionPlan,
  state: SessionState,
  models: { readonly planned: string; readonly current: string },
): Extract<SummaryDropReason, 'rewritten' | 'pinned' | 'model-switched'> | null {
  if (models.planned !== models.current) return 'model-switched'
  if (listEntriesSincePlan(plan, state.view) === null) return 'rewritten'
  return isSummarizedRecordNewlyPinned(plan, state) ? 'pinned' : null
}

/**
 * Returns the cause with which a prepared summary is swapped in now; null if it waits. At the auto-compact threshold it is
 * swapped in at once. Below the threshold, only at a natural break, and only if the next turn would reach the threshold by adding
 * as much as the last one (`turnGrowth`, in tokens): an earlier swap would take context away for nothing.
 */
export function chooseSwapCause(
  plan: ContextPlan,
  moment: PlanningMoment,
  turnGrowth: number,
): CompactCause | null {
  if (plan.compact !== undefined) return plan.compact.cause
  if (moment === 'call' || !plan.prepare || !plan.scaled.known) return null
  return plan.context.high + turnGrowth >= plan.scaled.lines.autoCompact ? 'prepared' : null
}

/**
 * Returns the tokens that the newest turn added to the context, by the usage that the provider reported; 0 if that is not known.
 */
export function measureTurnGrowth({ view: { entries, rewrittenAt } }: SessionState): number {
  let end: number | null = null
  let isBeforeTurn = false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= rewrittenAt) break
    const { record } = entry
    if (end !== null && isPrompt(record)) isBeforeTurn = true
    if (record.type !== 'assistant') continue
    const tokens = readReportedContextTokens(record.usage)
    if (tokens === 0) continue
    end ??= tokens
    if (isBeforeTurn) return Math.max(0, end - tokens)
  }
  return 0
}

/**
 * Returns true if the newest response completed an item of the todo list, and the tool has answered. Reads the newest
 * response only; if that has written to the list, also the context before it.
 */
export function hasJustCompletedTodo(
  { view: { entries } }: SessionState,
  todoTools: readonly string[],
): boolean {
  const start = findNewestResponseStart(entries)
  const newest = listToolRuns(entries.toArray(start).map(({ record }) => record))
  if (!newest.some((run) => canChangeTodoList(run, todoTools))) return false
  const runs = listToolRuns(entries.toArray().map(({ record }) => record))
  const countDone = (some: readonly ToolRun[]): number =>
    readTodoList(some, todoTools)?.items.filter((item) => !isOpenTodo(item)).length ?? 0
  return countDone(runs) > countDone(runs.filter(({ callIndex }) => callIndex < start))
}

/**
 * Replaces the conversation by a prepared summary, if there is one. With `waits`, first waits for a summary that is
 * being prepared. Returns true if the context was replaced.
 */
export async function* swapInPreparedSummary(
  turn: TurnContext,
  cause: CompactCause,
  { waits }: { readonly waits: boolean },
): AsyncGenerator<TurnEvent, boolean> {
  const { prepared } = turn
  if (prepared === undefined) return false
  if (waits && prepared.phase === 'preparing') {
    yield { type: 'phase', phase: 'compacting' }
    await waitUnlessAborted(turn, prepared.settle())
    yield { type: 'phase', phase: 'done' }
  }
  if (prepared.phase !== 'ready' || isTurnAborted(turn)) return false
  return yield* prepared.swapIn(turn, cause)
}

/**
 * Commits a draft that was prepared for an earlier state of the same context. The size before the compaction is measured
 * anew, and files, todos and other sources are read again, since they may have changed. The target was set for the size
 * of the context at that state, so the tokens appended since are added to it.
 */
export async function* commitPreparedDraft(
  turn: TurnContext,
  draft: CompactionDraft,
  cause: CompactCause,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const { plan } = draft
  const request: CompactionOptions = {
    ...plan.request,
    cause,
    firedBy: cause === 'price' ? 'price' : 'threshold',
  }
  const before = measureContext(turn.state, turn.host)
  const grown = Math.max(0, before.expected - plan.before.expected)
  const target = plan.target === null ? null : plan.target + grown
  const present = { ...draft, plan: { ...plan, request, before, target } }
  const fresh = yield* withDonePhase(refreshDraft(turn, present))
  return fresh.ok ? yield* commitDraft(turn, fresh) : fresh
}
