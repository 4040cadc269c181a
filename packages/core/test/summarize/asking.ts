/** A chain of asking for tests: a conversation of a given length, a context in few words, and answers of every kind. */
import { SessionBuilder } from '@tidemark/core/testing'
import type { Entry } from '../../src/context/entry.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import { createProfile, type ProfileOverrides } from '../../src/policy/provider-profile.ts'
import type { Ask, AskOutcome, Chain, ChainContext, Done } from '../../src/summary/attempt.ts'
import { answered, isDone, nextAsk, startChain } from '../../src/summary/attempts.ts'
import { chooseSpan, type Span } from '../../src/summary/select-span.ts'
import type { Summariser } from '../../src/summary/summary-input.ts'
import type { CompactForm } from '../../src/summary/summary-prompt.ts'

/** A prompt and `rounds` calls with results, then a prompt and its answer. */
export function longTalk(rounds = 8, thinking = false): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('one', { uuid: 'q1' })
  for (let index = 0; index < rounds; index += 1) {
    const call = { type: 'tool_use', id: `c${index}`, name: 'Read', input: { path: `/src/${index}.ts` } }
    builder.assistant(`m${index}`, [call], { uuid: `a${index}` })
    builder.result(`c${index}`, `content ${index} `.repeat(40), { uuid: `r${index}` })
  }
  builder.assistant('m-done', 'done', { uuid: 'done' })
  builder.user('two', { uuid: 'q2' })
  const thought = thinking ? [{ type: 'thinking', thinking: 'hm', signature: 's' }] : []
  builder.assistant('m-last', [...thought, { type: 'text', text: 'done too' }], { uuid: 'last' })
  return builder
}

export function spanOf(builder: SessionBuilder, form: CompactForm = 'full', pivot = 'q2'): Span {
  const choice = chooseSpan(builder.view, form === 'full' ? { form } : { form, pivot })
  if (!choice.ok) throw new Error(choice.message)
  return choice.span
}

export interface Circumstances {
  readonly span?: Span
  readonly policy?: Parameters<typeof createPolicy>[0]
  readonly profile?: ProfileOverrides
  readonly direct?: Partial<Summariser>
  readonly context?: Partial<ChainContext>
}

const tokensOf = (entry: Entry): number => Math.ceil(JSON.stringify(entry.record).length / 4)

export function contextOf(given: Circumstances = {}): ChainContext {
  const profile = createProfile({ window: 200_000, ...given.profile })
  const own: Summariser = { model: 'model-a', profile, window: 200_000, outputTokens: 20_000 }
  return {
    span: given.span ?? spanOf(longTalk()),
    policy: createPolicy(given.policy).compact,
    instructions: null,
    own,
    direct: { ...own, ...given.direct },
    parent: { tokens: 5_000 },
    isWarm: true,
    unclearedTokens: 5_000,
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    tokensOf,
    tokensOfText: (text) => Math.ceil(text.length / 4),
    ...given.context,
  }
}

export const GOOD: AskOutcome = said(
  '<analysis>x</analysis><summary>\n1. Primary request and intent:\nall\n</summary>',
)

export function said(text: string, stopReason = 'end_turn'): AskOutcome {
  return { kind: 'answer', content: [{ type: 'text', text }], stopReason }
}

export function failure(kind: string, gap?: { over?: number; limit?: number; actual?: number }): AskOutcome {
  return {
    kind: 'failure',
    failure: { kind, message: `it failed: ${kind}`, ...(gap === undefined ? {} : { gap }) },
  }
}

export interface Run {
  readonly chain: Chain
  readonly asks: readonly Ask[]
  readonly done: Done
}

/** Answers each ask in turn; the last outcome goes on for ever. A local ask is answered by a local summary. */
export function run(context: ChainContext, outcomes: readonly AskOutcome[], local = 'Summary:\nlocal'): Run {
  let chain = startChain(context)
  const asks: Ask[] = []
  for (let count = 0; count < 100; count += 1) {
    const next = nextAsk(chain)
    if (isDone(next)) return { chain, asks, done: next }
    asks.push(next)
    const outcome = outcomes[Math.min(asks.length, outcomes.length) - 1] ?? failure('server')
    chain = answered(chain, next.kind === 'local' ? { kind: 'text', text: local } : outcome)
  }
  throw new Error('the chain does not end')
}

/** Rung and kind of each ask: `1 fork`. */
export function rungs(asks: readonly Ask[]): readonly string[] {
  return asks.map((ask) => `${ask.rung} ${ask.kind}`)
}
