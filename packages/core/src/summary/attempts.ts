/**
 * The attempts at a summary, in order: the provider's compaction block, a fork that reads the parent's cache, a
 * direct call, the same with less input or in parts, a local summary without a model. A pure state machine: it names
 * the next attempt, takes its result, and never sends the same request twice.
 */

import type { Block } from '../log/block.ts'
import { acceptBlock, acceptSummary } from './accept-summary.ts'
import type {
  Ask,
  AskFailure,
  AskOutcome,
  Chain,
  ChainContext,
  ChainFailure,
  ChainStep,
  ChainSummary,
  DirectAsk,
  Done,
  FallbackReason,
  LocalAsk,
  Stage,
} from './attempt.ts'
import {
  acceptRules,
  blockAsk,
  concatenateSummaries,
  directAsk,
  fitsWindow,
  forkAsk,
  isSameRequest,
  joinAsk,
  localAsk,
  type Made,
  MOST_PARTS,
  numberedPart,
  partAsk,
  requestKey,
  roomFor,
  splitIntoParts,
  summarisedOf,
  tokensIn,
} from './attempt-requests.ts'
import { dropHead, stripInput } from './summary-input.ts'

export function startChain(context: ChainContext): Chain {
  const { policy, span, direct } = context
  const chain: Omit<Chain, 'next'> = {
    context,
    stage: policy.chain.local === 'only' ? 'local' : 'block',
    material: stripInput(span.input, { asText: false }),
    covered: [],
    window: direct.window,
    attempts: 0,
    drops: 0,
    parts: null,
    asText: false,
    usesOwn: false,
    remark: null,
    calls: 0,
    asked: [],
    trace: [],
    fallbackReason: null,
  }
  return advance({ ...chain, next: describeFailure(chain) })
}

/** The attempt to make now, or the end. */
export function nextAsk(chain: Chain): Ask | Done {
  return chain.next
}

export function isDone(next: Ask | Done): next is Done {
  return 'done' in next
}

/** Upper bound of the model calls made for one summary. */
export function mostCalls({ chain, direct, headDrop }: ChainContext['policy']): number {
  if (chain.local === 'only') return 0
  const own = 1 + direct.retries + headDrop.retries
  return (chain.block ? 1 : 0) + (chain.fork ? 1 : 0) + own + MOST_PARTS + 1
}

/** Records the result of the current attempt and moves on. Without effect after the end. */
export function answered(chain: Chain, outcome: AskOutcome): Chain {
  const ask = chain.next
  if (isDone(ask)) return chain
  if (outcome.kind === 'aborted')
    return { ...chain, next: { ...describeFailure(chain), aborted: true, message: ABORTED } }
  if (ask.kind === 'local') return recordLocalSummary(chain, ask, outcome)
  const verdict = judgeOutcome(chain, ask, outcome)
  if ('reason' in verdict) return advance(afterFailure(chain, ask, verdict))
  const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
  if (numberedPart(ask) !== null) return advance(withPartSummary(accepted, verdict.summary))
  return finish(accepted, { summarizer: ask.kind === 'block' ? 'block' : 'model', ...verdict })
}

const ABORTED = 'The compaction was aborted; nothing has changed.'

/** For an accepted summary whose compacted context is too large. `largest`: tokens with which it would fit. */
export function unfit(chain: Chain, message: string, largest?: number): Chain {
  if (!isDone(chain.next) || !chain.next.ok) return chain
  const { rung, kind } = chain.trace.at(-1) ?? STEPS.local
  const stage: Stage = rung === 0 ? 'fork' : rung === 1 ? 'direct' : rung === 4 ? 'failed' : 'local'
  const context = largest === undefined ? chain.context : { ...chain.context, largestSummary: largest }
  const refused = withStep(chain, { rung, kind }, 'refused', { reason: 'above-target', message })
  return advance({ ...refused, context, stage, fallbackReason: 'no_summary' })
}

