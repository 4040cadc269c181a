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
