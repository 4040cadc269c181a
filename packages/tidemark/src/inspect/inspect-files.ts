/** Inspects log files on disk one after the other, and sorts and sums the reports of many sessions. */
import { resolve } from 'node:path'
import { type Catalogue, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { compareNewestFirst, findLogs } from '../logs/find-logs.ts'
import type { FoundLog } from '../logs/read-lines.ts'
import { readLog } from '../logs/read-log.ts'
import { inspectLog } from './inspect-log.ts'
import { addUsage, computeHitRate, NO_USAGE, sumPromptTokens } from './logged-calls.ts'
import type { DailySpending, SessionReport, UsageTotals } from './report.ts'
import { addDollars, createDayFormatter, roundDollars } from './spending.ts'

/** A file or folder that contains no session or could not be read. */
export interface UnreadableLog {
  readonly file: string
  /** One sentence that names the file and the problem. */
  readonly why: string
}

export interface InspectionResult {
  /** The reports in the order in which the logs were given. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly UnreadableLog[]
}

export interface InspectProgress {
  readonly file: string
  /** Number of the current file, counted from 1. */
  readonly number: number
  /** Number of all files. */
  readonly of: number
  readonly readBytes: number
  readonly totalBytes: number
}

export interface InspectOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InspectProgress) => void
  /** Called with each report when it is made. The order is that of reading, the oldest log first. */
  readonly onReport?: (log: NamedLog, report: SessionReport | UnreadableLog) => void
  /** Prices and context windows of models. Default: the built-in catalogue. */
  readonly catalogue?: Catalogue
  /** The time zone in which days begin and end. Default: that of the machine. */
  readonly timeZone?: string
}

export interface NamedLog extends FoundLog {
  /** The path as the user gave it, or the full path for a log found in a folder. */
  readonly file: string
}

/** Finds the logs in the given files and folders, each log once, newest first. A path without a log is listed as unreadable. */
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
  return { logs: [...logs.values()].toSorted(compareNewestFirst), unreadable }
}

/**
 * Inspects one log after the other. A log that cannot be read is listed, and the others are still inspected. If several
 * files contain the same response, it is counted only for the oldest of them, and for a copy that `tidemark compact`
 * wrote only if no other file has it.
 */
export async function inspectFiles(
  logs: readonly NamedLog[],
  { signal, onProgress, onReport, catalogue = modelCatalogue, timeZone }: InspectOptions = {},
): Promise<InspectionResult> {
  const seen = { seenCalls: new Set<string>(), seenPrompts: new Set<string>() }
  const options = { catalogue, toDay: createDayFormatter(timeZone), ...seen }
  const reports = new Map<NamedLog, SessionReport | UnreadableLog>()
  const copies: NamedLog[] = []
  const read = (log: NamedLog) => {
    const { file, sizeBytes } = log
    const position = { file, number: reports.size + 1, of: logs.length, totalBytes: sizeBytes }
    return readLog(log, {
      keepsRawBlocks: false,
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined
        ? {}
        : { onProgress: ({ readBytes }) => onProgress({ ...position, readBytes }) }),
    })
  }
  const inspect = (log: NamedLog, contents: Awaited<ReturnType<typeof readLog>>): void => {
    const { file } = log
    const report = contents.ok ? { ...inspectLog(contents, options), file } : { file, why: contents.message }
    reports.set(log, report)
    onReport?.(log, report)
  }
  for (const log of logs.toSorted((one, other) => one.modifiedMs - other.modifiedMs)) {
    const contents = await read(log)
    // Copies are read again at the end, so that at no time the contents of two logs are in memory.
    if (contents.ok && contents.meta.copiedFrom !== null) copies.push(log)
    else inspect(log, contents)
  }
  for (const log of copies) inspect(log, await read(log))
  const inOrder = logs.flatMap((log) => reports.get(log) ?? [])
  return {
    sessions: inOrder.filter((report): report is SessionReport => !('why' in report)),
    unreadable: inOrder.filter((report) => 'why' in report),
  }
}

