/** Builds the record of a request to OpenAI's APIs: usage, cost, what happened in the cache, and the cause of a cache miss. */
import { toBytes } from '../faults/fault.ts'
import { MIN_BREAKPOINT_TOKENS } from '../openai/cache/breakpoint-cache.ts'
import { countCommonUnits, diagnosePromptChange } from '../openai/cache/prompt-cache-diagnostics.ts'
import type { OpenaiCacheResult } from '../openai/cache/prompt-units.ts'
import { readServiceTier } from '../openai/responses/response-body.ts'
import type { HttpAnswer } from '../protocol/answer.ts'
import { isObject, type JsonObject } from '../protocol/messages-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'
import {
  addTokenUsage,
  type CacheAnalysis,
  type CacheMiss,
  computeRequestCost,
  type TokenUsage,
} from '../request-log/request-log.ts'
import type { PreparedOpenai } from './admit-openai.ts'
import type { ChatAnswer, ResponsesAnswer } from './answer-openai.ts'
import type { RecentOpenaiRequest } from './openai-state.ts'
import { addRequestRecord, type RequestContext, toRecordWithoutResponse } from './record-request.ts'
import type { SimulatorState } from './simulator-state.ts'

interface AnsweredOpenai {
  readonly prepared: PreparedOpenai
  readonly answer: ResponsesAnswer | ChatAnswer
  readonly sent: HttpAnswer
  readonly id: string
}

/** Adds the record of an answered request to the request log and calls `onRequest`. */
export function recordOpenaiAnswer(
  state: SimulatorState,
  request: RequestContext,
  { prepared, answer, sent, id }: AnsweredOpenai,
): void {
  const isBegun = sent.chunks.length > 0
  const outputTokens =
    request.fault === null ? answer.outputTokens : countSentOutput(answer.outputTokens, sent)
  const compactions =
    answer.summary === null ? [] : [toUsage(answer.summary.cache, answer.summary.outputTokens)]
  const usage = [...compactions, toUsage(answer.cache, outputTokens)].reduce(addTokenUsage)
  addRequestRecord(state, request, {
    ...toRecordWithoutResponse(state, request, { answer: sent, error: null }),
    messageId: id,
    stopReason: answer.stopReason,
    usage: isBegun ? usage : null,
    cost: isBegun ? computeRequestCost(toPricedUsage(usage, prepared), prepared.model.prices) : null,
    cache: analyzeUnits(state, request, prepared, answer.cache),
    compactions,
  })
}

function toUsage({ split }: OpenaiCacheResult, output: number): TokenUsage {
  const { read, write30m, write12h, input } = split
  return { input, cacheRead: read, write5m: write30m, write1h: write12h, output }
}

/** Converts usage to the fields that the catalogue's prices apply to. */
function toPricedUsage(usage: TokenUsage, { body }: PreparedOpenai): JsonObject {
  return {
    input_tokens: usage.input,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.write5m + usage.write1h,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.write5m,
      ephemeral_1h_input_tokens: usage.write1h,
    },
    output_tokens: usage.output,
    service_tier: readServiceTier(body),
  }
}

/**
 * Counts the output tokens up to the point where a fault breaks a stream. The model stops there, so later tokens are
 * not billed. Without a stream, all output was generated.
 */
function countSentOutput(outputTokens: number, { headers, chunks }: HttpAnswer): number {
  if (headers['content-type']?.startsWith('text/event-stream') !== true) return outputTokens
  const text = Buffer.concat(chunks.map((chunk) => toBytes(chunk.bytes))).toString('utf8')
  if (/^data: \[DONE\]$|^event: response\.(completed|incomplete)$/m.test(text)) return outputTokens
  const deltas = text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? readDeltas(line.slice(6)) : []))
  return Math.min(outputTokens, Math.max(1, countTextTokens(deltas.join(''))))
}

