/** The watch over the cache, around one call: the request as it goes out is remembered, the answer is judged by it. */

import { compareAnswer } from '../breaks/compare-answer.ts'
import type { CacheOutcome } from '../breaks/outcome.ts'
import { providerWord } from '../breaks/provider-word.ts'
import { sentRequest } from '../breaks/sent-request.ts'
import { takeSnapshot } from '../breaks/watch.ts'
import type { AssistantMessage } from '../conversation/record.ts'
import type { CacheLoss } from '../conversation/spending.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import type { Forecast } from '../prompt/forecast.ts'
import { redact } from '../summarize/redact.ts'
import { isEditedByProvider } from './diagnosis.ts'
import type { SessionState } from './session-state.ts'
import type { TurnEvent } from './turn-event.ts'
import type { TurnHost } from './turn-host.ts'
import type { Unlinked } from './turn-run.ts'

/** A request and who sends it. */
export interface WatchedCall {
  readonly request: AssembledRequest
  readonly source: string
  /** The source whose cache it reads, where that is not its own. */
  readonly forkOf?: string
}

/** With what was foreseen of it. */
export interface ForeseenCall extends WatchedCall {
  readonly forecast: Forecast
}

/** To be called last before a request is sent: nothing may change it any more. */
export function watchRequest(state: SessionState, call: WatchedCall, host: TurnHost): SessionState {
  const { source, forkOf } = call
  const circumstances = host.circumstances?.()
  const watched = sentRequest(call.request, {
    source,
    at: host.clock.now(),
    cache: host.profile.cache,
    ...(forkOf === undefined ? {} : { forkOf }),
    ...(circumstances === undefined ? {} : { circumstances }),
    ...(state.watched === null ? {} : { previous: state.watched }),
  })
  return { ...state, watched, watch: takeSnapshot(state.watch, watched, host.policy.cache.breaks) }
}

export interface JudgedAnswer {
  readonly state: SessionState
  readonly outcome: CacheOutcome
}

/** `message`: what came of the answer, if it is only the head that tells the usage. */
export function judgeAnswer(
  state: SessionState,
  { call, message }: { readonly call: ForeseenCall; readonly message: AssistantMessage },
  host: TurnHost,
): JudgedAnswer {
  const { policy, profile, pricesOf, clock } = host
  const answer = {
    source: call.source,
    usage: message.usage ?? null,
    word: providerWord(message.diagnostics),
    isEdited: isEditedByProvider(message),
  }
  const { watch, outcome } = compareAnswer(state.watch, answer, {
    policy: policy.cache.breaks,
    profile,
    prices: pricesOf(message.model, new Date(clock.now()).toISOString()),
    redact: host.redact ?? redact,
  })
  return { state: { ...state, watch }, outcome: asForeseen(outcome, call.forecast, host) }
}

/**
 * A model that loses the thinking of finished turns rewrites its prompt by itself. Where that was foreseen, and
 * nothing else is to be seen, what was read is what could be.
 */
function asForeseen(outcome: CacheOutcome, forecast: Forecast, { policy, profile }: TurnHost): CacheOutcome {
  if (outcome.kind !== 'broke' || !profile.thinking.stripsFinishedTurns) return outcome
  const { reason, read } = outcome.event
  const isForeseen = forecast.why === 'rewritten' && read >= forecast.read - policy.cache.breaks.tokens
  return isForeseen && reason.kind === 'evicted' ? { kind: 'read', expected: forecast.read, read } : outcome
}

/** What the log keeps of it, so that the bill can be told again. */
export function lossRecords(outcome: CacheOutcome): readonly Unlinked[] {
  const loss = lossOf(outcome)
  return loss === null ? [] : [{ type: 'system', subtype: 'cache_loss', isMeta: true, cacheLoss: loss }]
}

function lossOf(outcome: CacheOutcome): CacheLoss | null {
  if (outcome.kind === 'broke') {
    const { source, reason, tokensLost: tokens, moneyLost: usd, sentence } = outcome.event
    return { kind: 'break', source, reason: reason.kind, tokens, usd, sentence }
  }
  if (outcome.kind !== 'ours') return null
  const { source, act, tokensRewritten: tokens, moneySpent: usd, sentence } = outcome.act
  return { kind: 'act', source, reason: act, tokens, usd, sentence }
}

export async function* tellOutcome(
  outcome: CacheOutcome,
  source: string,
  host: TurnHost,
): AsyncGenerator<TurnEvent, void> {
  if (outcome.kind === 'broke') {
    const diffProblem = await keepDiff(outcome, host)
    yield { type: 'cache-broke', event: outcome.event, diffProblem }
  } else if (outcome.kind === 'ours') yield { type: 'act-paid', act: outcome.act }
  else yield { type: 'cache-judged', source, outcome }
}

type Broke = Extract<CacheOutcome, { readonly kind: 'broke' }>

/** A file that cannot be written takes no turn down. Null: it was kept, or nobody wanted it. */
async function keepDiff(
  outcome: Broke,
  { keepDiff: keep, policy, redact: own }: TurnHost,
): Promise<string | null> {
  if (keep === undefined || !policy.cache.breaks.diffFiles) return null
  try {
    await keep(outcome.diff(own ?? redact), outcome.event)
    return null
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}
