/** Builds the record of a request for the request log, with the analysis of what the cache did. */

import { APPLIED_HEADER, type Fault } from '../faults/fault.ts'
import type { Scope } from '../prompt-cache/cache-key.ts'
import { tokensAt } from '../prompt-cache/prompt.ts'
import type { CacheOutcome } from '../prompt-cache/prompt-cache.ts'
import type { Answer } from '../protocol/answer.ts'
import { isObject } from '../protocol/api.ts'
import { explainMiss } from '../request-log/explain-miss.ts'
import {
  type CacheAnalysis,
  costOf,
  type RequestRecord,
  type Seen,
  type TokenFigures,
} from '../request-log/request-log.ts'
import type { Incoming } from './admit-request.ts'
import type { Iteration, MadeResponse } from './answer-message.ts'
import type { Prepared } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

/** A request on its way through the simulator. */
export interface Visit {
  readonly number: number
  readonly requestId: string
  readonly now: number
  readonly incoming: Incoming
  readonly account: Scope | null
  readonly fault: Fault | null
}

export interface Outcome {
  readonly answer: Answer
  readonly error: RequestRecord['error']
  readonly counted?: number | null
}

/** The record of a request that got no response of the model: refused, failed by a fault, or only counted. */
export function recordOf(
  state: World,
  { number, requestId, now, incoming, account, fault }: Visit,
  { answer, error, counted = null }: Outcome,
): RequestRecord {
  const { value, endpoint, bodyBytes } = incoming
  const body = isObject(value) ? value : {}
  return {
    number,
    requestId,
    messageId: null,
    at: new Date(now).toISOString(),
    durationMs: state.clock.now() - now,
    endpoint: endpoint === 'messages' ? '/v1/messages' : '/v1/messages/count_tokens',
    organization: account?.organization ?? null,
    workspace: account?.workspace ?? null,
    model: typeof body.model === 'string' ? body.model : null,
    stream: body.stream === true,
    messages: Array.isArray(body.messages) ? body.messages.length : 0,
    bodyBytes,
    status: answer.status,
    error,
    fault: fault?.type ?? null,
    faultNote: answer.headers[APPLIED_HEADER] ?? null,
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

interface Answered {
  readonly prepared: Prepared
  readonly response: MadeResponse
  readonly id: string
  readonly analysis: CacheAnalysis
  readonly answer: Answer
}

/** Adds the record of an answered request to the log and calls `onRequest`. */
export function recordResponse(state: World, request: Visit, answered: Answered): void {
  const { prepared, response, id, analysis, answer } = answered
  const compactions = response.summaries.map(figuresOf)
  const record: RequestRecord = {
    ...recordOf(state, request, { answer, error: null }),
    messageId: id,
    stopReason: response.stopReason,
    usage: [...compactions, figuresOf(response)].reduce(plus),
    cost: costOf(response.usage, prepared.model.prices),
    cache: analysis,
    appliedEdits: prepared.applied,
    transformations: prepared.transformations,
    compactions,
  }
  state.log.add(record)
  state.settings.onRequest(record)
}

function figuresOf({ split, outputTokens: output }: Iteration): TokenFigures {
  const { read: cacheRead, write5m, write1h, input } = split
  return { input, cacheRead, write5m, write1h, output }
}

function plus(one: TokenFigures, other: TokenFigures): TokenFigures {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    write5m: one.write5m + other.write5m,
    write1h: one.write1h + other.write1h,
    output: one.output + other.output,
  }
}

/** What the cache did with a request, and what later requests are compared with (`seen`). */
export function analyse(
  { log, store }: World,
  { prompt, key, scope, model }: Prepared,
  cache: CacheOutcome,
  { number, now, hasBegun }: { readonly number: number; readonly now: number; hasBegun(): boolean },
): { readonly analysis: CacheAnalysis; readonly seen: Seen } {
  const { hit, breakpoints } = cache
  const counted = breakpoints.findLast(({ fate }) => fate !== 'below-minimum')
  const position = hit?.position ?? null
  return {
    analysis: {
      hit:
        hit === null
          ? null
          : {
              path: prompt.pathOf(hit.position),
              tokens: tokensAt(prompt, hit.position),
              from: prompt.pathOf(hit.from),
            },
      breakpoints: breakpoints.map((each) => ({
        path: prompt.pathOf(each.position),
        ttl: each.ttl,
        tokens: each.tokens,
        fate: each.fate,
      })),
      minimum: model.cacheMinimum,
      miss: explainMiss({ prompt, key, scope, hit: position, earlier: log.seen, store, now }),
    },
    seen: {
      number,
      scope,
      prompt,
      key,
      cachedUpTo: counted?.position ?? null,
      startedAt: now,
      begun: hasBegun,
    },
  }
}
