/** Tidemark's own sessions on disk: which there are. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  blocksOf,
  isKnown,
  isText,
  isToolResult,
  REDACTED,
  redact,
  type SessionRecord,
  typedText,
} from '@tidemark/core'
import { createFileJournal } from '../storage/file-journal.ts'
import { ioFailed } from '../storage/file-system.ts'
import { isSessionId, LOG_ENDING, sessionPaths, sessionsFolder } from '../storage/paths.ts'
import { promptsIn, type ReadLog, readLog } from './read-session.ts'

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

// Where Tidemark's own sessions say something.

export interface OwnMatch {
  readonly id: string
  readonly line: number
  readonly who: 'person' | 'model' | 'tool' | 'engine'
  /** What stands around it, without secrets. */
  readonly text: string
}

/** Whatever the case of its letters; once for each text that says it. */
export function findInOwnSessions(
  home: string,
  wanted: string,
  signal?: AbortSignal,
): Promise<OwnListing<OwnMatch>> {
  return overOwnSessions(home, signal, (id, { records }) =>
    records.flatMap(({ record, line }) =>
      saidIn(record)
        .filter(({ text }) => placeOf(text, wanted) !== -1)
        .map(({ who, text }) => ({ id, line, who, text: around(redact(text), wanted) })),
    ),
  )
}

type Said = Pick<OwnMatch, 'who' | 'text'>

function saidIn(record: SessionRecord): readonly Said[] {
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  const speaker = record.type === 'assistant' ? 'model' : typedText(record) === null ? 'engine' : 'person'
  return blocksOf(record.message.content).flatMap((block): readonly Said[] => {
    if (isToolResult(block)) return [{ who: 'tool', text: resultText(block.content) }]
    return isText(block) ? [{ who: speaker, text: block.text }] : []
  })
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((block) => (isText(block) ? block.text : '')).join('\n') : ''
}

function placeOf(text: string, wanted: string): number {
  return text.toLowerCase().indexOf(wanted.toLowerCase())
}

const AROUND = 60

/** What was looked for may itself be a secret. */
function around(text: string, wanted: string): string {
  const at = placeOf(text, wanted)
  if (at === -1) return REDACTED
  const [from, to] = [Math.max(0, at - AROUND), Math.min(text.length, at + wanted.length + AROUND)]
  const words = text.slice(from, to).replace(/\s+/g, ' ').trim()
  return `${from > 0 ? '…' : ''}${words}${to < text.length ? '…' : ''}`
}

// Deletes one of Tidemark's own sessions for good.

export type Deletion =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** `held`: somebody is writing to it, and `why` says who. */
      readonly reason: 'missing' | 'held'
      readonly why: string
    }

/** Its log, and all that is kept beside it. Whoever holds the session keeps it. */
export async function deleteOwnSession(home: string, id: string): Promise<Deletion> {
  const paths = sessionPaths(home, id)
  const isThere = await stat(paths.log).then(
    () => true,
    () => false,
  )
  if (!isThere) return { ok: false, reason: 'missing', why: `There is no session "${id}".` }
  const journal = createFileJournal({ home })
  const held = await journal.acquire(id)
  if (!held.ok) return { ok: false, reason: 'held', why: held.message }
  try {
    // What belongs to it first: a session whose log is gone can no longer be named.
    await rm(paths.folder, { recursive: true, force: true })
    await rm(paths.log, { force: true })
  } catch (error) {
    throw ioFailed(`delete session "${id}"`, error, { session: id })
  } finally {
    await journal.close()
  }
  return { ok: true }
}
