/** Summary attempts for tests: a session of a given length, a context, and outcomes of every kind. */

import { SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { ContextEntry } from '../../src/context/context-entry.ts'
import type { ReplyStop } from '../../src/log/reply-report.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { ProviderProfileOverrides } from '../../src/policy/provider-profile.ts'
import { isAttemptsOutcome, recordAttemptResult, startAttempts } from '../../src/summary/attempt-chain.ts'
import type {
  AttemptResult,
  AttemptsInput,
  SummaryAttempt,
  SummaryAttemptState,
  SummaryAttemptsOutcome,
} from '../../src/summary/attempt-types.ts'
import type { SummaryModel } from '../../src/summary/direct-summary-request.ts'
import {
  type CompactionForm,
  type CompactionSpan,
  chooseCompactionSpan,
} from '../../src/summary/select-span.ts'

/** A prompt and `rounds` calls with results, then a prompt and its answer. */
export function buildLongSession(rounds = 8, thinking = false): SessionBuilder {
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

export function selectSpan(
  builder: SessionBuilder,
  form: CompactionForm = 'full',
  pivot = 'q2',
): CompactionSpan {
  const choice = chooseCompactionSpan(builder.view, form === 'full' ? { form } : { form, pivot })
  if (!choice.ok) throw new Error(choice.message)
  return choice.span
}

export interface AttemptOptions {
  readonly span?: CompactionSpan
  readonly policy?: Parameters<typeof createPolicy>[0]
  readonly profile?: ProviderProfileOverrides
  readonly direct?: Partial<SummaryModel>
  readonly context?: Partial<AttemptsInput>
}

const tokensOf = (entry: ContextEntry): number => Math.ceil(JSON.stringify(entry.record).length / 4)

export function createContext(given: AttemptOptions = {}): AttemptsInput {
  const profile = defineMessagesProfile({ window: 200_000, ...given.profile })
  const own: SummaryModel = { model: 'model-a', profile, window: 200_000, outputTokens: 20_000 }
  return {
    span: given.span ?? selectSpan(buildLongSession()),
    policy: createPolicy(given.policy).compact,
    instructions: null,
    conversationModel: own,
    directModel: { ...own, ...given.direct },
    parent: { tokens: 5_000 },
    isWarm: true,
    unclearedTokens: 5_000,
    tools: [{ name: 'Read', input_schema: { type: 'object' } }],
    countEntryTokens: tokensOf,
    countTextTokens: (text) => Math.ceil(text.length / 4),
    ...given.context,
  }
}

export const GOOD_SUMMARY: AttemptResult = answerWith(
  '<analysis>x</analysis><summary>\n1. Primary request and intent:\nall\n</summary>',
)

export function answerWith(text: string, stop: ReplyStop = 'done'): AttemptResult {
  return { kind: 'answer', content: [{ type: 'text', text }], stop }
}

export function failWith(
  kind: string,
  gap?: { over?: number; limit?: number; actual?: number },
): AttemptResult {
  return {
    kind: 'failure',
    failure: { kind, message: `it failed: ${kind}`, ...(gap === undefined ? {} : { gap }) },
  }
}

export interface AttemptRun {
  readonly chain: SummaryAttemptState
  readonly asks: readonly SummaryAttempt[]
  readonly done: SummaryAttemptsOutcome
}

/** Answers each request with the next outcome; the last one repeats. A local request gets a local summary. */
export function runAttempts(
  context: AttemptsInput,
  outcomes: readonly AttemptResult[],
  local = 'Summary:\nlocal',
): AttemptRun {
  let chain = startAttempts(context)
  const asks: SummaryAttempt[] = []
  for (let count = 0; count < 100; count += 1) {
    const { next } = chain
    if (isAttemptsOutcome(next)) return { chain, asks, done: next }
    asks.push(next)
    const outcome = outcomes[Math.min(asks.length, outcomes.length) - 1] ?? failWith('server')
    chain = recordAttemptResult(chain, next.kind === 'local' ? { kind: 'text', text: local } : outcome)
  }
  throw new Error('the chain does not end')
}

/** Rung and kind of each request: `1 fork`. */
export function listRungs(asks: readonly SummaryAttempt[]): readonly string[] {
  return asks.map((ask) => `${ask.rung} ${ask.kind}`)
}
