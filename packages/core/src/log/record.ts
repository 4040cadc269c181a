/**
 * The types of records, which are the lines of a session log. Field names are those of Claude Code's session JSONL, so
 * its sessions load unchanged. Unknown fields stay on the record and are never sent to the model.
 */
import {
  type Block,
  isCacheEditsBlock,
  isTextBlock,
  isToolResult,
  type MessageContent,
  toBlocks,
} from './block.ts'
import { isObject, type Json, type JsonObject } from './json.ts'

/** Marks a record as part of a batch: records appended together, which are valid only if all `of` of them are present. */
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
  /**
   * Position of the record in the log, from 1, to which the argument `after` of `append` refers. Absent in other
   * tools' logs.
   */
  readonly seq?: number
  readonly batch?: BatchStamp
  /** True for a record of another conversation in the same file, such as a subagent's. */
  readonly isSidechain?: boolean
  /** True if the engine or the host wrote the record, not the user. It is hidden from the screen, never from the model. */
  readonly isMeta?: boolean
  /** True for the record that contains the summary of a compaction. */
  readonly isCompactSummary?: boolean
  readonly isVisibleInTranscriptOnly?: boolean
  /**
   * Exact JSON text of blocks that parse and stringify would change (integer-like keys, integers over 2^53, `1.0`,
   * duplicate keys), by index in `message.content`. These blocks are sent as this text.
   */
  readonly rawBlocks?: readonly RawBlockText[]
  /** Parts of this record's tool results that were spilled to blobs; the record itself holds only their head and tail. */
  readonly spilled?: readonly SpilledContent[]
}

export interface SpilledContent {
  readonly toolUseId: string
  /** Index of the block in the tool result's content; null if the content was a string. */
  readonly part: number | null
  /** Id of the blob that stores the full content of the spilled part. */
  readonly blob: string
  /** What the blob stores: the text as UTF-8, or the JSON of the whole block. */
  readonly holds: 'text' | 'block'
  readonly bytes: number
}

export interface RawBlockText {
  readonly index: number
  readonly text: string
}

