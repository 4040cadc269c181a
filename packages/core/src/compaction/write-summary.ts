/** Writes the summary of a compaction: tries several ways until one succeeds, then checks the text and adds missing facts. */

import type { ContextEntry } from '../context/context-entry.ts'
import { ABORTED_REWRITE, type RefusedRewrite, refuseRewrite, type TurnEvent } from '../engine/events.ts'
import type {
  CompactionServices,
  CompleteSummary,
  HostSummaryWriter,
  UncheckedSummary,
} from '../engine/host.ts'
import { createCalibratedTokenCounter, withPlanningState } from '../engine/measure-context.ts'
import {
  runSlicesToEnd,
  runSlicesUnlessAborted,
  type TurnContext,
  yieldToHost,
} from '../engine/session-writer.ts'
import { withRestoredRequest } from '../engine/side-call.ts'
import { describeThrown } from '../errors.ts'
import { extractSessionFacts } from '../facts/session-facts.ts'
import { runStepsAtOnce, type WorkInSteps } from '../log/work-steps.ts'
import { SUMMARY_HEADING } from '../summary/accept-summary.ts'
import {
  isAttemptsOutcome,
  recordAttemptResult,
  rejectLargeSummary,
  startAttempts,
} from '../summary/attempt-chain.ts'
import type {
  AttemptResult,
  AttemptsInput,
  SmallerSummaryLimits,
  SummaryAttemptState,
  SummaryAttemptsOutcome,
} from '../summary/attempt-types.ts'
import { buildLedger } from '../summary/ledger.ts'
import {
  computeNameListLimit,
  createLocalSummaryPieces,
  type LocalSummaryMaterial,
  writeLocalSummary,
  writeMissingModelSections,
} from '../summary/local-summary.ts'
import { repairSummary } from '../summary/repair-summary.ts'
import { computeUserMessageBudget } from '../summary/summary-pieces.ts'
import { redact } from '../text/redact.ts'
import { calibrateSize } from '../tokens/usage.ts'
import type { SummarizedHistory } from './draft.ts'
import { type CompactionPlan, describeSmallGain, findLargestWorthwhileSize } from './plan-compaction.ts'
import {
  isCacheWarm,
  limitForkToPlannedRecords,
  runSummaryAttempt,
  waitWithKeepAlive,
} from './run-summary-attempt.ts'

/** What is to be summarized, and how. */
export interface WriteSummaryInput {
  readonly plan: CompactionPlan
  readonly history: SummarizedHistory
  /** Combined instructions of user, policy and hooks, cut to their limit; null if there are none. */
  readonly instructions: string | null
}

/** A summary, and the state from which a smaller summary can be tried next. */
export interface WriteSummaryResult {
  readonly ok: true
  readonly summary: UncheckedSummary
  /** State of the attempts to write the summary; null if the host wrote the summary or the notes are the summary. */
  readonly attempts: SummaryAttemptState | null
}

/**
 * Returns the notes if the plan's request has them. Otherwise lets the host's own function write the summary, if there is
 * one, or writes it in the ways that policy allows. Refuses without a model call if even a summary of the user's messages
 * alone would gain too little.
 */
export async function* writeSummary(
  turn: TurnContext,
  task: WriteSummaryInput,
): AsyncGenerator<TurnEvent, WriteSummaryResult | RefusedRewrite> {
  const { compaction } = turn.host
  const { plan } = task
  const { notesText, notesBy } = plan.request
  if (notesText !== undefined) {
    const author = notesBy === 'local' ? 'notes' : 'model'
    return { ok: true, summary: toSummary(notesText, author, 'notes'), attempts: null }
  }
  const size = estimateLeastSize(turn, task)
  const isLocal = plan.request.summarizer === 'local' || turn.host.policy.compact.chain.local === 'only'
  const after = isLocal ? Math.max(size.least, size.withMessages) : size.withMessages
  if (after > findLargestWorthwhileSize(plan))
    return refuseRewrite('not-smaller', describeSmallGain(plan, after, size.words))
  if (!(await yieldToHost(turn))) return ABORTED_REWRITE
  if (compaction.writeSummary === undefined)
    return yield* runAttempts(turn, task, startAttempts(createAttemptsInput(turn, task)))
  const { keepAliveSeconds } = turn.host.policy.compact.waiting
  const writing = writeByHost(turn, task, compaction.writeSummary)
  const { deadlines } = compaction
  const summary = yield* waitWithKeepAlive(turn, writing, { deadlines, keepAliveMs: keepAliveSeconds * 1000 })
  return summary.ok ? { ok: true, summary, attempts: null } : summary
}

