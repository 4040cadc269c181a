/** Builds the record of a request for the request log, with an analysis of its cache reads and writes. */

import { toBlocks } from '@tidemark/core/log/block'
import {
  decodeReplyBytes,
  finishReplyBytes,
  initialByteStreamState,
} from '@tidemark/wire/anthropic/decode-stream'
import { FAULT_NOTE_HEADER, type Fault, toBytes } from '../faults/fault.ts'
import type { Account } from '../prompt-cache/cache-key.ts'
import { countPrefixTokens } from '../prompt-cache/prompt.ts'
import type { HttpAnswer } from '../protocol/answer.ts'
import { type Block, isObject, type JsonObject } from '../protocol/messages-request.ts'
import { explainCacheMiss } from '../request-log/explain-miss.ts'
import {
  addTokenUsage,
  type CacheAnalysis,
  type ComparableRequest,
  computeRequestCost,
  type RequestRecord,
  type TokenUsage,
} from '../request-log/request-log.ts'
import { listToolCalls } from '../scripts/script.ts'
import type { IncomingRequest } from './admit-request.ts'
import type { ModelCallTokens, ModelResponse } from './answer-message.ts'
import { countOutputTokens } from './call-script.ts'
import type { PreparedRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

/** What the request log needs of a request, for every API. */
export interface LoggedRequest extends Pick<IncomingRequest, 'headers' | 'value' | 'text' | 'bodyBytes'> {
  /** The path of the request, such as `/v1/messages`. */
  readonly path: string
}

/** A request while the simulator handles it. `account`: null if it was not authenticated. */
export interface RequestContext {
  readonly number: number
  readonly requestId: string
  readonly now: number
  readonly incoming: LoggedRequest
  readonly account: Account | null
  readonly fault: Fault | null
}

export interface OutcomeWithoutResponse {
  readonly answer: HttpAnswer
  readonly error: RequestRecord['error']
  readonly counted?: number | null
}

/**
 * Creates the record of a request without a model response: it was rejected, failed by a fault, or only counted
 * tokens.
 */
export function toRecordWithoutResponse(
  state: SimulatorState,
  { number, requestId, now, incoming, account, fault }: RequestContext,
  { answer, error, counted = null }: OutcomeWithoutResponse,
): RequestRecord {
  const { value, path, bodyBytes } = incoming
  const body = isObject(value) ? value : {}
  return {
    number,
    requestId,
    messageId: null,
    at: new Date(now).toISOString(),
    durationMs: state.clock.now() - now,
    endpoint: path,
    organization: account?.organization ?? null,
    workspace: account?.workspace ?? null,
    model: typeof body.model === 'string' ? body.model : null,
    stream: body.stream === true,
    messages: countMessages(body),
    bodyBytes,
    status: answer.status,
    error,
    fault: fault?.type ?? null,
    faultNote: answer.headers[FAULT_NOTE_HEADER] ?? null,
    stopReason: null,
    usage: null,
    cost: null,
    counted,
    cache: null,
    appliedEdits: [],
    transformations: [],
    compactions: [],
  }
}

/** Counts the messages of a request, or the items of its input. */
function countMessages({ messages, input }: Readonly<Record<string, unknown>>): number {
  if (Array.isArray(messages)) return messages.length
  return Array.isArray(input) ? input.length : typeof input === 'string' ? 1 : 0
}

interface AnsweredRequest {
  readonly prepared: PreparedRequest
  readonly response: ModelResponse
  readonly id: string
  readonly analysis: CacheAnalysis
  readonly answer: HttpAnswer
}

/** Adds the record of an answered request to the request log and calls `onRequest`. */
export function recordResponse(
  state: SimulatorState,
  request: RequestContext,
  answered: AnsweredRequest,
): void {
  const { prepared, response, id, analysis, answer } = answered
  const compactions = response.summaries.map(toTokenUsage)
  const isBegun = answer.chunks.length > 0
  const outputTokens = request.fault === null ? response.outputTokens : countSentTokens(response, answer)
  const record: RequestRecord = {
    ...toRecordWithoutResponse(state, request, { answer, error: null }),
    messageId: id,
    stopReason: response.stopReason,
    usage: isBegun
      ? [...compactions, toTokenUsage({ ...response, outputTokens })].reduce(addTokenUsage)
      : null,
    cost: isBegun
      ? computeRequestCost(withOutputTokens(response, outputTokens), prepared.model.prices)
      : null,
    cache: analysis,
    appliedEdits: prepared.appliedEdits,
    transformations: prepared.transformations,
    compactions,
  }
  addRequestRecord(state, request, record)
}

/**
 * Counts the output tokens up to the point where a fault breaks a stream. The model stops there, so later tokens are
 * not billed. Without a stream, all output was generated.
 */
function countSentTokens({ outputTokens }: ModelResponse, { headers, chunks }: HttpAnswer): number {
  if (headers['content-type']?.startsWith('text/event-stream') !== true) return outputTokens
  const bytes = Buffer.concat(chunks.map((chunk) => toBytes(chunk.bytes)))
  const [state, events] = decodeReplyBytes(initialByteStreamState, bytes)
  const end = [...events, ...finishReplyBytes(state)[1]].find(({ type }) => type === 'reply-failed')
  if (end?.type !== 'reply-failed') return outputTokens
  const sent = end.reply === null ? [] : toBlocks(end.reply.message.content)
  const cut = end.reply?.unfinished ?? []
  const tokens = [...sent, ...cut.map(({ block, input }) => (input === '' ? block : { ...block, input }))]
    .map((block) => countOutputTokens(block as Block))
    .reduce((sum, count) => sum + count, 0)
  return Math.min(outputTokens, Math.max(1, tokens))
}

/** Returns the usage of a response with a changed number of output tokens, in its iterations as well. */
function withOutputTokens({ usage }: ModelResponse, tokens: number): JsonObject {
  const iterations = Array.isArray(usage.iterations)
    ? usage.iterations.map((each) =>
        isObject(each) && each.type === 'message' ? { ...each, output_tokens: tokens } : each,
      )
    : null
  return { ...usage, output_tokens: tokens, ...(iterations === null ? {} : { iterations }) }
}

/** Adds a record to the request log, with the body of its request, and calls `onRequest`. */
export function addRequestRecord(
  state: SimulatorState,
  { incoming }: RequestContext,
  record: RequestRecord,
): void {
  state.log.add(record, incoming.text)
  state.settings.onRequest(record)
}

function toTokenUsage({ split, outputTokens }: ModelCallTokens): TokenUsage {
  const { read, write5m, write1h, input } = split
  return { input, cacheRead: read, write5m, write1h, output: outputTokens }
}

/** Describes what happened in the prompt cache. `seen`: data that is kept to explain cache misses of later requests. */
export function analyzeCache(
  { log, store }: SimulatorState,
  { prompt, key, scope, model }: PreparedRequest,
  { cache, reply }: ModelResponse,
  { number, now, hasBegun }: { readonly number: number; readonly now: number; hasBegun(): boolean },
): { readonly analysis: CacheAnalysis; readonly seen: ComparableRequest } {
  const { hit, breakpoints } = cache
  const counted = breakpoints.findLast(({ fate }) => fate !== 'below-minimum')
  const position = hit?.position ?? null
  return {
    analysis: {
      hit:
        hit === null
          ? null
          : {
              path: prompt.formatPath(hit.position),
              tokens: countPrefixTokens(prompt, hit.position),
              from: prompt.formatPath(hit.from),
            },
      breakpoints: breakpoints.map((each) => ({
        path: prompt.formatPath(each.position),
        ttl: each.ttl,
        tokens: each.tokens,
        fate: each.fate,
      })),
      minimum: model.cacheMinimum,
      miss: explainCacheMiss({
        prompt,
        key,
        scope,
        hit: position,
        earlier: log.comparableRequests,
        store,
        now,
      }),
    },
    seen: {
      number,
      scope,
      prompt,
      key,
      calls: listToolCalls({ role: 'assistant', content: reply.message.content }).map(({ id }) => id),
      cachedUpTo: counted?.position ?? null,
      startedAt: now,
      hasBegun,
    },
  }
}
