/**
 * Decides which attempt at a summary is made next, in this order: the provider's compaction block, a fork call that reads
 * the cached prefix, a direct call, a direct call with less input, a local summary without a model. A pure state machine:
 * returns the next attempt, takes its result, and never repeats a request.
 */
import type { Block } from '../log/block.ts'
import { acceptCompactionBlock, acceptSummary } from './accept-summary.ts'
import type {
  AcceptedSummary,
  AttemptCallFailure,
  AttemptResult,
  AttemptStage,
  AttemptsFailure,
  AttemptsInput,
  FallbackReason,
  LocalAttempt,
  SmallerSummaryLimits,
  SummaryAttempt,
  SummaryAttemptState,
  SummaryAttemptStep,
  SummaryAttemptsOutcome,
} from './attempt-types.ts'
import { dropOldestRounds, stripSummaryInput } from './direct-summary-request.ts'
import {
  type AttemptOrSkip,
  canInputFitWindow,
  countAvailableInputTokens,
  createAcceptanceRules,
  createSummaryRequestKey,
  isSameSummaryRequest,
  planCompactionBlockAttempt,
  planDirectAttempt,
  planForkAttempt,
  planLocalAttempt,
  selectSummarizedEntries,
  sumEntryTokens,
} from './plan-attempts.ts'
import { ABOVE_TARGET_REASON, describeSummaryProblem, type SummaryProblem } from './summary-prompt.ts'

/** Plans the first attempt. Sends nothing: the caller makes each attempt and passes its result to `recordAttemptResult`. */
export function startAttempts(context: AttemptsInput): SummaryAttemptState {
  const { policy, span, directModel } = context
  const chain: Omit<SummaryAttemptState, 'next'> = {
    context,
    stage: policy.chain.local === 'only' ? 'local' : 'block',
    input: stripSummaryInput(span.input, { asText: false }),
    coveredLocally: [],
    window: directModel.window,
    attempts: 0,
    drops: 0,
    asText: false,
    usesConversationModel: false,
    remark: null,
    requestKeys: [],
    trace: [],
    fallbackReason: null,
  }
  return advanceToNextAttempt({ ...chain, next: createAttemptsFailure(chain) })
}

export function isAttemptsOutcome(
  next: SummaryAttempt | SummaryAttemptsOutcome,
): next is SummaryAttemptsOutcome {
  return 'done' in next
}

/**
 * Judges the result of the current attempt, and returns the state with the next attempt or the outcome. Returns `chain`
 * unchanged if no attempt is under way.
 */
export function recordAttemptResult(chain: SummaryAttemptState, outcome: AttemptResult): SummaryAttemptState {
  const ask = chain.next
  if (isAttemptsOutcome(ask)) return chain
  if (outcome.kind === 'aborted')
    return { ...chain, next: { ...createAttemptsFailure(chain), aborted: true, message: ABORTED_MESSAGE } }
  if (ask.kind === 'local') return recordLocalSummary(chain, ask, outcome)
  const verdict = judgeResult(chain, ask, outcome)
  if ('reason' in verdict) return advanceToNextAttempt(handleFailure(chain, ask, verdict))
  const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
  return finishWithSummary(accepted, { summarizer: ask.kind === 'block' ? 'block' : 'model', ...verdict })
}

const ABORTED_MESSAGE = 'The compaction was aborted; nothing has changed.'

/**
 * Rejects an accepted summary because the compacted context would be above its target size, and plans the next attempt:
 * one more fork, which reads the cache and has the size in its instructions, then a local summary. `smaller`: limits of a summary
 * that would fit. A local summary is written again within these limits.
 */
export function rejectLargeSummary(
  chain: SummaryAttemptState,
  message: string,
  smaller?: SmallerSummaryLimits,
): SummaryAttemptState {
  if (!isAttemptsOutcome(chain.next) || !chain.next.ok) return chain
  const { rung, kind } = chain.trace.at(-1) ?? STAGE_STEPS.local
  const context = smaller === undefined ? chain.context : withSmallerLimits(chain.context, smaller)
  if (rung === 4 && smaller !== undefined)
    return advanceToNextAttempt({ ...chain, context, stage: 'local', trace: chain.trace.slice(0, -1) })
  const stage = rung <= 1 && !wasTooLarge(chain) ? 'fork' : rung === 4 ? 'failed' : 'local'
  const problem = { reason: ABOVE_TARGET_REASON, message, failed: false }
  const refused = withStep(chain, { rung, kind }, 'refused', problem)
  const remark = describeSummaryProblem(problem, 1)
  return advanceToNextAttempt({ ...refused, context, stage, remark, fallbackReason: 'no_summary' })
}

