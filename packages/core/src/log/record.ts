/**
 * The types of records. Each line of a session log is one record. Field names are those of the session logs that most users
 * have already (decision 0005), so that these can be loaded unchanged. Unknown fields are kept and never sent to the model.
 */
import {
  type Block,
  CACHE_DELETION_TYPE,
  isCacheDeletionBlock,
  isToolResult,
  type MessageContent,
  toBlocks,
} from './block.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import type { ReplyStop, TokenUsage } from './reply-report.ts'

/** Marks a record as part of a batch of `of` records that were appended together. They are valid only if all are present. */
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
  /** The working directory of the agent when the record was written. */
  readonly cwd?: string
  /** Position of the record in the log, counted from 1. Absent in logs of other tools. */
  readonly seq?: number
  readonly batch?: BatchStamp
  /** True for a record that belongs to another conversation in the same file, such as that of a subagent. */
  readonly isSidechain?: boolean
  /** True if the engine or the host wrote the record, not the user. The user interface hides it; the model still sees it. */
  readonly isMeta?: boolean
  /** Session and record that this record was copied from, when the session was forked. */
  readonly forkedFrom?: { readonly sessionId: string; readonly messageUuid: string | null }
  /** True for the record that contains the summary of a compaction. */
  readonly isCompactSummary?: boolean
  readonly isVisibleInTranscriptOnly?: boolean
  /**
   * Exact JSON text of blocks that parse and stringify would change (integer-like keys, integers over 2^53, `1.0`,
   * duplicate keys), with the index of each block in `message.content`. These blocks are sent as this text.
   */
  readonly rawBlocks?: readonly RawBlockText[]
  /** Large parts of this record's tool results that are stored in blobs. The record holds only their head and tail. */
  readonly spilled?: readonly SpilledContent[]
}

export interface SpilledContent {
  readonly toolUseId: string
  /** Index of the block in the content of the tool result; null if the content is a string. */
  readonly part: number | null
  /** Id of the blob that stores the full content. */
  readonly blob: string
  /** Format of the blob: the text as UTF-8, or the JSON of the whole block. */
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
  /** Fields besides role and content that a host has set on a user message. They are sent with it. */
  readonly messageFields?: JsonObject
  /**
   * What in the record is the user's, as the engine or its host recorded it. Present on every prompt and tool result of
   * Tidemark's own sessions: a refusal or an answer in a tool result is the user's only if it is listed here. Absent in
   * logs of other programs, under drop-in and in older logs, whose texts are recognised by their form.
   */
  readonly userInputs?: readonly RecordedUserInput[]
}

/** A text of the user, as the engine or its host recorded it with a message. */
export interface RecordedUserInput {
  /** `prompt`: the texts of the message itself. The others are in the result of the tool call `toolUseId`. */
  readonly kind: 'prompt' | 'refusal' | 'answer'
  readonly toolUseId?: string
  /** What the user typed or chose. Without it, a `prompt` is all texts of the message, and a `refusal` has no words. */
  readonly text?: string
  /** For `answer`: the question that the model asked, and the options that it offered. */
  readonly question?: { readonly text: string; readonly options?: readonly string[] }
}

export interface AssistantMessage {
  readonly id: string
  readonly role: 'assistant'
  readonly model: string
  readonly content: MessageContent
  /** Usage in the provider's own fields. The engine reads `usage` of the record instead. */
  readonly usage?: JsonObject
  readonly [field: string]: unknown
}

export interface AssistantRecord extends RecordBase {
  readonly type: 'assistant'
  readonly message: AssistantMessage
  /** True for an error that the engine wrote for the user, with the model `<synthetic>`. It is never sent to the model. */
  readonly isApiErrorMessage?: boolean
  /** uuid of the last record in the request that this response answers; set only if messages were appended since then. */
  readonly afterUuid?: string
  /** The tokens of the call. The log has them only if they cannot be read from `message.usage`. */
  readonly usage?: TokenUsage
  /** Why the reply ended; missing if it had not ended yet. In the log only if it cannot be read from the message. */
  readonly stop?: ReplyStop
  /**
   * The usage that was billed, if `message.usage` is not that: the program whose log was copied logs other figures, the
   * response broke off before its usage was complete, or a client repeats a response (then it is zero).
   */
  readonly billed?: TokenUsage
  /** `billed` in the provider's own fields. */
  readonly billedUsage?: JsonObject
  /** True if the user interrupted the answer here. */
  readonly isInterrupted?: boolean
}

/** Content that the host adds to the context. Any `type` is allowed; an attachment without a type counts as `unknown`. */
export interface Attachment {
  readonly type?: string
  readonly [field: string]: Json | undefined
}

