/**
 * The attempts at a summary, in order: the provider's compaction block, a fork that reads the parent's cache, a
 * direct call, the same with less input or in parts, a local summary without a model. A pure state machine: it names
 * the next attempt, takes its result, and never sends the same request twice.
 */

import type { Block } from '../log/block.ts'
import { acceptBlock, acceptSummary } from './accept-summary.ts'
import type {
  Attempt,
  AttemptFailure,
  AttemptResult,
  AttemptStage,
  AttemptStep,
  AttemptsEnd,
  AttemptsFailure,
  AttemptsInput,
  AttemptsSummary,
  DirectAttempt,
  FallbackReason,
  LocalAttempt,
  SummaryAttempts,
} from './attempt.ts'
import {
  type AttemptOrSkip,
  availableInputTokens,
  concatenateSummaries,
  createAcceptanceRules,
  createRequestKey,
  filterSummarised,
  findPartNumber,
  fitsWindow,
  isSameRequest,
  MAX_PARTS,
  planBlockAttempt,
  planDirectAttempt,
  planForkAttempt,
  planJoinAttempt,
  planLocalAttempt,
  planPartAttempt,
  startParts,
  sumEntryTokens,
} from './attempt-requests.ts'
import { dropHead, stripInput } from './summary-input.ts'

export function startAttempts(context: AttemptsInput): SummaryAttempts {
  const { policy, span, directModel } = context
  const chain: Omit<SummaryAttempts, 'next'> = {
    context,
    stage: policy.chain.local === 'only' ? 'local' : 'block',
    input: stripInput(span.input, { asText: false }),
    coveredLocally: [],
    window: directModel.window,
    attempts: 0,
    drops: 0,
    parts: null,
    asText: false,
    usesConversationModel: false,
    remark: null,
    calls: 0,
    requestKeys: [],
    trace: [],
    fallbackReason: null,
  }
  return advanceToNextAttempt({ ...chain, next: createAttemptsFailure(chain) })
}

/** The attempt to make now, or the end. */
export function nextAttempt(chain: SummaryAttempts): Attempt | AttemptsEnd {
  return chain.next
}

export function isDone(next: Attempt | AttemptsEnd): next is AttemptsEnd {
  return 'done' in next
}

/** Upper bound of the model calls made for one summary. */
export function countMaximumCalls({ chain, direct, headDrop }: AttemptsInput['policy']): number {
  if (chain.local === 'only') return 0
  const own = 1 + direct.retries + headDrop.retries
  return (chain.block ? 1 : 0) + (chain.fork ? 1 : 0) + own + MAX_PARTS + 1
}

/** Records the result of the current attempt and moves on. Without effect after the end. */
export function recordResult(chain: SummaryAttempts, outcome: AttemptResult): SummaryAttempts {
  const ask = chain.next
  if (isDone(ask)) return chain
  if (outcome.kind === 'aborted')
    return { ...chain, next: { ...createAttemptsFailure(chain), aborted: true, message: ABORTED_MESSAGE } }
  if (ask.kind === 'local') return recordLocalSummary(chain, ask, outcome)
  const verdict = judgeResult(chain, ask, outcome)
  if ('reason' in verdict) return advanceToNextAttempt(handleFailure(chain, ask, verdict))
  const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
  if (findPartNumber(ask) !== null) return advanceToNextAttempt(withPartSummary(accepted, verdict.summary))
  return finishWithSummary(accepted, { summarizer: ask.kind === 'block' ? 'block' : 'model', ...verdict })
}

const ABORTED_MESSAGE = 'The compaction was aborted; nothing has changed.'

/** For an accepted summary whose compacted context is too large. `largest`: tokens with which it would fit. */
export function rejectTooLarge(chain: SummaryAttempts, message: string, largest?: number): SummaryAttempts {
  if (!isDone(chain.next) || !chain.next.ok) return chain
  const { rung, kind } = chain.trace.at(-1) ?? STAGE_STEPS.local
  const stage: AttemptStage = rung === 0 ? 'fork' : rung === 1 ? 'direct' : rung === 4 ? 'failed' : 'local'
  const context = largest === undefined ? chain.context : { ...chain.context, maximumSummaryTokens: largest }
  const refused = withStep(chain, { rung, kind }, 'refused', { reason: 'above-target', message })
  return advanceToNextAttempt({ ...refused, context, stage, fallbackReason: 'no_summary' })
}

