/** Reads a whole session: its records in order, its damage, its metadata, and the conversations of its subagents. */
import { readFile as readTextFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { TidemarkError } from '@tidemark/core/errors'
import { readUserInputs, type UserInput } from '@tidemark/core/facts/user-input'
import { describeForeignAuthor } from '@tidemark/core/facts/user-prompts'
import type { Damage } from '@tidemark/core/log/decode-log'
import { isObject, parseJson } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { redact } from '@tidemark/core/text/redact'
import type { LogFormat, LogMeta, RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { AGENT_FILE, findAgentFiles } from './find-logs.ts'
import { type OpenLogOptions, openLog } from './open-log.ts'
import { type FoundLog, type LogRefusal, type LogText, refuseLog } from './read-lines.ts'

export interface LogContents {
  readonly ok: true
  readonly path: string
  readonly format: LogFormat
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly lines: number
  /** The records of the main conversation, in the order of the log. */
  readonly records: readonly RecordWithLine[]
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
  readonly agents: readonly AgentLog[]
  /** Why the file could not be read to its end; absent or null if it was read completely. */
  readonly fault?: string | null
}

/** The conversation of a subagent. Its records form a separate session. */
export interface AgentLog {
  readonly agent: string
  /** The path of the subagent's log, or of the session's log if that contains the conversation. */
  readonly path: string
  readonly records: readonly RecordWithLine[]
  /** Damage in the subagent's own file; empty if the conversation is part of the session's log. */
  readonly damage: readonly Damage[]
  /** Why the subagent's own file could not be read to its end; absent or null if it was read completely. */
  readonly fault?: string | null
}

export interface ReadLogOptions extends OpenLogOptions {
  /** Reads the logs of subagents as well. Default: true. */
  readonly withAgents?: boolean
}

/**
 * Reads a log into memory, with the logs of its subagents unless `withAgents` is false. Returns a refusal if it cannot
 * be read or is not a log. A subagent's log that cannot be read is listed as damage.
 */
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
    if (read.ok) agents.push(...read.agents, ...(await toAgentLogs(read)))
    else damage.push({ kind: 'bad-shape', line: 0, why: read.message })
  }
  return { ...own, damage, agents }
}

/** Reads a session from lines in memory. Its subagents are those in the same lines. */
export function readLogText(text: LogText, options: OpenLogOptions = {}): Promise<LogContents | LogRefusal> {
  return readFile(text, options)
}

/**
 * Returns the conversation of a subagent's own log file, as a list of one; an empty list if the file has no records.
 */
async function toAgentLogs({
  path,
  meta,
  records,
  damage,
  fault = null,
}: LogContents): Promise<readonly AgentLog[]> {
  if (records.length === 0) return []
  const agent = meta.agent ?? (await readAgentName(path)) ?? path
  return [{ agent, path, records, damage, fault }]
}

/** Returns id and type of a subagent of `tidemark chat`, from the file beside its log; null if there is none. */
async function readAgentName(path: string): Promise<string | null> {
  const folder = path.replace(/\.jsonl$/, '')
  const text = await readTextFile(join(folder, AGENT_FILE), 'utf8').catch(() => '')
  const value = parseJson(text)
  return isObject(value) && typeof value.type === 'string' ? `${basename(folder)} (${value.type})` : null
}