function recordLocalSummary(chain: Chain, ask: LocalAsk, outcome: AskOutcome): Chain {
  const summary = outcome.kind === 'text' ? outcome.text.trim() : ''
  if (summary !== '' && chain.context.tokensOfText(summary) <= ask.maximumTokens) {
    const accepted = withStep(chain, ask, 'accepted', { reason: 'accepted', message: '' })
    return finish({ ...accepted, covered: [] }, { summarizer: 'local', summary, block: null })
  }
  const why = summary === '' ? EMPTY_LOCAL : LARGE_LOCAL
  return advance({ ...withStep(chain, ask, 'refused', why), stage: 'failed' })
}

const EMPTY_LOCAL = { reason: 'no-text', message: 'The summary without a model is empty.' }
const LARGE_LOCAL = {
  reason: 'too-large',
  message: 'The summary without a model is not smaller than what it would replace.',
}

interface Refusal {
  readonly reason: string
  readonly message: string
  /** The call itself failed; otherwise its answer was refused. */
  readonly failed: boolean
  readonly gap?: AskFailure['gap']
}

function judgeOutcome(
  chain: Chain,
  ask: Ask,
  outcome: AskOutcome,
): { readonly summary: string; readonly block: Block | null } | Refusal {
  if (outcome.kind === 'answer') {
    const rules = acceptRules(chain, ask)
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
function advance(chain: Chain): Chain {
  if (chain.stage === 'failed') return { ...chain, next: describeFailure(chain) }
  if (chain.stage === 'together' || (chain.stage === 'join' && chain.parts?.summaries.length === 1))
    return finishWithParts(chain)
  const made = REQUESTS[chain.stage](chain)
  if ('skip' in made) return advance(skipStage(chain, made))
  if (chain.drops > 0 && isSameRequest(chain.next, made))
    return advance(dropRounds({ ...chain, drops: chain.drops - 1 }, null))
  const key = requestKey(chain, made)
  if (chain.asked.includes(key)) return advance(skipStage(chain, ASKED_BEFORE))
  const calls = chain.calls + (made.kind === 'local' ? 0 : 1)
  return { ...chain, next: made, calls, asked: [...chain.asked, key] }
}

const REQUESTS: Readonly<Record<Exclude<Stage, 'failed' | 'together'>, (chain: Chain) => Made<Ask>>> = {
  block: blockAsk,
  fork: forkAsk,
  direct: directAsk,
  parts: partAsk,
  join: joinAsk,
  local: localAsk,
}

const STEPS: Readonly<Record<Stage, Pick<ChainStep, 'rung' | 'kind'> & { readonly after: Stage }>> = {
  block: { rung: 0, kind: 'block', after: 'fork' },
  fork: { rung: 1, kind: 'fork', after: 'direct' },
  direct: { rung: 2, kind: 'direct', after: 'local' },
  parts: { rung: 3, kind: 'direct', after: 'local' },
  join: { rung: 3, kind: 'direct', after: 'local' },
  together: { rung: 3, kind: 'direct', after: 'local' },
  local: { rung: 4, kind: 'local', after: 'failed' },
  failed: { rung: 4, kind: 'local', after: 'failed' },
}

const ASKED_BEFORE = { skip: 'asked-before', message: 'It was asked before.' }

function skipStage(chain: Chain, why: { readonly skip: string; readonly message: string }): Chain {
  const step = STEPS[chain.stage]
  const next = withStep(chain, step, 'skipped', { reason: why.skip, message: why.message })
  if (chain.stage !== 'direct' || why.skip !== 'window-too-small') return { ...next, stage: step.after }
  return splitIntoParts({ ...next, fallbackReason: next.fallbackReason ?? 'prompt_too_long' })
}

/** One part alone, or several that could not be joined: used as they are if small enough. */
function finishWithParts(chain: Chain): Chain {
  const { policy, tokensOfText, span } = chain.context
  const summary = concatenateSummaries(chain.parts?.summaries ?? [])
  const limit = tokensIn(chain, span.summarised) * policy.maximumPercentOfReplaced
  if (tokensOfText(summary) * 100 >= limit) return advance({ ...chain, stage: 'local' })
  return finish(chain, { summarizer: 'model', summary, block: null })
}

function finish(chain: Chain, summary: Pick<ChainSummary, 'summarizer' | 'summary' | 'block'>): Chain {
  const { trace, calls, fallbackReason, covered } = chain
  return { ...chain, next: { done: true, ok: true, ...summary, covered, trace, calls, fallbackReason } }
}

function describeFailure({ trace, calls, fallbackReason }: Omit<Chain, 'next'>): ChainFailure {
  const last = trace.findLast((step) => step.outcome !== 'skipped') ?? trace.at(-1)
  const message = `No summary could be made. ${last?.message ?? ''} Rewind a few messages and compact again, or allow the summary without a model (compact.chain.local).`
  return { done: true, ok: false, aborted: false, message, trace, calls, fallbackReason }
}

function withStep(
  chain: Chain,
  { rung, kind }: Pick<ChainStep, 'rung' | 'kind'>,
  outcome: ChainStep['outcome'],
  { reason, message }: Pick<ChainStep, 'reason' | 'message'>,
): Chain {
  return { ...chain, trace: [...chain.trace, { rung, kind, outcome, reason, message }] }
}

// After an attempt without a summary: what to change for the next one.

function afterFailure(chain: Chain, ask: Ask, refusal: Refusal): Chain {
  const next = withFailedStep(chain, ask, refusal)
  if (ask.kind === 'block') return { ...next, stage: 'fork' }
  if (ask.kind === 'direct' && ask.part !== null) return afterPartFailure(next, ask.part, refusal)
  if (isOverflow(refusal)) return afterOverflow(next, refusal.gap)
  return ask.kind === 'fork' ? { ...next, stage: 'direct' } : retryDirect(next, refusal)
}

/** A request that could not be built does not count as a call; for a fork or a block it is not a failure either. */
function withFailedStep(chain: Chain, ask: Ask, refusal: Refusal): Chain {
  const isUnavailable = refusal.reason === 'unavailable'
  const outcome = isUnavailable ? 'skipped' : refusal.failed ? 'failed' : 'refused'
  const next = { ...withStep(chain, ask, outcome, refusal), calls: chain.calls - (isUnavailable ? 1 : 0) }
  if (isUnavailable && ask.kind !== 'direct') return next
  const otherReason: FallbackReason = refusal.failed ? 'api_error' : 'no_summary'
  return { ...next, fallbackReason: isOverflow(refusal) ? 'prompt_too_long' : otherReason }
}

function isOverflow({ reason, failed }: Refusal): boolean {
  return failed ? reason === 'overflow' || reason === 'too-large' : reason === 'window-full'
}

/** Failures that any other call to the same model would meet as well. */
const PERMANENT: ReadonlySet<string> = new Set(['auth', 'billing', 'permission', 'not-found'])

function isPermanent({ reason, failed }: Refusal): boolean {
  return failed && PERMANENT.has(reason)
}

/** Reasons for sending tool calls as text in the first retry already; later retries always do. */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  'tool-call',
  'tool-protocol',
  'invalid-request',
  'thinking-binding',
  'unavailable',
])