function recordLocalSummary(
  chain: SummaryAttempts,
  ask: LocalAttempt,
  outcome: AttemptResult,
): SummaryAttempts {
  const summary = outcome.kind === 'text' ? outcome.text.trim() : ''
  if (summary !== '' && chain.context.countTextTokens(summary) <= ask.maximumTokens) {
    const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
    return finishWithSummary(
      { ...accepted, coveredLocally: [] },
      { summarizer: 'local', summary, block: null },
    )
  }
  const why = summary === '' ? EMPTY_LOCAL : LARGE_LOCAL
  return advanceToNextAttempt({ ...withStep(chain, ask, 'refused', why), stage: 'failed' })
}

const EMPTY_LOCAL = { reason: 'no-text', message: 'The summary without a model is empty.' }
const LARGE_LOCAL = {
  reason: 'too-large',
  message: 'The summary without a model is not smaller than what it would replace.',
}

interface AttemptProblem {
  readonly reason: string
  readonly message: string
  /** The call itself failed; otherwise its answer was refused. */
  readonly failed: boolean
  readonly gap?: AttemptFailure['gap']
}

function judgeResult(
  chain: SummaryAttempts,
  ask: Attempt,
  outcome: AttemptResult,
): { readonly summary: string; readonly block: Block | null } | AttemptProblem {
  if (outcome.kind === 'answer') {
    const rules = createAcceptanceRules(chain, ask)
    const verdict = ask.kind === 'block' ? acceptBlock(outcome, rules) : acceptSummary(outcome, rules)
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

/** Goes from stage to stage until there is an attempt to make, or nothing left to try. */
function advanceToNextAttempt(chain: SummaryAttempts): SummaryAttempts {
  if (chain.stage === 'failed') return { ...chain, next: createAttemptsFailure(chain) }
  if (chain.stage === 'together' || (chain.stage === 'join' && chain.parts?.summaries.length === 1))
    return finishWithParts(chain)
  const made = ATTEMPT_PLANNERS[chain.stage](chain)
  if ('skip' in made) return advanceToNextAttempt(skipStage(chain, made))
  if (chain.drops > 0 && isSameRequest(chain.next, made))
    return advanceToNextAttempt(dropRounds({ ...chain, drops: chain.drops - 1 }, null))
  const key = createRequestKey(chain, made)
  if (chain.requestKeys.includes(key)) return advanceToNextAttempt(skipStage(chain, SENT_BEFORE))
  const calls = chain.calls + (made.kind === 'local' ? 0 : 1)
  return { ...chain, next: made, calls, requestKeys: [...chain.requestKeys, key] }
}

const ATTEMPT_PLANNERS: Readonly<
  Record<Exclude<AttemptStage, 'failed' | 'together'>, (chain: SummaryAttempts) => AttemptOrSkip<Attempt>>
> = {
  block: planBlockAttempt,
  fork: planForkAttempt,
  direct: planDirectAttempt,
  parts: planPartAttempt,
  join: planJoinAttempt,
  local: planLocalAttempt,
}

const STAGE_STEPS: Readonly<
  Record<AttemptStage, Pick<AttemptStep, 'rung' | 'kind'> & { readonly after: AttemptStage }>
> = {
  block: { rung: 0, kind: 'block', after: 'fork' },
  fork: { rung: 1, kind: 'fork', after: 'direct' },
  direct: { rung: 2, kind: 'direct', after: 'local' },
  parts: { rung: 3, kind: 'direct', after: 'local' },
  join: { rung: 3, kind: 'direct', after: 'local' },
  together: { rung: 3, kind: 'direct', after: 'local' },
  local: { rung: 4, kind: 'local', after: 'failed' },
  failed: { rung: 4, kind: 'local', after: 'failed' },
}

const SENT_BEFORE = { skip: 'asked-before', message: 'It was asked before.' }

function skipStage(
  chain: SummaryAttempts,
  why: { readonly skip: string; readonly message: string },
): SummaryAttempts {
  const step = STAGE_STEPS[chain.stage]
  const next = withStep(chain, step, 'skipped', { reason: why.skip, message: why.message })
  if (chain.stage !== 'direct' || why.skip !== 'window-too-small') return { ...next, stage: step.after }
  return startParts({ ...next, fallbackReason: next.fallbackReason ?? 'prompt_too_long' })
}

/** One part alone, or several that could not be joined: used as they are if small enough. */
function finishWithParts(chain: SummaryAttempts): SummaryAttempts {
  const { policy, countTextTokens, span } = chain.context
  const summary = concatenateSummaries(chain.parts?.summaries ?? [])
  const limit = sumEntryTokens(chain, span.summarised) * policy.maximumPercentOfReplaced
  if (countTextTokens(summary) * 100 >= limit) return advanceToNextAttempt({ ...chain, stage: 'local' })
  return finishWithSummary(chain, { summarizer: 'model', summary, block: null })
}

function finishWithSummary(
  chain: SummaryAttempts,
  summary: Pick<AttemptsSummary, 'summarizer' | 'summary' | 'block'>,
): SummaryAttempts {
  const { trace, calls, fallbackReason, coveredLocally } = chain
  return {
    ...chain,
    next: { done: true, ok: true, ...summary, coveredLocally, trace, calls, fallbackReason },
  }
}

function createAttemptsFailure({
  trace,
  calls,
  fallbackReason,
}: Omit<SummaryAttempts, 'next'>): AttemptsFailure {
  const last = trace.findLast((step) => step.outcome !== 'skipped') ?? trace.at(-1)
  const message = `No summary could be made. ${last?.message ?? ''} Rewind a few messages and compact again, or allow the summary without a model (compact.chain.local).`
  return { done: true, ok: false, aborted: false, message, trace, calls, fallbackReason }
}

function withStep(
  chain: SummaryAttempts,
  { rung, kind }: Pick<AttemptStep, 'rung' | 'kind'>,
  outcome: AttemptStep['outcome'],
  { reason, message }: Pick<AttemptStep, 'reason' | 'message'>,
): SummaryAttempts {
  return { ...chain, trace: [...chain.trace, { rung, kind, outcome, reason, message }] }
}

// After an attempt without a summary: what to change for the next one.

function handleFailure(chain: SummaryAttempts, ask: Attempt, refusal: AttemptProblem): SummaryAttempts {
  const next = withFailedStep(chain, ask, refusal)
  if (ask.kind === 'block') return { ...next, stage: 'fork' }
  if (ask.kind === 'direct' && ask.part !== null) return handlePartFailure(next, ask.part, refusal)
  if (isOverflow(refusal)) return handleOverflow(next, refusal.gap)
  return ask.kind === 'fork' ? { ...next, stage: 'direct' } : retryDirect(next, refusal)
}

/** A request that could not be built does not count as a call; for a fork or a block it is not a failure either. */
function withFailedStep(chain: SummaryAttempts, ask: Attempt, refusal: AttemptProblem): SummaryAttempts {
  const isUnavailable = refusal.reason === 'unavailable'
  const outcome = isUnavailable ? 'skipped' : refusal.failed ? 'failed' : 'refused'
  const next = { ...withStep(chain, ask, outcome, refusal), calls: chain.calls - (isUnavailable ? 1 : 0) }
  if (isUnavailable && ask.kind !== 'direct') return next
  const otherReason: FallbackReason = refusal.failed ? 'api_error' : 'no_summary'
  return { ...next, fallbackReason: isOverflow(refusal) ? 'prompt_too_long' : otherReason }
}

function isOverflow({ reason, failed }: AttemptProblem): boolean {
  return failed ? reason === 'overflow' || reason === 'too-large' : reason === 'window-full'
}

/** Failures that any other call to the same model would meet as well. */
const PERMANENT_FAILURES: ReadonlySet<string> = new Set(['auth', 'billing', 'permission', 'not-found'])

function isPermanent({ reason, failed }: AttemptProblem): boolean {
  return failed && PERMANENT_FAILURES.has(reason)
}

/** Reasons for sending tool calls as text in the first retry already; later retries always do. */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  'tool-call',
  'tool-protocol',
  'invalid-request',
  'thinking-binding',
  'unavailable',
])

