/** Reads what a session has on disk: its log, its report, its notes and the diffs of cache breaks. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeControlCharacters } from '@tidemark/terminal/render/text'
import { findLogs, inspectFiles, readLog, type SessionReport, sessionPaths } from 'tidemark/logs'
import type { SessionRecord } from 'tidemark/records'

/** Returns the records of a session's log; none if there is no log or it cannot be read. */
export async function readSessionRecords(home: string, id: string): Promise<readonly SessionRecord[]> {
  const read = await readLog(sessionPaths(home, id).log, { withAgents: false }).catch(() => null)
  return read?.ok === true ? read.records.map(({ record }) => record) : []
}

/** Returns the report of `tidemark inspect` for a session; null if it has no log yet. */
export async function inspectSession(home: string, id: string): Promise<SessionReport | null> {
  const { logs } = await findLogs([sessionPaths(home, id).log])
  const { sessions } = await inspectFiles(logs.map((log) => ({ ...log, file: log.path })))
  return sessions[0] ?? null
}

/** Returns the stored notes of a session; null if there are none yet. */
export async function readSessionNotes(home: string, id: string): Promise<string | null> {
  const path = join(sessionPaths(home, id).folder, 'session-memory', 'summary.md')
  return await readFile(path, 'utf8').then(removeControlCharacters, () => null)
}

/** Milliseconds by which the record of a cache break may differ from the time in the name of its diff file. */
const DIFF_TOLERANCE_MS = 5_000

/** Returns the text of the diff file of the cache break at this time, in milliseconds since 1970; null if there is none. */
export async function readCacheBreakDiff(home: string, id: string, at: number): Promise<string | null> {
  const { folder } = sessionPaths(home, id)
  const names = await readdir(folder).catch(() => [])
  const distances = names.flatMap((name) => {
    const [, day, hours, minutes, seconds] = /^cache-break-(.{10}T)(\d+)-(\d+)-(.+)\.diff$/.exec(name) ?? []
    const distance = Math.abs(at - Date.parse(`${day}${hours}:${minutes}:${seconds}`))
    return distance <= DIFF_TOLERANCE_MS ? [{ name, distance }] : []
  })
  const [nearest] = distances.toSorted((one, other) => one.distance - other.distance)
  if (nearest === undefined) return null
  return await readFile(join(folder, nearest.name), 'utf8').then(removeControlCharacters, () => null)
}