/**
 * Tries to write a smaller summary after one that was too large. `why`: the reason, as the model is told it. Returns null
 * if no attempt is left or succeeds, and for notes and summaries by the host, which cannot be written again.
 */
export async function* writeSmallerSummary(
  turn: TurnContext,
  task: WriteSummaryInput,
  {
    last: { attempts },
    why,
    smaller,
  }: { readonly last: WriteSummaryResult; readonly why: string; readonly smaller: SmallerSummaryLimits },
): AsyncGenerator<TurnEvent, WriteSummaryResult | RefusedRewrite | null> {
  if (attempts === null) return null
  const next = yield* runAttempts(turn, task, rejectLargeSummary(attempts, why, smaller))
  return next.ok || next.reason === 'aborted' ? next : null
}

async function writeByHost(
  turn: TurnContext,
  { plan, instructions }: WriteSummaryInput,
  write: HostSummaryWriter,
): Promise<UncheckedSummary | RefusedRewrite> {
  const { deadlines } = turn.host.compaction
  const input = { sessionId: turn.state.id, span: plan.span, instructions }
  const ms = turn.host.policy.compact.waiting.attemptSeconds * 1000
  try {
    const end = await deadlines.within(ms, (signal) => write(input, signal), turn.signal)
    if (!end.ok && end.why === 'aborted') return ABORTED_REWRITE
    const text = end.ok ? (end.value?.trim() ?? '') : ''
    if (text === '') return refuseRewrite('no-summary', 'The host gave no summary.')
    return toSummary(text, 'model', 'model')
  } catch (thrown) {
    return refuseRewrite('no-summary', describeThrown(thrown))
  }
}

/** Wraps a text that no attempt of the engine wrote (notes, or a summary by the host) as a summary. */
function toSummary(
  text: string,
  author: UncheckedSummary['author'],
  summarizer: UncheckedSummary['summarizer'],
): UncheckedSummary {
  return {
    ok: true,
    text: text.startsWith(SUMMARY_HEADING) ? text : `${SUMMARY_HEADING}\n${text}`,
    author,
    summarizer,
    cover: '',
    block: null,
    recordsCoveredLocally: 0,
    fallbackReason: null,
    steps: [],
  }
}

/**
 * Estimates the size of the context with the smallest summary, and with one that has the user's messages as far as
 * their budget allows, as every summary does.
 */
function estimateLeastSize(
  turn: TurnContext,
  { plan, history }: WriteSummaryInput,
): { readonly least: number; readonly withMessages: number; readonly words: number } {
  const count = createCalibratedTokenCounter(turn.state, turn.host)
  const staying = plan.stayingTokens
  const words = countUserWords(turn, { plan, history })
  const least = runStepsAtOnce(writeLocally(turn, plan, { history, tokens: 0 }))
  return {
    least: Math.round(staying + count(least)),
    withMessages: Math.round(staying + words),
    words,
  }
}

/** Estimates the tokens of the user's messages in any summary, as far as their budget allows. */
function countUserWords(
  turn: TurnContext,
  { plan, history }: Pick<WriteSummaryInput, 'plan' | 'history'>,
): number {
  const count = createCalibratedTokenCounter(turn.state, turn.host)
  const words = history.facts.messages.reduce((sum, { lead, text }) => sum + count(`${lead}${text}`), 0)
  return Math.min(computeMessageBudget(turn, plan).total, words)
}

/** Collects the input of the attempts to write a summary: models, tools, policy and token sizes. */
export function createAttemptsInput(turn: TurnContext, task: WriteSummaryInput): AttemptsInput {
  const { state, host } = turn
  const { estimator, scaled, summaryModel } = turn.host.compaction
  const { before, span, request, target, room } = task.plan
  const { compact, estimate } = host.policy
  const { meter, register } = withPlanningState(state, turn.host).context
  const { model, tools } = host.readOfferedPrefix()
  const restored = withRestoredRequest(state, host)
  const calibrate = (tokens: number): number => calibrateSize(meter.calibration, tokens, estimate).expected
  // No model call is spent if not even the smallest summary reaches the target.
  const isOutOfReach =
    request.target !== undefined &&
    compact.chain.local !== 'never' &&
    estimateLeastSize(turn, task).least > request.target
  const isLocalOnly = request.summarizer === 'local' || isOutOfReach
  const own = {
    model,
    profile: host.profile,
    window: host.profile.window,
    outputTokens: scaled.known ? scaled.summaryOutput : compact.direct.outputTokens,
  }
  return {
    span,
    policy: isLocalOnly ? { ...compact, chain: { ...compact.chain, local: 'only' } } : compact,
    instructions: task.instructions,
    conversationModel: own,
    directModel: summaryModel?.summariser ?? own,
    parent: restored.lastRequest === null ? null : { tokens: before.expected },
    isWarm: isCacheWarm(restored, host),
    // Reported usage excludes what the provider cleared, so these tokens are added. An estimate includes them already.
    unclearedTokens: before.expected + (meter.measuredResponse === null ? 0 : (register.native?.tokens ?? 0)),
    tools,
    ...(target === null ? {} : { maximumSummaryTokens: Math.min(target, room ?? target) }),
    countEntryTokens: (entry) => calibrate(estimator.entry(entry)),
    countTextTokens: (text) => calibrate(estimator.text(text)),
  }
}

