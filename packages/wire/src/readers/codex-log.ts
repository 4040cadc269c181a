/** The log as it comes to stand: gives records their names, their parents and their responses. */
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

/** A message of the person. */
interface Prompt {
  readonly uuid: string
  /** What it follows: where the conversation goes on if the prompt is rolled back. */
  readonly parent: string | null
  readonly textLength: number
}

export interface CodexLog {
  sessionId: string
  /** The session that the oldest part of this log was first written for. */
  root: string
  /** uuid of the newest record. */
  tip: string | null
  /** Tokens of the newest request. */
  inputTokens: number
  prompts: Prompt[]
  /** What was said, and the records that say it. */
  readonly said: Map<string, string[]>
}

export function emptyLog(): CodexLog {
  return { sessionId: 'codex', root: 'codex', tip: null, inputTokens: 0, prompts: [], said: new Map() }
}

/** The fields that every record of ours has. */
export interface Place {
  readonly uuid: string
  readonly parentUuid: string | null
  readonly timestamp: string
  readonly sessionId: string
}

/** `part`: tells records of one line apart. */
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

function recordOf(log: CodexLog, draft: Draft, said: Said): SessionRecord {
  const { part } = draft
  if (part.from === 'other') return otherRecord(draft)
  const before = log.tip
  const place = placeIn(log, draft)
  remember(log, part, place.uuid)
  if (part.from === 'person') log.prompts.push(promptOf(part, place.uuid, before))
  return part.from === 'model'
    ? modelRecord(place, part, { ...said, model: draft.model })
    : userRecord(place, part)
}

/** Under its own type, outside the conversation: it has no uuid. */
function otherRecord({ source, timestamp }: Draft): SessionRecord {
  const record = { type: source.type, timestamp, payload: source.payload }
  return record
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

/** So that a compaction which keeps it can name it. */
export function remember(log: CodexLog, part: Exclude<Draft['part'], OtherPart>, uuid: string): void {
  if (part.blocks.length === 0) return
  const identity = identityOf(part)
  const uuids = log.said.get(identity)
  if (uuids === undefined) log.said.set(identity, [uuid])
  else uuids.push(uuid)
}

/** The newest prompts never were: what comes now follows what stood before them. */
export function rollBack(log: CodexLog, turns: number): void {
  const kept = Math.max(0, log.prompts.length - turns)
  const first = log.prompts[kept]
  if (first === undefined) return
  log.tip = first.parent
  log.prompts = log.prompts.slice(0, kept)
}

function promptOf(part: InputPart, uuid: string, parent: string | null): Prompt {
  const lengths = part.blocks.map(({ text }) => (typeof text === 'string' ? text.length : 0))
  return { uuid, parent, textLength: lengths.reduce((sum, length) => sum + length, 0) }
}

/**
 * The name of a response: the same in every copy of the log, since a fork begins with a copy of its parent and
 * each response is to be counted once. Totals alone may be alike in two sessions, ids of calls in two responses.
 */
function responseId(log: CodexLog, { drafts, count }: Response): string {
  const items = drafts.flatMap(({ part, line }) => (part.from === 'model' ? [{ ...part, line }] : []))
  if (count === null) return `codex-${log.sessionId}-${items[0]?.line ?? 0}`
  const call = items.find((item) => item.blocks[0]?.type === 'tool_use')
  const mark = (call ?? items.find((item) => item.mark !== null))?.mark ?? log.root
  return `codex-${mark}-${count.key}`
}

// What the first lines of a rollout say about its session.

/**
 * The first of these lines is the log's own. A fork has the lines of its forebears behind it, the oldest last,
 * as part of the copy that it begins with; later ones repeat what is known.
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
