/**
 * Which items of a rollout are one response. Codex does not say: it tells what a call took in tokens, today
 * behind the items of the response, until late in 2025 in front of them. So items are held until it is known
 * which call they belong to; what stands among them is held with them and keeps its place.
 */

import { isObject, type Usage } from '@tidemark/core'
import type { Draft } from './codex-items.ts'
import type { Fields } from './codex-line.ts'

/** Drafts in order; those of the model among them are one response, which took `count` where that is known. */
export interface Response {
  readonly drafts: readonly Draft[]
  readonly count: CallCount | null
}

export interface Responses {
  /** The next item, or whatever else has to keep its place. */
  take(draft: Draft): readonly Response[]
  /** A call is accounted for. `silence` stands for its response if it has none. */
  counted(count: CallCount, silence: Draft): readonly Response[]
  /** Whatever comes belongs to another response. */
  close(): readonly Response[]
  /** Nothing of a response has come since the last count. */
  readonly isResting: boolean
}

interface Holding {
  held: Draft[]
  hasItems: boolean
  /** A count that no items have come for; its silence is the first of those held. */
  open: CallCount | null
  /** Where counts stood last time it could be told. */
  order: 'unknown' | 'in-front' | 'behind'
}

/** `countsAreTold`: does this log tell of tokens? If not, a response ends where tools have answered. */
export function createResponses(countsAreTold: () => boolean): Responses {
  const holding: Holding = { held: [], hasItems: false, open: null, order: 'unknown' }
  return {
    take(draft) {
      const isModels = draft.part.from === 'model'
      const before = isModels && !countsAreTold() && endsWithAnswer(holding.held) ? close(holding) : []
      if (!isModels && holding.held.length === 0) return [...before, { drafts: [draft], count: null }]
      holding.held.push(draft)
      holding.hasItems ||= isModels
      return before
    },
    counted: (count, silence) => counted(holding, count, silence),
    close: () => close(holding),
    get isResting() {
      return !holding.hasItems
    },
  }
}

function counted(holding: Holding, count: CallCount, silence: Draft): readonly Response[] {
  const { open, hasItems, order } = holding
  if (hasItems && (open === null || order === 'behind')) {
    const { held } = emptied(holding)
    holding.order = 'behind'
    return open === null ? [{ drafts: held, count }] : apart(held, open, count)
  }
  const released = close(holding)
  holding.open = count
  holding.held.push(silence)
  return released
}

function close(holding: Holding): readonly Response[] {
  if (holding.held.length === 0) return []
  const { held, hasItems, open, order } = emptied(holding)
  if (open === null || !hasItems) return [{ drafts: held, count: open }]
  if (order === 'behind') return apart(held, open, null)
  holding.order = 'in-front'
  return [{ drafts: held.slice(1), count: open }]
}

/** The count at the front has no items: those held are another response's. */
function apart(held: readonly Draft[], open: CallCount, count: CallCount | null): readonly Response[] {
  return [
    { drafts: held.slice(0, 1), count: open },
    { drafts: held.slice(1), count },
  ]
}

function emptied(holding: Holding): Readonly<Holding> {
  const before = { ...holding }
  Object.assign(holding, { held: [], hasItems: false, open: null })
  return before
}

function endsWithAnswer(held: readonly Draft[]): boolean {
  return held.findLast(({ part }) => part.from === 'model' || part.from === 'tool')?.part.from === 'tool'
}

// What Codex tells about tokens: after each call the totals of the session and what the last call took. It
// tells the same again and again (a new rate limit, a new turn), so only totals not seen before are a call.

interface CallCount {
  readonly usage: Usage
  /** Tells the call from all others of the session, also in a copy of the log. */
  readonly key: string
  /** Tokens of the whole request. */
  readonly inputTokens: number
}

export interface TokenCounts {
  /** Null where the notice tells of no new call. `isRest`: nothing of a response has come since the last notice. */
  take(notice: Fields, isRest: boolean): CallCount | null
  /** Has the log told of tokens at all? */
  readonly areTold: boolean
}

interface Tokens {
  readonly input: number
  readonly cached: number
  readonly written: number | null
  readonly output: number
  readonly reasoning: number
}

interface Notice {
  readonly kind: 'event' | 'record'
  readonly total: Tokens
  readonly last: Tokens
}

const ZERO: Tokens = { input: 0, cached: 0, written: null, output: 0, reasoning: 0 }

export function createTokenCounts(): TokenCounts {
  const seen = new Set<string>()
  let before: Notice | null = null
  let areTold = false
  return {
    take(fields, isRest) {
      areTold = true
      const notice = noticeOf(fields, before?.total ?? ZERO)
      if (notice === null || isNothing(notice.total)) return null
      const isRepeated = seen.has(keyOf(notice.total)) || (isRest && isSameCall(notice, before))
      seen.add(keyOf(notice.total))
      if (isRepeated) return null
      before = notice
      return { usage: usageOf(notice.last), key: keyOf(notice.total), inputTokens: notice.last.input }
    },
    get areTold() {
      return areTold
    },
  }
}

/** Told before the first call, by some versions. */
function isNothing({ input, output }: Tokens): boolean {
  return input + output === 0
}

/** Two kinds of line tell of one call; their totals may be those of different things. */
function isSameCall(notice: Notice, before: Notice | null): boolean {
  return before !== null && notice.kind !== before.kind && keyOf(notice.last) === keyOf(before.last)
}

function noticeOf(fields: Fields, before: Tokens): Notice | null {
  const event = isObject(fields.info) ? fields.info : null
  const kind = event === null ? 'record' : 'event'
  const total = tokensOf(event === null ? fields.thread_token_usage : event.total_token_usage)
  const last = tokensOf(event === null ? fields.usage : event.last_token_usage)
  if (total === null) return last === null ? null : { kind, total: sum(before, last), last }
  return { kind, total, last: last ?? difference(total, before) }
}

function tokensOf(value: unknown): Tokens | null {
  if (!isObject(value)) return null
  const { cache_write_input_tokens: written } = value
  return {
    input: count(value.input_tokens),
    cached: count(value.cached_input_tokens),
    written: typeof written === 'number' ? count(written) : null,
    output: count(value.output_tokens),
    reasoning: count(value.reasoning_output_tokens),
  }
}

/** Codex counts what came from the cache, and what was written to it, as part of the input; we do not. */
function usageOf({ input, cached, written, output, reasoning }: Tokens): Usage {
  return {
    input_tokens: Math.max(0, input - cached - (written ?? 0)),
    cache_read_input_tokens: cached,
    ...(written === null ? {} : { cache_creation_input_tokens: written }),
    output_tokens: output,
    reasoning_output_tokens: reasoning,
  }
}

function keyOf({ input, cached, output, reasoning }: Tokens): string {
  return `${input}.${cached}.${output}.${reasoning}`
}

function sum(one: Tokens, other: Tokens): Tokens {
  return combined(one, other, 1)
}

/** Totals that have gone down were begun anew. */
function difference(total: Tokens, before: Tokens): Tokens {
  return total.input < before.input ? total : combined(total, before, -1)
}

function combined(one: Tokens, other: Tokens, sign: 1 | -1): Tokens {
  const isWritten = one.written !== null || other.written !== null
  const written = isWritten ? (one.written ?? 0) + sign * (other.written ?? 0) : null
  return {
    input: one.input + sign * other.input,
    cached: one.cached + sign * other.cached,
    written,
    output: one.output + sign * other.output,
    reasoning: one.reasoning + sign * other.reasoning,
  }
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0
}