/** Runs one attempt after the other, until one succeeds or none is left. */
async function* runAttempts(
  turn: TurnContext,
  task: WriteSummaryInput,
  first: SummaryAttemptState,
): AsyncGenerator<TurnEvent, WriteSummaryResult | RefusedRewrite> {
  const { plan, history } = task
  for (let chain = first; ; ) {
    const { next } = chain
    if (isAttemptsOutcome(next)) {
      const summary = toRawSummary(turn, plan, next)
      return summary.ok ? { ok: true, summary, attempts: chain } : summary
    }
    let result: AttemptResult
    if (!(await yieldToHost(turn))) result = { kind: 'aborted' }
    else if (next.kind === 'local') {
      // A summary without a model uses the whole log before the cut, so repeated compactions lose no facts.
      const { maximumTokens: tokens, restTokens } = next
      const input = { history, tokens, restTokens }
      const text = await runSlicesUnlessAborted(turn, writeLocally(turn, plan, input))
      result = text === null ? { kind: 'aborted' } : { kind: 'text', text }
    } else result = yield* runSummaryAttempt(turn, limitForkToPlannedRecords(next, plan, turn.state))
    chain = recordAttemptResult(chain, result)
  }
}

/**
 * Maximum tokens of the summary, written without a model, of records that the summarizing model was not shown; and its
 * maximum share of the compaction's target.
 */
const COVER_TOKENS = 6_000
const COVER_SHARE = 0.2

function toRawSummary(
  turn: TurnContext,
  plan: CompactionPlan,
  done: SummaryAttemptsOutcome,
): UncheckedSummary | RefusedRewrite {
  if (!done.ok) {
    if (done.aborted) return ABORTED_REWRITE
    const { message, trace: steps } = done
    const reason = describeFallback(done)
    return refuseRewrite(
      'no-summary',
      message,
      reason === null ? { steps } : { steps, fallbackReason: reason },
    )
  }
  const { summarizer, block, trace } = done
  return {
    ok: true,
    text: done.summary,
    author: summarizer === 'block' ? 'provider' : summarizer,
    summarizer,
    cover: writeCover(turn, plan, done.coveredLocally),
    block,
    recordsCoveredLocally: done.coveredLocally.length,
    fallbackReason: describeFallback(done),
    steps: trace,
  }
}

/** Writes, without a model, the text about records that the summarizing model was not shown; empty if there are none. */
function writeCover(turn: TurnContext, plan: CompactionPlan, entries: readonly ContextEntry[]): string {
  if (entries.length === 0) return ''
  const tokens = Math.min(COVER_TOKENS, Math.floor((plan.target ?? Number.POSITIVE_INFINITY) * COVER_SHARE))
  const facts = extractSessionFacts(entries.map(({ record }) => record))
  const history = { facts, pieces: runStepsAtOnce(createLocalSummaryPieces(facts)) }
  const text = runStepsAtOnce(writeLocally(turn, plan, { history, tokens, messages: null }))
  const many = entries.length === 1 ? 'One record' : `${entries.length} records`
  const title = `${many} did not fit into the summariser's window. This was taken from the log without a model:`
  return `${title}\n\n${text.replace(SUMMARY_HEADING, '').trim()}`
}

/** Returns the reason why another attempt was needed, followed by the message of the last failed or refused attempt. */
function describeFallback({ fallbackReason, trace }: SummaryAttemptsOutcome): string | null {
  if (fallbackReason === null) return null
  const last = trace.findLast(({ outcome }) => outcome === 'refused' || outcome === 'failed') ?? trace.at(-1)
  const words = redact(last?.message ?? '').trim()
  return words === '' ? fallbackReason : `${fallbackReason}: ${words}`
}

interface LocalLimits {
  readonly history: LocalSummaryMaterial
  readonly tokens: number
  readonly restTokens?: number
  /** Null if the text is not to list the user's messages. */
  readonly messages?: null
}

