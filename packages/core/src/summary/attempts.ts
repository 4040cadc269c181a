/**
 * The chain of asking for a summary, from the way that keeps most to the one that cannot fail: the provider's own
 * block, a fork on the parent's cache, a call of its own, the same with less or in parts, no model at all. A pure
 * state machine: it says what to ask, is told what came of it, and never asks the same thing twice.
 */
import type { Payload } from '../context/payload.ts'
import { type Block, blocksOf } from '../log/block.ts'
import { type AcceptRules, SUMMARY_HEADING, type SummaryAnswer, acceptBlock, acceptSummary } from './accept-summary.ts'
import { type Ask, type AskFailure, type AskOutcome, type Chain, type ChainContext, type ChainFailure, type ChainStep, type ChainSummary, type DirectAsk, type Done, type FallbackReason, type LocalAsk, type Stage, stepped, summarisedOf, summariserOf, tokensIn } from './attempt.ts'
import { MOST_PARTS, type Made, blockAsk, directAsk, forkAsk, joinAsk, localAsk, partAsk, replacedTokens, roomFor, splitParts, taskOf } from './attempt-requests.ts'
import { answerTokens, dropHead, stripInput } from './summary-input.ts'
import { summaryPrompt } from './summary-prompt.ts'

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
  return settled({ ...chain, next: failed(chain) })
}

/** What to ask now, or how it ended. */
export function nextAsk(chain: Chain): Ask | Done {
  return chain.next
}

/** The most calls to a model that one chain makes. */
export function mostCalls({ chain, direct, headDrop }: ChainContext['policy']): number {
  if (chain.local === 'only') return 0
  const own = 1 + direct.retries + headDrop.retries
  return (chain.block ? 1 : 0) + (chain.fork ? 1 : 0) + own + MOST_PARTS + 1
}

/** The chain with what came of its ask. One that has ended stays as it is. */
export function answered(chain: Chain, outcome: AskOutcome): Chain {
  const ask = chain.next
  if (isDone(ask)) return chain
  if (outcome.kind === 'aborted')
    return { ...chain, next: { ...failed(chain), aborted: true, message: ABORTED } }
  if (ask.kind === 'local') return afterLocal(chain, ask, outcome)
  const told = judged(chain, ask, outcome)
  if ('reason' in told) return settled(afterRefusal(chain, ask, told))
  return accepted(stepped(chain, stepOf(ask, '')), ask, told)
}

const ABORTED = 'The compaction was aborted; nothing has changed.'

/**
 * The summary was good and the whole is still too large: the next rung is tried. `largest`: tokens that a summary may
 * have for the whole to fit.
 */
export function unfit(chain: Chain, message: string, largest?: number): Chain {
  if (!isDone(chain.next) || !chain.next.ok) return chain
  const last = chain.trace.at(-1)
  const rung = last?.rung ?? 4
  const step: ChainStep = {
    rung,
    kind: last?.kind ?? 'local',
    outcome: 'refused',
    reason: 'above-target',
    message,
  }
  const stage: Stage = rung === 0 ? 'fork' : rung === 1 ? 'direct' : rung === 4 ? 'failed' : 'local'
  const context = largest === undefined ? chain.context : { ...chain.context, largestSummary: largest }
  return settled({ ...stepped(chain, step), context, stage, fallbackReason: 'no_summary' })
}

interface Good {
  readonly summary: string
  readonly block: Block | null
}

function judged(chain: Chain, ask: Ask, outcome: AskOutcome): Good | Refusal {
  if (outcome.kind === 'answer') return judgedAnswer(chain, ask, outcome)
  if (outcome.kind === 'failure') {
    const { kind, message, gap } = outcome.failure
    return { reason: kind, message, failed: true, ...(gap === undefined ? {} : { gap }) }
  }
  return {
    reason: outcome.kind,
    message: 'message' in outcome ? outcome.message : 'It was no answer.',
    failed: true,
  }
}

