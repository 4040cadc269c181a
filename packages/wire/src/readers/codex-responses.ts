/**
 * Groups the items of a rollout into responses. Codex does not mark them: it logs the token usage of each call, today after
 * the items of the response, until late 2025 before them. So items are held until it is known which call they belong to;
 * other lines between them are held as well and keep their place.
 */
import { isObject, type Usage } from '@tidemark/core'
import type { PendingRecord } from './codex-items.ts'
import type { JsonFields } from './codex-line.ts'

/** Pending records in order. The model's items among them are one response; `callUsage` is its usage, if known. */
export interface GroupedResponse {
  readonly records: readonly PendingRecord[]
  readonly callUsage: CallUsage | null
}

export interface ResponseGrouper {
  /** Adds the next item, or any other line that must keep its place. Returns what is complete. */
  add(draft: PendingRecord): readonly GroupedResponse[]
  /** Adds the usage of a call. `empty` is its response if the call has no items. */
  addUsage(count: CallUsage, empty: PendingRecord): readonly GroupedResponse[]
  /** Ends the current response: what comes next belongs to another one. */
  close(): readonly GroupedResponse[]
  /** No item of the model has arrived since the last usage. */
  readonly isIdle: boolean
}

interface GrouperState {
  pending: PendingRecord[]
  hasItems: boolean
  /** Usage without items so far; its empty response is the first of those held. */
  unmatchedUsage: CallUsage | null
  /** Position of usage relative to the items, the last time it was clear. */
  usagePosition: 'unknown' | 'in-front' | 'behind'
}

/** `hasUsage`: whether this log has token usage. If not, a response ends where a tool result follows. */
export function createResponseGrouper(hasUsage: () => boolean): ResponseGrouper {
  const holding: GrouperState = {
    pending: [],
    hasItems: false,
    unmatchedUsage: null,
    usagePosition: 'unknown',
  }
  return {
    add(draft) {
      const isModels = draft.item.from === 'model'
      const before =
        isModels && !hasUsage() && endsWithToolResult(holding.pending) ? closeResponse(holding) : []
      if (!isModels && holding.pending.length === 0) return [...before, { records: [draft], callUsage: null }]
      holding.pending.push(draft)
      holding.hasItems ||= isModels
      return before
    },
    addUsage: (count, empty) => assignUsage(holding, count, empty),
    close: () => closeResponse(holding),
    get isIdle() {
      return !holding.hasItems
    },
  }
}

function assignUsage(
  holding: GrouperState,
  count: CallUsage,
  empty: PendingRecord,
): readonly GroupedResponse[] {
  const { unmatchedUsage, hasItems, usagePosition } = holding
  if (hasItems && (unmatchedUsage === null || usagePosition === 'behind')) {
    const { pending } = takePending(holding)
    holding.usagePosition = 'behind'
    return unmatchedUsage === null
      ? [{ records: pending, callUsage: count }]
      : splitResponses(pending, unmatchedUsage, count)
  }
  const released = closeResponse(holding)
  holding.unmatchedUsage = count
  holding.pending.push(empty)
  return released
}

function closeResponse(holding: GrouperState): readonly GroupedResponse[] {
  if (holding.pending.length === 0) return []
  const { pending, hasItems, unmatchedUsage, usagePosition } = takePending(holding)
  if (unmatchedUsage === null || !hasItems) return [{ records: pending, callUsage: unmatchedUsage }]
  if (usagePosition === 'behind') return splitResponses(pending, unmatchedUsage, null)
  holding.usagePosition = 'in-front'
  return [{ records: pending.slice(1), callUsage: unmatchedUsage }]
}

/** The first usage has no items: those held belong to another response. */
function splitResponses(
  held: readonly PendingRecord[],
  open: CallUsage,
  count: CallUsage | null,
): readonly GroupedResponse[] {
  return [
    { records: held.slice(0, 1), callUsage: open },
    { records: held.slice(1), callUsage: count },
  ]
}

function takePending(holding: GrouperState): Readonly<GrouperState> {
  const before = { ...holding }
  holding.pending = []
  holding.hasItems = false
  holding.unmatchedUsage = null
  return before
}

