/**
 * Lists the API calls of a log. A response on several lines is one call. Resumed and forked sessions begin with a copy
 * of the history, so a response that an earlier file also contains is marked as a copy. Tidemark logs also record calls
 * outside the conversation, such as summaries, which are billed like the others.
 */
import { readModelCallRecord } from '@tidemark/core/cost/session-cost'
import { type Block, isToolUse, toBlocks } from '@tidemark/core/log/block'
import {
  type AssistantRecord,
  isKnownRecord,
  type SessionRecord,
  SYNTHETIC_MODEL,
} from '@tidemark/core/log/record'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { isNothingBilled } from '@tidemark/core/tokens/usage'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import { createDuplicateFilter, type LogContents } from '../logs/read-log.ts'
import type { UsageTotals } from './report.ts'

export interface LoggedCall {
  /** Identifies the call in all log files: see `toResponseKey`. */
  readonly key: string
  readonly model: string
  readonly at: string
  /** The id of the subagent that made the call; null for the main conversation. */
  readonly agent: string | null
  /** The purpose of a call outside the conversation, such as `compact`; null for a call of the conversation. */
  readonly source: string | null
  /** True if an earlier log file also contains the call. */
  readonly isCopy: boolean
  /** The program from whose log Tidemark copied the call; absent if the call was logged where it was read. */
  readonly copiedFrom?: LogFormat
  /** The newest usage that was logged; null if none was. */
  readonly usage: TokenUsage | null
  /** The field `context_management` of the response, which reports what the provider cleared; absent if not logged. */
  readonly contextManagement?: unknown
  /** True if the log shows that the response was complete when its usage was logged. */
  readonly isFinal: boolean
  readonly blocks: readonly Block[]
}

/**
 * Lists the API calls of the main conversation, then those of subagents. `elsewhere`: keys of the calls that earlier
 * log files contain.
 */
export function listLogCalls(log: LogContents, elsewhere: ReadonlySet<string>): readonly LoggedCall[] {
  const calls = new Map<string, LoggedCall>()
  for (const { agent, records } of [{ agent: null, records: log.records }, ...log.agents]) {
    const found = listConversationCalls(
      records.map(({ record }) => record),
      { elsewhere, agent, origin: log.meta.copiedFrom?.format },
    )
    for (const call of found) if (!calls.has(call.key)) calls.set(call.key, call)
  }
  return [...calls.values()]
}

interface ListCallsOptions {
  readonly elsewhere: ReadonlySet<string>
  readonly agent?: string | null
  readonly origin?: LogFormat | undefined
}

/**
 * Lists the API calls of one conversation in the order of the log. `elsewhere`: keys of the calls that earlier log
 * files contain. `agent`: id of the subagent; null, the default, for the main conversation. `origin`: the program whose
 * log was copied, if this log is a copy.
 */
export function listConversationCalls(
  records: Iterable<SessionRecord>,
  { elsewhere, agent = null, origin }: ListCallsOptions,
): readonly LoggedCall[] {
  const calls = new Map<string, CallInProgress>()
  const lines = createDuplicateFilter()
  for (const record of records) {
    const logged = readModelCallRecord(record)
    if (logged !== null) {
      const { id, usage, ...call } = logged
      const key = `${id}\n`
      const isCopy = elsewhere.has(key)
      // The response of this call may already be listed, as part of the conversation.
      const known = calls.get(key)
      if (known === undefined)
        calls.set(key, { ...call, key, usage, isFinal: true, isCopy, agent, blocks: [] })
      else setNewerUsage(known, usage, true)
    }
    const key = toResponseKey(record)
    if (key === null || !isModelResponse(record)) continue
    const isRepeated = lines.isDuplicate(record)
    const known = calls.get(key)
    if (isRepeated && known === undefined) continue
    const { message, timestamp } = record
    const { model, content } = message
    const isCopy = elsewhere.has(key)
    // Only records that were copied from the log of another program have no position in the log.
    const copied = origin === undefined || record.seq !== undefined ? {} : { copiedFrom: origin }
    const unknown = { source: null, usage: null, isFinal: false, blocks: [], ...copied }
    const call: CallInProgress = known ?? { ...unknown, key, model, at: timestamp, agent, isCopy }
    calls.set(key, call)
    if (!isRepeated) for (const block of toBlocks(content)) call.blocks.push(block)
    call.contextManagement = message.context_management ?? call.contextManagement
    // The provider sends the stop reason together with the final usage.
    setNewerUsage(call, toPlausibleUsage(record), record.stop !== undefined)
  }
  return [...calls.values()]
}

