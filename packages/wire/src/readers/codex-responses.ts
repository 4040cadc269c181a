/**
 * Groups the items of a rollout into responses. Codex does not mark them: it logs the token usage of each call, today after
 * the items of the response, until late 2025 before them. So items are held until it is known which call they belong to;
 * other lines between them are held as well and keep their place.
 */
import { isObject, type Usage } from '@tidemark/core'
import type { Draft } from './codex-items.ts'
import type { Fields } from './codex-line.ts'

/** Pending records in order. The model's items among them are one response; `callUsage` is its usage, if known. */
export interface Response {
  readonly drafts: readonly Draft[]
  readonly count: CallCount | null
}

export interface Responses {
  /** Adds the next item, or any other line that must keep its place. Returns what is complete. */
  take(draft: Draft): readonly Response[]
  /** Adds the usage of a call. `empty` is its response if the call has no items. */
  counted(count: CallCount, empty: Draft): readonly Response[]
  /** Ends the current response: what comes next belongs to another one. */
  close(): readonly Response[]
  /** No item of the model has arrived since the last usage. */
  readonly isResting: boolean
}

interface Holding {
  held: Draft[]
  hasItems: boolean
  /** Usage without items so far; its empty response is the first of those held. */
  open: CallCount | null
  /** Position of usage relative to the items, the last time it was clear. */
  order: 'unknown' | 'in-front' | 'behind'
}

/** `hasUsage`: whether this log has token usage. If not, a response ends where a tool result follows. */
export function createResponses(hasUsage: () => boolean): Responses {
  const holding: Holding = { held: [], hasItems: false, open: null, order: 'unknown' }
  return {
    take(draft) {
      const isModels = draft.part.from === 'model'
      const before = isModels && !hasUsage() && endsWithAnswer(holding.held) ? close(holding) : []
      if (!isModels && holding.held.length === 0) return [...before, { drafts: [draft], count: null }]
      holding.held.push(draft)
      holding.hasItems ||= isModels
      return before
    },
    counted: (count, empty) => counted(holding, count, empty),
    close: () => close(holding),
    get isResting() {
      return !holding.hasItems
    },
  }
}

function counted(holding: Holding, count: CallCount, empty: Draft): readonly Response[] {
  const { open, hasItems, order } = holding
  if (hasItems && (open === null || order === 'behind')) {
    const { held } = emptied(holding)
    holding.order = 'behind'
    return open === null ? [{ drafts: held, count }] : apart(held, open, count)
  }
  const released = close(holding)
  holding.open = count
  holding.held.push(empty)
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

/** The first usage has no items: those held belong to another response. */
function apart(held: readonly Draft[], open: CallCount, count: CallCount | null): readonly Response[] {
  return [
    { drafts: held.slice(0, 1), count: open },
    { drafts: held.slice(1), count },
  ]
}

function emptied(holding: Holding): Readonly<Holding> {
  const before = { ...holding }
  holding.held = []
  holding.hasItems = false
  holding.open = null
  return before
}

function endsWithAnswer(held: readonly Draft[]): boolean {
  return held.findLast(({ part }) => part.from === 'model' || part.from === 'tool')?.part.from === 'tool'
}

// Token usage. Codex logs the totals of the session and the usage of the last call after each call, and repeats them (on a
// new rate limit, a new turn), so only totals not seen before are a call.

interface CallCount {
  readonly usage: Usage
  /** Unique in the session, and the same in a copy of the log. */
  readonly key: string
  /** Tokens of the whole request. */
  readonly inputTokens: number
}

export interface TokenCounts {
  /** Null if the notice is not about a new call. `isIdle`: no item of the model has arrived since the last notice. */
  take(notice: Fields, isIdle: boolean): CallCount | null
  /** Whether the log has token usage at all. */
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
    take(fields, isIdle) {
      areTold = true
      const notice = noticeOf(fields, before?.total ?? ZERO)
      // Some versions log zero totals before the first call.
      if (notice === null || notice.total.input + notice.total.output === 0) return null
      const isRepeated = seen.has(keyOf(notice.total)) || (isIdle && isSameCall(notice, before))
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

/** Two kinds of line report the same call; their totals may cover different things. */
function isSameCall(notice: Notice, before: Notice | null): boolean {
  return before !== null && notice.kind !== before.kind && keyOf(notice.last) === keyOf(before.last)
}

function noticeOf(fields: Fields, before: Tokens): Notice | null {
  const event = isObject(fields.info) ? fields.info : null
  const kind = event === null ? 'record' : 'event'
  const total = tokensOf(event === null ? fields.thread_token_usage : event.total_token_usage)
  const last = tokensOf(event === null ? fields.usage : event.last_token_usage)
  if (total === null) return last === null ? null : { kind, total: combined(before, last, 1), last }
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

/** Codex's input includes tokens read from and written to the cache; `Usage` counts them apart. */
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

/** Totals that are lower than before were restarted. */
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
