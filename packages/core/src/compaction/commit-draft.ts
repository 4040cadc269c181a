/**
 * Commits a compaction draft: appends its records to the log as one batch. If another writer has appended to the log
 * meanwhile, the new records are read and the commit is tried again; their messages stay after the summary. If the context
 * was rewritten meanwhile, nothing is committed.
 */

import { showsWholeFile } from '../clearing/clear-candidates.ts'
import { createEmptyToolResultIndex, type ToolResultRules } from '../clearing/tool-result-index.ts'
import { updateToolResultIndex } from '../clearing/update-tool-result-index.ts'
import { withProviderClearings } from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import { listUnansweredCalls } from '../context/flatten-context.ts'
import { withEngineBetas } from '../engine/announce-updates.ts'
import {
  ABORTED_REWRITE,
  type CommittedCompaction,
  type RefusedRewrite,
  refuseRewrite,
  STALE_DRAFT_MESSAGE,
  type TurnEvent,
  withDonePhase,
} from '../engine/events.ts'
import type { CommittedRewrite, TurnHost } from '../engine/host.ts'
import { measureContext, withPlanningState } from '../engine/measure-context.ts'
import { buildNextRequest, countPrefixTokens, listMessagesToSend } from '../engine/next-request.ts'
import type { NewRecord } from '../engine/ports.ts'
import {
  type CompactionSpacing,
  measureCompactionSpacing,
  NO_COMPACTION_FAILURES,
  type PlanningState,
  resetCompactionTracking,
  type SessionState,
} from '../engine/session-state.ts'
import {
  appendRewrite,
  isTurnAborted,
  linkRecords,
  previewAppend,
  reportRewrite,
  runSlicesToEnd,
  type TurnContext,
  yieldToHost,
} from '../engine/session-writer.ts'
import { describeThrown } from '../errors.ts'
import { runStepsAtOnce, type WorkInSteps } from '../log/work-steps.ts'
import { type CurrentSnapshot, createPrefixSnapshot } from '../request/prefix-snapshot.ts'
import type { Receipt } from '../summary/receipt.ts'
import { redact } from '../text/redact.ts'
import { breakDownContext, toBreakdownMetrics } from '../tokens/breakdown.ts'
import { calibrateSize } from '../tokens/usage.ts'
import type { Finding } from '../validate/findings.ts'
import { checkMessage, startValidation, updateValidation } from '../validate/validate-request.ts'
import {
  type CompactionDraft,
  createDraftReceipt,
  createDraftRecords,
  listEntriesSincePlan,
} from './draft.ts'
import type { CompactionPlan } from './plan-compaction.ts'

/** A compaction that is in the log, or why there is none. */
export type CompactionResult =
  | { readonly ok: true; readonly compaction: CommittedCompaction }
  | RefusedRewrite

