/**
 * Groups the items of a Codex rollout into model responses. The log does not mark responses; it contains only the token
 * usage of each model call, after the items of the response, or before them until late 2025. Items are therefore held
 * back until it is known which call they belong to.
 */
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { PendingCodexLine } from './codex-items.ts'
import type { JsonFields } from './codex-line.ts'

/**
 * Log lines of one model response, in log order, with other lines between them. `callUsage` is the token usage of the
 * model call; null if unknown.
 */
export interface GroupedResponse {
  readonly records: readonly PendingCodexLine[]
  readonly callUsage: CallUsage | null
}

export interface ResponseGrouper {
  /** Adds the next line of the log. Returns the responses that are complete now. */
  add(draft: PendingCodexLine): readonly GroupedResponse[]
  /** Adds the token usage of a model call. If the call produced no items, `empty` is used as its response. */
  addUsage(count: CallUsage, empty: PendingCodexLine): readonly GroupedResponse[]
  /** Ends the current response. Returns the responses that are complete now. */
  close(): readonly GroupedResponse[]
  /** True if the model has produced no item since the last token usage in the log. */
  readonly isIdle: boolean
}

interface GrouperState {
  pending: PendingCodexLine[]
  hasItems: boolean
  /**
   * Token usage of a model call whose items have not arrived yet; null if there is none. The first pending record is
   * then an empty response for this call.
   */
  unmatchedUsage: CallUsage | null
  /** Where this log has the token usage of a response: before its items (`in-front`) or after them (`behind`). */
  usagePosition: 'unknown' | 'in-front' | 'behind'
}

/**
 * Creates a response grouper. `hasUsage` returns whether the log contains token usage; if not, a response ends at its
 * tool results.
 */
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
  empty: PendingCodexLine,
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

/**
 * Splits the held records into two responses. The first usage belongs to a model call without items, whose response is
 * the first record.
 */
function splitResponses(
  held: readonly PendingCodexLine[],
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

function endsWithToolResult(held: readonly PendingCodexLine[]): boolean {
  return held.findLast(({ item }) => item.from === 'model' || item.from === 'tool')?.item.from === 'tool'
}

// Codex logs running token totals after each model call, sometimes repeatedly. Only a changed total belongs to a new
// call.

interface CallUsage {
  readonly usage: JsonObject
  /** Key of the model call. It is unique in the session and the same in every copy of the log. */
  readonly key: string
  /** Input tokens of the model call, including cached tokens. */
  readonly inputTokens: number
}

export interface UsageReader {
  /**
   * Returns the token usage of a new model call; null if the line repeats an earlier one. Pass `isIdle` as true if the
   * model has produced no item since the last usage.
   */
  read(notice: JsonFields, isIdle: boolean): CallUsage | null
  /** True if the log had token usage up to here. */
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
      // Some versions of Codex log zero totals before the first call.
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

/**
 * Checks whether two usage lines of different kinds report the same model call. The call's own usage is compared,
 * because the running totals may differ.
 */
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

/** Converts Codex's token counts into those of the Messages API, which counts cached tokens apart from the input. */
function toUsage({ input, cached, written, output, reasoning }: TokenTotals): JsonObject {
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

/**
 * Returns the difference between two running token totals. If the new total is lower, the count has restarted, and the
 * new total is returned.
 */
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
