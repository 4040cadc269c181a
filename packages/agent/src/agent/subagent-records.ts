/**
 * Records of the subagents of a session: one file for each, in `subagents` of the session's folder. If a file says that a subagent is
 * working but no process runs it, the subagent was interrupted.
 */

import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sessionPaths } from 'tidemark/logs'
import { writeFileAtomic } from 'tidemark/tools'
import { isObject } from '../json-value.ts'
import type { LimitUsage } from './agent-limits.ts'

/** What is known about one subagent, also after it has ended. */
export interface SubagentRecord {
  readonly id: string
  /** The name of its definition. */
  readonly type: string
  /** The task in a few words. */
  readonly description: string
  /** The session that started it: the main one, or another subagent. */
  readonly startedBy: string
  /** Depth of the subagent; 1 if the main conversation started it. */
  readonly depth: number
  readonly isBackground: boolean
  /** True if the subagent only reads, even after it is resumed. */
  readonly isPlanning: boolean
  readonly status: SubagentStatus
  /** The answer, or the last text of a subagent that did not finish; null if it has written none. */
  readonly text: string | null
  /** Why the subagent did not finish; null if it finished or is working. */
  readonly problem: { readonly reason: string; readonly message: string } | null
  readonly filesRead: readonly string[]
  readonly filesChanged: readonly string[]
  /** Calls to the model, over all runs of the agent. */
  readonly calls: number
  readonly compactions: number
  /** Null if a price is not known. */
  readonly costUsd: number | null
  /** What the subagent has used of its limits, including summaries; missing in records of older versions. */
  readonly used?: LimitUsage
  /** True if the starting agent has received the result. */
  readonly isDelivered: boolean
  /** When the subagent was first started, in milliseconds since 1970. */
  readonly startedAt: number
}

/** An event of a subagent, for the screen and the output. */
export interface SubagentEvent {
  readonly type: 'subagent-started' | 'subagent-progress' | 'subagent-ended'
  readonly agent: SubagentRecord
  /** What the subagent is doing now, as one line. */
  readonly text?: string
}

/** `interrupted`: the program ended while the agent was working. */
type SubagentStatus = 'running' | 'finished' | 'failed' | 'stopped' | 'interrupted'

export interface SubagentStore {
  /** The folder that is the Tidemark home of the subagents' sessions. */
  readonly home: string
  /** All subagents, the oldest first. */
  list(): readonly SubagentRecord[]
  find(id: string): SubagentRecord | null
  createId(): string
  /** Changes a record: at once in this process, and on disk when the promise resolves. */
  save(record: SubagentRecord): Promise<void>
}

const FILE = 'agent.json'

/**
 * Reads the records in a folder; there may be none yet. Those that no process works on become `interrupted`. Nothing is written.
 */
export async function openSubagentStore(home: string): Promise<SubagentStore> {
  const folder = join(home, 'sessions')
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const stored = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map(({ name }) => readRecord(join(folder, name, FILE))),
  )
  const found = stored.flatMap((each) => each ?? []).sort((one, other) => one.startedAt - other.startedAt)
  const records = new Map(found.map((record) => [record.id, toInterrupted(record)]))
  const writers = new Map<string, () => Promise<void>>()
  const createWriter = (id: string): (() => Promise<void>) =>
    writeNewest(async () => {
      const { folder: own } = sessionPaths(home, id)
      await writeFileAtomic(join(own, FILE), `${JSON.stringify(records.get(id))}\n`)
    })
  return {
    home,
    list: () => [...records.values()],
    find: (id) => records.get(id) ?? null,
    createId() {
      for (;;) {
        const id = `agent-${randomBytes(3).toString('hex')}`
        if (!records.has(id)) return id
      }
    },
    async save(record) {
      records.set(record.id, record)
      const write = writers.get(record.id) ?? createWriter(record.id)
      writers.set(record.id, write)
      await write()
    },
  }
}

/**
 * Returns a function that writes the present state or a newer one. Writes run one after the other, so that an older state never replaces a
 * newer one. If several states wait for a slow disk, only the newest is written.
 */
function writeNewest(write: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve()
  let waiting: Promise<void> | null = null
  return () => {
    if (waiting !== null) return waiting
    waiting = running.then(() => {
      waiting = null
      return write()
    })
    running = waiting.catch(() => undefined)
    return waiting
  }
}

function toInterrupted(record: SubagentRecord): SubagentRecord {
  if (record.status !== 'running') return record
  const message = 'The program ended while the agent was working.'
  return {
    ...record,
    status: 'interrupted',
    problem: { reason: 'interrupted', message },
    isDelivered: false,
  }
}

/** Reads a file. Missing fields become empty; null if the file is not a record of a subagent. */
async function readRecord(path: string): Promise<SubagentRecord | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!isObject(value) || typeof value.id !== 'string' || typeof value.type !== 'string') return null
    return { ...EMPTY_SUBAGENT_RECORD, ...value } as unknown as SubagentRecord
  } catch {
    return null
  }
}

/** The values of fields that a new record, or one of an older version, does not set. */
export const EMPTY_SUBAGENT_RECORD: Omit<SubagentRecord, 'id' | 'type'> = {
  description: '',
  startedBy: '',
  depth: 1,
  isBackground: false,
  isPlanning: false,
  status: 'interrupted',
  text: null,
  problem: null,
  filesRead: [],
  filesChanged: [],
  calls: 0,
  compactions: 0,
  costUsd: 0,
  isDelivered: false,
  startedAt: 0,
}
