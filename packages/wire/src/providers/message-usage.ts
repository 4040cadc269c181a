/**
 * Reads `usage` and `stop_reason` as the Messages API and logs have them. A log may contain any value: a usage with a
 * token count that is not a number is none, and a number that cannot be a count is read as 0.
 */
import { isObject, type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import type {
  ModelRunUsage,
  ReplyReport,
  ReplyStop,
  TokenCounts,
  TokenUsage,
} from '@tidemark/core/log/reply-report'
import { toTokenCount } from '@tidemark/core/tokens/usage'

type UsageFields = { readonly [field: string]: unknown }

const FIGURES = [
  'input_tokens',
  'output_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
] as const

export function readAnthropicReport(message: UsageFields): ReplyReport {
  const usage = readAnthropicUsage(message.usage)
  const { stop_reason: word } = message
  const stop = typeof word === 'string' ? (STOPS.get(word) ?? 'other') : undefined
  return omitUndefined({ usage: usage ?? undefined, stop })
}

const STOPS: ReadonlyMap<string, ReplyStop> = new Map([
  ['end_turn', 'done'],
  ['stop_sequence', 'sequence'],
  ['tool_use', 'tools'],
  ['max_tokens', 'cut'],
  ['pause_turn', 'paused'],
  ['model_context_window_exceeded', 'window'],
  ['refusal', 'refused'],
  ['compaction', 'compacted'],
])

/** Returns the neutral form of a usage object; null if it is no object, or one of its token counts is not a number. */
export function readAnthropicUsage(raw: unknown): TokenUsage | null {
  if (!isObject(raw) || !FIGURES.every((field) => raw[field] == null || typeof raw[field] === 'number'))
    return null
  const parts = listIterations(raw)
  const terms = Object.entries(raw).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  const uses = isObject(raw.server_tool_use) ? Object.entries(raw.server_tool_use) : []
  const counted = uses
    .map(([name, count]) => [name, toTokenCount(count)] as const)
    .filter(([, count]) => count > 0)
  const { cache_deleted_input_tokens: removed } = raw
  return {
    ...readCounts(raw),
    ...(parts.length === 0 ? {} : { parts: parts.map(readPart) }),
    ...(typeof removed === 'number' ? { removed } : {}),
    ...(hasReadsOnly(raw) ? { areWritesUnknown: true as const } : {}),
    ...(terms.length === 0 ? {} : { terms: Object.fromEntries(terms) }),
    ...(counted.length === 0 ? {} : { toolUses: Object.fromEntries(counted) }),
  }
}

/** Returns true if a usage object has both token totals, as in every complete response of the API. */
export function hasUsageTotals(usage: UsageFields): boolean {
  return typeof usage.input_tokens === 'number' && typeof usage.output_tokens === 'number'
}

/** True for servers that cache automatically: they report cache reads and have no field for writes. */
function hasReadsOnly(raw: UsageFields): boolean {
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written, cache_creation: split } = raw
  return typeof read === 'number' && written === undefined && split === undefined
}

/** Lists the iterations of a call, because the totals of a response do not include the provider's compactions. */
function listIterations(raw: UsageFields): readonly UsageFields[] {
  const listed: readonly unknown[] = Array.isArray(raw.iterations) ? raw.iterations : []
  return listed.filter(isObject)
}

function readCounts(fields: UsageFields): TokenCounts {
  const split = isObject(fields.cache_creation) ? fields.cache_creation : {}
  const short = toTokenCount(split.ephemeral_5m_input_tokens)
  const long = toTokenCount(split.ephemeral_1h_input_tokens)
  const unsplit = Math.max(0, toTokenCount(fields.cache_creation_input_tokens) - short - long)
  const assumed = [
    ...(unsplit === 0 ? [] : (['lifetime'] as const)),
    ...(fields.output_tokens_estimated === true ? (['output'] as const) : []),
  ]
  return {
    input: toTokenCount(fields.input_tokens),
    read: toTokenCount(fields.cache_read_input_tokens),
    writes: { short: short + unsplit, long },
    output: toTokenCount(fields.output_tokens),
    ...(assumed.length === 0 ? {} : { assumed }),
  }
}

function readPart(fields: UsageFields): ModelRunUsage {
  const { model } = fields
  const part = { ...readCounts(fields), kind: readKind(fields.type) }
  return typeof model === 'string' ? { ...part, model } : part
}

function readKind(type: unknown): ModelRunUsage['kind'] {
  if (type === 'message' || type === 'compaction') return type
  return typeof type === 'string' ? 'other-model' : 'unknown'
}

/** Returns a usage object with an estimated number of output tokens, marked as estimated, for a response that broke off. */
export function withEstimatedOutput(raw: JsonObject, output: number): JsonObject {
  return { ...raw, output_tokens: output, output_tokens_estimated: true }
}