function endsWithToolResult(held: readonly PendingRecord[]): boolean {
  return held.findLast(({ item }) => item.from === 'model' || item.from === 'tool')?.item.from === 'tool'
}

// Token usage. Codex logs the totals of the session and the usage of the last call after each call, and repeats them (on a
// new rate limit, a new turn), so only totals not seen before are a call.

interface CallUsage {
  readonly usage: Usage
  /** Unique in the session, and the same in a copy of the log. */
  readonly key: string
  /** Tokens of the whole request. */
  readonly inputTokens: number
}

export interface UsageReader {
  /** Null if the notice is not about a new call. `isIdle`: no item of the model has arrived since the last notice. */
  read(notice: JsonFields, isIdle: boolean): CallUsage | null
  /** Whether the log has token usage at all. */
  readonly hasUsage: boolean
}

interface TokenTotals {
  readonly input: number
  readonly cached: number
  readonly written: number | null
  readonly output: number
  readonly reasoning: number
}

interface UsageNotice {
  readonly kind: 'event' | 'record'
  readonly total: TokenTotals
  readonly last: TokenTotals
}

const ZERO_TOKENS: TokenTotals = { input: 0, cached: 0, written: null, output: 0, reasoning: 0 }

export function createUsageReader(): UsageReader {
  const seen = new Set<string>()
  let before: UsageNotice | null = null
  let areTold = false
  return {
    read(fields, isIdle) {
      areTold = true
      const notice = readNotice(fields, before?.total ?? ZERO_TOKENS)
      // Some versions log zero totals before the first call.
      if (notice === null || notice.total.input + notice.total.output === 0) return null
      const isRepeated = seen.has(totalsKey(notice.total)) || (isIdle && isSameCall(notice, before))
      seen.add(totalsKey(notice.total))
      if (isRepeated) return null
      before = notice
      return { usage: toUsage(notice.last), key: totalsKey(notice.total), inputTokens: notice.last.input }
    },
    get hasUsage() {
      return areTold
    },
  }
}

/** Two kinds of line report the same call; their totals may cover different things. */
function isSameCall(notice: UsageNotice, before: UsageNotice | null): boolean {
  return before !== null && notice.kind !== before.kind && totalsKey(notice.last) === totalsKey(before.last)
}

function readNotice(fields: JsonFields, before: TokenTotals): UsageNotice | null {
  const event = isObject(fields.info) ? fields.info : null
  const kind = event === null ? 'record' : 'event'
  const total = readTokens(event === null ? fields.thread_token_usage : event.total_token_usage)
  const last = readTokens(event === null ? fields.usage : event.last_token_usage)
  if (total === null) return last === null ? null : { kind, total: combineTokens(before, last, 1), last }
  return { kind, total, last: last ?? subtractTokens(total, before) }
}

function readTokens(value: unknown): TokenTotals | null {
  if (!isObject(value)) return null
  const { cache_write_input_tokens: written } = value
  return {
    input: readCount(value.input_tokens),
    cached: readCount(value.cached_input_tokens),
    written: typeof written === 'number' ? readCount(written) : null,
    output: readCount(value.output_tokens),
    reasoning: readCount(value.reasoning_output_tokens),
  }
}

/** Codex's input includes tokens read from and written to the cache; `Usage` counts them apart. */
function toUsage({ input, cached, written, output, reasoning }: TokenTotals): Usage {
  return {
    input_tokens: Math.max(0, input - cached - (written ?? 0)),
    cache_read_input_tokens: cached,
    ...(written === null ? {} : { cache_creation_input_tokens: written }),
    output_tokens: output,
    reasoning_output_tokens: reasoning,
  }
}

function totalsKey({ input, cached, output, reasoning }: TokenTotals): string {
  return `${input}.${cached}.${output}.${reasoning}`
}

/** Totals that are lower than before were restarted. */
function subtractTokens(total: TokenTotals, before: TokenTotals): TokenTotals {
  return total.input < before.input ? total : combineTokens(total, before, -1)
}

function combineTokens(one: TokenTotals, other: TokenTotals, sign: 1 | -1): TokenTotals {
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

function readCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0
}