/** The message of a user record. Role `system` marks a mid-conversation system message; its other fields are sent too. */
interface UserMessage {
  readonly role: 'user' | 'system'
  readonly content: MessageContent
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

/** Returns true if both totals of a call are known. */
export function isUsage(usage: unknown): usage is Usage {
  return isObject(usage) && typeof usage.input_tokens === 'number' && typeof usage.output_tokens === 'number'
}

export interface AssistantMessage {
  readonly id: string
  readonly role: 'assistant'
  readonly model: string
  readonly content: MessageContent
  readonly usage?: Usage
  readonly stop_reason?: string | null
  readonly [field: string]: unknown
}

export interface AssistantRecord extends RecordBase {
  readonly type: 'assistant'
  readonly message: AssistantMessage
  /** True, with the model `<synthetic>`, for an error that the engine wrote for the user. It is never sent to the model. */
  readonly isApiErrorMessage?: boolean
}

/** Context that the host injects. Any `type` is allowed; an attachment without one counts as `unknown`. */
export interface Attachment {
  readonly type?: string
  readonly [field: string]: Json | undefined
}

export interface AttachmentRecord extends RecordBase {
  readonly type: 'attachment'
  readonly attachment: Attachment
  /** True for an attachment that is only shown on the screen and left out of every API request. */
  readonly isScreenOnly?: boolean
}

/** A notice, or a rewrite of the context by the engine; `subtype` says which. System records are never sent to the model. */
export interface SystemRecord extends RecordBase {
  readonly type: 'system'
  readonly subtype?: string
  readonly content?: string
  readonly level?: string
  readonly logicalParentUuid?: string | null
  readonly compactMetadata?: CompactMetadata
  readonly microcompactMetadata?: MicrocompactMetadata
  /** For `compact_undone` and `clear_undone`: uuid of the boundary that is undone. */
  readonly of?: string
  /** For an undo: `message.id` of later responses whose thinking is dropped, as it was signed for the undone context. */
  readonly clearedThinking?: readonly string[]
  /** For `pin`: whether every rewrite must keep the target record verbatim. The newest pin of a target decides. */
  readonly pin?: { readonly target: string; readonly pinned: boolean }
  readonly epoch?: PrefixSnapshot
  readonly delta?: PrefixUpdate
  readonly modelCall?: LoggedModelCall
  readonly cacheLoss?: CacheLoss
}

/** Data of an `epoch` record: a prefix snapshot. Until the next one, API requests begin with these sections and tools. */
export interface PrefixSnapshot {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  readonly parameters: JsonObject
  /** Cache lifetime to request, decided when the prefix snapshot was made. Absent in older logs. */
  readonly ttl?: SnapshotTtl
}

export interface SnapshotTtl {
  readonly name: string
  /** What decided the lifetime: a switch, the policy, the account, or the gaps between the session's model calls. */
  readonly because: string
}

export interface SnapshotSection {
  readonly name: string
  readonly part: 'static' | 'dynamic' | 'volatile'
  readonly text: string
}

/**
 * Data of a `delta` record: what changed since the prefix snapshot (null: removed). An attachment in the same batch
 * announces the change to the model; the new text enters the system prompt and tools only with the next snapshot.
 */
export interface PrefixUpdate {
  readonly sections?: Readonly<Record<string, string | null>>
  readonly tools?: Readonly<Record<string, JsonObject | null>>
  readonly parameters?: JsonObject
}

interface ProgressRecord extends RecordBase {
  readonly type: 'progress'
}

/** A record of an unknown type: kept in the log and skipped. It may have no uuid. */
interface OtherRecord extends Partial<RecordBase> {
  readonly type: string
}

export type KnownRecord = UserRecord | AssistantRecord | AttachmentRecord | SystemRecord | ProgressRecord
export type SessionRecord = KnownRecord | OtherRecord

const KNOWN_TYPES = new Set(['user', 'assistant', 'attachment', 'system', 'progress'])

/** Checks only the type field, because decoding has already checked the shape of every known record type. */
export function isKnownRecord(record: SessionRecord): record is KnownRecord {
  return KNOWN_TYPES.has(record.type)
}

export const SYNTHETIC_MODEL = '<synthetic>'

/** Returns true for an error that the engine wrote as an assistant record. Without all three marks it is a real response. */
export function isSyntheticError(record: KnownRecord): boolean {
  return (
    record.type === 'assistant' &&
    record.isApiErrorMessage === true &&
    record.message.model === SYNTHETIC_MODEL
  )
}

/** Returns true for a prompt of the user, where branches can fork: not meta, not a summary, not a tool result. */
export function isPrompt(record: SessionRecord): record is UserRecord {
  if (!isKnownRecord(record) || record.type !== 'user' || record.message.role !== 'user') return false
  if (record.isMeta === true || record.isCompactSummary === true) return false
  const { content } = record.message
  return typeof content === 'string' || !content.some((block: Block) => isToolResult(block))
}

// Boundary records: a `compact_boundary` marks a compaction, a `microcompact_boundary` a clearing of tool results.

export interface CompactBoundary extends SystemRecord {
  readonly subtype: 'compact_boundary'
  readonly compactMetadata: CompactMetadata
}

export interface MicrocompactBoundary extends SystemRecord {
  readonly subtype: 'microcompact_boundary'
  readonly microcompactMetadata: MicrocompactMetadata
}

export function isCompactBoundary(record: SessionRecord): record is CompactBoundary {
  return record.type === 'system' && (record as SystemRecord).subtype === 'compact_boundary'
}

export function isMicrocompactBoundary(record: SessionRecord): record is MicrocompactBoundary {
  const { subtype, microcompactMetadata } = record as SystemRecord
  return record.type === 'system' && subtype === 'microcompact_boundary' && isObject(microcompactMetadata)
}

/** Returns true if the provider clears the text on its side, so that the messages of the API request stay unchanged. */
export function isClearedByProvider({ way }: MicrocompactMetadata): boolean {
  return way === 'cached' || way === 'native'
}

/** Returns true for a rewrite of the context that can be undone: a compaction or a clearing. */
export function isRewriteBoundary(record: SessionRecord): record is CompactBoundary | MicrocompactBoundary {
  return isCompactBoundary(record) || isMicrocompactBoundary(record)
}

/** Subtype of the notice that cached deletions are no longer sent, because the cache that contained them has expired. */
export const CACHE_EDITS_DROPPED_SUBTYPE = 'cache_edits_dropped'

/** First line of the placeholder that replaces a cleared tool result. */
export const CLEARED_RESULT_TEXT = '[Old tool result content cleared]'

export type CompactTrigger = 'auto' | 'manual'
export type CompactCause = 'threshold' | 'reactive' | 'prepared' | 'idle' | 'model-switch' | 'person'

/** Records that a compaction keeps verbatim, in this order, after the anchor record. */
export interface PreservedMessages {
  readonly anchorUuid: string
  readonly uuids: readonly string[]
}

/** Older form of `PreservedMessages`: every record of the context from the head record to the tail record. */
export interface PreservedSegment {
  readonly headUuid: string
  readonly tailUuid: string
  readonly anchorUuid: string
}

export interface CompactMetadata {
  readonly trigger: CompactTrigger
  readonly cause?: CompactCause
  readonly preTokens: number
  readonly postTokens?: number
  readonly durationMs?: number
  readonly messagesSummarized?: number
  /** Instructions that the user gave when requesting the compaction. */
  readonly userContext?: string
  readonly preCompactDiscoveredTools?: readonly string[]
  readonly preservedMessages?: PreservedMessages
  readonly preservedSegment?: PreservedSegment
  /** User messages that have no response yet. They are placed last, after the re-attached context. */
  readonly unansweredMessages?: PreservedMessages
  /** The `message.id` of kept responses whose thinking is dropped, because it was signed for the summarized context. */
  readonly clearedThinking?: readonly string[]
  /** What wrote the summary: the model, the provider's compaction block, the session notes, or the local extractor. */
  readonly summarizer?: 'model' | 'block' | 'notes' | 'local'
  readonly fallbackReason?: string
  /** Number of records that no model summarized; the local extractor covered them. */
  readonly recordsCoveredLocally?: number
}

/**
 * How tool results are cleared. With `cached` and `native` the messages stay unchanged and the provider removes the
 * text. Other programs' logs do not state the mode; their clearings always change the context.
 */
export type ClearMode = 'idle' | 'budget' | 'cached' | 'native'

export interface MicrocompactMetadata {
  readonly trigger: string
  /** How the content was cleared; `size` if images were removed to keep the API request within its size limit. */
  readonly way?: ClearMode | 'size'
  /** For `cached`: uuid of the record after which the deletions are sent, at the same place in every later API request. */
  readonly anchorUuid?: string
  readonly preTokens: number
  readonly tokensSaved: number
  readonly compactedToolIds: readonly string[]
  readonly clearedAttachmentUUIDs: readonly string[]
  /** By tool call id: where the text of a cleared result can be found. Shown as the second line of its placeholder. */
  readonly notes?: Readonly<Record<string, string>>
  /** Large tool inputs that were cleared. */
  readonly clearedInputs?: readonly ClearedInput[]
  /** Images and documents that were replaced by placeholders. */
  readonly clearedMedia?: readonly ClearedMedia[]
  /** The `message.id` of responses whose thinking this clearing drops. */
  readonly clearedThinking?: readonly string[]
}

export interface ClearedMedia {
  /** uuid of the record that contains the cleared image or document. */
  readonly uuid: string
  /** Id of the tool call whose result contains the media; absent for media directly in the message. */
  readonly toolUseId?: string
  /** Index of the media, from 0, among the images and documents of the tool result or message. */
  readonly nth: number
}

export interface ClearedInput {
  readonly toolUseId: string
  readonly field: string
}

// Model calls outside the conversation, and cache losses: with them, the log alone gives the cost of a session.

/** Data of a `model_call` record: a call outside the conversation (a summary, a cache-sharing fork call, an empty reply). */
interface LoggedModelCall {
  /** Message id of the response. */
  readonly id: string
  /** What made the model call: `compact`, `session_memory` … */
  readonly source: string
  readonly model: string
  /** Usage of the model call, exactly as the provider reported it. */
  readonly usage: JsonObject
}

/** Data of a `cache_loss` record: tokens processed again that could have been read from the cache, as judged at the time. */
export interface CacheLoss {
  /** `break` for a cache break, `act` for the cost of one of the engine's own rewrites. */
  readonly kind: 'break' | 'act'
  readonly source: string
  /** Cause of a cache break (`tools-added`, `expired` …), or what the engine's own rewrite did. */
  readonly reason: string
  readonly tokens: number
  /** Cost in dollars above the price of a cache read; null if a price was unknown. */
  readonly usd: number | null
  /** The sentence that describes this cache loss to the user. */
  readonly sentence: string
}

// The end of a turn. Some models keep only the thinking of the current turn and drop it as soon as a user message
// contains anything but tool results: text, an image, or a reminder beside a result.

/** Returns true for any block but a tool result. `cache_edits` blocks do not count: they are instructions to the cache. */
export function isTurnEndingBlock(block: Block): boolean {
  return block.type !== 'tool_result' && !isCacheEditsBlock(block)
}

/** Returns true if a message ends the turn before it: a user message with any content but tool results. */
export function isTurnEndingMessage({
  role,
  content,
}: {
  readonly role: string
  readonly content: MessageContent
}): boolean {
  return role === 'user' && content !== '' && toBlocks(content).some(isTurnEndingBlock)
}

/** Matches user content that a program wrote: commands, their output, and interruption notices. */
const PROGRAM_TEXT = /^\s*(?:<command-|<local-command-|<bash-|\[Request interrupted)/

/**
 * Returns the text that the user typed in a record, or null if there is none. A record with a tool result may have
 * such text too: what the user typed when rejecting the tool call.
 */
export function readUserTypedText(record: SessionRecord): string | null {
  if (!isKnownRecord(record) || record.type !== 'user' || record.message.role !== 'user') return null
  if (record.isMeta === true || record.isCompactSummary === true) return null
  const typed = toBlocks(record.message.content).flatMap((block) => (isTextBlock(block) ? [block.text] : []))
  const texts = typed.filter((text) => text.trim() !== '' && !PROGRAM_TEXT.test(text))
  return texts.length === 0 ? null : texts.join('\n')
}