export interface AttachmentRecord extends RecordBase {
  readonly type: 'attachment'
  readonly attachment: Attachment
  /** True for an attachment that is only shown to the user and left out of every API request. */
  readonly isScreenOnly?: boolean
}

/** A notice, or a change of the context by the engine; `subtype` says which. System records are never sent to the model. */
export interface SystemRecord extends RecordBase {
  readonly type: 'system'
  readonly subtype?: string
  readonly content?: string
  readonly level?: string
  readonly logicalParentUuid?: string | null
  readonly compactMetadata?: CompactMetadata
  readonly microcompactMetadata?: MicrocompactMetadata
  /** For `compact_undone` and `clear_undone`: uuid of the boundary record of the undone compaction or clearing. */
  readonly of?: string
  /** For `reply_dropped`: `message.id` of the last response, which broke off and is no longer in the context. */
  readonly response?: string
  /**
   * For an undo: `message.id` of later responses whose thinking is dropped, because it was signed for the undone
   * context. For a prefix snapshot: of earlier ones, whose thinking was signed for the prefix before.
   */
  readonly clearedThinking?: readonly string[]
  /**
   * For a prefix snapshot: `message.id` of earlier responses with items that the provider of this snapshot cannot read,
   * because another vendor or account made them. The context no longer has these items.
   */
  readonly clearedItems?: readonly string[]
  /**
   * For `pin`: true if compaction and clearing must keep the target record unchanged. The newest pin of a record
   * applies.
   */
  readonly pin?: { readonly target: string; readonly pinned: boolean }
  readonly epoch?: PrefixSnapshot
  readonly delta?: PrefixUpdate
  readonly modelCall?: LoggedModelCall
  readonly cacheLoss?: CacheLoss
}

/** Data of an `epoch` record: a prefix snapshot, the sections and tools that API requests begin with until the next one. */
export interface PrefixSnapshot {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  readonly parameters: JsonObject
  /** Cache lifetime to request, chosen when this prefix snapshot was made. Absent in older logs. */
  readonly ttl?: SnapshotTtl
  /** Context window in tokens that the session runs with. Absent in older logs, and if it is unknown. */
  readonly window?: number
  /** Who makes the opaque items of the responses; absent where their blocks have no origin. */
  readonly origin?: { readonly vendor: string | null; readonly account: string | null }
}

export interface SnapshotTtl {
  readonly name: string
  /** What determined the cache lifetime: a switch, the policy, the account, or the time between model calls. */
  readonly because: string
  /** Lifetime of the messages since the last rewrite, if it is shorter than that of the rest. */
  readonly tail?: string
}

export interface SnapshotSection {
  readonly name: string
  readonly part: 'static' | 'dynamic' | 'volatile'
  readonly text: string
}

/**
 * Data of a `delta` record: sections and tools that changed since the prefix snapshot (null: removed). An attachment in
 * the same batch tells the model about the change. The system prompt and tools themselves change only with the next
 * snapshot.
 */
export interface PrefixUpdate {
  readonly sections?: Readonly<Record<string, string | null>>
  readonly tools?: Readonly<Record<string, JsonObject | null>>
  readonly parameters?: JsonObject
}

interface ProgressRecord extends RecordBase {
  readonly type: 'progress'
}

/** A record of an unknown type. It is kept in the log and otherwise ignored. It may have no uuid. */
interface OtherRecord extends Partial<RecordBase> {
  readonly type: string
}

export type KnownRecord = UserRecord | AssistantRecord | AttachmentRecord | SystemRecord | ProgressRecord
export type SessionRecord = KnownRecord | OtherRecord

const KNOWN_TYPES = new Set(['user', 'assistant', 'attachment', 'system', 'progress'])

/** Checks only the record's type, because the shape of every known type was checked when the log line was decoded. */
export function isKnownRecord(record: SessionRecord): record is KnownRecord {
  return KNOWN_TYPES.has(record.type)
}

/** The model name of records that no model wrote. */
export const SYNTHETIC_MODEL = '<synthetic>'

/** Returns true for an error that the engine wrote as an assistant record; false for every real response. */
export function isSyntheticError(record: KnownRecord): boolean {
  return (
    record.type === 'assistant' &&
    record.isApiErrorMessage === true &&
    record.message.model === SYNTHETIC_MODEL
  )
}

