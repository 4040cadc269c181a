/** A whole session, read: its records in order, what was wrong, whose it is, and what its agents said. */
import { resolve } from 'node:path'
import { type Damage, TidemarkError } from '@tidemark/core'
import type { LogFormat, LogMeta, ReadRecord } from '@tidemark/wire'
import { agentFilesOf } from './agent-files.ts'
import type { FoundLog } from './found-log.ts'
import type { FeedOptions } from './line-feed.ts'
import { openLog } from './open-log.ts'
import { type LogRefusal, refuse } from './refusal.ts'
import { createSideChains, type SideChain } from './side-chains.ts'

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