function retryDirect(chain: Chain, refusal: Refusal): Chain {
  const { own, direct, policy } = chain.context
  const attempts = chain.attempts + 1
  const canSwitch = !chain.usesOwn && own.model !== direct.model
  if (attempts > policy.direct.retries || (isPermanent(refusal) && !canSwitch))
    return { ...chain, stage: 'local' }
  const switched = isPermanent(refusal) ? { usesOwn: true, window: own.window } : {}
  const asText = chain.asText || attempts > 1 || WITHOUT_TOOLS.has(refusal.reason)
  return { ...chain, ...switched, stage: 'direct', attempts, asText, remark: remarkOn(refusal, attempts) }
}

function remarkOn({ reason, message, failed }: Refusal, attempts: number): string {
  const start = `This is attempt ${attempts + 1}.`
  if (failed) return `${start} The attempt before it brought no answer.`
  if (reason === 'cut-off' || reason === 'too-large')
    return `${start} The answer before it was too long: ${message} Keep the analysis short, and in the summary only what matters.`
  return `${start} The answer before it could not be used: ${message}`
}

function afterPartFailure(chain: Chain, part: NonNullable<DirectAsk['part']>, refusal: Refusal): Chain {
  if (part === 'join') return { ...chain, stage: 'together' }
  if (isPermanent(refusal)) return { ...withPartSummary(chain, null), stage: 'local' }
  const shown = chain.parts?.parts[part.number - 1] ?? []
  return { ...withPartSummary(chain, null), covered: [...chain.covered, ...summarisedOf(chain, shown)] }
}