/** Returns the role of the message that a record becomes part of; null if the record is not sent. */
export function readMessageRole(record: KnownRecord): 'user' | 'assistant' | 'system' | null {
  if (record.type === 'assistant') return isSyntheticError(record) ? null : 'assistant'
  if (record.type === 'user') return record.message.role
  return record.type === 'attachment' && record.isScreenOnly !== true ? 'user' : null
}

/** Returns true for a prompt that the user entered. False for a meta record, a summary, and a tool result. */
export function isPrompt(record: SessionRecord): record is UserRecord {
  if (!isKnownRecord(record) || record.type !== 'user' || record.message.role !== 'user') return false
  if (record.isMeta === true || record.isCompactSummary === true) return false
  const { content } = record.message
  return typeof content === 'string' || !content.some((block: Block) => isToolResult(block))
}

// Boundary records: a `compact_boundary` record marks a compaction, a `microcompact_boundary` record a clearing.

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

/** Returns true if the provider clears the tool results on its side. The messages of the API request then stay unchanged. */
export function isClearedByProvider({ way }: MicrocompactMetadata): boolean {
  return way === 'cached' || way === 'native'
}

/** Returns true for a boundary record, which marks a compaction or a clearing. Both can be undone. */
export function isRewriteBoundary(record: SessionRecord): record is CompactBoundary | MicrocompactBoundary {
  return isCompactBoundary(record) || isMicrocompactBoundary(record)
}

/** Subtype of the record that takes a broken reply out of the context. The log keeps what had arrived of it. */
export const REPLY_DROPPED_SUBTYPE = 'reply_dropped'

/** First line of the placeholder that replaces a cleared tool result. */
export const CLEARED_RESULT_TEXT = '[Old tool result content cleared]'

export type CompactTrigger = 'auto' | 'manual'
export type CompactCause =
  | 'threshold'
  | 'price'
  | 'reactive'
  | 'prepared'
  | 'idle'
  | 'model-switch'
  | 'person'

/** Records that a compaction keeps unchanged. They are inserted after the anchor record, in this order. */
export interface PreservedMessages {
  readonly anchorUuid: string
  readonly uuids: readonly string[]
}

/** Older form of `PreservedMessages`. The compaction keeps every context record from the head record to the tail record. */
export interface PreservedSegment {
  readonly headUuid: string
  readonly tailUuid: string
  readonly anchorUuid: string
}

export interface CompactMetadata {
  readonly trigger: CompactTrigger
  readonly cause?: CompactCause
  /** Tokens of the context before and after the compaction. */
  readonly preTokens: number
  readonly postTokens?: number
  readonly durationMs?: number
  readonly messagesSummarized?: number
  /** Instructions that the user gave when requesting the compaction. */
  readonly userContext?: string
  /** Names of the tools that were loaded during the conversation. They must be announced again. */
  readonly preCompactDiscoveredTools?: readonly string[]
  readonly preservedMessages?: PreservedMessages
  readonly preservedSegment?: PreservedSegment
  /** User messages that have no response yet. They are placed last, after the content that the compaction re-attaches. */
  readonly unansweredMessages?: PreservedMessages
  /** The `message.id` of kept responses whose thinking is dropped, because it was signed for the replaced context. */
  readonly clearedThinking?: readonly string[]
  /** What wrote the summary: the model, the provider's compaction block, the session notes, or the local extractor. */
  readonly summarizer?: 'model' | 'block' | 'notes' | 'local'
  readonly fallbackReason?: string
  /** Number of records that the local extractor summarized because no model did. */
  readonly recordsCoveredLocally?: number
}

/**
 * How tool results are cleared. With `cached` and `native` the messages stay unchanged and the provider removes the
 * text. Logs of other programs do not state the mode; there, a clearing changes the messages.
 */
export type ClearMode = 'idle' | 'budget' | 'cached' | 'native'

export interface MicrocompactMetadata {
  readonly trigger: string
  /** How the content was cleared. `size` means that images were removed to keep the API request within its size limit. */
  readonly way?: ClearMode | 'size'
  /** For mode `cached`: uuid of the record after which every later API request sends the deletions. */
  readonly anchorUuid?: string
  readonly preTokens: number
  readonly tokensSaved: number
  readonly compactedToolIds: readonly string[]
  readonly clearedAttachmentUUIDs: readonly string[]
  /** Where the text of each cleared tool result can be found, by tool call id. Second line of the placeholder. */
  readonly notes?: Readonly<Record<string, string>>
  /** Large tool call inputs that were cleared. */
  readonly clearedInputs?: readonly ClearedInput[]
  /** Images and documents that were replaced by placeholders. */
  readonly clearedMedia?: readonly ClearedMedia[]
  /** The `message.id` of responses whose thinking this clearing drops. */
  readonly clearedThinking?: readonly string[]
}