function* writeLocally(
  turn: TurnContext,
  plan: CompactionPlan,
  { history, ...limits }: LocalLimits,
): WorkInSteps<string> {
  const { text } = yield* writeLocalSummary(history, {
    form: plan.span.form,
    messages: computeMessageBudget(turn, plan),
    ...limits,
    files: turn.host.compaction.scaled.budgets.ledger.files,
    estimate: { text: createCalibratedTokenCounter(turn.state, turn.host) },
  })
  return text
}

/**
 * Returns the budget of user messages for one compaction. A target smaller than the policy's, or kept messages that
 * leave less room, make it smaller. Beside notes, system prompt and tools do not count. If the user asks for a compaction
 * below the target, only the policy's own limits count: nothing makes it necessary to cut their words.
 */
function computeMessageBudget(
  { host }: TurnContext,
  { target, room, request, before }: CompactionPlan,
): { readonly each: number; readonly total: number } {
  const { scaled } = host.compaction
  const isNotes = request.notesText !== undefined
  const usual = scaled.known ? (isNotes ? scaled.budgets.broughtBack : scaled.lines.target) : null
  const sizes = [usual, target, room].filter((size) => size !== null)
  const most = sizes.length === 0 ? null : Math.min(...sizes)
  const isNeeded = request.trigger !== 'manual' || (most !== null && before.expected > most)
  return computeUserMessageBudget(host.policy.ledger, isNeeded ? most : null)
}

/** Sections that are added to a model's summary have at most 1/8 of the size of what the summary replaces. */
const FILLED_PART = 8

function countSummarized({ estimator }: CompactionServices, { span }: CompactionPlan): number {
  return span.summarised.reduce((sum, entry) => sum + estimator.entry(entry), 0)
}

/** Writes the sections that a model's summary lacks, from the log. A summary by the provider stays as it is. */
function fillSections(
  compaction: CompactionServices,
  { plan, history }: WriteSummaryInput,
  { text, summarizer }: UncheckedSummary,
): readonly string[] {
  if (summarizer !== 'model') return []
  const { ledger } = compaction.scaled.budgets
  const tokens = Math.min(ledger.files, Math.floor(countSummarized(compaction, plan) / FILLED_PART))
  const options = { form: plan.span.form, tokens, estimate: compaction.estimator }
  return writeMissingModelSections(text, history, options)
}

/**
 * Completes a summary, so that it contains the user messages, files, errors and open todos of the log, and no secrets.
 * `nameTokens`: maximum tokens of the list of names.
 */
export async function completeSummary(
  turn: TurnContext,
  task: WriteSummaryInput,
  written: UncheckedSummary,
  nameTokens: number = turn.host.compaction.scaled.budgets.ledger.names,
): Promise<CompleteSummary> {
  const { compaction } = turn.host
  const { scaled, estimator } = compaction
  const { plan, history } = task
  const { span } = plan
  const { ledger } = scaled.budgets
  const messages = computeMessageBudget(turn, plan)
  const keptRecords = [...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record)
  // A local summary already has all facts that fit into its size: nothing is added, and what it lacks is reported.
  const isLocal = written.author === 'local'
  const rules = {
    author: written.author,
    cover: written.cover,
    messages,
    files: ledger.files,
    errors: turn.host.policy.ledger.errors,
    tokens: isLocal ? 0 : messages.total + ledger.files + ledger.names,
    estimate: estimator,
    isNotes: written.summarizer === 'notes',
    keptMessages: extractSessionFacts(keptRecords).messages,
  }
  const repair = repairSummary(written.text, history.facts, rules)
  const { text, additions, unfit } = await runSlicesToEnd(turn, repair)
  const filled = fillSections(compaction, task, written)
  await yieldToHost(turn)
  // The list of names becomes smaller with a local summary.
  const userTokens = countUserWords(turn, task)
  const most = isLocal ? computeNameListLimit(estimator.text(written.text) - userTokens) : nameTokens
  const nameRules = { tokens: Math.min(ledger.names, most), estimate: estimator }
  const names = await runSlicesToEnd(turn, buildLedger(history.names, nameRules))
  const listed = names.text === '' ? [] : [redact(names.text)]
  const complete = { ...written, userTokens, ledger: names.lines.map(redact), missingFacts: unfit }
  if (written.block !== null) return { ...complete, besideBlock: [...additions, ...listed].join('\n\n') }
  const whole = [isLocal ? written.text : text, ...filled, ...listed].join('\n\n')
  return { ...complete, text: whole, besideBlock: '' }
}
