/** Converts usage and stop reason of both APIs, and of compatible servers, to the neutral form. */
import { isObject } from '@tidemark/core/log/json'
import type { ReplyReport, ReplyStop, TokenUsage } from '@tidemark/core/log/reply-report'
import { toTokenCount } from '@tidemark/core/tokens/usage'

interface ResponseFields {
  readonly [field: string]: unknown
}

export function readResponsesReport(response: ResponseFields): ReplyReport {
  const usage = readResponsesUsage(response.usage, response.service_tier)
  return { ...(usage === null ? {} : { usage }), stop: readStop(response) }
}

/**
 * Returns the neutral form of a usage object; null if it has no counts. The provider's input count includes cache reads
 * and writes. Models before GPT-5.6 cache automatically and report no writes.
 */
function readResponsesUsage(raw: unknown, tier?: unknown): TokenUsage | null {
  if (!isObject(raw) || typeof raw.input_tokens !== 'number') return null
  const details = isObject(raw.input_tokens_details) ? raw.input_tokens_details : {}
  const read = toTokenCount(details.cached_tokens)
  const written = toTokenCount(details.cache_write_tokens)
  const split = isObject(details.cache_write_tokens_details) ? details.cache_write_tokens_details : {}
  const long = Math.min(written, toTokenCount(split.ttl_12h_tokens))
  return {
    input: Math.max(0, toTokenCount(raw.input_tokens) - read - written),
    read,
    writes: { short: written - long, long },
    output: toTokenCount(raw.output_tokens),
    ...(written === 0 ? { areWritesUnknown: true as const } : {}),
    ...(typeof tier === 'string' ? { terms: { service_tier: tier } } : {}),
  }
}

function readStop({ status, incomplete_details: details, output }: ResponseFields): ReplyStop {
  if (status === 'incomplete')
    return isObject(details) && details.reason === 'content_filter' ? 'refused' : 'cut'
  const items = Array.isArray(output) ? output.filter(isObject) : []
  return items.some(({ type }) => CALL_TYPES.has(String(type))) ? 'tools' : 'done'
}

/** Types of items whose results the client must send. */
const CALL_TYPES: ReadonlySet<string> = new Set(['function_call', 'custom_tool_call'])

// Chat Completions.

export function readChatReport({ usage: raw, finish_reason: finish }: ResponseFields): ReplyReport {
  const usage = readChatUsage(raw)
  const stop = STOPS.get(finish)
  return { ...(usage === null ? {} : { usage }), ...(stop === undefined ? {} : { stop }) }
}

const STOPS: ReadonlyMap<unknown, ReplyStop> = new Map([
  ['stop', 'done'],
  ['tool_calls', 'tools'],
  ['function_call', 'tools'],
  ['length', 'cut'],
  ['content_filter', 'refused'],
])

/**
 * Returns the neutral form of a usage object; null if it has no counts. The prompt count includes cached and written
 * tokens, which are subtracted.
 */
function readChatUsage(raw: unknown): TokenUsage | null {
  if (!isObject(raw) || typeof raw.prompt_tokens !== 'number') return null
  const details = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {}
  const read = toTokenCount(details.cached_tokens ?? raw.prompt_cache_hit_tokens ?? raw.cached_tokens)
  const written = toTokenCount(details.cache_write_tokens)
  return {
    input: Math.max(0, toTokenCount(raw.prompt_tokens) - read - written),
    read,
    writes: { short: written, long: 0 },
    output: toTokenCount(raw.completion_tokens),
    ...(written === 0 ? { areWritesUnknown: true as const } : {}),
  }
}
