/**
 * A whole request of a client in the neutral form, with blocks as in the Messages API. Each protocol has a function
 * that reads its requests into this form.
 */
import type { Block, MessageContent } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import type { ClientMarker } from '@tidemark/core/request/cache-markers'

/** A message of a client's whole request, which may also be a system message within the conversation. */
export interface ClientMessage {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: MessageContent
  readonly [field: string]: unknown
}

export interface ClientRequest {
  readonly model: string
  /** The texts of the system prompt's blocks; null if the request has none because its message thread has them. */
  readonly system: readonly string[] | null
  readonly tools: readonly JsonObject[] | null
  readonly messages: readonly ClientMessage[]
  /** Parameters of the request that influence the answer of the model. */
  readonly parameters: JsonObject
  /** Fields of this one request, which no later request repeats, such as `stream` and `metadata`. */
  readonly ownFields: JsonObject
  /** True if the client reads the answer as a stream. */
  readonly isStream: boolean
  readonly markers: readonly ClientMarker[]
  /** The lifetime that the client's last cache marker asks for; undefined if the request has no markers. */
  readonly ttl: string | undefined
  /**
   * What the request continues if it does not have all messages: the id of a response, or the uuid of the record in
   * `compacted`. Null if it has all messages.
   */
  readonly continues: string | null
  /**
   * The place in a log up to which the conversation was compacted on the client's request. The request names it by an
   * item in its list or by the id that it continues. The provider knows neither.
   */
  readonly compacted?: CompactedLogPlace
  /** True if the messages refer to items stored by the provider, without their content. */
  readonly namesItems?: true
  /** True if the request asks for a compaction instead of an answer. */
  readonly asksCompaction?: true
  /**
   * Returns the exact JSON text, in the neutral form, of a tool call whose arguments parsing and stringifying would
   * change; undefined for other blocks. That text is recorded in `rawBlocks` and sent unchanged. Null if the text of
   * the request is not known. The function holds the whole text, so it must not outlive the request.
   */
  readonly findExactBlock: ((block: Block) => string | undefined) | null
  /**
   * The client's list as it wrote it, for protocols that can send it so. Absent if the request continues a stored response; its
   * `items` are null if the list has a compaction item of ours.
   */
  readonly list?: SplitClientList
}

/**
 * A client's list of messages or items as it wrote it, split at the end of its system prompt. Null for a part that the
 * engine encodes itself.
 */
export interface SplitClientList {
  readonly system: readonly JsonObject[] | null
  /** A text is a list with one prompt. */
  readonly items: readonly JsonObject[] | string | null
}

/** A place in the log of a session. `messages`: the client's messages before the item that names the place. */
export interface CompactedLogPlace {
  readonly session: string
  /** uuid of the last record that the item replaces. */
  readonly record: string
  readonly messages?: readonly ClientMessage[]
}

/** What a codec needs to answer a client that asks for a compaction. */
export interface CompactionAnswerInput {
  readonly place: CompactedLogPlace
  /** The body of the request. */
  readonly body: JsonObject
  /** `reply`: a normal request with an item that asks for a compaction. `compact`: a request to the compaction endpoint. */
  readonly kind: 'reply' | 'compact'
}
