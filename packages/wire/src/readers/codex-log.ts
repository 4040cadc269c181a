/** Turns the items of a rollout into linked records: gives each its uuid, its parent and its response id. */
import {
  type AssistantRecord,
  isObject,
  type SessionRecord,
  type Usage,
  type UserRecord,
} from '@tidemark/core'
import {
  type Draft,
  type InputPart,
  identityOf,
  type ModelPart,
  type OtherPart,
  type ToolPart,
} from './codex-items.ts'
import type { Fields } from './codex-line.ts'
import type { Response } from './codex-responses.ts'
import type { MetaNotes, ReadRecord } from './log-reader.ts'

/** A user prompt. */
interface Prompt {
  readonly uuid: string
  /** The record before it: the conversation continues there if the prompt is rolled back. */
  readonly parent: string | null
  readonly textLength: number
}

export interface CodexLog {
  sessionId: string
  /** The session that the oldest part of this log was copied from. */
  root: string
  /** uuid of the newest record; the next record's parent. */
  tip: string | null
  /** Tokens of the newest request. */
  inputTokens: number
  prompts: Prompt[]
  /** By item identity: the records with that content. */
  readonly said: Map<string, string[]>
}

export function emptyLog(): CodexLog {
  return { sessionId: 'codex', root: 'codex', tip: null, inputTokens: 0, prompts: [], said: new Map() }
}

/** The fields that all records have. */
export interface Place {
  readonly uuid: string
  readonly parentUuid: string | null
  readonly timestamp: string
  readonly sessionId: string
}

/** Also makes the record the newest one. `part`: distinguishes records made from one line. */
export function placeIn(log: CodexLog, draft: Pick<Draft, 'line' | 'timestamp'>, part = ''): Place {
  const uuid = `${log.sessionId}:${draft.line}${part}`
  const place = { uuid, parentUuid: log.tip, timestamp: draft.timestamp, sessionId: log.sessionId }
  log.tip = uuid
  return place
}

export function placeResponse(log: CodexLog, response: Response): readonly ReadRecord[] {
  const id = responseId(log, response)
  if (response.count !== null) log.inputTokens = response.count.inputTokens
  return response.drafts.map((draft) => ({
    record: recordOf(log, draft, { id, usage: response.count?.usage ?? null }),
    line: draft.line,
  }))
}

interface Said {
  readonly id: string
  readonly usage: Usage | null
}

function recordOf(log: CodexLog, draft: Draft, response: Said): SessionRecord {
  const { part } = draft
  if (part.from === 'other') {
    // Not part of the conversation: no uuid, and the line's own type.
    const { source, timestamp } = draft
    const record = { type: source.type, timestamp, payload: source.payload }
    return record
  }
  const place = placeIn(log, draft)
  remember(log, part, place.uuid)
  if (part.from === 'user') log.prompts.push(promptOf(part, place))
  return part.from === 'model'
    ? modelRecord(place, part, { ...response, model: draft.model })
    : userRecord(place, part)
}

export function userRecord(place: Place, part: InputPart | ToolPart): UserRecord {
  const record: UserRecord = { ...place, type: 'user', message: { role: 'user', content: part.blocks } }
  return part.from === 'host' ? { ...record, isMeta: true } : record
}

export function modelRecord(
  place: Place,
  part: ModelPart,
  { id, model, usage }: Said & { readonly model: string },
): AssistantRecord {
  const message = { id, role: 'assistant', model, content: part.blocks } as const
  return {
    ...place,
    type: 'assistant',
    message: usage === null ? message : { ...message, usage },
    ...(part.raw.length === 0 ? {} : { rawBlocks: part.raw }),
  }
}

/** Lets a later compaction that keeps the item refer to its record. */
export function remember(log: CodexLog, part: Exclude<Draft['part'], OtherPart>, uuid: string): void {
  if (part.blocks.length === 0) return
  const identity = identityOf(part)
  const uuids = log.said.get(identity)
  if (uuids === undefined) log.said.set(identity, [uuid])
  else uuids.push(uuid)
}

/** Removes the newest prompts: the next record follows the record before them. */
export function rollBack(log: CodexLog, turns: number): void {
  const kept = Math.max(0, log.prompts.length - turns)
  const first = log.prompts[kept]
  if (first === undefined) return
  log.tip = first.parent
  log.prompts = log.prompts.slice(0, kept)
}

function promptOf(part: InputPart, { uuid, parentUuid: parent }: Place): Prompt {
  const lengths = part.blocks.map(({ text }) => (typeof text === 'string' ? text.length : 0))
  return { uuid, parent, textLength: lengths.reduce((sum, length) => sum + length, 0) }
}

/**
 * The id of a response. It is the same in every copy of the log: a fork begins with a copy of its parent, and each response
 * must count once. Token totals alone may be equal in two sessions, and call ids in two responses, so both are used.
 */
function responseId(log: CodexLog, { drafts, count }: Response): string {
  const items = drafts.flatMap(({ part, line }) => (part.from === 'model' ? [{ ...part, line }] : []))
  if (count === null) return `codex-${log.sessionId}-${items[0]?.line ?? 0}`
  const call = items.find((item) => item.blocks[0]?.type === 'tool_use')
  const mark = (call ?? items.find((item) => item.mark !== null))?.mark ?? log.root
  return `codex-${mark}-${count.key}`
}

/**
 * Reads a `session_meta` line. The first one is the log's own. A fork begins with a copy of its ancestors' lines, theirs
 * included, the oldest last; later ones repeat what is known.
 */
export function noteSession(payload: Fields, meta: MetaNotes, log: CodexLog): void {
  const id = payload.id ?? payload.session_id
  if (typeof id !== 'string' || id === '') return
  if (log.tip === null) log.root = id
  if (meta.standing.sessionId !== null) return
  log.sessionId = id
  meta.first('sessionId', id)
  meta.first('cwd', payload.cwd)
  meta.first('version', payload.cli_version)
  meta.time(payload.timestamp)
  meta.first('forkedFrom', payload.forked_from_id)
  const spawn = spawnOf(payload.source)
  meta.first('parentSessionId', payload.parent_thread_id ?? spawn.parent_thread_id)
  meta.first('agent', payload.agent_nickname ?? spawn.agent_nickname)
  if (typeof payload.forked_from_id === 'string') log.root = payload.forked_from_id
}

function spawnOf(source: unknown): Fields {
  const subagent = isObject(source) ? source.subagent : undefined
  const spawn = isObject(subagent) ? subagent.thread_spawn : undefined
  return isObject(spawn) ? spawn : {}
}
