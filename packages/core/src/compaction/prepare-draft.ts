/**
 * Prepares a compaction draft: runs hooks, writes and checks the summary, attaches current todos, plan and files, measures the
 * result. Appends nothing to the log but what its model calls cost; if a step fails, the conversation is unchanged.
 */

import { limitSourceTime, readHostPrefix, withChosenTtl } from '../engine/announce-updates.ts'
import {
  ABORTED_REWRITE,
  addReplyUsage,
  listHookEvents,
  NO_SIDE_CALL_USAGE,
  type RefusedRewrite,
  refuseRewrite,
  type TurnEvent,
  withDonePhase,
} from '../engine/events.ts'
import { createHookLimits, type Hook, type HookContextOutput, runHooks } from '../engine/hooks.ts'
import { createCalibratedTokenCounter } from '../engine/measure-context.ts'
import { isTurnAborted, type TurnContext, yieldToHost } from '../engine/session-writer.ts'
import type { PrefixSnapshot } from '../log/record.ts'
import { createSnapshotForCompaction } from '../request/prefix-snapshot.ts'
import { type HookOutput, toHookAttachments } from '../sources/builtin-sources.ts'
import {
  arrangeAttachmentsAroundSummary,
  collectSourceAttachments,
  findLastCompactionAttachments,
  isOpeningReminder,
} from '../sources/collect-sources.ts'
import type { CollectedSources, SourceAttachment } from '../sources/context-source.ts'
import { composeInstructions } from '../summary/summary-prompt.ts'
import {
  type CompactionDraft,
  type KeptContext,
  listEntriesSincePlan,
  listResponsesLosingThinking,
  readSummarizedHistory,
  type UnmeasuredDraft,
} from './draft.ts'
import { type DraftResult, type FitResult, fitDraft } from './fit-draft.ts'
import { type CompactionPlan, estimatePrefixTokens, withFittedBudgets } from './plan-compaction.ts'
import {
  completeSummary,
  type WriteSummaryInput,
  type WriteSummaryResult,
  writeSmallerSummary,
  writeSummary,
} from './write-summary.ts'

/** Prepares a draft for a caller that reviews it before a commit. Emits the phase `done` at the end. */
export function prepareDraftForReview(
  turn: TurnContext,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, DraftResult> {
  return withDonePhase(prepareDraft(turn, plan))
}

/**
 * Prepares a draft for a caller that commits it at once and emits the phase `done` itself. `hooked`: the results of the
 * PreCompact hooks if they have already run for this compaction; null to run them. The draft has the usage of all model
 * calls, also of failed attempts.
 */
export async function* prepareDraft(
  turn: TurnContext,
  plan: CompactionPlan,
  hooked: PreCompactResult | null = null,
): AsyncGenerator<TurnEvent, DraftResult> {
  let usage = NO_SIDE_CALL_USAGE
  const events = runDraftSteps(turn, plan, hooked)
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return step.value.ok ? { ...step.value, usage } : step.value
      if (step.value.type === 'side-reply') usage = addReplyUsage(usage, step.value.event)
      yield step.value
    }
  } finally {
    await events.return(ABORTED_REWRITE)
  }
}

/** As `prepareDraft`, without adding up the usage. */
async function* runDraftSteps(
  turn: TurnContext,
  plan: CompactionPlan,
  given: PreCompactResult | null,
): AsyncGenerator<TurnEvent, DraftResult> {
  const started = turn.host.clock.now()
  const hooked = given ?? (yield* runPreCompactHooks(turn, plan))
  if (!hooked.ok) return hooked
  yield { type: 'phase', phase: 'compacting' }
  const history = await readSummarizedHistory(turn, turn.host.compaction, plan)
  if (history === null) return ABORTED_REWRITE
  const task = { plan, history, instructions: hooked.instructions }
  const written = yield* writeSummary(turn, task)
  if (!written.ok) return written
  if (!(await yieldToHost(turn))) return ABORTED_REWRITE
  const sources = yield* reattachSources(turn, plan)
  if (sources === null || isTurnAborted(turn)) return ABORTED_REWRITE
  const hooks = yield* collectStartContext(turn)
  if (isTurnAborted(turn)) return ABORTED_REWRITE
  const draft = yield* shrinkToFit(turn, { task, written, sources, hooks })
  if (!draft.ok) return draft
  const { mostTokens } = plan.request
  if (mostTokens !== undefined && countWritten(turn, draft) > mostTokens)
    return refuseRewrite('not-smaller', TOO_DEAR_MESSAGE)
  yield* emitRestored(sources, draft)
  return yield* runPostCompactHooks(turn, {
    ...draft,
    durationMs: turn.host.clock.now() - started,
  })
}

