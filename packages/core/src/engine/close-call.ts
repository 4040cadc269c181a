/**
 * The end of a call, whoever made it: what it tells of the cache is learnt and judged, its last records go into
 * the log in one batch with what was lost, and its price is told.
 */

import type { CacheOutcome } from '../breaks/outcome.ts'
import { isObject } from '../conversation/json.ts'
import type { AssistantMessage } from '../conversation/record.ts'
import { learnFromFork, learnFromResponse } from '../prompt/learn.ts'
import { tellPrice } from './price-calls.ts'
import type { SessionState } from './session-state.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import { append, type TurnRun, type Unlinked } from './turn-run.ts'
import { type ForeseenCall, judgeAnswer, lossRecords, tellOutcome } from './watch-cache.ts'

/** A call under way. */
export interface OpenedCall extends ForeseenCall {
  /** Its prefix is that of the conversation. One that stands alone tells nothing of the cache. */
  readonly isWatched: boolean
}

export interface Closing {
  /** As far as it came. */
  readonly message: AssistantMessage
  /** What is still to be written of it. */
  readonly bodies: readonly Unlinked[]
  /** Records of the conversation tell of it. Where none does, a record of its own tells what it cost. */
  readonly isSaid: boolean
  /** Appends nothing: the log is somebody else's at the moment. */
  readonly isDeferred?: boolean
}

export interface ClosedCall {
  /** What was to be appended could not be. */
  readonly halt: Halt | null
  readonly outcome: CacheOutcome
  /** What is still to be appended, where that was deferred. */
  readonly unlogged: readonly Unlinked[]
}

export async function* closeCall(
  run: TurnRun,
  opened: OpenedCall,
  { message, bodies, isSaid, isDeferred = false }: Closing,
): AsyncGenerator<TurnEvent, ClosedCall> {
  const outcome = opened.isWatched ? judged(run, opened, message) : UNWATCHED
  const spent = isSaid ? [] : callRecords(message, opened.source)
  const all = [...bodies, ...spent, ...lossRecords(outcome)]
  const halt = isDeferred ? null : yield* append(run, all)
  if (halt !== null) return { halt, outcome, unlogged: [] }
  yield* tellOutcome(outcome, opened.source, run.host)
  if (!isDeferred) yield* tellPrice(run, message.id)
  return { halt, outcome, unlogged: isDeferred ? all : [] }
}

const UNWATCHED: CacheOutcome = { kind: 'not-judged', why: 'not-watched' }

function judged(run: TurnRun, call: OpenedCall, message: AssistantMessage): CacheOutcome {
  const learnt = learn(run.state, call, message)
  const { state, outcome } = judgeAnswer(learnt, { call, message }, run.host)
  run.state = state
  return outcome
}

function learn(
  state: SessionState,
  { forecast, forkOf }: OpenedCall,
  { usage }: AssistantMessage,
): SessionState {
  const { lineage } = state
  if (lineage === null || usage === undefined) return state
  const from = forkOf === undefined ? learnFromResponse : learnFromFork
  return { ...state, lineage: from(lineage, forecast, usage) }
}

/** A call that cost something and is told of nowhere else. */
function callRecords({ id, model, usage }: AssistantMessage, source: string): readonly Unlinked[] {
  const told: unknown = usage
  if (!isObject(told)) return []
  const modelCall = { id, source, model, usage: JSON.parse(JSON.stringify(told)) }
  return [{ type: 'system', subtype: 'model_call', isMeta: true, modelCall }]
}