/**
 * Sets the usage of a call if it is newer: each line of a response has the usage known when it was written, so the one
 * with the most output tokens is the newest.
 */
function setNewerUsage(call: CallInProgress, usage: TokenUsage | null, isFinal: boolean): void {
  if (usage === null) return
  if (usage.output >= (call.usage?.output ?? 0)) call.usage = usage
  if (isFinal) call.isFinal = true
}

/** A call whose response may have further records in the log. */
interface CallInProgress extends LoggedCall {
  readonly blocks: Block[]
  usage: TokenUsage | null
  isFinal: boolean
  contextManagement?: unknown
}

/**
 * Returns a key that identifies the response of an assistant record; null for other records. The key includes the
 * request id, because gateways may repeat message ids.
 */
export function toResponseKey(record: SessionRecord): string | null {
  if (!isModelResponse(record)) return null
  const { requestId } = record as AssistantRecord & { readonly requestId?: unknown }
  return `${record.message.id}\n${typeof requestId === 'string' ? requestId : ''}`
}

/**
 * Checks whether a record is a response of a model to a call of this log. An error message that the host wrote in place
 * of a response is not, nor a response that came with the message list of a client.
 */
function isModelResponse(record: SessionRecord): record is AssistantRecord {
  if (!isKnownRecord(record) || record.type !== 'assistant') return false
  const { message, billed, seq } = record
  // A record without a position was copied from the log of another program, which counts it by its own rules.
  return message.model !== SYNTHETIC_MODEL && (seq === undefined || !isNothingBilled(billed))
}

/** Returns the usage; null if it is missing or has an implausibly large number. Logs may contain arbitrary values. */
function toPlausibleUsage({ usage, message }: AssistantRecord): TokenUsage | null {
  const isPlausible = Object.values(message.usage ?? {}).every(
    (figure) => typeof figure !== 'number' || Math.abs(figure) <= Number.MAX_SAFE_INTEGER,
  )
  return isPlausible ? (usage ?? null) : null
}

/**
 * Checks whether an API call got a response. A Codex call without usage did not, because Codex records usage for every response.
 */
export function isAnsweredCall({ usage, copiedFrom }: LoggedCall, format: LogFormat): boolean {
  return (copiedFrom ?? format) !== 'codex' || usage !== null
}

/** Counts the tool calls in the responses; a repeated tool call id counts once. */
export function countToolCalls(calls: readonly LoggedCall[]): number {
  const ids = calls.flatMap(({ blocks }) => blocks.flatMap((block) => (isToolUse(block) ? [block.id] : [])))
  return new Set(ids).size
}

/**
 * Returns the model with the most calls in the main conversation. If several models have as many calls, returns the one
 * that appeared last. Returns `unknown` if there are no calls.
 */
export function findMainModel(calls: readonly LoggedCall[]): string {
  const counts = new Map<string, number>()
  for (const { model, agent, source } of calls)
    if (agent === null && source === null) counts.set(model, (counts.get(model) ?? 0) + 1)
  return [...counts].reduce((most, next) => (next[1] >= most[1] ? next : most), ['unknown', 0] as const)[0]
}

export const NO_USAGE: UsageTotals = { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 }

/** Converts the usage of one call to token totals; a call without usage counts as zero. */
export function toUsageTotals(usage: TokenUsage | null): UsageTotals {
  if (usage === null) return NO_USAGE
  const { input, read, writes, output } = usage
  return { input, cacheRead: read, cacheCreation: writes.short + writes.long, output }
}

export function addUsage(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheCreation: one.cacheCreation + other.cacheCreation,
    output: one.output + other.output,
  }
}

export function sumUsage(calls: readonly LoggedCall[]): UsageTotals {
  return calls.reduce((sum, { usage }) => addUsage(sum, toUsageTotals(usage)), NO_USAGE)
}

/** Returns cache reads as a share of all prompt tokens, rounded to four decimals; null if no prompt tokens were sent. */
export function computeHitRate(usage: UsageTotals): number | null {
  const prompt = sumPromptTokens(usage)
  return prompt === 0 ? null : Math.round((usage.cacheRead / prompt) * 1e4) / 1e4
}

export function sumPromptTokens({ input, cacheRead, cacheCreation }: UsageTotals): number {
  return input + cacheRead + cacheCreation
}