async function readFile(
  source: string | LogText,
  options: OpenLogOptions,
): Promise<LogContents | LogRefusal> {
  const chains = createSideChains()
  const log = await openLog(source, options)
  if (!log.ok) return log
  const { path, format, sizeBytes, modifiedMs } = log
  const records: RecordWithLine[] = []
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

/**
 * Adds the conversations of subagents to the contents of a log. If the file contains nothing but the conversation of
 * one subagent, that becomes the main conversation.
 */
function withSideChains(file: LogContents, chains: readonly SideChain[]): LogContents {
  const [only] = chains
  const isOne = only !== undefined && chains.length === 1 && !file.records.some(isMessage)
  if (isOne) return { ...file, records: only.records, meta: { ...file.meta, agent: only.agent } }
  return { ...file, agents: chains.map((chain) => ({ ...chain, path: file.path, damage: [] })) }
}

function isMessage({ record }: RecordWithLine): boolean {
  return record.type === 'user' || record.type === 'assistant'
}

/** The conversation of a subagent that is logged in the file of its session. */
interface SideChain {
  /** The id of the subagent. If no record names the subagent, the uuid of its first record. */
  readonly agent: string
  readonly records: readonly RecordWithLine[]
}

interface SideChains {
  /** Adds the record to a subagent's conversation; returns false if it belongs to the main conversation. */
  take(read: RecordWithLine): boolean
  readonly list: readonly SideChain[]
}

function createSideChains(): SideChains {
  const chains = new Map<string, RecordWithLine[]>()
  /** Subagent ids keyed by record uuid. A record that names no subagent gets the subagent of its parent record. */
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

/**
 * Returns the id of the subagent that a record names, otherwise that of its parent record. A record with neither begins
 * a conversation, which gets the record's uuid as its id.
 */
function findAgent(record: SessionRecord, agents: ReadonlyMap<string, string>): string {
  const { agentId } = record as { readonly agentId?: unknown }
  if (typeof agentId === 'string' && agentId !== '') return agentId
  const parent = record.parentUuid
  return (typeof parent === 'string' ? agents.get(parent) : undefined) ?? record.uuid ?? 'unknown'
}

/**
 * Recognizes records that repeat an earlier record of the log. Both uuid and content must be equal, because different
 * records may have the same uuid.
 */
interface DuplicateFilter {
  /**
   * Returns true if an equal record was passed to this function before. A record without a uuid is never a duplicate.
   */
  isDuplicate(record: SessionRecord): boolean
}

/** Creates a filter for the records of one log. It keeps the records that it has seen. */
export function createDuplicateFilter(): DuplicateFilter {
  // Nearly every uuid has one record.
  const seen = new Map<string, SessionRecord | SessionRecord[]>()
  return {
    isDuplicate(record) {
      const { uuid } = record
      if (typeof uuid !== 'string') return false
      const before = seen.get(uuid)
      if (before === undefined) {
        seen.set(uuid, record)
        return false
      }
      const all = Array.isArray(before) ? before : [before]
      const content = comparableContent(record)
      if (all.some((one) => comparableContent(one) === content)) return true
      seen.set(uuid, [...all, record])
      return false
    },
  }
}

/**
 * Returns the content of a record as text, to compare two records. Usage and stop reason are left out, because copies
 * of one record may differ in them.
 */
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

/**
 * Counts the prompts that the user typed (not notices of programs, refusals, answers or commands), and returns at most
 * 300 characters of the first input, with secrets removed; null if there is none. `elsewhere`: uuids of the prompts
 * that earlier log files contain; they are not counted, and those found here are added to the set.
 */
export function summarizeUserPrompts(
  records: Iterable<SessionRecord>,
  elsewhere: Set<string> = new Set(),
): {
  readonly userMessages: number
  readonly firstPrompt: string | null
} {
  const copied = new Set(elsewhere)
  const lines = createDuplicateFilter()
  let userMessages = 0
  let firstPrompt: string | null = null
  for (const record of records) {
    if (record.uuid === undefined) continue
    const inputs = readUserInputs(record).filter(({ text }) => text !== '')
    if (inputs.length === 0 || lines.isDuplicate(record)) continue
    const isPrompt = inputs.some(({ kind, author }) => kind === 'prompt' && author.kind === 'user')
    if (isPrompt && !copied.has(record.uuid)) userMessages += 1
    if (isPrompt) elsewhere.add(record.uuid)
    // Secrets are removed before the text is cut, because no rule recognizes half a secret.
    firstPrompt ??= redact(formatFirstPrompt(inputs)).slice(0, FIRST_PROMPT_CHARACTERS) || null
  }
  return { userMessages, firstPrompt }
}

/**
 * Joins the texts of the first message. A text that another agent wrote is marked with its author; texts of tools are
 * left out.
 */
function formatFirstPrompt(inputs: readonly UserInput[]): string {
  return inputs
    .filter(({ author }) => author.kind !== 'tool')
    .map(({ text, author }) => (author.kind === 'user' ? text : `(${describeForeignAuthor(author)}) ${text}`))
    .join('\n')
}