function retryDirect(chain: SummaryAttempts, refusal: AttemptProblem): SummaryAttempts {
  const { conversationModel, directModel, policy } = chain.context
  const attempts = chain.attempts + 1
  const canSwitch = !chain.usesConversationModel && conversationModel.model !== directModel.model
  if (attempts > policy.direct.retries || (isPermanent(refusal) && !canSwitch))
    return { ...chain, stage: 'local' }
  const switched = isPermanent(refusal)
    ? { usesConversationModel: true, window: conversationModel.window }
    : {}
  const asText = chain.asText || attempts > 1 || WITHOUT_TOOLS.has(refusal.reason)
  return {
    ...chain,
    ...switched,
    stage: 'direct',
    attempts,
    asText,
    remark: describeProblem(refusal, attempts),
  }
}

function describeProblem({ reason, message, failed }: AttemptProblem, attempts: number): string {
  const start = `This is attempt ${attempts + 1}.`
  if (failed) return `${start} The attempt before it brought no answer.`
  if (reason === 'cut-off' || reason === 'too-large')
    return `${start} The answer before it was too long: ${message} Keep the analysis short, and in the summary only what matters.`
  return `${start} The answer before it could not be used: ${message}`
}

function handlePartFailure(
  chain: SummaryAttempts,
  part: NonNullable<DirectAttempt['part']>,
  refusal: AttemptProblem,
): SummaryAttempts {
  if (part === 'join') return { ...chain, stage: 'together' }
  if (isPermanent(refusal)) return { ...withPartSummary(chain, null), stage: 'local' }
  const shown = chain.parts?.parts[part.number - 1] ?? []
  return {
    ...withPartSummary(chain, null),
    coveredLocally: [...chain.coveredLocally, ...filterSummarised(chain, shown)],
  }
}

