/** The option `limits`: its checks, and the limits in force for an open session and the run in it. */
import {
  type CallLimits,
  LIMIT_NAMES,
  type Limits,
  type ScopedLimits,
  type Spending,
} from '@tidemark/core/cost/limits'
import { sumSessionCost } from '@tidemark/core/cost/session-cost'
import { withSessionCosts } from '@tidemark/core/engine/call-model'
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isObject, omitUndefined } from '@tidemark/core/log/json'
import type { ModelChoice } from '../models/model-choice.ts'
import { badOptionError } from '../platform/argument-errors.ts'

/** Limits of a session, perhaps shared with other sessions. */
interface SessionLimits extends Limits {
  /** Returns spending that counts in addition to the session's own calls, such as that of its subagents. Default: none. */
  readonly others?: () => Spending
}

/** One set of limits, or several that hold at the same time. */
export type SessionLimitsOption = SessionLimits | readonly SessionLimits[]

const EXPECTED =
  '{ turns, tokens, dollars }, each a number above 0, turns and tokens whole, as in { dollars: 5 }; or a list of them'

/** Checks the option `limits`. Returns null if it is valid; otherwise a description of what was expected. */
export function findLimitsProblem(value: unknown): string | null {
  const sets = Array.isArray(value) ? value : [value]
  return sets.every((set) => isLimits(set, true)) ? null : EXPECTED
}

/** Throws `bad-option` unless the value is one set of limits. */
export function checkRunLimits(value: unknown): void {
  if (!isLimits(value, false))
    throw badOptionError('limits', `run: limits: expected ${EXPECTED.replace(/; .*/, '')}.`)
}

function isLimits(value: unknown, hasOthers: boolean): boolean {
  if (!isObject(value)) return false
  return Object.entries(value).every(([name, limit]) => {
    if (limit === undefined) return true
    if (name === 'others') return hasOthers && typeof limit === 'function'
    if (!LIMIT_NAMES.some((known) => known === name)) return false
    const isNumber = typeof limit === 'number' && Number.isFinite(limit) && limit > 0
    return isNumber && (name === 'dollars' || Number.isInteger(limit))
  })
}

/** Throws `bad-option` if dollars are limited but the model has no price, because the limit would never be reached. */
export function checkLimitsPriced(
  limits: SessionLimitsOption | undefined,
  models: readonly (ModelChoice | null)[],
  now: number,
): void {
  const unpriced = listSets(limits).some(({ dollars }) => dollars !== undefined)
    ? models.find((model) => model !== null && !isPriced(model, now))
    : undefined
  if (unpriced == null) return
  throw badOptionError(
    'limits',
    `limits: dollars cannot be counted, because the price of ${unpriced.id} is not known. Give the model its prices, or limit turns or tokens.`,
  )
}

function isPriced({ id, priceList }: ModelChoice, now: number): boolean {
  const prices = priceList(id, new Date(now).toISOString())
  return prices !== null && prices.input !== null && prices.output !== null
}

function listSets(limits: SessionLimitsOption | undefined): readonly SessionLimits[] {
  if (limits === undefined) return []
  return Array.isArray(limits) ? limits : [limits as SessionLimits]
}

/** The limits of an open session. */
export interface LimitsInForce {
  readonly own: readonly ScopedLimits[]
  /** True if the session or its current run has limits. */
  isInForce: boolean
  /** The limits of the current run; null if it has none. */
  run: ScopedLimits | null
  readonly running: CallLimits['running']
}

export function createLimitsInForce(given: SessionLimitsOption | undefined): LimitsInForce {
  const own = listSets(given).map(
    ({ others, ...limits }): ScopedLimits => ({
      scope: 'session',
      limits,
      before: null,
      ...omitUndefined({ readOthers: others }),
    }),
  )
  return { own, isInForce: own.length > 0, run: null, running: new Set() }
}

/** Returns the limits for the engine. `scopes` has those in force when it is read, also those of a run in progress. */
export function toCallLimits(limits: LimitsInForce): CallLimits {
  return {
    get scopes() {
      return limits.run === null ? limits.own : [...limits.own, limits.run]
    },
    running: limits.running,
  }
}

/** The part of an open session that limits need. */
interface LimitedSession {
  state: SessionState
  readonly model: { readonly choice: Pick<ModelChoice, 'priceList'> }
  readonly limits: LimitsInForce
}

/**
 * Puts the limits of a run in force. What the session has spent before does not count. The caller ends them by setting
 * `limits.run` to null.
 */
export function beginRunLimits(session: LimitedSession, limits: Limits): void {
  session.state = withSessionCosts(session.state, session.model.choice.priceList)
  const { costs } = session.state
  session.limits.run = { scope: 'run', limits, before: costs === null ? null : sumSessionCost(costs) }
}
