/** Sessions on disk, read one after the other, each to its report. */
import { resolve } from 'node:path'
import { type Catalogue, modelCatalogue } from '@tidemark/wire'
import { findLogs } from '../reading/find-logs.ts'
import type { FoundLog } from '../reading/found-log.ts'
import { readLog } from '../reading/read-log.ts'
import { inspectLog } from './inspect-log.ts'
import type { SessionReport } from './report.ts'
import { daysIn } from './spending-table.ts'

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