function judgedAnswer(chain: Chain, ask: Ask, answer: SummaryAnswer): Good | Refusal {
  const rules = rulesFor(chain, ask)
  const verdict = ask.kind === 'block' ? acceptBlock(answer, rules) : acceptSummary(answer, rules)
  if (!verdict.ok) return { reason: verdict.reason, message: verdict.message, failed: false }
  return { summary: verdict.summary, block: verdict.block ?? null }
}

function accepted(chain: Chain, ask: Ask, good: Good): Chain {
  const isPart = ask.kind === 'direct' && ask.part !== null && ask.part !== 'join'
  if (isPart) return settled(partDone(chain, good.summary))
  return { ...chain, next: ended(chain, { summarizer: ask.kind === 'block' ? 'block' : 'model', ...good }) }
}

function afterLocal(chain: Chain, ask: LocalAsk, outcome: AskOutcome): Chain {
  const text = outcome.kind === 'text' ? outcome.text.trim() : ''
  const isSmall = chain.context.tokensOfText(text) <= ask.maximumTokens
  if (text !== '' && isSmall) {
    const good = stepped({ ...chain, covered: [] }, stepOf(ask, ''))
    return { ...good, next: ended(good, { summarizer: 'local', summary: text, block: null }) }
  }
  const message = text === '' ? EMPTY_LOCAL : LARGE_LOCAL
  const step: ChainStep = {
    rung: 4,
    kind: 'local',
    outcome: 'refused',
    reason: text === '' ? 'no-text' : 'too-large',
    message,
  }
  return settled({ ...stepped(chain, step), stage: 'failed' })
}

const EMPTY_LOCAL = 'The summary without a model is empty.'
const LARGE_LOCAL = 'The summary without a model is not smaller than what it would replace.'

function stepOf({ rung, kind }: Ask, message: string): ChainStep {
  return { rung, kind, outcome: 'accepted', reason: 'accepted', message }
}

// From stage to stage of the chain, until there is something to ask or nothing left to try.

export function isDone(next: Ask | Done): next is Done {
  return 'done' in next
}

/** Goes on from stage to stage until there is something to ask, or nothing left. */
export function settled(chain: Chain): Chain {
  if (chain.stage === 'failed') return { ...chain, next: failed(chain) }
  if (chain.stage === 'together' || (chain.stage === 'join' && chain.parts?.summaries.length === 1))
    return unjoined(chain)
  const made = MAKERS[chain.stage](chain)
  if ('skip' in made) return settled(skipped(chain, made))
  if (chain.drops > 0 && isSame(chain.next, made)) return settled(withLessStill(chain))
  const key = keyOf(chain, made)
  if (chain.asked.includes(key)) return settled(skipped(chain, ASKED_BEFORE))
  const calls = chain.calls + (made.kind === 'local' ? 0 : 1)
  return { ...chain, next: made, calls, asked: [...chain.asked, key] }
}

/** A retry after a drop that would send what has just failed. */
function isSame(before: Ask | Done, ask: Ask): boolean {
  if (isDone(before) || before.kind !== 'direct' || ask.kind !== 'direct' || ask.part !== null) return false
  return saying(before.payload) === saying(ask.payload)
}

/** A string and one text block say the same. */
function saying({ model, messages }: Payload): string {
  return JSON.stringify([model, messages.map(({ role, content }) => [role, blocksOf(content)])])
}

const ASKED_BEFORE = { skip: 'asked-before', message: 'It was asked before.' }

/** One part alone, or several that nobody put together: the summary all the same, if it is small enough. */
function unjoined(chain: Chain): Chain {
  const summary = together(chain)
  const { policy, tokensOfText } = chain.context
  const isSmall = tokensOfText(summary) * 100 < replacedTokens(chain) * policy.maximumPercentOfReplaced
  if (!isSmall) return settled({ ...chain, stage: 'local' })
  return { ...chain, next: ended(chain, { summarizer: 'model', summary, block: null }) }
}

