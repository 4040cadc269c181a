/** Reads what a session has on disk: its log, its report, its notes and the diffs of cache breaks. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionRecord } from '@tidemark/core'
import { findNamedLogs, sessionPaths } from 'tidemark/internal'
import { inspectFiles, readLog, type SessionReport } from 'tidemark/logs'
import { sanitizeLines } from '../render/text.ts'

/** Returns the records of a session's log; none if it is new. */
export async function readSessionRecords(home: string, id: string): Promise<readonly SessionRecord[]> {
  const read = await readLog(sessionPaths(home, id).log, { withAgents: false }).catch(() => null)
  return read?.ok === true ? read.records.map(({ record }) => record) : []
}

/** Returns the report of `tidemark inspect` for a session; null if it has no log yet. */
export async function inspectSession(home: string, id: string): Promise<SessionReport | null> {
  const { logs } = await findNamedLogs([sessionPaths(home, id).log])
  const { sessions } = await inspectFiles(logs)
  return sessions[0] ?? null
}

/** Returns the notes that are kept of a session; null if there are none yet. */
export async function readNotes(home: string, id: string): Promise<string | null> {
  const path = join(sessionPaths(home, id).folder, 'session-memory', 'summary.md')
  return await readFile(path, 'utf8').then(sanitizeLines, () => null)
}

/** Returns the diff file of the cache break at a time; null if there is none. */
export async function readBreakDiff(home: string, id: string, at: number): Promise<string | null> {
  const { folder } = sessionPaths(home, id)
  const stamp = new Date(at).toISOString().replaceAll(':', '-')
  const names = await readdir(folder).catch(() => [])
  const name = names.find((one) => one.startsWith(`cache-break-${stamp}`))
  if (name === undefined) return null
  return await readFile(join(folder, name), 'utf8').then(sanitizeLines, () => null)
}
