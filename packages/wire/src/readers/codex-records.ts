/** Converts the items of a Codex rollout into linked records, each with a uuid, a parent and a response id. */
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { AssistantRecord, SessionRecord, UserRecord } from '@tidemark/core/log/record'
import {
  type CodexInputItem,
  type CodexModelItem,
  type CodexOtherLine,
  type CodexSurroundings,
  type CodexToolResult,
  createItemKey,
  isUserShellCommand,
  type PendingCodexLine,
} from './codex-items.ts'
import type { JsonFields } from './codex-line.ts'
import type { GroupedResponse } from './codex-responses.ts'
import type { MetaCollector, RecordWithLine } from './log-reader.ts'
import { fromStoredRecord } from './stored-records.ts'

/** A user prompt in a Codex rollout. */
interface LoggedPrompt {
  readonly uuid: string
  /**
   * Uuid of the record before the prompt. If the prompt is rolled back, the conversation continues after that record.
   */
  readonly parentUuid: string | null
  readonly textLength: number
}

/** What the reader of a Codex log knows so far. It changes with every record. */
export interface CodexRecordState {
  sessionId: string
  /**
   * Id of the oldest ancestor session, from which the beginning of this log was copied; the session's own id if it was
   * not forked.
   */
  rootSessionId: string
  /** Uuid of the newest record, which becomes the parent of the next record; null before the first record. */
  lastUuid: string | null
  /** Input tokens of the newest model call. */
  inputTokens: number
  prompts: LoggedPrompt[]
  /** Uuids of all records with the same content, by the key that `createItemKey` returns. */
  readonly uuidsByIdentity: Map<string, string[]>
}

export function createCodexRecordState(): CodexRecordState {
  return {
    sessionId: 'codex',
    rootSessionId: 'codex',
    lastUuid: null,
    inputTokens: 0,
    prompts: [],
    uuidsByIdentity: new Map(),
  }
}

/** Fields that all records have in common. */
export interface RecordFields extends CodexSurroundings {
  readonly uuid: string
  readonly parentUuid: string | null
  readonly timestamp: string
  readonly sessionId: string
}

/**
 * Creates the fields that every record has, and changes `log` so that the next record gets this one as parent. `part`:
 * suffix of the uuid, for several records of one log line.
 */
export function createLinkedFields(
  log: CodexRecordState,
  { line, timestamp, surroundings }: Pick<PendingCodexLine, 'line' | 'timestamp' | 'surroundings'>,
  part = '',
): RecordFields {
  const uuid = `${log.sessionId}:${line}${part}`
  const place = { uuid, parentUuid: log.lastUuid, timestamp, sessionId: log.sessionId, ...surroundings }
  log.lastUuid = uuid
  return place
}

export function toResponseRecords(
  log: CodexRecordState,
  response: GroupedResponse,
): readonly RecordWithLine[] {
  const id = createResponseId(log, response)
  if (response.callUsage !== null) log.inputTokens = response.callUsage.inputTokens
  return response.records.map((draft) => ({
    record: toRecord(log, draft, { id, usage: response.callUsage?.usage ?? null }),
    line: draft.line,
  }))
}

interface ResponseInfo {
  readonly id: string
  readonly usage: JsonObject | null
}

function toRecord(log: CodexRecordState, draft: PendingCodexLine, response: ResponseInfo): SessionRecord {
  const { item } = draft
  if (item.from === 'other') {
    // A line outside the conversation keeps its own type and gets no uuid.
    const { source, timestamp } = draft
    const record = { type: source.type, timestamp, payload: source.payload }
    return record
  }
  const place = createLinkedFields(log, draft)
  indexCodexItem(log, item, place.uuid)
  if (item.from === 'user' && !isUserShellCommand(item)) log.prompts.push(toPrompt(item, place))
  return item.from === 'model'
    ? toAssistantRecord(place, item, { ...response, model: draft.model })
    : toUserRecord(place, item)
}

