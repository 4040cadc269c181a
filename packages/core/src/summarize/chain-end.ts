/** How a chain of asking ends, and by what its answers are judged. */
import type { Block } from '../conversation/block.ts'
import type { AcceptRules } from './accept.ts'
import type { Ask, ChainFailure, ChainSummary } from './ask.ts'
import { replacedTokens, taskOf } from './chain-asks.ts'
import { type Chain, summariserOf, tokensIn } from './chain-state.ts'
import { SUMMARY_HEADING } from './parse-summary.ts'
import { summaryPrompt } from './summary-prompt.ts'

export interface Made {
  readonly summarizer: ChainSummary['summarizer']
  readonly summary: string
  readonly block: Block | null
}

export function ended(chain: Chain, made: Made): ChainSummary {
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
