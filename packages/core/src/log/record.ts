/**
 * Records: the lines of a session log. The field names are those of Claude Code's session JSONL, so existing sessions
 * load unchanged. Unknown fields stay on the record and never reach the model.
 */
import { type Block, isCacheEdits, isText, isToolResult, type MessageContent, toBlocks } from './block.ts'
import { isObject, type Json, type JsonObject } from './json.ts'

/** Records appended together share a batch; it is valid only when all `of` records are present. */
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
  /** Position in the log, from 1; `append(…, after, …)` compares it. Absent in other tools' logs. */
  readonly seq?: number
  readonly batch?: BatchStamp
  /** Belongs to another conversation (a subagent's) in the same file. */
  readonly isSidechain?: boolean
  /** Written by the engine or the host, not by the user. Hidden from the screen, never from the model. */
  readonly isMeta?: boolean
  /** The summary of a compaction. */
  readonly isCompactSummary?: boolean
  readonly isVisibleInTranscriptOnly?: boolean
  /**
   * Blocks that parse and stringify would change (integer-like keys, integers over 2^53, `1.0`, duplicate keys): the
   * exact text by index in `message.content`. These blocks are sent from this text.
   */
  readonly rawBlocks?: readonly RawBlockText[]
  /** Parts of this record's tool results that were spilled to blobs; the record itself holds their head and tail. */
  readonly spilled?: readonly SpilledContent[]
}

export interface SpilledContent {
  readonly toolUseId: string
  /** Index of the block in the result's content; null if the content was a string. */
  readonly part: number | null
  /** Id of the blob with the full content. */
  readonly blob: string
  /** The blob is the text as UTF-8, or the JSON of the whole block. */
  readonly holds: 'text' | 'block'
  readonly bytes: number
}

export interface RawBlockText {
  readonly index: number
  readonly text: string
}

/** Role `system` is a mid-conversation system message; its other fields are sent too. */
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
  /** With model `<synthetic>`: an error the engine wrote for the user; it never reaches the model. */
  readonly isApiErrorMessage?: boolean
}

/** Context that the host injects. The set of types is open; without a type it counts as `unknown`. */
export interface Attachment {
  readonly type?: string
  readonly [field: string]: Json | undefined
}

export interface AttachmentRecord extends RecordBase {
  readonly type: 'attachment'
  readonly attachment: Attachment
  /** For the screen only: left out of every request. */
  readonly isScreenOnly?: boolean
}

/** Notices, and the engine's own rewrites by `subtype`. None reaches the model. */
export interface SystemRecord extends RecordBase {
  readonly type: 'system'
  readonly subtype?: string
  readonly content?: string
  readonly level?: string
  readonly logicalParentUuid?: string | null
  readonly compactMetadata?: CompactMetadata
  readonly microcompactMetadata?: MicrocompactMetadata
  /** `compact_undone`, `clear_undone`: uuid of the boundary that is undone. */
  readonly of?: string
  /** The same subtypes: later responses (`message.id`) whose thinking is dropped, because it was signed for the undone context. */
  readonly clearedThinking?: readonly string[]
  readonly pin?: Pin
  readonly epoch?: PrefixSnapshot
  readonly delta?: PrefixUpdate
  readonly modelCall?: LoggedModelCall
  readonly cacheLoss?: CacheLoss
}

/** `pin`: the target must survive every rewrite verbatim, or no longer. The newest pin of a target decides. */
interface Pin {
  readonly target: string
  readonly pinned: boolean
}

/** `epoch`: the prefix snapshot: what the prefix of every request consists of until the next one. */
export interface PrefixSnapshot {
  readonly sections: readonly SnapshotSection[]
  readonly tools: readonly JsonObject[]
  readonly model: string
  readonly parameters: JsonObject
  /** Cache lifetime to request, decided when the snapshot was made. Absent in older logs. */
  readonly ttl?: SnapshotTtl
}

export interface SnapshotTtl {
  readonly name: string
  /** What decided it: a switch, the policy, the account, or the gaps between the session's calls. */
  readonly because: string
}

