/** What is written down of a request. */

import { isObject } from '../api.ts'
import { APPLIED_HEADER } from '../faults/apply.ts'
import type { Fault } from '../faults/fault.ts'
import { costOf } from '../seeing/cost.ts'
import type { CacheAnalysis, RequestRecord, TokenFigures } from '../seeing/record.ts'
import type { Account } from './account.ts'
import type { Incoming } from './admit.ts'
import type { Answer } from './answer.ts'
import type { MadeResponse } from './answer-message.ts'
import type { Prepared } from './prepare.ts'
import type { Iteration } from './usage.ts'
import type { World } from './world.ts'

export interface Visit {
  readonly number: number
  readonly requestId: string
  readonly now: number
  readonly incoming: Incoming
  readonly account: Account | null
  readonly fault: Fault | null
}

export interface Outcome {
  readonly answer: Answer
  readonly error: RequestRecord['error']
  readonly counted?: number | null
}

export function recordOf(
  world: World,
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
    durationMs: world.clock.now() - now,
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

export interface Answered {
  readonly prepared: Prepared
  readonly made: MadeResponse
  readonly id: string
  readonly analysis: CacheAnalysis
  readonly answer: Answer
}

export function recordResponse(world: World, visit: Visit, answered: Answered): void {
  const { prepared, made, id, analysis, answer } = answered
  const compactions = made.summaries.map(figuresOf)
  const record: RequestRecord = {
    ...recordOf(world, visit, { answer, error: null }),
    messageId: id,
    stopReason: made.stopReason,
    usage: [...compactions, figuresOf(made)].reduce(plus),
    cost: costOf(made.usage, prepared.model.prices),
    cache: analysis,
    appliedEdits: prepared.applied,
    transformations: prepared.transformations,
    compactions,
  }
  world.log.add(record)
  world.settings.onRequest(record)
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
