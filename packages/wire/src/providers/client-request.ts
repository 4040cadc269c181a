/**
 * A whole request as a client sends it with every call, read into the neutral form: blocks in the shape of the Messages
 * API. Each protocol reads its own requests into it.
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
  /** The texts of the blocks of the system prompt; null if the request has none because its thread has it. */
  readonly system: readonly string[] | null
  readonly tools: readonly JsonObject[] | null
  readonly messages: readonly ClientMessage[]
  /** Fields that describe how the model answers. */
  readonly parameters: JsonObject
  /** Fields of this one request, which no later request repeats, such as `stream` and `metadata`. */
  readonly ownFields: JsonObject
  /** True if the client reads the answer as a stream. */
  readonly isStream: boolean
  readonly markers: readonly ClientMarker[]
  /** The lifetime that the client's last cache marker asks for; undefined if the request has no markers. */
  readonly ttl: string | undefined
  /**
   * What the request continues if it has not all messages: the id of a response, or the uuid of the record in `compacted`.
   * Null if it has all.
   */
  readonly continues: string | null
  /**
   * The place in a log for which an item of the list, or the id that it continues, stands, from a compaction that the client asked
   * for. The provider knows neither.
   */
  readonly compacted?: CompactedPlace
  /** True if the messages name items that the provider stores instead of having them. */
  readonly namesItems?: true
  /** True if the request asks for a compaction instead of an answer. */
  readonly asksCompaction?: true
  /**
   * Returns the exact JSON text, in the neutral form, of a tool call in the messages whose arguments parsing and
   * stringifying would change; undefined for all others. It is recorded in `rawBlocks` and sent as it came. Null if the
   * text of the request is not known. It holds that text, so it must not outlive the request.
   */
  readonly findExactBlock: ((block: Block) => string | undefined) | null
  /** The list as the client wrote it, for protocols in which it can go out so; absent if the request has not all messages. */
  readonly list?: ClientList
}

/** A client's list, split where its system prompt ends. Null for a part that the engine writes in its own way. */
export interface ClientList {
  readonly system: readonly JsonObject[] | null
  /** A text is a list of one prompt. */
  readonly items: readonly JsonObject[] | string | null
}

/** A place in the log of a session. `messages`: what the client's list has before the item that names the place. */
export interface CompactedPlace {
  readonly session: string
  /** uuid of the last record that the item stands for. */
  readonly record: string
  readonly messages?: readonly ClientMessage[]
}

/** What a codec needs to answer a client that asks for a compaction. */
export interface CompactionAnswer {
  readonly place: CompactedPlace
  /** The body of the request. */
  readonly body: JsonObject
  /** `reply`: the request was one for an answer, with an item that asks. `compact`: it had an address of its own. */
  readonly kind: 'reply' | 'compact'
}
