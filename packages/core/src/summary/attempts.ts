/**
 * The chain of asking for a summary, from the way that keeps most to the one that cannot fail: the provider's own
 * block, a fork on the parent's cache, a call of its own, the same with less or in parts, no model at all. A pure
 * state machine: it says what to ask, is told what came of it, and never asks the same thing twice.
 */

import type { Payload } from '../context/payload.ts'
import { type Block, blocksOf } from '../log/block.ts'
import { acceptBlock, acceptSummary, type SummaryAnswer } from './accept-summary.ts'
import {
  type Ask,
  type AskOutcome,
  type Chain,
  type ChainContext,
  type ChainStep,
  type Done,
  type LocalAsk,
  type Stage,
  stepped,
} from './attempt.ts'
import {
  blockAsk,
  directAsk,
  forkAsk,
  joinAsk,
  localAsk,
  type Made,
  MOST_PARTS,
  partAsk,
  replacedTokens,
} from './attempt-requests.ts'
import {
  afterRefusal,
  ended,
  failed,
  inParts,
  keyOf,
  partDone,
  type Refusal,
  rulesFor,
  together,
  withLessStill,
} from './attempt-retry.ts'
import { stripInput } from './summary-input.ts'

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
