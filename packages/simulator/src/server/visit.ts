/** What is written down of a request. */

import { isObject } from '../api.ts'
import type { Fault } from '../faults/fault.ts'
import { costOf } from '../seeing/cost.ts'
import type { CacheAnalysis, RequestRecord } from '../seeing/record.ts'
import type { Account } from './account.ts'
import type { Incoming } from './admit.ts'
import type { MadeResponse } from './answer-message.ts'
import type { Prepared } from './prepare.ts'
import type { World } from './world.ts'

export interface Visit {
  readonly number: number
  readonly requestId: string
  readonly now: number
  readonly incoming: Incoming
  readonly account: Account | null
  readonly fault: Fault | null
}

export function recordOf(
  world: World,
  { number, requestId, now, incoming, account, fault }: Visit,
  outcome: Pick<RequestRecord, 'status' | 'error'>,
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
    fault: fault?.type ?? null,
    stopReason: null,
    usage: null,
    cost: null,
    cache: null,
    appliedEdits: [],
    transformations: [],
    ...outcome,
  }
}

export interface Answered {
  readonly prepared: Prepared
  readonly made: MadeResponse
  readonly id: string
  readonly analysis: CacheAnalysis
  readonly status: number
}

export function recordResponse(world: World, visit: Visit, answered: Answered): void {
  const { prepared, made, id, analysis, status } = answered
  const { read: cacheRead, write5m, write1h, input } = made.split
  const record: RequestRecord = {
    ...recordOf(world, visit, { status, error: null }),
    messageId: id,
    stopReason: made.stopReason,
    usage: { input, cacheRead, write5m, write1h, output: made.outputTokens },
    cost: costOf(made.usage, prepared.model.prices),
    cache: analysis,
    appliedEdits: prepared.applied,
    transformations: prepared.transformations,
  }
  world.log.add(record)
  world.settings.onRequest(record)
}