/** Totals over the sessions of one day, model or project. */
export interface SpendingTotal {
  readonly name: string
  readonly sessions: number
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly hitRate: number | null
  /** Total cost in dollars; null if the cost of any call is unknown. */
  readonly costUsd: number | null
  /** Sum of all known costs in dollars; a lower bound if `costUsd` is null. */
  readonly pricedUsd: number
  readonly cacheBreaks: number
  /** Cost of the cache breaks in dollars; null if the cost of any of them is unknown. */
  readonly lostToBreaks: number | null
  /** Dollars for re-caching after clearings. Clearings are made on purpose, so they do not count as cache breaks. */
  readonly spentOnClearings: number | null
  /** The known part of `lostToBreaks`: a lower bound if that is null. */
  readonly pricedLostToBreaks: number
  /** The known part of `spentOnClearings`: a lower bound if that is null. */
  readonly pricedSpentOnClearings: number
}

interface SpendingTotals extends Omit<SpendingTotal, 'name'> {
  /** The first day that is counted, as YYYY-MM-DD; null if all days are counted. */
  readonly since: string | null
  /** Totals by day, newest day first. */
  readonly byDay: readonly SpendingTotal[]
  /** Totals by model, most expensive first. */
  readonly byModel: readonly SpendingTotal[]
  /** Totals by project, most expensive first. */
  readonly byProject: readonly SpendingTotal[]
}

const UNKNOWN_NAME = 'unknown'

/** Sums the spending of all sessions. `since` (YYYY-MM-DD): leaves out spending on earlier or unknown days. */
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

/** The spending of one session on one day with one model, and the project of the session. */
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
  return {
    name,
    sessions: new Set(parts.map((part) => part.report)).size,
    apiCalls: parts.reduce((sum, part) => sum + part.apiCalls, 0),
    usage,
    hitRate: computeHitRate(usage),
    costUsd: sumField(parts, 'costUsd'),
    pricedUsd: sumField(parts, 'pricedUsd') ?? 0,
    cacheBreaks: parts.reduce((sum, part) => sum + part.cacheBreaks, 0),
    lostToBreaks: sumField(parts, 'lostToBreaks'),
    spentOnClearings: sumField(parts, 'spentOnClearings'),
    pricedLostToBreaks: sumField(parts, 'pricedLostToBreaks') ?? 0,
    pricedSpentOnClearings: sumField(parts, 'pricedSpentOnClearings') ?? 0,
  }
}

type DollarField =
  | 'costUsd'
  | 'pricedUsd'
  | 'lostToBreaks'
  | 'spentOnClearings'
  | 'pricedLostToBreaks'
  | 'pricedSpentOnClearings'

function sumField(parts: readonly SpendingPart[], field: DollarField): number | null {
  return roundDollars(parts.reduce<number | null>((sum, part) => addDollars(sum, part[field]), 0))
}

function compareCost(one: SpendingTotal, other: SpendingTotal): number {
  return other.pricedUsd - one.pricedUsd || other.apiCalls - one.apiCalls || (one.name < other.name ? -1 : 1)
}

const WORKING_TREE = /^(.+?)[/\\](?:\.worktrees|\.claude[/\\]worktrees)[/\\]/

/**
 * Returns the repository of a working directory. For a git worktree under `.worktrees` or `.claude/worktrees`, that is
 * the repository around it; otherwise the directory itself.
 */
export function findRepository(folder: string): string {
  return WORKING_TREE.exec(folder)?.[1] ?? folder
}

export type SortKey = 'cost' | 'tokens' | 'calls' | 'date' | 'hit'

/**
 * Sorts session reports by a key, highest or newest first. Reports without a value come last, and reports with equal
 * values keep their order.
 */
export function sortSessions(reports: readonly SessionReport[], key: SortKey): readonly SessionReport[] {
  const valueFor = SORT_VALUES[key]
  return reports.toSorted((one, other) => {
    const [first, second] = [valueFor(one), valueFor(other)]
    return first === second ? 0 : second - first
  })
}

const SORT_VALUES: Readonly<Record<SortKey, (report: SessionReport) => number>> = {
  cost: ({ costUsd, money }) => costUsd ?? money.pricedUsd,
  tokens: ({ usage }) => sumPromptTokens(usage) + usage.output,
  calls: ({ apiCalls }) => apiCalls,
  date: ({ startedAt }) => (startedAt === null ? -1 : Date.parse(startedAt)),
  hit: ({ hitRate }) => hitRate ?? -1,
}