function withSmallerLimits(
  context: SummaryAttemptState['context'],
  { tokens, restTokens }: SmallerSummaryLimits,
): SummaryAttemptState['context'] {
  return {
    ...context,
    ...(tokens === undefined ? {} : { maximumSummaryTokens: tokens }),
    ...(restTokens === undefined ? {} : { maximumRestTokens: restTokens }),
  }
}

/** True if a summary was rejected as too large. At most one more attempt then uses a model. */
function wasTooLarge({ trace }: SummaryAttemptState): boolean {
  return trace.some(({ reason }) => reason === ABOVE_TARGET_REASON)
}

function recordLocalSummary(
  chain: SummaryAttemptState,
  ask: LocalAttempt,
  outcome: AttemptResult,
): SummaryAttemptState {
  const summary = outcome.kind === 'text' ? outcome.text.trim() : ''
  // A local summary above its maximum is the smallest possible one. Measuring the draft shows whether it meets the target.
  const target = chain.context.maximumSummaryTokens ?? 0
  const most = Math.max(target, sumEntryTokens(chain, ask.entries) - 1)
  if (summary !== '' && chain.context.countTextTokens(summary) <= most) {
    const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
    const covered = { ...accepted, coveredLocally: [] }
    return finishWithSummary(covered, { summarizer: 'local', summary, block: null })
  }
  const why = summary === '' ? EMPTY_LOCAL : LARGE_LOCAL
  return advanceToNextAttempt({ ...withStep(chain, ask, 'refused', why), stage: 'failed' })
}

const LARGE_LOCAL = { reason: 'too-large', message: 'It is larger than what it replaces.' }
const EMPTY_LOCAL = { reason: 'no-text', message: 'The summary without a model is empty.' }

interface AttemptProblem extends SummaryProblem {
  readonly gap?: AttemptCallFailure['gap']
}

/** Returns the summary in the result of an attempt, or what is wrong with it. */
function judgeResult(
  chain: SummaryAttemptState,
  ask: SummaryAttempt,
  outcome: AttemptResult,
): { readonly summary: string; readonly block: Block | null } | AttemptProblem {
  if (outcome.kind === 'answer') {
    const rules = createAcceptanceRules(chain, ask)
    const verdict =
      ask.kind === 'block' ? acceptCompactionBlock(outcome, rules) : acceptSummary(outcome, rules)
    if (!verdict.ok) return { reason: verdict.reason, message: verdict.message, failed: false }
    return { summary: verdict.summary, block: verdict.block ?? null }
  }
  if (outcome.kind === 'failure') {
    const { kind, message, gap } = outcome.failure
    return { reason: kind, message, failed: true, ...(gap === undefined ? {} : { gap }) }
  }
  const message = 'message' in outcome ? outcome.message : 'It was no answer.'
  return { reason: outcome.kind, message, failed: true }
}

/** Skips attempts that cannot be made, until one can be made or none is left. */
function advanceToNextAttempt(chain: SummaryAttemptState): SummaryAttemptState {
  if (chain.stage === 'failed') return { ...chain, next: createAttemptsFailure(chain) }
  const made = ATTEMPT_PLANNERS[chain.stage](chain)
  if ('skip' in made) return advanceToNextAttempt(skipStage(chain, made))
  if (chain.drops > 0 && isSameSummaryRequest(chain.next, made))
    return advanceToNextAttempt(dropRounds({ ...chain, drops: chain.drops - 1 }, null))
  const key = createSummaryRequestKey(chain, made)
  if (chain.requestKeys.includes(key)) return advanceToNextAttempt(skipStage(chain, SENT_BEFORE))
  return { ...chain, next: made, requestKeys: [...chain.requestKeys, key] }
}

const ATTEMPT_PLANNERS: Readonly<
  Record<Exclude<AttemptStage, 'failed'>, (chain: SummaryAttemptState) => AttemptOrSkip<SummaryAttempt>>
