/** Tidemark's own sessions on disk: which there are. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSessionId } from '../home/session-id.ts'
import { LOG_ENDING, sessionsFolder } from '../home/session-paths.ts'
import { type ReadLog, readLog } from '../reading/read-log.ts'
import { promptsIn } from './prompts.ts'

export interface OwnSession {
  readonly id: string
  readonly sizeBytes: number
  readonly modifiedAt: string
  readonly startedAt: string | null
  readonly records: number
  readonly firstPrompt: string | null
  readonly damaged: number
}

export interface OwnListing<T> {
  readonly found: readonly T[]
  readonly unreadable: readonly { readonly id: string; readonly why: string }[]
}

/** Newest first. */
export function listOwnSessions(home: string, signal?: AbortSignal): Promise<OwnListing<OwnSession>> {
  return overOwnSessions(home, signal, (id, { sizeBytes, modifiedMs, meta, records, damage }) => [
    {
      id,
      sizeBytes,
      modifiedAt: new Date(modifiedMs).toISOString(),
      startedAt: meta.startedAt,
      records: records.length,
      firstPrompt: promptsIn(records.map(({ record }) => record)).firstPrompt,
      damaged: damage.length,
    },
  ])
}

/** What `look` finds in each of them, newest first. */
export async function overOwnSessions<T>(
  home: string,
  signal: AbortSignal | undefined,
  look: (id: string, log: ReadLog) => readonly T[],
): Promise<OwnListing<T>> {
  const found: T[] = []
  const unreadable: { id: string; why: string }[] = []
  for (const { id, path } of await logsIn(sessionsFolder(home))) {
    const read = await readLog(path, { withAgents: false, ...(signal === undefined ? {} : { signal }) })
    if (read.ok) found.push(...look(id, read))
    else unreadable.push({ id, why: read.message })
  }
  return { found, unreadable }
}

interface OwnLog {
  readonly id: string
  readonly path: string
  readonly modifiedMs: number
}

async function logsIn(folder: string): Promise<readonly OwnLog[]> {
  const names = await readdir(folder).catch((): string[] => [])
  const ids = names
    .filter((name) => name.endsWith(LOG_ENDING))
    .map((name) => name.slice(0, -LOG_ENDING.length))
  const logs = await Promise.all(ids.filter(isSessionId).map((id) => ownLog(folder, id)))
  return logs.sort((one, other) => other.modifiedMs - one.modifiedMs || (one.id < other.id ? -1 : 1))
}

async function ownLog(folder: string, id: string): Promise<OwnLog> {
  const path = join(folder, `${id}${LOG_ENDING}`)
  const stats = await stat(path).catch(() => null)
  return { id, path, modifiedMs: stats?.mtimeMs ?? 0 }
}