export interface SnapshotSection {
  readonly name: string
  readonly part: 'static' | 'dynamic' | 'volatile'
  readonly text: string
}

/**
 * `delta`: a change since the prefix snapshot (null: removed). It only records the change: an attachment of the same
 * batch announces it to the model, and the new text enters the prefix with the next snapshot.
 */
export interface PrefixUpdate {
  readonly sections?: Readonly<Record<string, string | null>>
  readonly tools?: Readonly<Record<string, JsonObject | null>>
  readonly parameters?: JsonObject
}

interface ProgressRecord extends RecordBase {
  readonly type: 'progress'
}

/** A record of an unknown type: kept in place and skipped. It may have no uuid. */
interface OtherRecord extends Partial<RecordBase> {
  readonly type: string
}

export type KnownRecord = UserRecord | AssistantRecord | AttachmentRecord | SystemRecord | ProgressRecord
export type SessionRecord = KnownRecord | OtherRecord

const KNOWN_TYPES = new Set(['user', 'assistant', 'attachment', 'system', 'progress'])

/** Decoding has checked the shape of every known type, so the type field is enough. */
export function isKnownRecord(record: SessionRecord): record is KnownRecord {
  return KNOWN_TYPES.has(record.type)
}

export const SYNTHETIC_MODEL = '<synthetic>'

/** An error the engine wrote as an assistant record. All three marks are needed, otherwise it is a real response. */
export function isSyntheticError(record: KnownRecord): boolean {
  return (
    record.type === 'assistant' &&
    record.isApiErrorMessage === true &&
    record.message.model === SYNTHETIC_MODEL
  )
}

/** A prompt of the user, where branches can fork: not meta, not a summary, not a tool result. */
export function isPrompt(record: SessionRecord): record is UserRecord {
  if (!isKnownRecord(record) || record.type !== 'user' || record.message.role !== 'user') return false
  if (record.isMeta === true || record.isCompactSummary === true) return false
  const { content } = record.message
  return typeof content === 'string' || !content.some((block: Block) => isToolResult(block))
}

// Boundaries: the records of a compaction and of a clearing.

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

/** The provider removes the text on its side; the messages stay unchanged. */
export function isClearedByProvider({ way }: MicrocompactMetadata): boolean {
  return way === 'cached' || way === 'native'
}

/** A rewrite of the context that can be undone. */
export function isRewriteBoundary(record: SessionRecord): record is CompactBoundary | MicrocompactBoundary {
  return isCompactBoundary(record) || isMicrocompactBoundary(record)
}

/** A notice: the cache with the deletions has expired, so they are no longer sent. */
export const CACHE_EDITS_DROPPED = 'cache_edits_dropped'

/** First line of the placeholder for a cleared tool result. */
export const CLEARED_RESULT_TEXT = '[Old tool result content cleared]'

export type CompactTrigger = 'auto' | 'manual'
export type CompactCause = 'threshold' | 'reactive' | 'prepared' | 'idle' | 'model-switch' | 'person'

/** Records kept verbatim, in order, after the anchor. */
export interface PreservedMessages {
  readonly anchorUuid: string
  readonly uuids: readonly string[]
}

/** The older form: every record of the context from head to tail. */
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
  /** Instructions the user gave with the request. */
  readonly userContext?: string
  readonly preCompactDiscoveredTools?: readonly string[]
  readonly preservedMessages?: PreservedMessages
  readonly preservedSegment?: PreservedSegment
  /** User messages without a response: they come last, after the re-attached context. */
  readonly unansweredMessages?: PreservedMessages
  /** Kept responses (`message.id`) whose thinking is dropped, because it was signed for the summarized context. */
  readonly clearedThinking?: readonly string[]
  /** What wrote the summary: the model, the provider's compaction block, the session notes, or the local extractor. */
  readonly summarizer?: 'model' | 'block' | 'notes' | 'local'
  readonly fallbackReason?: string
  /** Records that no model summarized, covered by the local extractor. */
  readonly recordsCoveredLocally?: number
}