> = {
  block: planCompactionBlockAttempt,
  fork: planForkAttempt,
  direct: planDirectAttempt,
  local: planLocalAttempt,
}

const STAGE_STEPS: Readonly<
  Record<AttemptStage, Pick<SummaryAttemptStep, 'rung' | 'kind'> & { readonly after: AttemptStage }>
> = {
  block: { rung: 0, kind: 'block', after: 'fork' },
  fork: { rung: 1, kind: 'fork', after: 'direct' },
  direct: { rung: 2, kind: 'direct', after: 'local' },
  local: { rung: 4, kind: 'local', after: 'failed' },
  failed: { rung: 4, kind: 'local', after: 'failed' },
}

const SENT_BEFORE = { skip: 'asked-before', message: 'It was asked before.' }

function skipStage(
  chain: SummaryAttemptState,
  why: { readonly skip: string; readonly message: string },
): SummaryAttemptState {
  const step = STAGE_STEPS[chain.stage]
  const next = withStep(chain, step, 'skipped', { reason: why.skip, message: why.message })
  if (chain.stage === 'fork' && wasTooLarge(chain)) return { ...next, stage: 'local' }
  const isTooLong = chain.stage === 'direct' && why.skip === 'window-too-small'
  const reason = isTooLong ? { fallbackReason: next.fallbackReason ?? ('prompt_too_long' as const) } : {}
  return { ...next, ...reason, stage: step.after }
}

function finishWithSummary(
  chain: SummaryAttemptState,
  summary: Pick<AcceptedSummary, 'summarizer' | 'summary' | 'block'>,
): SummaryAttemptState {
  const { trace, fallbackReason, coveredLocally } = chain
  return {
    ...chain,
    next: { done: true, ok: true, ...summary, coveredLocally, trace, fallbackReason },
  }
}

function createAttemptsFailure({
  trace,
  fallbackReason,
  context,
}: Omit<SummaryAttemptState, 'next'>): AttemptsFailure {
  const last = trace.findLast((step) => step.outcome !== 'skipped') ?? trace.at(-1)
  // The advice to allow local summaries is given only if the policy forbids them; otherwise one was tried and failed as well.
  const allowLocal =
    context.policy.chain.local === 'never'
      ? ', or allow the summary without a model (compact.chain.local)'
      : ''
  const message = `No summary could be made. ${last?.message ?? ''} Rewind a few messages and compact again${allowLocal}.`
  return { done: true, ok: false, aborted: false, message, trace, fallbackReason }
}

function withStep(
  chain: SummaryAttemptState,
  { rung, kind }: Pick<SummaryAttemptStep, 'rung' | 'kind'>,
  outcome: SummaryAttemptStep['outcome'],
  { reason, message }: Pick<SummaryAttemptStep, 'reason' | 'message'>,
): SummaryAttemptState {
  return { ...chain, trace: [...chain.trace, { rung, kind, outcome, reason, message }] }
}

// Handling of an attempt that produced no summary: chooses what to change for the next attempt.

function handleFailure(
  chain: SummaryAttemptState,
  ask: SummaryAttempt,
  refusal: AttemptProblem,
): SummaryAttemptState {
  const next = withFailedStep(chain, ask, refusal)
  if (wasTooLarge(chain)) return { ...next, stage: 'local' }
  if (ask.kind === 'block' && (refusal.reason !== 'analysis' || chain.remark !== null))
    return { ...next, stage: 'fork', remark: null }
  if (ask.kind === 'block') return { ...next, remark: describeSummaryProblem(refusal, 1) }
  if (isOverflow(refusal)) return handleOverflow(next, refusal.gap)
  return ask.kind === 'fork' ? { ...next, stage: 'direct' } : retryDirect(next, refusal)
}

/** Stores an attempt without a summary. A fork or a compaction block whose request could not be built is no failure. */
function withFailedStep(
  chain: SummaryAttemptState,
  ask: SummaryAttempt,
  refusal: AttemptProblem,
): SummaryAttemptState {
  const isUnavailable = refusal.reason === 'unavailable'
  const outcome = isUnavailable ? 'skipped' : refusal.failed ? 'failed' : 'refused'
  const next = withStep(chain, ask, outcome, refusal)
  if (isUnavailable && ask.kind !== 'direct') return next
  const otherReason: FallbackReason = refusal.failed ? 'api_error' : 'no_summary'
  return { ...next, fallbackReason: isOverflow(refusal) ? 'prompt_too_long' : otherReason }
}

