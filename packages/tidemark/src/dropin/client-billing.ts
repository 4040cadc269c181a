/**
 * Counts what a client pays for outside its conversation: requests that are passed on, such as those for titles and its own
 * summaries, and responses that broke off. Their usage is logged as calls, so that the log's totals match the bill.
 */
import { emptySessionCost, priceCall, sumSessionCost } from '@tidemark/core/cost/session-cost'
import {
  type CutCall,
  createBilledCallRecords,
  estimateBilledUsage,
  estimateCutUsage,
  withSessionCosts,
} from '@tidemark/core/engine/call-model'
import type { ModelFailure, Reply } from '@tidemark/core/engine/reply'
import type { AssistantMessage } from '@tidemark/core/log/record'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'
import { appendOtherRecords } from '../session/append.ts'
import type { EventOf } from '../session/events.ts'
import type { OpenSession } from '../session/open-session.ts'
import { createTurnContext } from '../session/turn-host.ts'
import { readWhilePassing } from './client-response.ts'

/** The source of the calls that a client makes beside its conversation. */
const PASSED_SOURCE = 'passed-on'

/** Passes a response on, and calls `count` with its reply, or with what arrived of it; null if nothing did. */
export function passAndCount(
  response: Response,
  codec: ProviderCodec,
  count: (reply: Reply | null) => Promise<void>,
): Promise<Response> {
  return readWhilePassing(response, { codec, hidesThinking: false, onReply: count, onCut: count })
}

/** Logs the usage of a reply, and emits its cost unless `isEmitted`. Does nothing for null and without usage. */
export async function logReplyCost(open: OpenSession, reply: Reply | null, isEmitted = false): Promise<void> {
  if (reply === null) return
  const { compaction } = createTurnContext(open).host
  await logUsageCost(open, reply.message, estimateBilledUsage(reply, compaction.estimator), isEmitted)
}

/** Records and emits the cost of a request of the conversation whose response broke off. `reply`: null if nothing arrived. */
export async function logInterruptedCallCost(
  open: OpenSession,
  request: CutCall,
  reply: Reply | null,
  cause: ModelFailure,
): Promise<void> {
  const { host } = createTurnContext(open)
  const lost = { id: host.ids.next('lost-reply'), model: host.readOfferedPrefix().model }
  await logUsageCost(open, reply?.message ?? lost, estimateCutUsage(host, request, reply, cause))
}

async function logUsageCost(
  open: OpenSession,
  message: Pick<AssistantMessage, 'id' | 'model' | 'usage'>,
  usage: TokenUsage | undefined,
  isEmitted = false,
): Promise<void> {
  if (usage === undefined) return
  await appendCallUsage(open, message, usage)
  if (!isEmitted) emitCallCost(open, message, usage, PASSED_SOURCE)
}

/** Emits what a call cost, with the session's totals. `source`: its purpose; null for a response of the conversation. */
export function emitCallCost(
  open: OpenSession,
  { id, model }: Pick<AssistantMessage, 'id' | 'model'>,
  usage: TokenUsage | null,
  source: string | null,
): void {
  const { clock, pricesOf } = createTurnContext(open).host
  open.state = withSessionCosts(open.state, pricesOf)
  const totals = sumSessionCost(open.state.costs ?? emptySessionCost())
  const at = new Date(clock.now()).toISOString()
  const call = priceCall({ id, model, usage, at, source }, pricesOf)
  open.listeners.emit({ type: 'priced', call, totals })
}

/** Appends the usage of a call to the log. Errors are ignored, so that the client gets its response in any case. */
export async function appendCallUsage(
  open: OpenSession,
  message: Pick<AssistantMessage, 'id' | 'model' | 'usage'>,
  usage: TokenUsage | undefined,
): Promise<void> {
  await appendOtherRecords(open, createBilledCallRecords(message, usage, PASSED_SOURCE)).catch(() => {})
}

/** Returns a function that prices replies outside all conversations, and keeps their totals. */
export function createPassedReplyPricer({
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
