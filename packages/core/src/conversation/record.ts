/**
 * A record: one line of a session's log. The field names are those of Claude Code's session JSONL, so that
 * sessions people already have load as they are; fields we do not know stay on the record and never reach a model.
 */
import { type Block, type Content, isToolResult } from './block.ts'
import type { Json, JsonObject } from './json.ts'
import type { CompactMetadata, MicrocompactMetadata } from './metadata.ts'
import type { CacheLoss, LoggedCall } from './spending.ts'

/** Records appended together carry the same batch; a batch counts only when all `of` of them are there. */
export interface BatchStamp {
  readonly id: string
  readonly index: number
  readonly of: number
}

export interface RecordBase {
  readonly uuid: string
  readonly parentUuid: string | null
  readonly timestamp: string
  readonly sessionId: string
  /** Position in the log, 1 for the first record; what `append(…, after, …)` compares. Absent in foreign logs. */
  readonly seq?: number
  readonly batch?: BatchStamp
  /** A line of another conversation (a subagent's) in the same file. */
  readonly isSidechain?: boolean
  /** Written by the engine or the host, not by the person. Hides it from the screen, never from the model. */
  readonly isMeta?: boolean
  /** The record that stands for what a compaction summarised. */
  readonly isCompactSummary?: boolean
  readonly isVisibleInTranscriptOnly?: boolean
  /**
   * Blocks whose text does not survive parse and stringify (integer-like keys, integers over 2^53, `1.0`,
   * duplicate keys): the exact text by index in `message.content`. What is sent is sent from this.
   */
  readonly rawBlocks?: readonly RawBlock[]
  /** What of this record's tool results was put aside on arrival: the record itself shows head and tail. */
  readonly spilled?: readonly Spilled[]
}

export interface Spilled {
  readonly toolUseId: string
  /** Which block of the result's content it was; null where the content was a string. */
  readonly part: number | null
  /** The id of the blob that holds it. */
  readonly blob: string
  /** The blob is the text as UTF-8, or the JSON of the whole block. */
  readonly holds: 'text' | 'block'
  readonly bytes: number
}

export interface RawBlock {
  readonly index: number
  readonly text: string
}

/** What a user record carries. Role `system` is a system message in mid-conversation; its other fields go along. */
export interface UserMessage {
  readonly role: 'user' | 'system'
  readonly content: Content
  readonly [field: string]: unknown
}

export interface UserRecord extends RecordBase {
  readonly type: 'user'
  readonly message: UserMessage
}

export interface Usage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly [field: string]: Json | undefined
}

export interface AssistantMessage {
  readonly id: string
  readonly role: 'assistant'
  readonly model: string
  readonly content: Content
  readonly usage?: Usage
  readonly stop_reason?: string | null
  readonly [field: string]: unknown
}

export interface AssistantRecord extends RecordBase {
  readonly type: 'assistant'
  readonly message: AssistantMessage
  /** With model `<synthetic>`: an error the engine wrote for the person; it never reaches a model. */
  readonly isApiErrorMessage?: boolean
}

/** Context the host injects. An open set of types; one with none counts as `unknown`. */
export interface Attachment {
  readonly type?: string
  readonly [field: string]: Json | undefined
}

export interface AttachmentRecord extends RecordBase {
  readonly type: 'attachment'
  readonly attachment: Attachment
  /** For the person's eyes alone: left out of every request. */
  readonly isScreenOnly?: boolean
}

/** Notices, and the engine's own acts by `subtype`. None reaches a model. */
export interface SystemRecord extends RecordBase {
  readonly type: 'system'
  readonly subtype?: string
  readonly content?: string
  readonly level?: string
  readonly logicalParentUuid?: string | null
  readonly compactMetadata?: CompactMetadata
  readonly microcompactMetadata?: MicrocompactMetadata
  /** `compact_undone`, `clear_undone`: the uuid of the boundary taken back. */
  readonly of?: string
  /** The same: responses (`message.id`) since then that lost their thinking, which was bound to what was taken back. */
  readonly clearedThinking?: readonly string[]
  readonly pin?: Pin
  readonly epoch?: Epoch
  readonly delta?: Delta
  readonly modelCall?: LoggedCall
  readonly cacheLoss?: CacheLoss
}

/** `pin`: the record that must survive every rewrite verbatim (or no longer must). The newest word counts. */
export interface Pin {
  readonly target: string
  readonly pinned: boolean
}

/** `epoch`: what the prefix of every request is made of until the next one. */
export interface Epoch {
  readonly sections: readonly EpochSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  readonly parameters: JsonObject
  /** Lifetime asked of the cache, decided when the epoch began. Absent in logs that do not say. */
  readonly ttl?: EpochTtl
}

export interface EpochTtl {
  readonly name: string
  /** What decided it: a switch, the policy, the account, the session's own gaps. */
  readonly because: string
}

export interface EpochSection {
  readonly name: string
  readonly part: 'static' | 'dynamic' | 'volatile'
  readonly text: string
}

/**
 * `delta`: what changed within an epoch (null: gone). It keeps the books; the model is told by an attachment
 * of the same batch, and the new text enters the prefix with the next epoch.
 */
export interface Delta {
  readonly sections?: Readonly<Record<string, string | null>>
  readonly tools?: Readonly<Record<string, JsonObject | null>>
  readonly parameters?: JsonObject
}

export interface ProgressRecord extends RecordBase {
  readonly type: 'progress'
}

/** A line of a kind we do not know: kept, in its place, and skipped. It may have no uuid. */
export interface OtherRecord extends Partial<RecordBase> {
  readonly type: string
}

export type KnownRecord = UserRecord | AssistantRecord | AttachmentRecord | SystemRecord | ProgressRecord
export type SessionRecord = KnownRecord | OtherRecord

const KNOWN = new Set(['user', 'assistant', 'attachment', 'system', 'progress'])

/** Decoding has checked the shape of every known kind, so the type field alone tells. */
export function isKnown(record: SessionRecord): record is KnownRecord {
  return KNOWN.has(record.type)
}

export const SYNTHETIC_MODEL = '<synthetic>'

/** An error the engine wrote in the model's place: all three marks, or it is a real response. */
export function isSyntheticError(record: KnownRecord): boolean {
  return (
    record.type === 'assistant' &&
    record.isApiErrorMessage === true &&
    record.message.model === SYNTHETIC_MODEL
  )
}

/** Said by the person: where branches part. Not meta, not a summary, not the answer to a tool call. */
export function isPrompt(record: SessionRecord): record is UserRecord {
  if (!isKnown(record) || record.type !== 'user' || record.message.role !== 'user') return false
  if (record.isMeta === true || record.isCompactSummary === true) return false
  const { content } = record.message
  return typeof content === 'string' || !content.some((block: Block) => isToolResult(block))
}
