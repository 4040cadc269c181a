/** Limits of an agent: those of the whole session, which its subagents share, and those of each run of a subagent. */
import type { RunOptions, Session, TidemarkOptions } from 'tidemark'

/** The most turns (calls of the model), tokens and dollars, each optional, as the library takes them. */
export type UsageLimits = NonNullable<RunOptions['limits']>

/** What was used of turns, tokens and dollars; null where it is unknown, as for dollars without a price. */
export type LimitUsage = Readonly<Record<keyof UsageLimits, number | null>>

export const NO_LIMIT_USAGE: LimitUsage = { turns: 0, tokens: 0, dollars: 0 }

/** Converts the totals of a session, without its subagents. */
export function toLimitUsage({ calls, tokens, spent }: ReturnType<Session['money']>): LimitUsage {
  const all = Object.values(tokens).reduce((sum, count) => sum + count, 0)
  return { turns: calls, tokens: all, dollars: spent.total }
}

/** Returns the limits of a main conversation or a subagent as an option of the library. What other agents used counts, too. */
export function createAgentLimits(
  { limits, inherited, sessionId }: LimitedAgent,
  { records, readMainSpending }: LimitedTeam,
): Pick<TidemarkOptions, 'limits'> {
  if (limits === undefined) return {}
  const others = (): LimitUsage => {
    const agents = records.list().filter(({ id }) => inherited === undefined || id !== sessionId)
    const main = inherited === undefined ? NO_LIMIT_USAGE : readMainSpending()
    return agents.map(({ used = NO_LIMIT_USAGE }) => used).reduce(addSpending, main)
  }
  return { limits: { ...limits, others } }
}

interface LimitedAgent {
  readonly limits?: UsageLimits
  readonly sessionId: string
  /** Given for a subagent. */
  readonly inherited?: object
}

interface LimitedTeam {
  readonly records: { list(): readonly { readonly id: string; readonly used?: LimitUsage }[] }
  readonly readMainSpending: () => LimitUsage
}

function addSpending(one: LimitUsage, other: LimitUsage): LimitUsage {
  const add = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b)
  return {
    turns: add(one.turns, other.turns),
    tokens: add(one.tokens, other.tokens),
    dollars: add(one.dollars, other.dollars),
  }
}

/** Returns null if the limits are valid; otherwise a description of what was expected. */
export function findLimitsProblem(value: unknown): string | null {
  const isRight = ([name, limit]: [string, unknown]): boolean =>
    ['turns', 'tokens', 'dollars'].includes(name) &&
    typeof limit === 'number' &&
    limit > 0 &&
    (name === 'dollars' || Number.isInteger(limit))
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.entries(value).every(isRight)
    ? null
    : 'limits with turns, tokens and dollars, each a number above 0, turns and tokens whole'
}

/** The default limits of one run of a subagent, unless the settings or a flag set others. */
export const DEFAULT_SUBAGENT_LIMITS: UsageLimits = { turns: 500 }