/** Moves to the next part, or to joining the summaries after the last one. */
function withPartSummary(chain: Chain, summary: string | null): Chain {
  if (chain.parts === null) return { ...chain, stage: 'local' }
  const summaries = summary === null ? chain.parts.summaries : [...chain.parts.summaries, summary]
  const parts = { ...chain.parts, sent: chain.parts.sent + 1, summaries }
  return { ...chain, parts, stage: parts.sent < parts.parts.length ? 'parts' : 'join' }
}

/** Drops rounds from the head, or splits into parts if the window proved far too small. */
function afterOverflow(chain: Chain, gap: AskFailure['gap']): Chain {
  const { policy, own, direct, span } = chain.context
  const isFork = chain.stage === 'fork'
  // The direct call goes to another model with another window: this overflow says nothing about it.
  if (isFork && direct.model !== own.model) return { ...chain, stage: 'direct' }
  const tokens = tokensIn(chain, chain.material)
  // A fork sends unstripped messages, so the direct call is already smaller by this much.
  const saved = isFork ? Math.max(0, tokensIn(chain, span.input) - tokens) : 0
  const over = gap?.over === undefined ? null : gap.over - saved
  const isStrippedEnough = over === null ? saved > 0 && chain.window !== null && fitsWindow(chain) : over <= 0
  if (isFork && isStrippedEnough) return { ...chain, stage: 'direct' }
  const learnt = gap?.limit !== undefined && gap.limit > 0 ? { ...chain, window: gap.limit } : chain
  const isFar = over !== null && over * 2 > tokens && learnt !== chain
  const split = isFar ? splitIntoParts(learnt) : chain
  // A single part would be the request that has just failed.
  if ((split.parts?.parts.length ?? 0) > 1) return split
  if (chain.drops >= policy.headDrop.retries) return { ...chain, stage: 'local' }
  const shorter = dropRounds(chain, withRoomForAnswer(learnt, over))
  return shorter.stage === 'local' ? dropRounds(chain, over) : shorter
}

/**
 * Tokens to drop so that the answer fits as well, once the window is known: a cut-off answer would cost another call.
 * Answers rarely use their limit, so at least half of the window stays for the conversation.
 */
function withRoomForAnswer(chain: Chain, over: number | null): number | null {
  const room = roomFor(chain)
  if (over === null || room === null || chain.window === null) return over
  return Math.max(over, tokensIn(chain, chain.material) - Math.max(room, Math.floor(chain.window / 2)))
}

function dropRounds(chain: Chain, over: number | null): Chain {
  const { policy, tokensOf } = chain.context
  const drop = dropHead(chain.material, { over, tokensOf, policy: policy.headDrop })
  if (drop === null || summarisedOf(chain, drop.rest).length === 0) return { ...chain, stage: 'local' }
  const covered = [...chain.covered, ...summarisedOf(chain, drop.dropped)]
  return { ...chain, stage: 'direct', material: drop.rest, covered, drops: chain.drops + 1 }
}