type Asking = Exclude<Stage, 'failed' | 'together'>

const MAKERS: Readonly<Record<Asking, (chain: Chain) => Made<Ask>>> = {
  block: blockAsk,
  fork: forkAsk,
  direct: directAsk,
  parts: partAsk,
  join: joinAsk,
  local: localAsk,
}

const RUNGS: Readonly<Record<Stage, Pick<ChainStep, 'rung' | 'kind'> & { readonly after: Stage }>> = {
  block: { rung: 0, kind: 'block', after: 'fork' },
  fork: { rung: 1, kind: 'fork', after: 'direct' },
  direct: { rung: 2, kind: 'direct', after: 'local' },
  parts: { rung: 3, kind: 'direct', after: 'local' },
  join: { rung: 3, kind: 'direct', after: 'local' },
  together: { rung: 3, kind: 'direct', after: 'local' },
  local: { rung: 4, kind: 'local', after: 'failed' },
  failed: { rung: 4, kind: 'local', after: 'failed' },
}

function skipped(
  chain: Chain,
  { skip, message }: { readonly skip: string; readonly message: string },
): Chain {
  const { rung, kind, after } = RUNGS[chain.stage]
  const next = stepped(chain, { rung, kind, outcome: 'skipped', reason: skip, message })
  if (chain.stage !== 'direct' || skip !== 'window-too-small') return { ...next, stage: after }
  return inParts({ ...next, fallbackReason: next.fallbackReason ?? 'prompt_too_long' })
}

// After an answer that was no summary: what to do otherwise, for no request is sent twice.

export interface Refusal {
  readonly reason: string
  readonly message: string
  /** The call itself failed; otherwise its answer was refused. */
  readonly failed: boolean
  readonly gap?: AskFailure['gap']
}

export function afterRefusal(chain: Chain, ask: Ask, refusal: Refusal): Chain {
  const told = recorded(chain, ask, refusal)
  if (ask.kind === 'block') return { ...told, stage: 'fork' }
  if (ask.kind === 'direct' && ask.part !== null) return afterPart(told, ask.part, refusal)
  if (isOverflow(refusal)) return afterOverflow(told, refusal.gap)
  return ask.kind === 'fork' ? { ...told, stage: 'direct' } : retried(told, refusal)
}

/** A request that could not be made is no call, and a fork or block that could not is no failure either. */
function recorded(chain: Chain, { rung, kind }: Ask, refusal: Refusal): Chain {
  const { reason, message } = refusal
  const unmade = reason === 'unavailable'
  const outcome = unmade ? 'skipped' : refusal.failed ? 'failed' : 'refused'
  const step: ChainStep = { rung, kind, outcome, reason, message }
  const next = { ...stepped(chain, step), calls: chain.calls - (unmade ? 1 : 0) }
  return unmade && kind !== 'direct' ? next : { ...next, fallbackReason: fallbackOf(refusal) }
}

function fallbackOf(refusal: Refusal): FallbackReason {
  if (isOverflow(refusal)) return 'prompt_too_long'
  return refusal.failed ? 'api_error' : 'no_summary'
}

function isOverflow({ reason, failed }: Refusal): boolean {
  return failed ? reason === 'overflow' || reason === 'too-large' : reason === 'window-full'
}

/** The same call would fail the same way, whatever it says. */
const HOPELESS: ReadonlySet<string> = new Set(['auth', 'billing', 'permission', 'not-found'])

function isHopeless({ reason, failed }: Refusal): boolean {
  return failed && HOPELESS.has(reason)
}

/** What asks for the answer to be given otherwise; from the second time on it is asked without tools anyway. */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  'tool-call',
  'tool-protocol',
  'invalid-request',
  'thinking-binding',
  'unavailable',
])