/**
 * How results are cleared. With `cached` and `native` the messages stay unchanged and the provider removes the text.
 * Absent in other programs' logs, where clearing always changes the context.
 */
export type ClearMode = 'idle' | 'budget' | 'cached' | 'native'

export interface MicrocompactMetadata {
  readonly trigger: string
  /** `size`: images were removed to keep the request within its size limit. */
  readonly way?: ClearMode | 'size'
  /** `cached`: the record after which the deletions are sent, in the same place in every later request. */
  readonly anchorUuid?: string
  readonly preTokens: number
  readonly tokensSaved: number
  readonly compactedToolIds: readonly string[]
  readonly clearedAttachmentUUIDs: readonly string[]
  /** Where the text of a cleared result can be found, by tool call: second line of its placeholder. */
  readonly notes?: Readonly<Record<string, string>>
  /** Cleared large inputs. */
  readonly clearedInputs?: readonly ClearedInput[]
  /** Images and documents replaced by placeholders. */
  readonly clearedMedia?: readonly ClearedMedia[]
  /** Responses (`message.id`) whose thinking this clearing drops. */
  readonly clearedThinking?: readonly string[]
}

export interface ClearedMedia {
  /** The record that contains it. */
  readonly uuid: string
  /** The call whose result contains it; absent for media directly in the message. */
  readonly toolUseId?: string
  /** From 0, among the images and documents there. */
  readonly nth: number
}

export interface ClearedInput {
  readonly toolUseId: string
  readonly field: string
}

// Calls outside the conversation and cache losses. With these the cost of a session follows from its log alone.

/** `model_call`: a call whose response is not part of the conversation: a fork, a summary, an empty reply. */
interface LoggedModelCall {
  /** Id of the response. */
  readonly id: string
  /** What made the call: `compact`, `session_memory` … */
  readonly source: string
  readonly model: string
  /** As the provider reported it. */
  readonly usage: JsonObject
}

/** `cache_loss`: tokens processed again that could have been read from the cache, as judged at the time. */
export interface CacheLoss {
  /** A cache break, or the cost of one of the engine's own rewrites. */
  readonly kind: 'break' | 'act'
  readonly source: string
  /** `tools-added`, `expired` … For an own rewrite, what was done. */
  readonly reason: string
  readonly tokens: number
  /** Dollars above the price of a cache read; null if a price was unknown. */
  readonly usd: number | null
  /** The sentence shown to the user. */
  readonly sentence: string
}

// The end of a turn. Models that keep only the thinking of the current turn drop it as soon as a user message contains
// anything but tool results: text, an image, a reminder beside a result.

/** True for any block but a tool result. `cache_edits` do not count: they are instructions to the cache. */
export function isNewTurnContent(block: Block): boolean {
  return block.type !== 'tool_result' && !isCacheEdits(block)
}

/** True if this message ends the turn before it. */
export function endsTurn({
  role,
  content,
}: {
  readonly role: string
  readonly content: MessageContent
}): boolean {
  return role === 'user' && content !== '' && toBlocks(content).some(isNewTurnContent)
}

/** Commands, their output and interruption notices: user content written by a program. */
const PROGRAM_TEXT = /^\s*(?:<command-|<local-command-|<bash-|\[Request interrupted)/

/**
 * The text that the user typed in a record, or null. A record with a tool result may have one too: what the user
 * typed when rejecting the call.
 */
export function readTypedText(record: SessionRecord): string | null {
  if (!isKnownRecord(record) || record.type !== 'user' || record.message.role !== 'user') return null
  if (record.isMeta === true || record.isCompactSummary === true) return null
  const typed = toBlocks(record.message.content).flatMap((block) => (isText(block) ? [block.text] : []))
  const texts = typed.filter((text) => text.trim() !== '' && !PROGRAM_TEXT.test(text))
  return texts.length === 0 ? null : texts.join('\n')
}
