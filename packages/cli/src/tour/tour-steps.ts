/** The events of a session in one line each, as the tour tells them; most are told in no line at all. */
import type { SessionEvent } from 'tidemark'
import { count as many } from '../render/figures.ts'
import type { Screen } from '../render/screen.ts'
import { wrap } from '../render/text.ts'

export function stepOf(event: SessionEvent): TourStep | null {
  switch (event.type) {
    case 'microcompact':
      return act(
        `cleared ${many(event.clearing.metadata.compactedToolIds.length, 'old result')}: ${count(event.tokensBefore)} → ${count(event.tokensAfter)} tokens. ${sentence(event.clearing.why)}`,
        {
          way: event.way,
          tokensBefore: event.tokensBefore,
          tokensAfter: event.tokensAfter,
          cost: event.clearing.cost,
        },
      )
    case 'compact':
      return compacted(event.compaction)
    case 'cache-broke':
      return act(event.event.sentence, { reason: event.event.reason.kind, tokens: event.event.tokensLost })
    case 'act-paid':
      return act(event.act.sentence)
    case 'thinking-dropped':
      return act(
        `the provider does not know the thinking of ${many(event.responses, 'earlier response')}: left out, asked again`,
      )
    case 'undone':
      return act(`undone: ${event.of}`)
    default:
      return null
  }
}

/** Calls since the last thing worth a line of its own. */
export interface Calls {
  readonly count: number
  readonly prompt: number
  readonly read: number
  /** Tokens of the last one. */
  readonly last: number
  readonly cost: number
}

export const NO_CALLS: Calls = { count: 0, prompt: 0, read: 0, last: 0, cost: 0 }

export function withCall(calls: Calls, event: SessionEvent): Calls {
  if (event.type !== 'priced') return calls
  const { tokens, money } = event.call
  const prompt = tokens.input + tokens.cacheRead + tokens.write5m + tokens.write1h
  return {
    count: calls.count + 1,
    prompt: calls.prompt + prompt,
    read: calls.read + tokens.cacheRead,
    last: prompt,
    cost: calls.cost + (money.total ?? 0),
  }
}

export function callsStep({ count: calls, prompt, read, last, cost }: Calls): readonly TourStep[] {
  if (calls === 0) return []
  const share = prompt === 0 ? 0 : Math.round((100 * read) / prompt)
  const text = `${many(calls, 'call')}, ${count(last)} tokens in the last; ${share}% of all came from the cache; ${dollars(cost)}`
  return [line(text, { calls, prompt, cacheRead: read, cost })]
}

type Compaction = Extract<SessionEvent, { readonly type: 'compact' }>['compaction']

function compacted({ tokensBefore, tokensAfter, summarizer, receipt, id }: Compaction): TourStep {
  const { lost, summarised, carried } = receipt
  const by = summarizer === 'local' ? 'without a model' : 'by the model'
  const gone = lost.identifiers.length + lost.moreIdentifiers
  return act(
    `compacted ${by}: ${count(tokensBefore)} → ${count(tokensAfter)} tokens; ${many(summarised.length, 'record')} summarised, ${many(carried.length, 'thing')} brought back; lost: ${many(lost.files.length, 'file')}, ${many(lost.userMessages.length, 'message')}, ${many(lost.errors.length, 'error')}, ${many(gone, 'name')} (all can be read again)`,
    { id, summarizer, tokensBefore, tokensAfter, lost },
  )
}

export function count(tokens: number): string {
  return Math.round(tokens).toLocaleString('en-US')
}

export function dollars(amount: number | null): string {
  return amount === null ? 'price not known' : `$${amount.toFixed(4)}`
}

function sentence(text: string): string {
  return text === '' ? '' : `${text[0]?.toUpperCase()}${text.slice(1)}.`
}

// What the tour tells, step by step: words for people, and the same as data for programs.

export interface TourStep {
  /** A heading, a plain line, or a line about an act that rewrote the conversation. */
  readonly kind: 'scene' | 'line' | 'act'
  readonly text: string
  readonly data?: Readonly<Record<string, unknown>>
}

export function scene(text: string): TourStep {
  return { kind: 'scene', text }
}

export function line(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'line', text } : { kind: 'line', text, data }
}

export function act(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'act', text } : { kind: 'act', text, data }
}

// The steps of the tour as they are shown: scenes as headings, acts marked, long lines wrapped.

export function stepText({ kind, text }: TourStep, screen: Screen): string {
  const { colors } = screen
  if (kind === 'scene') return `\n${wrap(text, screen.columns).map(colors.bold).join('\n')}\n`
  const lines = wrap(text, screen.columns, kind === 'act' ? '  * ' : '  ')
  const shown = kind === 'act' ? lines.map((one) => colors.cyan(one)) : lines
  return `${shown.join('\n')}\n`
}
