/**
 * Keeps model calls within the limits of a run and a session: before each call, the usage in the log is compared with them.
 * Calls that run at the same time, such as one that updates the notes, together exceed a limit by no more than one call would.
 */
import {
  addSpending,
  findReachedLimit,
  NOTHING_SPENT,
  type RunningCall,
  type Spending,
} from '../cost/limits.ts'
import { type SessionCostTally, sumSessionCost, updateSessionCost } from '../cost/session-cost.ts'
import type { TurnFailure } from './events.ts'
import { findCurrentRates, type TurnHost } from './host.ts'
import { measureContext } from './measure-context.ts'
import { isTurnAborted, runSlicesToEnd, type TurnContext, waitUnlessAborted } from './session-writer.ts'

/** A call that may begin. Call `end` once the usage of the call is in the log. */
export interface AdmittedCall {
  readonly end: () => void
}

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/**
 * Returns why no further call may begin; null if one may. Waits first for running calls that may reach a limit. Must
 * not be called with the write lock held: the running calls need the lock to end.
 */
export async function checkLimitsBeforeCall(turn: TurnContext): Promise<TurnFailure | null> {
  for (;;) {
    const failure = await findLoggedLimitFailure(turn)
    if (failure !== null) return failure
    if (!canReachLimit(turn)) return null
    const running = [...(turn.host.limits?.running ?? [])].map((call) => call.ended)
    const ended = await waitUnlessAborted(turn, Promise.race(running))
    if (ended === null || isTurnAborted(turn)) return ABORTED
  }
}

/** Returns the limit that is reached by what is in the log, without counting running calls; null if there is none. */
export async function findLoggedLimitFailure(turn: TurnContext): Promise<TurnFailure | null> {
  const { limits } = turn.host
  if (limits === undefined || limits.scopes.length === 0) return null
  await priceNewCalls(turn)
  return findCountedLimitFailure(turn)
}

/**
 * Prices the calls that were logged since the last update, and stores and returns the sums. The first update of an opened
 * session prices its whole log, in slices.
 */
export async function priceNewCalls(turn: TurnContext): Promise<SessionCostTally> {
  const { costs: known, session } = turn.state
  const steps = updateSessionCost(known, session.records, turn.host.pricesOf)
  const costs = await runSlicesToEnd(turn, steps)
  turn.state = { ...turn.state, costs }
  return costs
}

/** Waits and checks as `checkLimitsBeforeCall` does. If the call may begin, counts it as under way until its `end` is called. */
export async function admitCall(turn: TurnContext): Promise<AdmittedCall | TurnFailure> {
  const failure = await checkLimitsBeforeCall(turn)
  if (failure !== null) return failure
  const { limits } = turn.host
  if (limits === undefined || limits.scopes.length === 0) return { end: () => {} }
  let resolve = (): void => {}
  const ended = new Promise<void>((done) => {
    resolve = done
  })
  const call: RunningCall = { mostSpending: boundSpending(turn), ended }
  limits.running.add(call)
  return {
    end() {
      limits.running.delete(call)
      resolve()
    },
  }
}

/** Returns the limit that is reached by what the session has counted so far, without waiting for anything. */
export function findCountedLimitFailure({ state, host }: TurnContext): TurnFailure | null {
  const { limits } = host
  if (limits === undefined || state.costs === null) return null
  const reached = findReachedLimit(limits.scopes, sumSessionCost(state.costs))
  return reached === null ? null : { ok: false, reason: 'limit', ...reached }
}

/** True if the calls under way may reach a limit. */
function canReachLimit({ state, host: { limits } }: TurnContext): boolean {
  if (limits === undefined || limits.running.size === 0 || state.costs === null) return false
  const most = [...limits.running].map((call) => call.mostSpending).reduce(addSpending, NOTHING_SPENT)
  return findReachedLimit(limits.scopes, sumSessionCost(state.costs), most) !== null
}

/** Output tokens that a call is assumed to use if its request sets no limit. */
const UNKNOWN_OUTPUT = 64_000

/** Returns the most that a call of this session can use: its whole context at the highest price, and its largest output. */
function boundSpending({ state, host }: TurnContext): Spending {
  const input = measureContext(state, host).high
  const output = findMaxOutput(host)
  const rates = findCurrentRates(host, input)
  const { cacheRead, input: plain, writeShort, writeLong, output: written } = rates ?? NO_RATES
  const highest = Math.max(cacheRead ?? 0, plain ?? 0, writeShort ?? 0, writeLong ?? 0)
  return {
    turns: 1,
    tokens: input + output,
    dollars: (input * highest + output * (written ?? 0)) / 1_000_000,
  }
}

const NO_RATES = { cacheRead: null, input: null, writeShort: null, writeLong: null, output: null }

function findMaxOutput({ profile, readOfferedPrefix }: TurnHost): number {
  return profile.spelling.readSettings(readOfferedPrefix().parameters).maxOutput ?? UNKNOWN_OUTPUT
}
