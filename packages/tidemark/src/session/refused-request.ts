/**
 * Implements `session.refused`: in the caller's own loop, tells the engine how the provider refused a request, so that
 * `next` returns a different one. `run` recovers in the same way by itself.
 */
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { TurnFailure } from '@tidemark/core/engine/events'
import { type ModelFailure, planRetry } from '@tidemark/core/engine/reply'
import {
  NO_REMEDIES_TRIED,
  recoverFromRefusal,
  withdrawTooLongPrompts,
} from '@tidemark/core/turn/recover-refusal'
import { isRewritePlanned } from '@tidemark/core/turn/reduce-context'
import { classifyClientError } from '../models/client-error.ts'
import { findCodec } from '../models/providers.ts'
import { toComparableRequestText } from './next-request.ts'
import {
  type OpenSession,
  type RequestRefusal,
  refreshFromLog,
  reserveSession,
  runOperation,
} from './open-session.ts'
import { describeTurnFailure } from './run.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

/** What was done about a refused request. `failure`: the error, classified. */
export type RefusalOutcome =
  /** The context was changed, and `next` returns a different request. */
  | { readonly ok: true; readonly act: 'changed'; readonly failure: ModelFailure }
  /** The fault may pass: wait `delayMs`, then send the request that `next` returns. */
  | { readonly ok: true; readonly act: 'wait'; readonly delayMs: number; readonly failure: ModelFailure }
  /** Nothing helps. If the request itself caused the failure, `next` returns this refusal until the request changes. */
  | (TurnFailure & { readonly message: string })

/**
 * Reacts to the refusal of the request that `next` or `take` returned: tells the caller to wait, changes the context so
 * that the next request differs, or fails. `error`: what the caller's client threw, an error response, or a failure.
 */
export async function recoverRefusedRequest(session: OpenSession, error: unknown): Promise<RefusalOutcome> {
  const { settings } = session
  const failure = classifyClientError(error, findCodec(session.model.choice), settings.clock.now())
  const release = reserveSession(session, 'refused')
  try {
    const refusal = createRefusal(session, failure)
    session.refusal = refusal
    session.awaited.abandon()
    if (failure.retryable) return planWait(session, refusal)
    const run = createTurnContext(session, { signals: [] })
    await refreshFromLog(session, run)
    if (failure.kind === 'overflow' && !refusal.isReplanned && session.client !== null) {
      // A client's context is rewritten only when it must be, which is now the case. The planner may have a cheaper
      // rewrite than the recovery.
      session.refusal = { ...refusal, isReplanned: true }
      if (isRewritePlanned(run)) return { ok: true, act: 'changed', failure }
    }
    const response = { ok: false, reason: 'failed', failure } as const
    const end = await runOperation(session, recoverFromRefusal(run, response, refusal.tried))
    if (end?.ok !== true)
      return toFailedOutcome(
        session,
        await runOperation(session, withdrawTooLongPrompts(run, end ?? response)),
      )
    session.refusal = { ...refusal, tried: end.tried }
    return { ok: true, act: 'changed', failure }
  } finally {
    release()
  }
}

/**
 * Lets an equal request be sent again after a refusal, because the reason may have passed. The remedies that were tried stay
 * known.
 */
export function forgetRefusedRequest(session: OpenSession): void {
  if (session.refusal !== null) session.refusal = { ...session.refusal, text: '' }
}

/** Returns the refusal for the newest failure, with the remedies and waits since the last response. Stores nothing. */
function createRefusal(session: OpenSession, failure: ModelFailure): RequestRefusal {
  const { refusal, awaited } = session
  const { tried = NO_REMEDIES_TRIED, waits = 0, text = '', isReplanned = false } = refusal ?? {}
  return {
    failure,
    tried,
    waits,
    isReplanned,
    text: awaited.request === null ? text : toComparableRequestText(session, awaited.request.request),
  }
}

function planWait(session: OpenSession, refusal: RequestRefusal): RefusalOutcome {
  const { failure, waits } = refusal
  const { policy, chance } = createTurnHost(session)
  const retry = planRetry(failure, waits, policy.turn.network, chance?.() ?? 0)
  if (!retry.again) return toFailedOutcome(session, { ok: false, reason: 'failed', failure })
  session.refusal = { ...refusal, waits: waits + 1 }
  return { ok: true, act: 'wait', delayMs: retry.delayMs, failure }
}

function toFailedOutcome({ state }: OpenSession, failure: TurnFailure): RefusalOutcome {
  return { ...failure, message: describeTurnFailure(failure, toApiMessages(state.flat)) }
}
