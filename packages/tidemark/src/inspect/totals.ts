/** Many sessions added up: in all, by day, by model, by project. */
import type { SessionReport, UsageTotals } from './report.ts'
import { repositoryOf } from './repository.ts'
import { dollars, plus } from './spending.ts'
import { addUsage, hitRateOf, NO_USAGE } from './usage-totals.ts'

export interface Total {
  readonly name: string
  readonly sessions: number
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly hitRate: number | null
  /** Dollars; null where a part of it is not known. */
  readonly costUsd: number | null
  /** What is known of it. */
  readonly pricedUsd: number
  /** How often the prompt cache broke, and what that cost; null where a part of it is not known. */
  readonly cacheBreaks: number
  readonly lostToBreaks: number | null
  /** What clearings made necessary to process again: the host's own acts, no breaks. */
  readonly spentOnClearings: number | null
}

export interface Totals extends Omit<Total, 'name'> {
  /** The day from which on everything is counted, as YYYY-MM-DD; null where all of it is. */
  readonly since: string | null
  /** Newest first. */
  readonly byDay: readonly Total[]
  /** Dearest first, and so the projects. */
  readonly byModel: readonly Total[]
  readonly byProject: readonly Total[]
}

const UNKNOWN = 'unknown'

/** `since`: a day as YYYY-MM-DD; what was spent before it, or on a day that nobody knows, is left out. */
export function totalsOf(reports: readonly SessionReport[], since: string | null = null): Totals {
  const parts = reports.flatMap(partsOf).filter(({ day }) => since === null || isFrom(since, day))
  const { name, ...all } = added('all', parts)
  return {
    since,
    ...all,
    sessions: since === null ? reports.length : all.sessions,
    byDay: grouped(parts, (part) => part.day).sort((one, other) => (one.name < other.name ? 1 : -1)),
    byModel: grouped(parts, (part) => part.model).sort(dearer),
    byProject: grouped(parts, (part) => part.project).sort(dearer),
  }
}

function isFrom(since: string, day: string): boolean {
  return day !== UNKNOWN && day >= since
}

interface Part {
  readonly report: SessionReport
  readonly day: string
  readonly model: string
  readonly project: string
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly costUsd: number | null
  readonly cacheBreaks: number
  readonly lostToBreaks: number | null
  readonly spentOnClearings: number | null
}

function partsOf(report: SessionReport): readonly Part[] {
  return report.spending.map((row) => ({
    ...row,
    report,
    day: row.day ?? UNKNOWN,
    project: report.project === null ? UNKNOWN : repositoryOf(report.project),
  }))
}

function grouped(parts: readonly Part[], nameOf: (part: Part) => string): Total[] {
  return [...Map.groupBy(parts, nameOf)].map(([name, group]) => added(name, group))
}

function added(name: string, parts: readonly Part[]): Total {
  const usage = parts.reduce((sum, part) => addUsage(sum, part.usage), NO_USAGE)
  const pricedUsd = parts.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  return {
    name,
    sessions: new Set(parts.map((part) => part.report)).size,
    apiCalls: parts.reduce((sum, part) => sum + part.apiCalls, 0),
    usage,
    hitRate: hitRateOf(usage),
    costUsd: summed(parts, ({ costUsd }) => costUsd),
    pricedUsd: dollars(pricedUsd) ?? 0,
    cacheBreaks: parts.reduce((sum, part) => sum + part.cacheBreaks, 0),
    lostToBreaks: summed(parts, ({ lostToBreaks }) => lostToBreaks),
    spentOnClearings: summed(parts, ({ spentOnClearings }) => spentOnClearings),
  }
}

function summed(parts: readonly Part[], amountOf: (part: Part) => number | null): number | null {
  return dollars(parts.reduce<number | null>((sum, part) => plus(sum, amountOf(part)), 0))
}

function dearer(one: Total, other: Total): number {
  return other.pricedUsd - one.pricedUsd || other.apiCalls - one.apiCalls || (one.name < other.name ? -1 : 1)
}
