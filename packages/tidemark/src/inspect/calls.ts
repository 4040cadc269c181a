/**
 * The API calls of a log. One response on several lines is one call. A response that an earlier file contains as well
 * (a resumed or forked session begins with a copy of the history) is marked as a copy. Our own logs also record calls
 * beside the conversation (forks, summaries, empty replies), which are billed like the others.
 */
import {
  type AssistantRecord,
  type Block,
  isKnownRecord,
  isObject,
  isToolUse,
  readLoggedCall,
  type SessionRecord,
  SYNTHETIC_MODEL,
  toBlocks,
  toCount,
  type Usage,
} from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'
import { createDuplicateFilter, type LogContents } from '../logs/read-session.ts'
import type { UsageTotals } from './report.ts'

export interface LoggedCall {
  readonly key: string
  readonly model: string
  readonly at: string
  /** The side agent that made it; null for the main conversation. */
  readonly agent: string | null
  /** The purpose of a call beside the conversation (`compact`, the name of a fork …); null for the conversation. */
  readonly source: string | null
  /** An earlier file contains it as well. */
  readonly isCopy: boolean
  readonly usage: Usage | null
  readonly blocks: readonly Block[]
}

/** Calls of the main conversation, then those of side agents, each once. `elsewhere`: keys of calls in earlier files. */
export function listLogCalls(log: LogContents, elsewhere: ReadonlySet<string>): readonly LoggedCall[] {
  const calls = new Map<string, LoggedCall>()
  for (const { agent, records } of [{ agent: null, records: log.records }, ...log.agents]) {
    const found = listCalls(
      records.map(({ record }) => record),
      { elsewhere, agent },
    )
    for (const call of found) if (!calls.has(call.key)) calls.set(call.key, call)
  }
  return [...calls.values()]
}

/**
 * Calls of one conversation, in the order of the log. `elsewhere`: keys of calls in earlier files. `agent`: the side
 * agent whose conversation it is; the main conversation unless given.
 */
export function listCalls(
  records: Iterable<SessionRecord>,
  { elsewhere, agent = null }: { readonly elsewhere: ReadonlySet<string>; readonly agent?: string | null },
): readonly LoggedCall[] {
  const calls = new Map<string, LoggedCall & { readonly blocks: Block[]; usage: Usage | null }>()
  const lines = createDuplicateFilter()
  for (const record of records) {
    const logged = readLoggedCall(record)
    if (logged !== null) {
      const { id, usage, ...call } = logged
      const key = `${id}\n`
      const isCopy = elsewhere.has(key)
      // The conversation may contain the response of the same call.
      if (!calls.has(key))
        calls.set(key, { ...call, key, usage: toPlausibleUsage(usage), isCopy, agent, blocks: [] })
    }
    const key = responseKey(record)
    if (key === null || !isModelResponse(record)) continue
    const isRepeated = lines.isDuplicate(record)
    const known = calls.get(key)
    if (isRepeated && known === undefined) continue
    const { message, timestamp } = record
    const { model, content } = message
    const isCopy = elsewhere.has(key)
    const call = known ?? { key, model, at: timestamp, agent, source: null, isCopy, usage: null, blocks: [] }
    calls.set(key, call)
    if (!isRepeated) for (const block of toBlocks(content)) call.blocks.push(block)
    // Each line has the usage as it stood when the line was written: the one with the most output is the newest.
    const usage = toPlausibleUsage(message.usage)
    if (usage !== null && outputTokens(usage) >= outputTokens(call.usage)) call.usage = usage
  }
  return [...calls.values()]
}

/** Identifies the response of an assistant record; null for other records. Gateways may repeat ids: the request id is part of it. */
export function responseKey(record: SessionRecord): string | null {
  if (!isModelResponse(record)) return null
  const { requestId } = record as AssistantRecord & { readonly requestId?: unknown }
  return `${record.message.id}\n${typeof requestId === 'string' ? requestId : ''}`
}

/** A response of a model. Messages that the host wrote in its place (errors) are none. */
function isModelResponse(record: SessionRecord): record is AssistantRecord {
  return isKnownRecord(record) && record.type === 'assistant' && record.message.model !== SYNTHETIC_MODEL
}

const TOKEN_FIELDS = [
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
]

/** Null for no usage, and for usage with a figure out of range: a log may contain anything. */
function toPlausibleUsage(usage: Usage | null | undefined): Usage | null {
  if (!isObject(usage)) return null
  const isPlausible = TOKEN_FIELDS.every(
    (field) => Math.abs(Number(usage[field] ?? 0)) <= Number.MAX_SAFE_INTEGER,
  )
  return isPlausible ? usage : null
}

export function outputTokens(usage: Usage | null): number {
  return typeof usage?.output_tokens === 'number' ? usage.output_tokens : 0
}

/** False for a response of Codex without usage: Codex records usage for every call, so it was interrupted. */
export function isAnsweredCall({ usage }: LoggedCall, format: LogFormat): boolean {
  return format !== 'codex' || usage !== null
}

/** Number of tool calls, each id once. */
export function countToolCalls(calls: readonly LoggedCall[]): number {
  const ids = calls.flatMap(({ blocks }) => blocks.flatMap((block) => (isToolUse(block) ? [block.id] : [])))
  return new Set(ids).size
}

/** The model with the most calls in the main conversation; ties go to the model that appeared last. */
export function findMainModel(calls: readonly LoggedCall[]): string {
  const counts = new Map<string, number>()
  for (const { model, agent, source } of calls)
    if (agent === null && source === null) counts.set(model, (counts.get(model) ?? 0) + 1)
  return [...counts].reduce((most, next) => (next[1] >= most[1] ? next : most), ['unknown', 0] as const)[0]
}

export const NO_USAGE: UsageTotals = { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 }

/** A call without usage counts as zero. */
export function toUsageTotals(usage: Usage | null): UsageTotals {
  if (usage === null) return NO_USAGE
  return {
    input: toCount(usage.input_tokens),
    cacheRead: toCount(usage.cache_read_input_tokens),
    cacheCreation: toCount(usage.cache_creation_input_tokens),
    output: toCount(usage.output_tokens),
  }
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

/** Cache reads as a share of all prompt tokens, to four places; null when no prompt token was sent. */
export function cacheHitRate(usage: UsageTotals): number | null {
  const prompt = promptTokens(usage)
  return prompt === 0 ? null : Math.round((usage.cacheRead / prompt) * 1e4) / 1e4
}

export function promptTokens({ input, cacheRead, cacheCreation }: UsageTotals): number {
  return input + cacheRead + cacheCreation
}
