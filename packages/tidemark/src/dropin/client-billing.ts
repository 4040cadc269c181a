/**
 * Counts what a client pays for beside its conversation: requests that are passed on, such as titles and its own summaries,
 * and responses that broke off. The log keeps their usage as calls, so that its totals are those of the bill.
 */
import { emptySessionCost, priceCall, sumSessionCost } from '@tidemark/core/cost/session-cost'
import {
  createCallRecords,
  createLostCallRecords,
  estimateBilledUsage,
  type PendingModelCall,
  withCosts,
} from '@tidemark/core/engine/call-model'
import type { Reply } from '@tidemark/core/engine/reply'
import type { TokenUsage } from '@tidemark/core/log/model-report'
import type { AssistantMessage } from '@tidemark/core/log/record'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { writeRecords } from '../session/append.ts'
import type { EventOf } from '../session/events.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'
import { readWhilePassing } from './client-response.ts'

/** The source of the calls that a client makes beside its conversation. */
const PASSED_SOURCE = 'passed-on'

/** Passes a response on, and counts what came of it. */
export function countResponse(
  response: Response,
  codec: ProviderCodec,
  count: (reply: Reply | null) => Promise<void>,
): Promise<Response> {
  return readWhilePassing(response, { codec, hidesThinking: false, onReply: count, onCut: count })
}

/**
 * Records the cost of a reply in the log of a session, and emits it unless that was done. A reply without usage costs nothing
 * that is known.
 */
export async function countReply(open: OpenSession, reply: Reply | null, isEmitted = false): Promise<void> {
  const { compaction, clock, pricesOf } = createTurnContext(open).host
  const usage = reply === null ? undefined : estimateBilledUsage(reply, compaction?.estimator)
  if (reply === null || usage === undefined) return
  const { id, model } = reply.message
  await appendCall(open, reply.message, usage)
  if (isEmitted) return
  const totals = sumSessionCost(withCosts(open.state, pricesOf).costs ?? emptySessionCost())
  const at = new Date(clock.now()).toISOString()
  const call = priceCall({ id, model, usage, at, source: PASSED_SOURCE }, pricesOf)
  open.listeners.emit({ type: 'priced', call, totals })
}

/** Records the estimated cost of a response of which the client got nothing that says what it costs. */
export async function countLostCall(open: OpenSession, request: PendingModelCall): Promise<void> {
  const turn = createTurnContext(open)
  const records = createLostCallRecords(turn, request, turn.host.ids.next('lost-reply'))
  await writeRecords(open, records).catch(() => {})
}

/** Appends the usage of a call to the log. A session that cannot be written must not keep the client from its answer. */
export async function appendCall(
  open: OpenSession,
  message: AssistantMessage,
  usage: TokenUsage | undefined,
): Promise<void> {
  await writeRecords(open, createCallRecords(message, usage, PASSED_SOURCE)).catch(() => {})
}

/** Returns a function that prices replies to requests of no conversation, with the totals of all of them. */
export function createPassedCosts({
  choice: { priceList },
}: Pick<OpenSession['model'], 'choice'>): (reply: Reply, at: string) => EventOf<'priced'> {
  const nothing = emptySessionCost()
  let totals = nothing.settled
  return ({ message: { id, model }, usage = null }, at) => {
    const call = priceCall({ id, model, usage, at, source: PASSED_SOURCE }, priceList)
    totals = sumSessionCost({ ...nothing, settled: totals, recent: [call] })
    return { type: 'priced', call, totals }
  }
}
