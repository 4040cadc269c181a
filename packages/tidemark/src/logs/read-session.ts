/** A whole session, read: its records in order, what was wrong, whose it is, and what its agents said. */
import { resolve } from 'node:path'
import { type Damage, redact, type SessionRecord, TidemarkError, typedText } from '@tidemark/core'
import type { LogFormat, LogMeta, ReadRecord } from '@tidemark/wire'
import { agentFilesOf } from './find-logs.ts'
import { type FoundLog, type LogRefusal, refuse } from './found-log.ts'
import { openLog } from './open-log.ts'
import type { FeedOptions } from './read-lines.ts'

export interface ReadLog {
  readonly ok: true
  readonly path: string
  readonly format: LogFormat
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly lines: number
  /** Of the main conversation, in order. */
  readonly records: readonly ReadRecord[]
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
  readonly agents: readonly AgentLog[]
  /** Why the file could not be read to its end; absent or null where it could. */
  readonly fault?: string | null
}

/** A conversation that an agent had on the session's behalf. Its records fold into a session of their own. */
export interface AgentLog {
  readonly agent: string
  /** Where it was found: a log of its own, or that of the session. */
  readonly path: string
  readonly records: readonly ReadRecord[]
  /** Of its own file; what is wrong with the session's is told there. */
  readonly damage: readonly Damage[]
  /** Why its own file could not be read to its end. */
  readonly fault?: string | null
}

export interface ReadOptions extends FeedOptions {
  /** Reads the logs of the session's agents too; true unless given. */
  readonly withAgents?: boolean
}

export async function readLog(
  log: string | FoundLog,
  options: ReadOptions = {},
): Promise<ReadLog | LogRefusal> {
  const path = typeof log === 'string' ? log : log.path
  const own = await readFile(path, options)
  if (!own.ok || options.withAgents === false) return own
  const damage = [...own.damage]
  const agents = [...own.agents]
  for (const agentPath of await agentPathsOf(log)) {
    const read = await readFile(agentPath, options)
    if (read.ok) agents.push(...read.agents, ...asAgent(read))
    else damage.push({ kind: 'bad-shape', line: 0, why: read.message })
  }
  return { ...own, damage, agents }
}

async function agentPathsOf(log: string | FoundLog): Promise<readonly string[]> {
  if (typeof log !== 'string') return log.agentPaths
  return (await agentFilesOf(resolve(log))).map(({ path }) => path).sort()
}

/** What an agent's file says in the main conversation's place, if anything. */
function asAgent({ path, meta, records, damage, fault = null }: ReadLog): readonly AgentLog[] {
  return records.length === 0 ? [] : [{ agent: meta.agent ?? path, path, records, damage, fault }]
}

async function readFile(path: string, options: FeedOptions): Promise<ReadLog | LogRefusal> {
  const log = await openLog(path, options)
  if (!log.ok) return log
  const { format, sizeBytes, modifiedMs } = log
  const chains = createSideChains()
  const records: ReadRecord[] = []
  try {
    const end = await log.read((read) => {
      for (const item of read) if (!chains.take(item)) records.push(item)
    })
    const file = { ok: true, path, format, sizeBytes, modifiedMs } as const
    return sorted({ ...file, ...end, records, agents: [] }, chains.list)
  } catch (error) {
    if (error instanceof TidemarkError && error.code === 'newer-format')
      return refuse(path, 'newer-format', `cannot be read: ${error.message.replace(/\.$/, '')}`)
    throw error
  }
}

/** A file of one agent alone is that agent's conversation. */
function sorted(file: ReadLog, chains: readonly SideChain[]): ReadLog {
  const [only] = chains
  const isOne = only !== undefined && chains.length === 1 && !file.records.some(isOfConversation)
  if (isOne) return { ...file, records: only.records, meta: { ...file.meta, agent: only.agent } }
  return { ...file, agents: chains.map((chain) => ({ ...chain, path: file.path, damage: [] })) }
}

function isOfConversation({ record }: ReadRecord): boolean {
  return record.type === 'user' || record.type === 'assistant'
}

// Lines of other conversations in a session's log: each agent's gathered by itself, as a conversation of its own.

export interface SideChain {
  /** The agent, where the lines name one; else the uuid of the first. */
  readonly agent: string
  readonly records: readonly ReadRecord[]
}

export interface SideChains {
  /** False where the record is one of the main conversation. */
  take(read: ReadRecord): boolean
  readonly list: readonly SideChain[]
}

export function createSideChains(): SideChains {
  const chains = new Map<string, ReadRecord[]>()
  /** uuid → agent, for lines that name none. */
  const agents = new Map<string, string>()
  return {
    take({ record, line }) {
      if (record.isSidechain !== true) return false
      const agent = agentOf(record, agents)
      if (typeof record.uuid === 'string') agents.set(record.uuid, agent)
      const own = { record: { ...record, isSidechain: false }, line }
      const chain = chains.get(agent)
      if (chain === undefined) chains.set(agent, [own])
      else chain.push(own)
      return true
    },
    get list() {
      return [...chains].map(([agent, records]) => ({ agent, records }))
    },
  }
}

/** A line without agent is of the conversation of its parent, and without that begins one. */
function agentOf(record: SessionRecord, agents: ReadonlyMap<string, string>): string {
  const { agentId } = record as { readonly agentId?: unknown }
  if (typeof agentId === 'string' && agentId !== '') return agentId
  const parent = record.parentUuid
  return (typeof parent === 'string' ? agents.get(parent) : undefined) ?? record.uuid ?? 'unknown'
}

// Lines that say again what stood before under the same uuid. A uuid alone proves nothing: it may be used twice.

export interface RepeatedLines {
  /** True for a copy of a line that was asked about before. What has no uuid is never one. */
  isRepeated(record: SessionRecord): boolean
}

export function createRepeatedLines(): RepeatedLines {
  const seen = new Map<string, SessionRecord[]>()
  return {
    isRepeated(record) {
      const { uuid } = record
      if (typeof uuid !== 'string') return false
      const before = seen.get(uuid)
      if (before === undefined) {
        seen.set(uuid, [record])
        return false
      }
      const said = saidBy(record)
      if (before.some((one) => saidBy(one) === said)) return true
      before.push(record)
      return false
    },
  }
}

/** Usage is left out: the lines of one response bear it as it stood when each was written. */
function saidBy(record: SessionRecord): string {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return JSON.stringify([type, withoutUsage(message), attachment, subtype, content])
}

function withoutUsage(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message
  const { usage, stop_reason, stop_sequence, ...said } = message as { readonly [field: string]: unknown }
  return said
}

// What the person typed in the main conversation.

const FIRST_WORDS = 300

export function promptsIn(records: Iterable<SessionRecord>): {
  readonly userMessages: number
  readonly firstPrompt: string | null
} {
  const lines = createRepeatedLines()
  let userMessages = 0
  let firstPrompt: string | null = null
  for (const record of records) {
    if (record.uuid === undefined) continue
    const text = typedText(record)
    if (text === null || lines.isRepeated(record)) continue
    userMessages += 1
    firstPrompt ??= redact(text.slice(0, 10 * FIRST_WORDS)).slice(0, FIRST_WORDS)
  }
  return { userMessages, firstPrompt }
}