/** Commits a draft for a caller that has reviewed it, perhaps long after it was prepared. Emits the phase `done` at the end. */
export function commitReviewedDraft(
  turn: TurnContext,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, CompactionResult> {
  return withDonePhase(commitDraft(turn, draft))
}

/**
 * Commits a draft, and runs the host's cleanups. Refuses it, with the log unchanged, if it is stale, not smaller than the
 * context is now, or not acceptable to the provider. The caller emits the phase `done`.
 */
export async function* commitDraft(
  turn: TurnContext,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, CompactionResult> {
  if (!(await yieldToHost(turn))) return ABORTED_REWRITE
  const prepare = (): PreparedCommit | RefusedRewrite =>
    isTurnAborted(turn) ? ABORTED_REWRITE : prepareCommit(turn, draft)
  const wording = { unchanged: 'nothing was changed', advice: 'Compact again.' }
  const prepared = yield* appendRewrite(turn, prepare, wording)
  if ('ok' in prepared) return prepared
  const { host } = turn
  const known = withPlanningState(prepared.states.before, host).context
  const link = measureCompactionSpacing(known.tracking, host.policy.turn.auto)
  const tracking = resetCompactionTracking(known.tracking, host.ids.next('turn'))
  turn.state = stateAfterCompaction(turn, { ...known, tracking }, prepared)
  const after = turn.state.view.entries
  await yieldToHost(turn)
  // The compaction is in the log, so an abort does not stop what is left to do.
  const receipt = await runSlicesToEnd(turn, writeReceipt(prepared))
  await yieldToHost(turn)
  const { metrics, why } = measureAccounting(draft.plan, turn)
  if (why !== null) yield { type: 'accounting-failed', why }
  const result = { ...describeCompaction(prepared, receipt, link), source: host.source, metrics }
  yield { type: 'compact', compaction: result }
  await yieldToHost(turn)
  const released = findReleasedContent(draft.plan.entries, after, host.compaction.rules)
  yield reportRewrite(turn, 'compact', released)
  return { ok: true, compaction: result }
}

interface PreparedCommit {
  /** The draft to commit, with the user's edit of the summary. */
  readonly draft: CompactionDraft
  /** True if the summary was not edited and no message was appended since the draft was prepared. */
  readonly isAsPrepared: boolean
  /** The session before the compaction, and as it will be with it. */
  readonly states: { readonly before: SessionState; readonly after: SessionState }
  readonly records: readonly NewRecord[]
  /** Expected tokens of the context after the compaction. */
  readonly after: number
}

/**
 * Applies the user's edit to a draft, creates its records for the session as it is now, and measures the result. Refuses a
 * draft that can no longer be committed, since messages may have been appended after it was prepared.
 */
function prepareCommit(turn: TurnContext, given: CompactionDraft): PreparedCommit | RefusedRewrite {
  const draft = applyEdit(given)
  const { state, host } = turn
  if (draft.summary.text.trim() === '' && draft.summary.block === null)
    return refuseRewrite('no-summary', 'The summary is empty; give it a text.')
  if (listUnansweredCalls(state.flat).length > 0)
    return refuseRewrite('pending-call', 'A tool call waits for its answer; compact when it is there.')
  const { plan } = draft
  if (isSummarizedRecordNewlyPinned(plan, state)) return refuseRewrite('superseded', PINNED_MESSAGE)
  const records = createDraftRecords(turn, draft)
  if (records === null) return refuseRewrite('superseded', STALE_DRAFT_MESSAGE)
  const next = previewAppend(state, records)
  const after = measureContext(next, host).expected
  if (after >= measureContext(state, host).expected)
    return refuseRewrite(
      'not-smaller',
      `The result would have ${after} tokens, no fewer than now: nothing is gained.`,
    )
  const problem = findNewProblem(next, turn)
  if (problem !== null) return refuseRewrite('invalid', `A provider would refuse the result: ${problem}`)
  const isAsPrepared = draft === given && listEntriesSincePlan(plan, state.view)?.length === 0
  const [boundary, ...others] = records as [{ readonly compactMetadata: object } & NewRecord, ...NewRecord[]]
  const measured = { ...boundary, compactMetadata: { ...boundary.compactMetadata, postTokens: after } }
  const states = { before: state, after: next }
  return { draft, isAsPrepared, states, records: [measured as NewRecord, ...others], after }
}

/** Returns true if a record that the compaction summarizes was pinned after it was planned. */
export function isSummarizedRecordNewlyPinned(
  { span, pins }: CompactionPlan,
  state: Pick<SessionState, 'pins'>,
): boolean {
  return span.summarised.some(({ record: { uuid } }) => state.pins.has(uuid) && !pins.has(uuid))
}

/** Returns the receipt made with the draft, or a new one if the summary was edited or messages were appended. */
function* writeReceipt({ draft, isAsPrepared, states }: PreparedCommit): WorkInSteps<Receipt> {
  return isAsPrepared ? draft.receipt : yield* createDraftReceipt(draft, states)
}

const PINNED_MESSAGE =
  'A message that the summary already replaces was pinned. Nothing was changed; compact again to keep it.'

/**
 * If the user edited the summary, returns the draft with the edited text, without secrets; otherwise returns the same draft. The
 * edited text replaces the provider's compaction block, and facts missing from the old text are no longer reported.
 */
function applyEdit(draft: CompactionDraft): CompactionDraft {
  const { summary, preparedText } = draft
  if (summary.text === preparedText) return draft
  return { ...draft, summary: { ...summary, text: redact(summary.text), block: null, missingFacts: [] } }
}

/**
 * Returns the first provider rule that the compacted context would violate. Returns null if it violates none, or if the
 * context violated rules before the compaction.
 */
function findNewProblem(next: SessionState, turn: TurnContext): string | null {
  const { host } = turn
  const [first] = findProblems(withProbePrompt({ ...turn, state: next }), host)
  if (first === undefined || findProblems(withProbePrompt(turn), host).length > 0) return null
  return `${first.path}: ${first.message}`
}

/**
 * Returns the state with a sample prompt at the end if the conversation ends with a response, because the next API
 * request will end with a prompt.
 */
function withProbePrompt(turn: TurnContext): SessionState {
  const { state } = turn
  const last = state.flat.tail.at(-1) ?? state.flat.frozen.last
  if (last?.message.role !== 'assistant') return state
  return previewAppend(
    state,
    linkRecords(turn, [{ type: 'user', message: { role: 'user', content: 'Go on.' } }]),
  )
}

/** Finds the provider rules that the next API request violates. Without a system prompt and tools, checks only the messages. */
function findProblems(state: SessionState, host: TurnHost): readonly Finding[] {
  const { current } = state.prefix
  if (current !== null) return buildNextRequest(state, toNextPrefix(current, host), host).findings
  const sent = listMessagesToSend(state, host)
  let { state: checked } = runStepsAtOnce(updateValidation(startValidation(host.profile), sent))
  for (const { message } of sent.tail) checked = checkMessage(checked, message)
  return checked.findings.toArray()
}

/**
 * Counts the tokens of the context before the compaction by kind of content, scaled to its measured size as
 * `breakdown()` does. `why`: why the counting failed, or null.
 */
function measureAccounting(
  { entries, before }: CompactionPlan,
  { state, host }: TurnContext,
): { readonly metrics: CommittedCompaction['metrics']; readonly why: string | null } {
  const { estimator } = host.compaction
  try {
    const { readTools } = host.policy.rehydrate.files
    const held = withProviderClearings(entries, host.policy.clear)
    const count = (scale: number) =>
      breakDownContext(held, {
        estimate: (block) => Math.round(estimator.block(block) * scale),
        readTools,
      })
    const estimated = count(1).total + countPrefixTokens(state, host)
    const scale = Math.min(1, before.expected / Math.max(1, estimated))
    return { metrics: toBreakdownMetrics(count(scale)), why: null }
  } catch (thrown) {
    return { metrics: {}, why: describeThrown(thrown) }
  }
}

/**
 * Returns the prefix of the next API request. After a switch of model that is the prefix of the new model, with its
 * parameters and betas, although no request has announced it yet.
 */
function toNextPrefix(current: CurrentSnapshot, host: TurnHost): CurrentSnapshot {
  const { model, parameters: given } = host.readOfferedPrefix()
  if (model === current.epoch.model) return current
  const parameters = withEngineBetas(given, host)
  const epoch = createPrefixSnapshot({ ...current.epoch, model, parameters }, host.profile)
  return { ...current, epoch, parameters: epoch.parameters }
}

function describeCompaction(
  { draft, after, records }: PreparedCommit,
  receipt: Receipt,
  link: CompactionSpacing,
): Omit<CommittedCompaction, 'metrics' | 'source'> {
  const { plan, summary, durationMs, usage } = draft
  return {
    id: records[0]?.uuid ?? '',
    trigger: plan.request.trigger,
    cause: plan.request.cause,
    tokensBefore: plan.before.expected,
    tokensAfter: after,
    summarizer: summary.summarizer,
    fallbackReason: summary.fallbackReason,
    recordsCoveredLocally: summary.recordsCoveredLocally,
    durationMs,
    receipt,
    notes: plan.notes,
    usage,
    firedBy: plan.request.firedBy ?? null,
    steps: summary.steps,
    link,
    threshold: plan.autoCompactTokens,
    willRetrigger: plan.autoCompactTokens !== null && after >= plan.autoCompactTokens,
  }
}

/**
 * Returns the session state after a compaction. The failure count is reset, and the new sizes are stored to predict the
 * next compaction.
 */
function stateAfterCompaction(
  { state, host }: TurnContext,
  known: PlanningState,
  { draft, after }: PreparedCommit,
): SessionState {
  const calibrate = (tokens: number): number =>
    calibrateSize(known.meter.calibration, tokens, host.policy.estimate).expected
  const summary = calibrate(host.compaction.estimator.text(draft.summary.text))
  const sources = [...draft.sourcesBefore, ...draft.sourcesAfter, ...draft.hookContext]
  const carried = calibrate(sources.reduce((sum, { tokens }) => sum + tokens, 0))
  const next: PlanningState = {
    ...known,
    breaker: NO_COMPACTION_FAILURES,
    expectedResult: { after, summary, reattached: carried },
  }
  return withPlanningState({ ...state, context: next }, host)
}

/**
 * Finds tool calls and files whose content left the context, so that the host no longer treats these files as read. A
 * file is not listed while the context still has a complete read or a full write of it.
 */
export function findReleasedContent(
  before: ContextView['entries'],
  after: ContextView['entries'],
  rules: ToolResultRules,
): Pick<CommittedRewrite, 'toolUseIds' | 'filePaths'> {
  const had = updateToolResultIndex(createEmptyToolResultIndex(rules), { entries: before })
  const has = updateToolResultIndex(createEmptyToolResultIndex(rules), { entries: after })
  const shown = new Set(
    [...has.results].flatMap((result) => (showsWholeFile(has, result) ? (result.call.path ?? []) : [])),
  )
  const paths = new Set([...had.calls].flatMap(({ path }) => path ?? []))
  return {
    toolUseIds: [...had.results]
      .map(({ call }) => call.id)
      .filter((id) => has.resultPlaces.get(id) === undefined),
    filePaths: [...paths].filter((path) => !shown.has(path)),
  }
}