interface ClearedMedia {
  /** uuid of the record that contains the cleared image or document. */
  readonly uuid: string
  /** Id of the tool call whose result contains the media; absent for media directly in the message. */
  readonly toolUseId?: string
  /** Index, from 0, of the image or document among all images and documents of the tool result or message. */
  readonly nth: number
}

export interface ClearedInput {
  readonly toolUseId: string
  readonly field: string
}

// Model calls outside the conversation, and cache losses. They are logged to compute the cost of a session.

/** Data of a `model_call` record: a call outside the conversation (a summary, a cache-sharing fork call, an empty reply). */
interface LoggedModelCall {
  /** Message id of the response. */
  readonly id: string
  /** What made the model call, for example `compact` or `session_memory`. */
  readonly source: string
  readonly model: string
  /** Usage of the model call in the provider's own fields. */
  readonly usage: JsonObject
  /** The tokens of the call. The log has them only if they cannot be read from `usage`. */
  readonly tokens?: TokenUsage
}

/** Data of a `cache_loss` record: tokens that were processed again although they could have been read from the cache. */
export interface CacheLoss {
  /** `break` for a cache break, `act` for a compaction or clearing by the engine. */
  readonly kind: 'break' | 'act'
  readonly source: string
  /** Cause of the cache break (`tools-added`, `expired` …), or what the engine's compaction or clearing did. */
  readonly reason: string
  readonly tokens: number
  /** Dollars that the tokens cost above the price of reading them from the cache; null if a price was unknown. */
  readonly usd: number | null
  /** A sentence that describes this cache loss to the user. */
  readonly sentence: string
}

// The end of a turn. A turn ends when a user message contains anything other than tool results: text, an image, or a
// reminder next to a tool result. Some models then drop the thinking of the finished turn.

/** True for a block of a user message that ends the turn before it: any but a tool result or a deletion from the cache. */
export function isNewTurnBlock(block: Block): boolean {
  return block.type !== 'tool_result' && !isCacheDeletionBlock(block)
}

/** True for a user message with content other than tool results, which ends the turn before it. */
export function isNewTurnMessage({
  role,
  content,
}: {
  readonly role: string
  readonly content: MessageContent
}): boolean {
  return role === 'user' && content !== '' && toBlocks(content).some(isNewTurnBlock)
}

// Moves: records with which the conversation goes to another branch of the log, by a rewind or a new conversation.

/** Subtype of a record with which the conversation goes back to an earlier record, its parent. */
export const REWIND_SUBTYPE = 'conversation_rewound'

/** Subtype of a record with which the conversation begins anew; it has no parent. */
export const NEW_CONVERSATION_SUBTYPE = 'conversation_cleared'

/**
 * A record that moves the conversation to another branch. `logicalParentUuid` is the last record of the branch that it
 * leaves; `of` is the earlier move that it undoes, if it does.
 */
export interface BranchSwitch extends SystemRecord {
  readonly subtype: typeof REWIND_SUBTYPE | typeof NEW_CONVERSATION_SUBTYPE
  readonly logicalParentUuid: string | null
  /** True if the engine took back prompts that were too long for a request. An undo without an id passes over it. */
  readonly isWithdrawal?: boolean
}

export function isBranchSwitch(record: SessionRecord): record is BranchSwitch {
  if (record.type !== 'system' || record.isSidechain === true) return false
  const { subtype } = record as SystemRecord
  return subtype === REWIND_SUBTYPE || subtype === NEW_CONVERSATION_SUBTYPE
}

/** Returns true for a record that undoes a compaction or a clearing. */
export function isUndoRecord(record: SessionRecord): record is SystemRecord {
  const { type, subtype } = record as SystemRecord
  return type === 'system' && (subtype === 'compact_undone' || subtype === 'clear_undone')
}

/** Returns true for a record at which a branch can begin: a prompt, or a record that moves to another branch. */
export function canStartBranch(record: SessionRecord): boolean {
  return isPrompt(record) || isBranchSwitch(record)
}

/** Ends deletions: a notice with this subtype says that they are no longer sent, because the provider's cache has expired. */
export const CACHE_DELETIONS_END: { readonly subtype: string } = { subtype: `${CACHE_DELETION_TYPE}_dropped` }

/** Returns true for the notice that deletions in the provider's cache are no longer sent (`CACHE_DELETIONS_END`). */
export function isCacheDeletionsEnd(record: object): boolean {
  return 'subtype' in record && record.subtype === CACHE_DELETIONS_END.subtype
}
