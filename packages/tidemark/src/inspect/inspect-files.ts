/** Logs on disk to reports, one after the other, and totals over many of them. */
import { resolve } from 'node:path'
import { type Catalogue, modelCatalogue } from '@tidemark/wire'
import { findLogs } from '../logs/find-logs.ts'
import type { FoundLog } from '../logs/found-log.ts'
import { readLog } from '../logs/read-session.ts'
import { addUsage, cacheHitRate, NO_USAGE } from './calls.ts'
import { inspectLog } from './inspect-log.ts'
import type { DailySpending, SessionReport, UsageTotals } from './report.ts'
import { addAmounts, createDayFormatter, roundDollars } from './spending.ts'

/** A file or folder entry that is no session or could not be read. */
export interface UnreadableLog {
  readonly file: string
  /** One sentence that names the file. */
  readonly why: string
}

export interface InspectionResult {
  /** In the order given. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly UnreadableLog[]
}

export interface InspectProgress {
  readonly file: string
  /** Position of the file, from 1, among `of` files. */
  readonly number: number
  readonly of: number
  readonly readBytes: number
  readonly totalBytes: number
}

export interface InspectOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InspectProgress) => void
  /** Prices and windows; the built-in catalogue unless given. */
  readonly catalogue?: Catalogue
  /** Time zone that decides where days begin; the machine's own unless given. */
  readonly timeZone?: string
}

export interface NamedLog extends FoundLog {
  /** The path as the user gave it; for a log found in a folder, its full path. */
  readonly file: string
}

/** Logs of files and folders in the order given, those of a folder newest first, each once. */
export async function findNamedLogs(
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<{ readonly logs: readonly NamedLog[]; readonly unreadable: readonly UnreadableLog[] }> {
  const logs = new Map<string, NamedLog>()
  const unreadable: UnreadableLog[] = []
  for (const path of paths) {
    const found = await findLogs([path], signal === undefined ? {} : { signal })
    for (const log of found.logs) {
      const file = log.path === resolve(path) ? path : log.path
      if (!logs.has(log.path)) logs.set(log.path, { ...log, file })
    }
    if (found.logs.length === 0 && found.problems.length === 0)
      unreadable.push({ file: path, why: `${path} has no session in it.` })
    for (const problem of found.problems) unreadable.push({ file: problem.path, why: problem.message })
  }
  return { logs: [...logs.values()], unreadable }
}

/** Inspects one log after the other. A response that several files contain is counted in the first of them. */
export async function inspectFiles(
  logs: readonly NamedLog[],
  { signal, onProgress, catalogue = modelCatalogue, timeZone }: InspectOptions = {},
): Promise<InspectionResult> {
  const options = { catalogue, toDay: createDayFormatter(timeZone), seenCalls: new Set<string>() }
  const sessions: SessionReport[] = []
  const unreadable: UnreadableLog[] = []
  for (const [index, log] of logs.entries()) {
    const { file, sizeBytes } = log
    const position = { file, number: index + 1, of: logs.length, totalBytes: sizeBytes }
    const read = await readLog(log, {
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined
        ? {}
        : { onProgress: ({ readBytes }) => onProgress({ ...position, readBytes }) }),
    })
    if (read.ok) sessions.push({ ...inspectLog(read, options), file })
    else unreadable.push({ file, why: read.message })
  }
  return { sessions, unreadable }
}

/** Sums over the sessions of one day, model or project. */
export interface SpendingTotal {
  readonly name: string
  readonly sessions: number
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly hitRate: number | null
  /** Dollars; null when a part of it is unknown. */
  readonly costUsd: number | null
  /** Sum of the known costs. */
  readonly pricedUsd: number
  readonly cacheBreaks: number
  /** Cost of the cache breaks in dollars; null when a part of it is unknown. */
  readonly lostToBreaks: number | null
  /** Cost of re-caching after clearings, which the host does itself: not cache breaks. */
  readonly spentOnClearings: number | null
}

export interface SpendingTotals extends Omit<SpendingTotal, 'name'> {
  /** The first day that is counted, as YYYY-MM-DD; null for all. */
  readonly since: string | null
  /** Newest first. */
  readonly byDay: readonly SpendingTotal[]
  /** Most expensive first, like the projects. */
  readonly byModel: readonly SpendingTotal[]
  readonly byProject: readonly SpendingTotal[]
}

const UNKNOWN_NAME = 'unknown'

/** `since`: a day as YYYY-MM-DD. Spending before it, or on an unknown day, is left out. */
export function sumSessions(reports: readonly SessionReport[], since: string | null = null): SpendingTotals {
  const parts = reports
    .flatMap(listSpendingParts)
    .filter(({ day }) => since === null || (day !== UNKNOWN_NAME && day >= since))
  const { name, ...all } = sumParts('all', parts)
  return {
    since,
    ...all,
    sessions: since === null ? reports.length : all.sessions,
    byDay: groupTotals(parts, (part) => part.day).sort((one, other) => (one.name < other.name ? 1 : -1)),
    byModel: groupTotals(parts, (part) => part.model).sort(compareCost),
    byProject: groupTotals(parts, (part) => part.project).sort(compareCost),
  }
}

/** A spending row of one session, with its project. */
interface SpendingPart extends DailySpending {
  readonly report: SessionReport
  readonly day: string
  readonly project: string
}

function listSpendingParts(report: SessionReport): readonly SpendingPart[] {
  return report.spending.map((row) => ({
    ...row,
    report,
    day: row.day ?? UNKNOWN_NAME,
    project: report.project === null ? UNKNOWN_NAME : findRepository(report.project),
  }))
}

function groupTotals(
  parts: readonly SpendingPart[],
  toName: (part: SpendingPart) => string,
): SpendingTotal[] {
  return [...Map.groupBy(parts, toName)].map(([name, group]) => sumParts(name, group))
}

function sumParts(name: string, parts: readonly SpendingPart[]): SpendingTotal {
  const usage = parts.reduce((sum, part) => addUsage(sum, part.usage), NO_USAGE)
  const pricedUsd = parts.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  return {
    name,
    sessions: new Set(parts.map((part) => part.report)).size,
    apiCalls: parts.reduce((sum, part) => sum + part.apiCalls, 0),
    usage,
    hitRate: cacheHitRate(usage),
    costUsd: sumField(parts, 'costUsd'),
    pricedUsd: roundDollars(pricedUsd) ?? 0,
    cacheBreaks: parts.reduce((sum, part) => sum + part.cacheBreaks, 0),
    lostToBreaks: sumField(parts, 'lostToBreaks'),
    spentOnClearings: sumField(parts, 'spentOnClearings'),
  }
}

function sumField(
  parts: readonly SpendingPart[],
  field: 'costUsd' | 'lostToBreaks' | 'spentOnClearings',
): number | null {
  return roundDollars(parts.reduce<number | null>((sum, part) => addAmounts(sum, part[field]), 0))
}

function compareCost(one: SpendingTotal, other: SpendingTotal): number {
  return other.pricedUsd - one.pricedUsd || other.apiCalls - one.apiCalls || (one.name < other.name ? -1 : 1)
}

const WORKING_TREE = /^(.+?)[/\\](?:\.worktrees|\.claude[/\\]worktrees)[/\\]/

/** The repository that a folder belongs to: for a git worktree in a hidden folder of a repository, that repository. */
export function findRepository(folder: string): string {
  return WORKING_TREE.exec(folder)?.[1] ?? folder
}
