/** The money of several sessions by day, month, project, model or program. Each grouping adds up to the same cost. */
import type { ListedSession } from 'tidemark/report'

export interface SpendingGroup {
  readonly name: string
  readonly usd: number
  /** The part of `usd` that was lost to cache breaks. */
  readonly lostUsd: number
  readonly calls: number
  /** True if the price of a call is unknown: `usd` is a lower bound. */
  readonly isPart: boolean
}

export const GROUPINGS = ['day', 'month', 'project', 'model', 'program'] as const
export type Grouping = (typeof GROUPINGS)[number]

type GroupedSession = Pick<ListedSession, 'spending' | 'format' | 'project'>

export interface GroupNamers {
  readonly nameProgram: (session: GroupedSession) => string
  readonly nameProject: (session: GroupedSession) => string
}

/** The name of the group for spending without a day or a project. */
export const UNKNOWN_GROUP = 'not known'

/** Adds up the dollars and calls of each group. Groups are listed most expensive first, days and months newest first. */
export function groupSpending(
  sessions: readonly GroupedSession[],
  grouping: Grouping,
  { nameProgram, nameProject }: GroupNamers,
): readonly SpendingGroup[] {
  const groups = new Map<string, Omit<SpendingGroup, 'name'>>()
  for (const session of sessions)
    for (const { day, model, pricedUsd, pricedLostToBreaks, apiCalls, costUsd } of session.spending) {
      const names = {
        day: day ?? UNKNOWN_GROUP,
        month: day?.slice(0, 7) ?? UNKNOWN_GROUP,
        project: nameProject(session) || UNKNOWN_GROUP,
        model,
        program: nameProgram(session),
      }
      const name = names[grouping]
      const group = groups.get(name) ?? { usd: 0, lostUsd: 0, calls: 0, isPart: false }
      groups.set(name, {
        usd: group.usd + pricedUsd,
        lostUsd: group.lostUsd + pricedLostToBreaks,
        calls: group.calls + apiCalls,
        isPart: group.isPart || costUsd === null,
      })
    }
  return [...groups]
    .map(([name, sums]) => ({ name, ...sums }))
    .toSorted((one, other) =>
      grouping === 'day' || grouping === 'month' ? compareNames(other, one) : other.usd - one.usd,
    )
}

function compareNames(one: SpendingGroup, other: SpendingGroup): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}