/** Returns the generated text in the data of an event or chunk; nothing for data that was cut. */
function readDeltas(data: string): readonly string[] {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    return []
  }
  if (!isObject(value)) return []
  if (typeof value.delta === 'string') return [value.delta]
  return Array.isArray(value.choices) ? listGenerated(value.choices[0]?.delta) : []
}

/** The fields of a chunk that contain generated text. */
const GENERATED_FIELDS = [
  'content',
  'refusal',
  'reasoning',
  'reasoning_content',
  'arguments',
  'input',
  'name',
]

function listGenerated(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(listGenerated)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, each]) => {
    if (typeof each !== 'string') return listGenerated(each)
    return GENERATED_FIELDS.includes(name) ? [each] : []
  })
}

function analyzeUnits(
  state: SimulatorState,
  request: RequestContext,
  prepared: PreparedOpenai,
  { hit, breakpoints, split }: OpenaiCacheResult,
): CacheAnalysis {
  const { prompt, model, dialect } = prepared
  const formatPath = (position: number): string => prompt.units[position]?.path ?? ''
  return {
    hit: hit === null ? null : { path: formatPath(hit), tokens: split.read, from: formatPath(hit) },
    breakpoints: breakpoints.map(({ position, ttl, tokens, fate }) => ({
      path: formatPath(position),
      ttl,
      tokens,
      fate,
    })),
    minimum: model.hasBreakpoints ? MIN_BREAKPOINT_TOKENS : dialect.cache.minimum,
    miss: explainUnitMiss(state.openai.recent, request.now, prepared, split.read),
  }
}

/** Tokens that may be missing from a cache read without a cause, because implicit caches count in steps. */
const STEP_TOLERANCE = 128

/** Explains why a request read less than the most similar earlier request had left in the cache; null if it read as much. */
function explainUnitMiss(
  recent: readonly RecentOpenaiRequest[],
  now: number,
  { fingerprint, model, dialect }: PreparedOpenai,
  read: number,
): CacheMiss | null {
  const earlier = findMostSimilar(recent, fingerprint)
  if (earlier === undefined) return null
  const minimum = model.hasBreakpoints ? MIN_BREAKPOINT_TOKENS : dialect.cache.minimum
  const left = earlier.fingerprint.prompt.tokens
  if (left < minimum || read >= left - STEP_TOLERANCE) return null
  const compared = diagnosePromptChange(earlier.fingerprint, fingerprint)
  const found = { tokens: left - read, comparedWith: earlier.number }
  if (compared.type === 'cache_miss') {
    const isContent = compared.reason === 'input_changed' || compared.reason === 'context_compacted'
    const reason = isContent ? 'content-changed' : 'key-changed'
    return { reason, why: compared.reason.replaceAll('_', ' '), ...found }
  }
  if (!earlier.hasBegun())
    return { reason: 'not-yet-written', why: `request ${earlier.number} had not begun to answer`, ...found }
  const minutes = Math.round((now - earlier.fingerprint.at) / 60_000)
  return { reason: 'expired', why: `the entry expired (${minutes} minutes)`, ...found }
}

/** Returns the earlier request with the longest common prefix; of several, one with equal settings; of those, the newest. */
function findMostSimilar(
  recent: readonly RecentOpenaiRequest[],
  request: PreparedOpenai['fingerprint'],
): RecentOpenaiRequest | undefined {
  let best: { readonly prompt: RecentOpenaiRequest; readonly rank: number } | undefined
  for (const prompt of recent) {
    const { fingerprint } = prompt
    if (fingerprint.organization !== request.organization) continue
    const common = countCommonUnits(fingerprint.prompt.chains, request.prompt.chains)
    const rank = common + (diagnosePromptChange(fingerprint, request).type === 'cache_hit' ? 0.5 : 0)
    if (common > 0 && rank >= (best?.rank ?? 0)) best = { prompt, rank }
  }
  return best?.prompt
}
