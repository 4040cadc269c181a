/**
 * Limits of what a run or a session may use. They are compared with the usage in the log, so that they also hold in a
 * reopened session. Every billed call counts, including those for summaries and notes, and replies that broke off.
 */
import { PRICE_CLASSES } from '../tokens/usage.ts'
import { formatCount, formatDollars } from './prices.ts'
import { type CostTotals, MISSING_USAGE } from './session-cost.ts'

/** Limits of a run or a session. After the call that reaches one of them, no further call is made. */
export interface Limits {
  /** Calls to the model, as `--max-turns` counts them, and those for summaries and notes. */
  readonly turns?: number
  /** Tokens of all calls: input, cached or not, and output. */
  readonly tokens?: number
  /** Dollars by the prices of the catalogue. */
  readonly dollars?: number
}

type LimitName = keyof Limits

export const LIMIT_NAMES: readonly LimitName[] = ['turns', 'tokens', 'dollars']

/** What counts against each limit; null if it cannot be counted, such as the dollars of a model without a price. */
export type Spending = Readonly<Record<LimitName, number | null>>

export const NOTHING_SPENT: Spending = { turns: 0, tokens: 0, dollars: 0 }

/** Limits that apply together to the same calls, such as those of one run. */
export interface ScopedLimits {
  readonly scope: 'run' | 'session'
  readonly limits: Limits
  /** Totals of the session when the scope began; null if that is with its first call. */
  readonly before: CostTotals | null
  /** Returns what counts besides the calls of the session, such as those of its subagents. */
  readonly readOthers?: () => Spending
}

/** The limits of a session, and its running calls. All operations of the session share this object. */
export interface CallLimits {
  readonly scopes: readonly ScopedLimits[]
  readonly running: Set<RunningCall>
}

/** A call that was sent and has not been settled. */
export interface RunningCall {
  /** The most that the call can use. */
  readonly mostSpending: Spending
  readonly ended: Promise<void>
}

/** A limit that does not let the next call begin. */
export interface ReachedLimit {
  readonly scope: ScopedLimits['scope']
  readonly limit: LimitName
  readonly allowed: number
  /** How much of `limit` was used, in its unit: calls, tokens or dollars. Null if it cannot be counted. */
  readonly used: number | null
  readonly message: string
}

/** Returns what a session has used since `before`. Calls without usage or price make tokens or dollars unknown. */
function measureSpending(totals: CostTotals, before: CostTotals | null = null): Spending {
  const isPriced = totals.unpricedCalls === (before?.unpricedCalls ?? 0)
  const isCounted = isPriced || !totals.spent.missing.includes(MISSING_USAGE)
  return {
    turns: totals.calls - (before?.calls ?? 0),
    tokens: isCounted ? sumTokens(totals) - (before === null ? 0 : sumTokens(before)) : null,
    dollars: isPriced ? totals.spent.priced - (before?.spent.priced ?? 0) : null,
  }
}

function sumTokens({ tokens }: CostTotals): number {
  return PRICE_CLASSES.reduce((sum, kind) => sum + tokens[kind], 0)
}

/** Adds two spendings. What is unknown in one of them is unknown in the sum. */
export function addSpending(one: Spending, other: Spending): Spending {
  const add = (name: LimitName): number | null => {
    const [a, b] = [one[name], other[name]]
    return a === null || b === null ? null : a + b
  }
  return { turns: add('turns'), tokens: add('tokens'), dollars: add('dollars') }
}

/**
 * Returns the first limit that is reached, or that cannot be counted; null if the next call may begin. `running`: the most
 * that calls can use which are under way.
 */
export function findReachedLimit(
  scopes: readonly ScopedLimits[],
  totals: CostTotals,
  running: Spending = NOTHING_SPENT,
): ReachedLimit | null {
  for (const { scope, limits, before, readOthers } of scopes) {
    const own = addSpending(measureSpending(totals, before), running)
    const spending = readOthers === undefined ? own : addSpending(own, readOthers())
    for (const limit of LIMIT_NAMES) {
      const [allowed, used] = [limits[limit], spending[limit]]
      if (allowed === undefined || (used !== null && used < allowed)) continue
      return { scope, limit, allowed, used, message: describeReached({ scope, limit, allowed, used }) }
    }
  }
  return null
}

function describeReached({ scope, limit, allowed, used }: Omit<ReachedLimit, 'message'>): string {
  const whose = `The ${scope}'s limit of ${formatLimit(limit, allowed)}`
  if (used !== null)
    return `${whose} is reached: ${formatLimit(limit, used)} used. No further call is made; raise the limit to go on.`
  const why =
    limit === 'dollars'
      ? 'calls whose price or usage is not known'
      : 'calls whose usage the server did not report'
  return `${whose} cannot be kept: the log has ${why}. Limit turns instead.`
}

function formatLimit(limit: LimitName, value: number): string {
  if (limit === 'dollars') return formatDollars(value)
  return limit === 'tokens'
    ? `${formatCount(value)} tokens`
    : value === 1
      ? '1 turn'
      : `${formatCount(value)} turns`
}