function isOverflow({ reason, failed }: AttemptProblem): boolean {
  return failed ? reason === 'overflow' || reason === 'too-large' : reason === 'window-full'
}

/** Failures that every further call to the same model would have, so a retry is useless. */
const PERMANENT_FAILURES: ReadonlySet<string> = new Set(['auth', 'billing', 'permission', 'not-found'])

function isPermanent({ reason, failed }: AttemptProblem): boolean {
  return failed && PERMANENT_FAILURES.has(reason)
}

/** Refusal reasons after which the first retry already sends tool calls as plain text. Later retries always do. */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  'tool-call',
  'tool-protocol',
  'invalid-request',
  'thinking-binding',
  'unavailable',
])

function retryDirect(chain: SummaryAttemptState, refusal: AttemptProblem): SummaryAttemptState {
  const { conversationModel, directModel, policy } = chain.context
  const attempts = chain.attempts + 1
  const canSwitch = !chain.usesConversationModel && conversationModel.model !== directModel.model
  if (attempts > policy.direct.retries || (isPermanent(refusal) && !canSwitch))
    return { ...chain, stage: 'local' }
  const switched = isPermanent(refusal)
    ? { usesConversationModel: true, window: conversationModel.window }
    : {}
  const asText = chain.asText || attempts > 1 || WITHOUT_TOOLS.has(refusal.reason)
  const remark = describeSummaryProblem(refusal, attempts)
  return { ...chain, ...switched, stage: 'direct', attempts, asText, remark }
}

/**
 * Plans a shorter request after one that exceeded the context window: drops the oldest rounds (responses with their
 * tool results). A local summary covers what is dropped.
 */
function handleOverflow(chain: SummaryAttemptState, gap: AttemptCallFailure['gap']): SummaryAttemptState {
  const { policy, conversationModel, directModel, span } = chain.context
  const isFork = chain.stage === 'fork'
  // The direct call goes to another model with its own window, so it is tried unshortened.
  if (isFork && directModel.model !== conversationModel.model) return { ...chain, stage: 'direct' }
  const tokens = sumEntryTokens(chain, chain.input)
  // A fork call sends media and thinking, a direct call does not, so the direct call is smaller by their tokens.
  const saved = isFork ? Math.max(0, sumEntryTokens(chain, span.input) - tokens) : 0
  const over = gap?.over === undefined ? null : gap.over - saved
  const isStrippedEnough =
    over === null ? saved > 0 && chain.window !== null && canInputFitWindow(chain) : over <= 0
  if (isFork && isStrippedEnough) return { ...chain, stage: 'direct' }
  const learnt = gap?.limit !== undefined && gap.limit > 0 ? { ...chain, window: gap.limit } : chain
  if (chain.drops >= policy.headDrop.retries) return { ...chain, stage: 'local' }
  const shorter = dropRounds(chain, addAnswerTokens(learnt, over))
  return shorter.stage === 'local' ? dropRounds(chain, over) : shorter
}

/**
 * Increases the tokens to drop, so that the summary fits into a known context window too: a cut-off summary would cost another
 * model call. At least half of the window stays for the conversation, since summaries rarely use their whole limit.
 */
function addAnswerTokens(chain: SummaryAttemptState, over: number | null): number | null {
  const room = countAvailableInputTokens(chain)
  if (over === null || room === null || chain.window === null) return over
  return Math.max(over, sumEntryTokens(chain, chain.input) - Math.max(room, Math.floor(chain.window / 2)))
}

/** Drops the oldest rounds from the input of the direct call. If nothing would be left of it, a local summary is next. */
function dropRounds(chain: SummaryAttemptState, over: number | null): SummaryAttemptState {
  const { policy, countEntryTokens } = chain.context
  const drop = dropOldestRounds(chain.input, { over, countTokens: countEntryTokens, policy: policy.headDrop })
  if (drop === null || selectSummarizedEntries(chain, drop.rest).length === 0)
    return { ...chain, stage: 'local' }
  const covered = [...chain.coveredLocally, ...selectSummarizedEntries(chain, drop.dropped)]
  return { ...chain, stage: 'direct', input: drop.rest, coveredLocally: covered, drops: chain.drops + 1 }
}