export function toUserRecord(place: RecordFields, part: CodexInputItem | CodexToolResult): UserRecord {
  const record: UserRecord = { ...place, type: 'user', message: { role: 'user', content: part.blocks } }
  return part.from === 'host' ? { ...record, isMeta: true } : record
}

export function toAssistantRecord(
  place: RecordFields,
  part: CodexModelItem,
  { id, model, usage }: ResponseInfo & { readonly model: string },
): AssistantRecord {
  const message = { id, role: 'assistant', model, content: part.blocks } as const
  return fromStoredRecord({
    ...place,
    type: 'assistant',
    message: usage === null ? message : { ...message, usage },
    ...(part.raw.length === 0 ? {} : { rawBlocks: part.raw }),
  }) as AssistantRecord
}

/**
 * Stores the uuid of an item's record by the item's content. A later compaction that keeps the item can then refer to
 * the record.
 */
export function indexCodexItem(
  log: CodexRecordState,
  part: Exclude<PendingCodexLine['item'], CodexOtherLine>,
  uuid: string,
): void {
  if (part.blocks.length === 0) return
  const identity = createItemKey(part)
  const uuids = log.uuidsByIdentity.get(identity)
  if (uuids === undefined) log.uuidsByIdentity.set(identity, [uuid])
  else uuids.push(uuid)
}

/** Rolls back the newest turns. The next record then follows the record before the first prompt of these turns. */
export function rollBackTurns(log: CodexRecordState, turns: number): void {
  const kept = Math.max(0, log.prompts.length - turns)
  const first = log.prompts[kept]
  if (first === undefined) return
  log.lastUuid = first.parentUuid
  log.prompts = log.prompts.slice(0, kept)
}

function toPrompt(part: CodexInputItem, { uuid, parentUuid }: RecordFields): LoggedPrompt {
  const lengths = part.blocks.map(({ text }) => (typeof text === 'string' ? text.length : 0))
  return { uuid, parentUuid, textLength: lengths.reduce((sum, length) => sum + length, 0) }
}

/**
 * Returns the id of a model response. A copy of the response in a forked session gets the same id, so it is not counted
 * twice. The id combines a tool call id and token totals, because neither is unique by itself.
 */
function createResponseId(log: CodexRecordState, { records, callUsage }: GroupedResponse): string {
  const items = records.flatMap(({ item: part, line }) => (part.from === 'model' ? [{ ...part, line }] : []))
  if (callUsage === null) return `codex-${log.sessionId}-${items[0]?.line ?? 0}`
  const call = items.find((item) => item.blocks[0]?.type === 'tool_use')
  const mark = (call ?? items.find((item) => item.identifier !== null))?.identifier ?? log.rootSessionId
  return `codex-${mark}-${callUsage.key}`
}

/**
 * Reads a `session_meta` line. The first such line describes this session. In a forked session, lines copied from its
 * ancestors follow, with the oldest ancestor last; only the id of that root session is taken from them.
 */
export function collectSessionMeta(payload: JsonFields, meta: MetaCollector, log: CodexRecordState): void {
  const id = payload.id ?? payload.session_id
  if (typeof id !== 'string' || id === '') return
  if (log.lastUuid === null) log.rootSessionId = id
  if (meta.meta.sessionId !== null) return
  log.sessionId = id
  meta.setOnce('sessionId', id)
  meta.setOnce('cwd', payload.cwd)
  meta.setOnce('version', payload.cli_version)
  meta.addTime(payload.timestamp)
  meta.setOnce('forkedFrom', payload.forked_from_id)
  const spawn = readSpawn(payload.source)
  meta.setOnce('parentSessionId', payload.parent_thread_id ?? spawn.parent_thread_id)
  meta.setOnce('agent', payload.agent_nickname ?? spawn.agent_nickname)
  if (typeof payload.forked_from_id === 'string') log.rootSessionId = payload.forked_from_id
}

function readSpawn(source: unknown): JsonFields {
  const subagent = isObject(source) ? source.subagent : undefined
  const spawn = isObject(subagent) ? subagent.thread_spawn : undefined
  return isObject(spawn) ? spawn : {}
}
