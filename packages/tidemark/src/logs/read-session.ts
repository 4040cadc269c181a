/** Reads a whole session: its records in order, its damage, its metadata, and the conversations of its subagents. */
import { resolve } from 'node:path'
import { type Damage, readTypedText, redact, type SessionRecord, TidemarkError } from '@tidemark/core'
import type { LogFormat, LogMeta, LogRecord } from '@tidemark/wire'
import { findAgentFiles } from './find-logs.ts'
import { type FoundLog, type LogRefusal, refuseLog } from './found-log.ts'
import { openLog } from './open-log.ts'
import type { LineReadOptions } from './read-lines.ts'

export interface LogContents {
  readonly ok: true
  readonly path: string
  readonly format: LogFormat
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly lines: number
  /** Records of the main conversation, in order. */
  readonly records: readonly LogRecord[]
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
  readonly agents: readonly AgentLog[]
  /** Why the file could not be read to its end; absent or null if it could. */
  readonly fault?: string | null
}

/** The conversation of a subagent. Its records form a session of their own. */
export interface AgentLog {
  readonly agent: string
  /** Path of its own log, or of the session's log if it is in there. */
  readonly path: string
  readonly records: readonly LogRecord[]
  /** Damage of its own file; that of the session's log is reported there. */
  readonly damage: readonly Damage[]
  /** Why its own file could not be read to its end. */
  readonly fault?: string | null
}

export interface ReadLogOptions extends LineReadOptions {
  /** Whether to read the logs of subagents. Default: true. */
  readonly withAgents?: boolean
}

export async function readLog(
  log: string | FoundLog,
  options: ReadLogOptions = {},
): Promise<LogContents | LogRefusal> {
  const path = typeof log === 'string' ? log : log.path
  const own = await readFile(path, options)
  if (!own.ok || options.withAgents === false) return own
  const damage = [...own.damage]
  const agents = [...own.agents]
  const agentPaths =
    typeof log === 'string'
      ? (await findAgentFiles(resolve(log))).map(({ path }) => path).sort()
      : log.agentPaths
  for (const agentPath of agentPaths) {
    const read = await readFile(agentPath, options)
    if (read.ok) agents.push(...read.agents, ...toAgentLogs(read))
    else damage.push({ kind: 'bad-shape', line: 0, why: read.message })
  }
  return { ...own, damage, agents }
}

/** The main conversation of a subagent's file, if it has one. */
function toAgentLogs({ path, meta, records, damage, fault = null }: LogContents): readonly AgentLog[] {
  return records.length === 0 ? [] : [{ agent: meta.agent ?? path, path, records, damage, fault }]
}

async function readFile(path: string, options: LineReadOptions): Promise<LogContents | LogRefusal> {
  const log = await openLog(path, options)
  if (!log.ok) return log
  const { format, sizeBytes, modifiedMs } = log
  const chains = createSideChains()
  const records: LogRecord[] = []
  try {
    const end = await log.read((read) => {
      for (const item of read) if (!chains.take(item)) records.push(item)
    })
    const file = { ok: true, path, format, sizeBytes, modifiedMs } as const
    return withSideChains({ ...file, ...end, records, agents: [] }, chains.list)
  } catch (error) {
    if (error instanceof TidemarkError && error.code === 'newer-format')
      return refuseLog(path, 'newer-format', `cannot be read: ${error.message.replace(/\.$/, '')}`)
    throw error
  }
}

/** If the file has only the conversation of one subagent, that is its main conversation. */
function withSideChains(file: LogContents, chains: readonly SideChain[]): LogContents {
  const [only] = chains
  const isOne = only !== undefined && chains.length === 1 && !file.records.some(isMessage)
  if (isOne) return { ...file, records: only.records, meta: { ...file.meta, agent: only.agent } }
  return { ...file, agents: chains.map((chain) => ({ ...chain, path: file.path, damage: [] })) }
}

function isMessage({ record }: LogRecord): boolean {
  return record.type === 'user' || record.type === 'assistant'
}

/** The conversation of a subagent inside a session's log. */
interface SideChain {
  /** The id of the subagent, or the uuid of the first record if the lines name none. */
  readonly agent: string
  readonly records: readonly LogRecord[]
}

interface SideChains {
  /** False if the record belongs to the main conversation. */
  take(read: LogRecord): boolean
  readonly list: readonly SideChain[]
}

function createSideChains(): SideChains {
  const chains = new Map<string, LogRecord[]>()
  /** By uuid, for records that name no subagent. */
  const agents = new Map<string, string>()
  return {
    take({ record, line }) {
      if (record.isSidechain !== true) return false
      const agent = findAgent(record, agents)
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

/** A record that names no subagent belongs to that of its parent; without a parent it begins a conversation. */
function findAgent(record: SessionRecord, agents: ReadonlyMap<string, string>): string {
  const { agentId } = record as { readonly agentId?: unknown }
  if (typeof agentId === 'string' && agentId !== '') return agentId
  const parent = record.parentUuid
  return (typeof parent === 'string' ? agents.get(parent) : undefined) ?? record.uuid ?? 'unknown'
}

/** Recognizes records that repeat an earlier one. The uuid alone is not enough: it may have been used twice. */
interface DuplicateFilter {
  /** True for a copy of a record that was checked before. A record without uuid is never a copy. */
  isDuplicate(record: SessionRecord): boolean
}

export function createDuplicateFilter(): DuplicateFilter {
  const seen = new Map<string, SessionRecord[]>()
  return {
    isDuplicate(record) {
      const { uuid } = record
      if (typeof uuid !== 'string') return false
      const before = seen.get(uuid)
      if (before === undefined) {
        seen.set(uuid, [record])
        return false
      }
      const content = comparableContent(record)
      if (before.some((one) => comparableContent(one) === content)) return true
      before.push(record)
      return false
    },
  }
}

/** Without usage: each line of a response has the usage as of when it was written. */
function comparableContent(record: SessionRecord): string {
  const { type, message, attachment, subtype, content } = record as SessionRecord & {
    readonly [field: string]: unknown
  }
  return JSON.stringify([type, withoutUsage(message), attachment, subtype, content])
}

function withoutUsage(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message
  const { usage, stop_reason, stop_sequence, ...rest } = message as { readonly [field: string]: unknown }
  return rest
}

const FIRST_PROMPT_CHARACTERS = 300

/** The prompts that the user typed in the main conversation: how many, and the beginning of the first, redacted. */
export function findUserPrompts(records: Iterable<SessionRecord>): {
  readonly userMessages: number
  readonly firstPrompt: string | null
} {
  const lines = createDuplicateFilter()
  let userMessages = 0
  let firstPrompt: string | null = null
  for (const record of records) {
    if (record.uuid === undefined) continue
    const text = readTypedText(record)
    if (text === null || lines.isDuplicate(record)) continue
    userMessages += 1
    firstPrompt ??= redact(text.slice(0, 10 * FIRST_PROMPT_CHARACTERS)).slice(0, FIRST_PROMPT_CHARACTERS)
  }
  return { userMessages, firstPrompt }
}
