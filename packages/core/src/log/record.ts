/**
 * A record: one line of a session's log. The field names are those of Claude Code's session JSONL, so that
 * sessions people already have load as they are; fields we do not know stay on the record and never reach a model.
 */
import { type Block, blocksOf, type Content, isCacheEdits, isText, isToolResult } from './block.ts'
import { isObject, type Json, type JsonObject } from './json.ts'

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
interface UserMessage {
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
interface Pin {
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

interface ProgressRecord extends RecordBase {
  readonly type: 'progress'
}

/** A line of a kind we do not know: kept, in its place, and skipped. It may have no uuid. */
interface OtherRecord extends Partial<RecordBase> {
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

// The two marks a rewrite leaves in the log: a compaction's and a clearing's.

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

/** The provider takes the text out of what it has; the messages stay as they are. */
export function isClearedRemotely({ way }: MicrocompactMetadata): boolean {
  return way === 'cached' || way === 'native'
}

/** An act of the engine that changes the view and can be taken back. */
export function isAct(record: SessionRecord): record is CompactBoundary | MicrocompactBoundary {
  return isCompactBoundary(record) || isMicrocompactBoundary(record)
}

/** A notice: the cache that deletions were made in has lapsed, so all that stand are sent no more. */
export const CACHE_EDITS_DROPPED = 'cache_edits_dropped'

/** The first line of what stands where a tool result was. */
export const CLEARED_TEXT = '[Old tool result content cleared]'

/** What a compaction and a clearing write into the log beside their mark. The field names are exact. */
export type CompactTrigger = 'auto' | 'manual'
export type CompactCause = 'threshold' | 'reactive' | 'prepared' | 'idle' | 'model-switch' | 'person'

/** Records kept verbatim, in order, behind the anchor. */
export interface PreservedMessages {
  readonly anchorUuid: string
  readonly uuids: readonly string[]
}

/** The older form: every record of the view from head to tail. */
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
  /** What the person gave with the request. */
  readonly userContext?: string
  readonly preCompactDiscoveredTools?: readonly string[]
  readonly preservedMessages?: PreservedMessages
  readonly preservedSegment?: PreservedSegment
  /** User messages without an answer: they come last, behind what was brought back. */
  readonly unansweredMessages?: PreservedMessages
  /** Kept responses (`message.id`) that lost their thinking: it was bound to what the summary stands for now. */
  readonly clearedThinking?: readonly string[]
  /** Who wrote the summary: the model, the provider's own block, the running notes, or no model at all. */
  readonly summarizer?: 'model' | 'block' | 'notes' | 'local'
  readonly fallbackReason?: string
  /** Records that no summariser was shown and the local extractor covered. */
  readonly recordsCoveredLocally?: number
}

/**
 * How results are cleared. `cached` and `native` leave the messages as they are: the provider takes the text
 * out of what it has. Absent in other programs' logs, where it is always the view that changes.
 */
export type ClearWay = 'idle' | 'budget' | 'cached' | 'native'

export interface MicrocompactMetadata {
  readonly trigger: string
  /** `size`: images were left out, for the bytes of the request. */
  readonly way?: ClearWay | 'size'
  /** `cached`: the record behind which the deletions are sent, with every later request, at the same place. */
  readonly anchorUuid?: string
  readonly preTokens: number
  readonly tokensSaved: number
  readonly compactedToolIds: readonly string[]
  readonly clearedAttachmentUUIDs: readonly string[]
  /** Where the text of a cleared result can be found, by tool call: the second line of what stands in its place. */
  readonly notes?: Readonly<Record<string, string>>
  /** Large inputs cleared: the call, and the field of its input that held the text. */
  readonly clearedInputs?: readonly ClearedInput[]
  /** Images and documents that are no longer shown. */
  readonly clearedMedia?: readonly ClearedMedia[]
  /** Responses (`message.id`) that lost their thinking with this clearing. */
  readonly clearedThinking?: readonly string[]
}

export interface ClearedMedia {
  /** The record it stands in. */
  readonly uuid: string
  /** The call whose result it stands in; absent for one that stands by itself. */
  readonly toolUseId?: string
  /** From 0, among the images and documents there. */
  readonly nth: number
}

export interface ClearedInput {
  readonly toolUseId: string
  readonly field: string
}

// What a log keeps of money beside its responses: calls that said nothing to the conversation, and what was lost
// of the cache. With these the bill of a session can be told from its log alone.

/** `model_call`: a call whose response is no part of the conversation. A fork, a summary, a reply that said nothing. */
interface LoggedCall {
  /** Of the response. */
  readonly id: string
  /** Who asked: `compact`, `session_memory` … */
  readonly source: string
  readonly model: string
  /** As the provider told it. */
  readonly usage: JsonObject
}

/** `cache_loss`: what was processed again that could have been read, as it was judged when it happened. */
export interface CacheLoss {
  /** A break, or the price of an act of the engine's own that was announced. */
  readonly kind: 'break' | 'act'
  readonly source: string
  /** In one word: `tools-added`, `expired` … For an act, what was done. */
  readonly reason: string
  readonly tokens: number
  /** Dollars above the price of a read; null where a price was not known. */
  readonly usd: number | null
  /** The line that a person was told. */
  readonly sentence: string
}

// What ends a turn. Models that keep the thinking of the present turn alone leave it out as soon as a user
// message holds anything but the results of calls: words, a picture, a reminder beside a result.

/** More than an answer to a call. Requests to the cache are not said to anybody. */
export function goesBeyondResults(block: Block): boolean {
  return block.type !== 'tool_result' && !isCacheEdits(block)
}

/** Is the turn before it over with this message? */
export function endsTurn({ role, content }: { readonly role: string; readonly content: Content }): boolean {
  return role === 'user' && content !== '' && blocksOf(content).some(goesBeyondResults)
}

// What the person typed, told apart from all else that stands under the role of the user.

/** Commands, their output and notices of an interruption: written into the person's place by the program. */
const NOT_TYPED = /^\s*(?:<command-|<local-command-|<bash-|\[Request interrupted)/

/**
 * The text of the person in a record, or null where it has none. A record that answers a tool call may have
 * one too: what the person said while turning the call down.
 */
export function typedText(record: SessionRecord): string | null {
  if (!isKnown(record) || record.type !== 'user' || record.message.role !== 'user') return null
  if (record.isMeta === true || record.isCompactSummary === true) return null
  const typed = blocksOf(record.message.content).flatMap((block) => (isText(block) ? [block.text] : []))
  const texts = typed.filter((text) => text.trim() !== '' && !NOT_TYPED.test(text))
  return texts.length === 0 ? null : texts.join('\n')
}