function retried(chain: Chain, refusal: Refusal): Chain {
  const { own, direct, policy } = chain.context
  const attempts = chain.attempts + 1
  const canSwitch = !chain.usesOwn && own.model !== direct.model
  if (attempts > policy.direct.retries || (isHopeless(refusal) && !canSwitch))
    return { ...chain, stage: 'local' }
  const switched = isHopeless(refusal) ? { usesOwn: true, window: own.window } : {}
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

function afterPart(chain: Chain, part: NonNullable<DirectAsk['part']>, refusal: Refusal): Chain {
  if (part === 'join') return { ...chain, stage: 'together' }
  const shown = chain.parts?.parts[part.number - 1] ?? []
  const next = partDone(chain, null)
  const covered = [...chain.covered, ...summarisedOf(chain, shown)]
  return isHopeless(refusal) ? { ...next, stage: 'local' } : { ...next, covered }
}

/** On to the next part, or to putting them together. */
export function partDone(chain: Chain, summary: string | null): Chain {
  const { parts } = chain
  if (parts === null) return { ...chain, stage: 'local' }
  const summaries = summary === null ? parts.summaries : [...parts.summaries, summary]
  const told = { ...parts, asked: parts.asked + 1, summaries }
  return { ...chain, parts: told, stage: told.asked < told.parts.length ? 'parts' : 'join' }
}

// After a prompt that was too long: less of the head, or parts where the window is known to be far too small.

/** The chain with what to try next. */
function afterOverflow(chain: Chain, gap: AskFailure['gap']): Chain {
  const { policy } = chain.context
  const learnt = gap?.limit !== undefined && gap.limit > 0 ? { ...chain, window: gap.limit } : chain
  const isFork = chain.stage === 'fork'
  // Another model has another window: what the conversation's own said is nothing to it.
  if (isFork && chain.context.direct.model !== chain.context.own.model) return { ...chain, stage: 'direct' }
  const saved = isFork ? savedByStripping(chain) : 0
  const over = gap?.over === undefined ? null : gap.over - saved
  if (isFork && isShortEnough(chain, over, saved)) return { ...chain, stage: 'direct' }
  const isFar = over !== null && over * 2 > tokensIn(chain, chain.material) && learnt !== chain
  const parted = isFar ? inParts(learnt) : chain
  // One part alone would be what has just failed.
  if ((parted.parts?.parts.length ?? 0) > 1) return parted
  if (chain.drops >= policy.headDrop.retries) return { ...chain, stage: 'local' }
  const shorter = withoutHead(chain, withAnswer(learnt, over))
  return shorter.stage === 'local' ? withoutHead(chain, over) : shorter
}

/**
 * What has to go for the answer to fit as well, where the window is learnt: one that is cut off is another call lost.
 * An answer may be as long as it likes and seldom is: half of the window is for the conversation in any case.
 */
function withAnswer(chain: Chain, over: number | null): number | null {
  const room = roomFor(chain)
  if (over === null || room === null || chain.window === null) return over
  return Math.max(over, tokensIn(chain, chain.material) - Math.max(room, Math.floor(chain.window / 2)))
}

/** Stripping alone made up for what was too much. */
function isShortEnough(chain: Chain, over: number | null, saved: number): boolean {
  if (over !== null) return over <= 0
  const room = roomFor(chain)
  return saved > 0 && room !== null && tokensIn(chain, chain.material) <= room
}

function savedByStripping(chain: Chain): number {
  return Math.max(0, tokensIn(chain, chain.context.span.input) - tokensIn(chain, chain.material))
}

/** What was dropped had shown nothing, so that the request is still the one that failed: more has to go. */
export function withLessStill(chain: Chain): Chain {
  return withoutHead({ ...chain, drops: chain.drops - 1 }, null)
}

function withoutHead(chain: Chain, over: number | null): Chain {
  const { policy, tokensOf } = chain.context
  const drop = dropHead(chain.material, { over, tokensOf, policy: policy.headDrop })
  if (drop === null || summarisedOf(chain, drop.rest).length === 0) return { ...chain, stage: 'local' }
  return {
    ...chain,
    stage: 'direct',
    material: drop.rest,
    covered: [...chain.covered, ...summarisedOf(chain, drop.dropped)],
    drops: chain.drops + 1,
  }
}

/** Estimates may be low by this much before a part no longer fits. */
const MARGIN = 0.9

/** Only what is to be summarised is split: what is kept was shown for context alone. */
export function inParts(chain: Chain): Chain {
  const summariser = summariserOf(chain)
  const { tokensOf } = chain.context
  const { outputTokens } = summariser
  // Thinking that cannot be turned off takes its room beside the answer.
  const room = roomFor(chain, answerTokens(summariser) - Math.min(outputTokens, answerTokens(summariser)))
  const wanted = new Set(summarisedOf(chain, chain.material).map((entry) => entry.record.uuid))
  const entries = chain.material.filter((entry) => wanted.has(entry.record.uuid))
  const tokens = Math.floor((room ?? 0) * MARGIN)
  const split = splitParts(entries, { tokens, outputTokens, tokensOf })
  if (split === null) return { ...chain, stage: 'local' }
  const { parts, covered } = split
  return {
    ...chain,
    stage: 'parts',
    covered: [...chain.covered, ...summarisedOf(chain, covered)],
    parts: { parts, asked: 0, summaries: [], outputTokens: split.outputTokens },
  }
}

// How a chain of asking ends, and by what its answers are judged.

interface MadeAttemptRetry {
  readonly summarizer: ChainSummary['summarizer']
  readonly summary: string
  readonly block: Block | null
}

export function ended(chain: Chain, made: MadeAttemptRetry): ChainSummary {
  const { trace, calls, fallbackReason, covered } = chain
  return { done: true, ok: true, ...made, covered, trace, calls, fallbackReason }
}

export function failed({ trace, calls, fallbackReason }: Omit<Chain, 'next'>): ChainFailure {
  const last = trace.findLast((step) => step.outcome !== 'skipped') ?? trace.at(-1)
  const message = `No summary could be made. ${last?.message ?? ''} Rewind a few messages and compact again, or allow the summary without a model (compact.chain.local).`
  return { done: true, ok: false, aborted: false, message, trace, calls, fallbackReason }
}

/** The same key is the same request. */
export function keyOf(chain: Chain, ask: Ask): string {
  if (ask.kind !== 'direct') return ask.kind
  const { model } = summariserOf(chain)
  return JSON.stringify([ask.part, model, chain.asText, chain.remark, chain.material.length, chain.drops])
}

export function rulesFor(chain: Chain, ask: Ask): AcceptRules {
  const { policy, tokensOfText } = chain.context
  const part = ask.kind === 'direct' && ask.part !== null && ask.part !== 'join' ? ask.part : null
  const shown = part === null ? null : (chain.parts?.parts[part.number - 1] ?? [])
  const task = { ...taskOf(chain), ...(part === null ? {} : { part }), analysis: ask.kind !== 'block' }
  return {
    prompt: summaryPrompt({ ...task, joins: ask.kind === 'direct' && ask.part === 'join' }),
    replacedTokens: shown === null ? replacedTokens(chain) : tokensIn(chain, shown),
    maximumPercent: policy.maximumPercentOfReplaced,
    tokensOf: tokensOfText,
  }
}

/** The summaries of the parts one behind the other: what is left where nobody puts them together. */
export function together(chain: Chain): string {
  const bodies = (chain.parts?.summaries ?? []).map((text) => text.replace(SUMMARY_HEADING, '').trim())
  const told = bodies.map((body, index) =>
    bodies.length === 1 ? body : `Part ${index + 1} of ${bodies.length}, oldest first:\n${body}`,
  )
  return `${SUMMARY_HEADING}\n${told.join('\n\n')}`
}
