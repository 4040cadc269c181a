/** Sessions on disk, read one after the other, each to its report. */
import { resolve } from 'node:path'
import { type Catalogue, modelCatalogue } from '@tidemark/wire'
import { findLogs } from '../logs/find-logs.ts'
import type { FoundLog } from '../logs/found-log.ts'
import { readLog } from '../logs/read-session.ts'
import { addUsage, hitRateOf, NO_USAGE } from './calls.ts'
import { inspectLog } from './inspect-log.ts'
import type { SessionReport, UsageTotals } from './report.ts'
import { daysIn, dollars, plus } from './spending.ts'

/** A file, or something in a folder, that is no session or could not be read. */
export interface Unreadable {
  readonly file: string
  /** One line that names the file. */
  readonly why: string
}

export interface Inspection {
  /** In the order given. */
  readonly sessions: readonly SessionReport[]
  readonly unreadable: readonly Unreadable[]
}

export interface InspectProgress {
  readonly file: string
  /** Which of how many it is, from 1. */
  readonly number: number
  readonly of: number
  readonly readBytes: number
  readonly totalBytes: number
}

export interface InspectOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InspectProgress) => void
  /** Prices and windows; those that Tidemark was shipped with unless given. */
  readonly catalogue?: Catalogue
  /** Where days begin; the machine's own zone unless given. */
  readonly timeZone?: string
}

export interface NamedLog extends FoundLog {
  /** As the person named it, or as it was found. */
  readonly file: string
}

/** Files and folders in the order given, what is in a folder newest first, nothing twice. */
export async function findNamedLogs(
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<{ readonly logs: readonly NamedLog[]; readonly unreadable: readonly Unreadable[] }> {
  const logs = new Map<string, NamedLog>()
  const unreadable: Unreadable[] = []
  for (const path of paths) {
    const found = await findLogs([path], signal === undefined ? {} : { signal })
    for (const log of found.logs) if (!logs.has(log.path)) logs.set(log.path, named(log, path))
    if (found.logs.length === 0 && found.problems.length === 0)
      unreadable.push({ file: path, why: `${path} has no session in it.` })
    for (const problem of found.problems) unreadable.push({ file: problem.path, why: problem.message })
  }
  return { logs: [...logs.values()], unreadable }
}

function named(log: FoundLog, path: string): NamedLog {
  return { ...log, file: log.path === resolve(path) ? path : log.path }
}

/** A response that several files have is counted in the first of them. */
export async function inspectFiles(
  logs: readonly NamedLog[],
  options: InspectOptions = {},
): Promise<Inspection> {
  const rules = {
    catalogue: options.catalogue ?? modelCatalogue,
    dayOf: daysIn(options.timeZone),
    seenCalls: new Set<string>(),
  }
  const sessions: SessionReport[] = []
  const unreadable: Unreadable[] = []
  for (const [index, log] of logs.entries()) {
    const read = await readLog(log, feedOptions(log, { index, of: logs.length }, options))
    if (read.ok) sessions.push({ ...inspectLog(read, rules), file: log.file })
    else unreadable.push({ file: log.file, why: read.message })
  }
  return { sessions, unreadable }
}

interface Turn {
  readonly index: number
  readonly of: number
}

function feedOptions({ file, sizeBytes }: NamedLog, { index, of }: Turn, options: InspectOptions) {
  const { signal, onProgress } = options
  const progress = { file, number: index + 1, of, totalBytes: sizeBytes }
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(onProgress === undefined
      ? {}
      : {
          onProgress: ({ readBytes }: { readonly readBytes: number }) =>
            onProgress({ ...progress, readBytes }),
        }),
  }
}

// Many sessions added up: in all, by day, by model, by project.

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

const WORKING_TREE = /^(.+?)[/\\](?:\.worktrees|\.claude[/\\]worktrees)[/\\]/

/** The folder of the repository whose work is done in this one: a working tree that lies hidden in it is part of it. */
export function repositoryOf(folder: string): string {
  return WORKING_TREE.exec(folder)?.[1] ?? folder
}