/** Moves to the next part, or to joining the summaries after the last one. */
function withPartSummary(chain: SummaryAttempts, summary: string | null): SummaryAttempts {
  if (chain.parts === null) return { ...chain, stage: 'local' }
  const summaries = summary === null ? chain.parts.summaries : [...chain.parts.summaries, summary]
  const parts = { ...chain.parts, sent: chain.parts.sent + 1, summaries }
  return { ...chain, parts, stage: parts.sent < parts.parts.length ? 'parts' : 'join' }
}

/** Drops rounds from the head, or splits into parts if the window proved far too small. */
function handleOverflow(chain: SummaryAttempts, gap: AttemptFailure['gap']): SummaryAttempts {
  const { policy, conversationModel, directModel, span } = chain.context
  const isFork = chain.stage === 'fork'
  // The direct call goes to another model with another window: this overflow says nothing about it.
  if (isFork && directModel.model !== conversationModel.model) return { ...chain, stage: 'direct' }
  const tokens = sumEntryTokens(chain, chain.input)
  // A fork sends unstripped messages, so the direct call is already smaller by this much.
  const saved = isFork ? Math.max(0, sumEntryTokens(chain, span.input) - tokens) : 0
  const over = gap?.over === undefined ? null : gap.over - saved
  const isStrippedEnough = over === null ? saved > 0 && chain.window !== null && fitsWindow(chain) : over <= 0
  if (isFork && isStrippedEnough) return { ...chain, stage: 'direct' }
  const learnt = gap?.limit !== undefined && gap.limit > 0 ? { ...chain, window: gap.limit } : chain
  const isFar = over !== null && over * 2 > tokens && learnt !== chain
  const split = isFar ? startParts(learnt) : chain
  // A single part would be the request that has just failed.
  if ((split.parts?.parts.length ?? 0) > 1) return split
  if (chain.drops >= policy.headDrop.retries) return { ...chain, stage: 'local' }
  const shorter = dropRounds(chain, addAnswerTokens(learnt, over))
  return shorter.stage === 'local' ? dropRounds(chain, over) : shorter
}

/**
 * Tokens to drop so that the answer fits as well, once the window is known: a cut-off answer would cost another call.
 * Answers rarely use their limit, so at least half of the window stays for the conversation.
 */
function addAnswerTokens(chain: SummaryAttempts, over: number | null): number | null {
  const room = availableInputTokens(chain)
  if (over === null || room === null || chain.window === null) return over
  return Math.max(over, sumEntryTokens(chain, chain.input) - Math.max(room, Math.floor(chain.window / 2)))
}

function dropRounds(chain: SummaryAttempts, over: number | null): SummaryAttempts {
  const { policy, countEntryTokens } = chain.context
  const drop = dropHead(chain.input, { over, countTokens: countEntryTokens, policy: policy.headDrop })
  if (drop === null || filterSummarised(chain, drop.rest).length === 0) return { ...chain, stage: 'local' }
  const covered = [...chain.coveredLocally, ...filterSummarised(chain, drop.dropped)]
  return { ...chain, stage: 'direct', input: drop.rest, coveredLocally: covered, drops: chain.drops + 1 }
}