/** Returns the tokens of a draft that are written to the cache: system prompt and tools stay cached if they do not change. */
function countWritten(
  { state, host }: TurnContext,
  { after, snapshot }: Pick<CompactionDraft, 'after' | 'snapshot'>,
): number {
  const unchanged = snapshot === null ? estimatePrefixTokens(state, host).expected : 0
  return after.expected - unchanged
}

const TOO_DEAR_MESSAGE = 'The next request would cost more with the compaction than without it.'

/**
 * Brings a draft that was prepared earlier up to date without a model call: reads the context sources again, and fits
 * the draft to the current context, which includes what was appended meanwhile.
 */
export async function* refreshDraft(
  turn: TurnContext,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, DraftResult> {
  const sources = yield* reattachSources(turn, draft.plan)
  if (sources === null || !(await yieldToHost(turn))) return ABORTED_REWRITE
  const placed = await placeSources(turn, draft, sources)
  const fresh = await fitDraft(turn, { ...draft, ...placed }).createOutcome()
  if (!fresh.ok) return fresh
  yield* emitRestored(sources, fresh)
  return { ...fresh, usage: draft.usage }
}

// Hooks that run before and after the summary is written.

/** The instructions for the summary, null for none; or the refusal, if a hook blocked the compaction or it was aborted. */
export type PreCompactResult = { readonly ok: true; readonly instructions: string | null } | RefusedRewrite

/**
 * Runs the PreCompact hooks. Returns the instructions for the summary: the user's, the policy's, then the hooks'. A veto
 * refuses the compaction, unless the session cannot continue without it (`isForced`); it is then only reported.
 */
export async function* runPreCompactHooks(
  turn: TurnContext,
  { request }: CompactionPlan,
): AsyncGenerator<TurnEvent, PreCompactResult> {
  const { compaction } = turn.host
  const hooks = compaction.hooks?.preCompact ?? []
  const added: string[] = []
  if (hooks.length > 0) yield { type: 'phase', phase: 'running PreCompact hooks' }
  const input = {
    trigger: request.trigger,
    customInstructions: request.instructions ?? '',
    sessionId: turn.state.id,
  }
  const vetoes: string[] = []
  const limits = createHookLimits(turn, compaction)
  for await (const end of runHooks(hooks, input, limits, () => vetoes.length > 0)) {
    yield* listHookEvents(end)
    const { newCustomInstructions, block } = (end.ok ? end.output : undefined) ?? {}
    if (newCustomInstructions !== undefined) added.push(newCustomInstructions)
    if (block !== undefined && request.isForced !== true)
      vetoes.push(`The hook ${end.name} does not want a compaction now: ${block}`)
    else if (block !== undefined) yield { type: 'veto-overruled', hook: end.name, reason: block }
  }
  if (vetoes.length > 0) return refuseRewrite('blocked', vetoes.join('\n'))
  if (isTurnAborted(turn)) return ABORTED_REWRITE
  const { instructions, instructionCharacters } = turn.host.policy.compact
  const sources = { person: request.instructions, policy: instructions, hooks: added }
  return { ok: true, instructions: composeInstructions(sources, instructionCharacters) }
}

/** Runs the SessionStart hooks, since the conversation begins anew after a compaction. Returns the context that they add. */
async function* collectStartContext(
  turn: TurnContext,
): AsyncGenerator<TurnEvent, readonly SourceAttachment[]> {
  const hooks = turn.host.compaction.hooks?.sessionStart ?? []
  if (hooks.length === 0) return []
  yield { type: 'phase', phase: 'running SessionStart hooks' }
  return yield* collectHookContext(turn, hooks, { source: 'compact', sessionId: turn.state.id })
}

/** Passes the summary to the PostCompact hooks and adds their context, unless the draft would become too large. */
async function* runPostCompactHooks(
  turn: TurnContext,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, DraftResult> {
  const hooks = turn.host.compaction.hooks?.postCompact ?? []
  const { plan, summary, receipt } = draft
  const input = { trigger: plan.request.trigger, sessionId: turn.state.id, summary: summary.text, receipt }
  if (hooks.length > 0) yield { type: 'phase', phase: 'running PostCompact hooks' }
  const added = hooks.length === 0 ? [] : yield* collectHookContext(turn, hooks, input)
  if (isTurnAborted(turn)) return ABORTED_REWRITE
  if (added.length === 0) return draft
  const fitted = fitDraft(turn, { ...draft, hookContext: [...draft.hookContext, ...added] })
  const outcome = await fitted.createOutcome()
  return outcome.ok || outcome.reason === 'superseded' ? outcome : draft
}

async function* collectHookContext<Input>(
  turn: TurnContext,
  hooks: readonly Hook<Input, HookContextOutput>[],
  input: Input,
): AsyncGenerator<TurnEvent, readonly SourceAttachment[]> {
  const { compaction } = turn.host
  const outputs: HookOutput[] = []
  for await (const end of runHooks(hooks, input, createHookLimits(turn, compaction))) {
    yield* listHookEvents(end)
    if (end.ok) outputs.push({ hook: end.name, text: end.output?.additionalContext ?? '' })
  }
  return toHookAttachments(outputs, {
    budgets: compaction.scaled.budgets,
    measure: compaction.estimator.text,
  })
}

// Reduction of the draft to its target size.

interface DraftInput {
  readonly task: WriteSummaryInput
  readonly written: WriteSummaryResult
  readonly sources: CollectedSources
  readonly hooks: UnmeasuredDraft['hookContext']
  /** Maximum tokens of the list of names; default: the budget of the policy. */
  readonly nameTokens?: number
}

/**
 * Reduces a draft that is above its target, or saves too little: drops optional attachments, shortens the list of names
 * beside a model's summary, and asks for smaller summaries. A local summary replaces a model's only if the compaction
 * would otherwise be refused.
 */
async function* shrinkToFit(turn: TurnContext, input: DraftInput): AsyncGenerator<TurnEvent, DraftResult> {
  let { written } = input
  let best = await fitWithNames(turn, input)
  let last = best
  while (last.smallerLimits !== null) {
    const { excessTokens: over, smallerLimits: smaller, summaryTokens } = last
    // The limit is for the model's own text: what is added to it from the log stays as long as it is.
    const added = summaryTokens - createCalibratedTokenCounter(turn.state, turn.host)(written.summary.text)
    const fitting = Math.max(0, (smaller.tokens ?? 0) - Math.max(0, added))
    const why = `With this summary the conversation would be ${over} tokens too large. A summary of at most ${fitting} tokens fits.`
    const next = yield* writeSmallerSummary(turn, input.task, { last: written, why, smaller })
    if (next === null) break
    if (!next.ok || isTurnAborted(turn)) return ABORTED_REWRITE
    written = next
    last = await fitWithNames(turn, { ...input, written })
    const isBetter = next.summary.summarizer !== 'local' || best.isLocal || best.isTooLarge
    if (isBetter && last.excessTokens <= best.excessTokens) best = last
  }
  return best.createOutcome()
}

/**
 * Fits a draft. If shortening the list of names beside a model's summary makes the draft small enough, the list is
 * shortened, which costs no model call; the receipt tells which names are gone.
 */
async function fitWithNames(turn: TurnContext, input: DraftInput): Promise<FitResult> {
  const draft = await createDraft(turn, input)
  await yieldToHost(turn)
  const whole = fitDraft(turn, draft)
  const names = draft.summary.ledger.join('\n')
  const listed = createCalibratedTokenCounter(turn.state, turn.host)(names)
  if (whole.excessTokens === 0 || whole.isLocal || whole.excessTokens > listed) return whole
  const tokens = turn.host.compaction.estimator.text(names)
  for (const left of [0.9 * (1 - whole.excessTokens / Math.max(1, listed)), 0]) {
    const shorter = await createDraft(turn, { ...input, nameTokens: Math.floor(tokens * left) })
    const fitted = fitDraft(turn, shorter)
    if (fitted.excessTokens === 0) return fitted
  }
  return whole
}

async function createDraft(turn: TurnContext, input: DraftInput): Promise<UnmeasuredDraft> {
  const { plan } = input.task
  await yieldToHost(turn)
  const summary = await completeSummary(turn, input.task, input.written.summary, input.nameTokens)
  const placed = await placeSources(turn, { plan, summary }, input.sources)
  return { plan, summary, ...placed, hookContext: input.hooks, durationMs: 0 }
}

// Context of the host that a compaction brings up to date: todos, plan, files and other context sources are read again
// and attached, and pending changes of system prompt and tools are absorbed.

/** Reads the context sources (todos, plan, files) again. Returns their attachments; null if the turn was aborted. */
async function* reattachSources(
  turn: TurnContext,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, CollectedSources | null> {
  const { compaction } = turn.host
  const { span } = plan
  const added = listEntriesSincePlan(plan, turn.state.view) ?? []
  if (compaction.sources === undefined || compaction.sources.length === 0)
    return { carried: [], superseded: [], skipped: [], failed: [] }
  yield { type: 'phase', phase: 'bringing back context' }
  const question = {
    session: turn.state.session,
    kept: [...span.kept, ...span.pinned, ...span.unanswered, ...added],
    policy: turn.host.policy,
    budgets: withFittedBudgets(turn.state, turn.host).compaction.scaled.budgets,
    measure: compaction.estimator.text,
    isClientLed: turn.host.client !== undefined,
  }
  const sources = await collectSourceAttachments(limitSourceTime(turn, compaction.sources), question, () =>
    yieldToHost(turn),
  )
  if (isTurnAborted(turn)) return null
  for (const { carrier, why } of sources.failed) yield { type: 'restore-failed', carrier, why }
  return sources
}

function* emitRestored(
  { carried, skipped }: CollectedSources,
  draft: UnmeasuredDraft,
): Generator<TurnEvent, void> {
  if (carried.length + skipped.length === 0) return
  const keys = [...draft.sourcesBefore, ...draft.sourcesAfter].map(({ key }) => key)
  const dropped = carried.map(({ key }) => key).filter((key) => !keys.includes(key))
  yield { type: 'context-restored', keys, skipped, shed: dropped }
}

/** Places attachments before and after the summary of a draft. */
async function placeSources(
  turn: TurnContext,
  { plan, summary }: Pick<UnmeasuredDraft, 'plan' | 'summary'>,
  { carried, superseded, failed }: CollectedSources,
): Promise<Omit<UnmeasuredDraft, 'plan' | 'summary' | 'hookContext' | 'durationMs'>> {
  const isBlock = summary.block !== null
  // A compaction block must be the first message. Before another summary, unchanged attachments stay cached.
  const isFirst = !isBlock && turn.host.policy.compact.carriersFirst
  const { front, behind } = isFirst
    ? arrangeAttachmentsAroundSummary(carried, findLastCompactionAttachments(turn.state.view))
    : {
        front: isBlock ? [] : carried.filter(isOpeningReminder),
        behind: carried.filter((one) => isBlock || !isOpeningReminder(one)),
      }
  return {
    sourcesBefore: front,
    sourcesAfter: behind,
    allSources: carried,
    outdated: superseded,
    failedSources: failed,
    snapshot: await absorbPrefixChanges(turn, { span: plan.span, outdated: superseded, isBlock, added: [] }),
  }
}

/**
 * Returns a new prefix snapshot with pending changes of system prompt and tools, and with the cache lifetime chosen again
 * from the pauses in the log, since a compaction loses the cache anyway. Null if nothing changed, if kept thinking
 * requires the old prefix, or if the host supplies no prefix.
 */
async function absorbPrefixChanges(turn: TurnContext, keeping: KeptContext): Promise<PrefixSnapshot | null> {
  const { span } = keeping
  const { profile } = turn.host
  const { current } = turn.state.prefix
  if (current === null || span.form === 'from') return null
  const lost = new Set(listResponsesLosingThinking(keeping, profile))
  const records = [...span.kept, ...span.pinned]
    .map(({ record }) => record)
    .filter((record) => record.type !== 'assistant' || !lost.has(record.message.id))
  const present = await readHostPrefix({ ...turn, state: { ...turn.state, sectionTexts: new Map() } })
  if ('ok' in present) return null
  const next = createSnapshotForCompaction(current.epoch, withChosenTtl(turn, present), { records, profile })
  return next.isReplaced ? next.epoch : null
}
