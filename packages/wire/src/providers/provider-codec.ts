/**
 * The interface of one provider's protocol. Code outside `wire` calls a codec for everything that depends on the
 * provider: the connection to a model, and the drop-in. All functions are pure; state is passed in and returned.
 */
import type { Payload } from '@tidemark/core/context/payload'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { ModelFailure, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { FailedResponse } from '../failure/classify-failure.ts'
import type {
  ClientMessage,
  ClientRequest,
  CompactionAnswerInput,
  SplitClientList,
} from './client-request.ts'

export interface ProviderCodec {
  /** Name of the protocol, as in `anthropic-messages`. */
  readonly name: string
  /** Name of the provider, as in telemetry. */
  readonly vendor: string
  /** Name of the API in messages, such as `the Messages API`. */
  readonly title: string
  /** Base URL of the provider itself, without the paths below. */
  readonly baseUrl: string
  /** Path of each kind of request, from the base URL on. Only `reply` must exist. */
  readonly paths: Readonly<Partial<Record<RouteKind, string>> & { readonly reply: string }>
  /** The content type of a streamed reply. Default: `text/event-stream`. */
  readonly streamType?: string

  /** Returns the headers of every request: credentials and version. */
  createHeaders(credentials: Credentials, version?: string): TextHeaders
  /** Encodes the body of a model call in steps, so that a long history that is all new does not block the process. */
  encode(call: ModelStreamInput, options: EncodeCallOptions): WorkInSteps<EncodedRequest>
  /** Returns the body of a request as an object, for callers that send it with an SDK. */
  toBody(payload: Payload): JsonObject
  /** Returns the headers that a body needs beside those of `createHeaders`; empty if it needs none. */
  toBodyHeaders(payload: Payload): TextHeaders

  /** Decodes the bytes of a streamed reply. */
  readonly decode: ReplyDecoder
  /** Decodes a reply that is one JSON body. */
  decodeBody(text: string): DecodeBodyResult
  /** Classifies an error response, or an error inside a stream. */
  toFailure(response: FailedResponse): ModelFailure

  /** What `tidemark.fetch` and the proxy need between a client and the provider. */
  readonly client: ClientCodec
}

/** How requests of a client are read and answered. */
export interface ClientCodec {
  /** Returns the kind of a POST to this path; null if the path does not belong to this protocol. */
  findRouteKind(path: string): RouteKind | null
  /**
   * True if the headers show a client of this provider. Decides for paths that several providers have, such as the
   * model list. The first provider in the list for which this is true gets the request.
   */
  isOwnClient(headers: HeaderReader): boolean
  /** Returns a request in the neutral form; null if the engine cannot handle it. */
  readRequest(given: ReceivedRequest): ClientRequest | null
  /** Adds the client's fields for this one request to the engine's request. Also returns the headers to change. */
  writeRequest(engine: EncodedRequest, client: ClientRequest): RewrittenRequest
  /** Returns the body of a request that counts the tokens of these messages instead of its own. */
  writeCount(body: JsonObject, messages: readonly ClientMessage[]): JsonObject
  /** Header that lists the betas of a request; null if the protocol has none. */
  readonly betaHeader: string | null
  /** Headers that describe the body. For a call of the engine, its own replace those of the client. */
  readonly bodyHeaders: readonly string[]
  /**
   * How clients send arguments of a call back: as the `text` that they got, or as a `value`, which they have parsed and
   * write in their own spelling.
   */
  readonly argumentsAs: 'text' | 'value'
  /** Returns the names that a request gives its conversation, the most specific first. */
  readConversationNames(headers: HeaderReader, body: JsonObject): readonly string[]
  /** True if no conversation begins with the request, as with one for a title. */
  isSideCall(request: ClientRequest): boolean

  /** True if the provider stores each response that a request can continue, and everything before it. */
  readonly storesResponses?: true
  /** True if the provider may refuse a request inside the response stream, before the model generates anything. */
  readonly mayRefuseInStream?: true
  /** Bytes that keep a stream alive before the reply begins. */
  readonly ping: string
  /** Returns an error in the provider's format, as a response body. 402: a limit of money or use is reached. */
  createErrorBody(status: number, message: string): JsonObject
  /** Returns the body of an error response, whatever its format, as bytes of a stream that has already begun. */
  writeErrorEvent(body: string): string
  /** Returns a reply that the engine itself gives, as a response body or as the bytes of a stream. */
  writeReply(reply: Reply, isStream: boolean): string
  /** Returns the response to a request for a compaction. If absent, clients of the protocol cannot ask for compactions. */
  writeCompaction?(answer: CompactionAnswerInput): string
  /**
   * Returns a response body without the thinking that a client could not send back; unchanged where clients keep it as
   * they like.
   */
  removeThinking(body: string): string
  /** Removes the same thinking from the bytes of a stream. */
  readonly thinkingFilter: StreamFilter
}

/** `reply`: a response of the model. `count`: a count of tokens. `compact`: a compaction by the provider. */
export type RouteKind = 'reply' | 'count' | 'compact'

type TextHeaders = Readonly<Record<string, string>>

/** The secret of a request, and where it is sent. `key`: in the provider's own header. `bearer`: in `authorization`. */
export interface Credentials {
  readonly style: 'key' | 'bearer'
  readonly secret: string
}

/** The method of `Headers` that codecs use. */
export interface HeaderReader {
  get(name: string): string | null
}

export interface EncodeCallOptions {
  /** Fields to add to the body, such as `stream`. */
  readonly fields?: JsonObject
  /** `state` of the last body of this conversation, so that only new messages are encoded. */
  readonly previous?: unknown
  /** Parts of the list that are sent as a client wrote them. */
  readonly list?: SplitClientList
  /** Encoded messages of earlier bodies, for requests that alternate between conversations. */
  readonly texts?: MessageCache
}

/** A cache of encoded messages for the codec, which is pure and cannot keep one itself. It may drop entries at any time. */
export interface MessageCache {
  get(message: object): unknown
  set(message: object, made: object): void
}

export interface EncodedRequest {
  /** The JSON text of the body. */
  readonly text: string
  /** The headers that the body needs. */
  readonly headers: TextHeaders
  /** The value for `previous` in the next call of `encode`. */
  readonly state: unknown
}

/**
 * Decodes a stream in steps. `State` belongs to the codec. The events of a reply end with exactly one `reply-ended` or
 * `reply-failed`.
 */
export interface ReplyDecoder<State = unknown> {
  readonly initial: State
  step(state: State, chunk: Uint8Array): readonly [State, readonly ReplyEvent[]]
  /** Ends a reply whose connection was closed. `cause`: the reason; by default, that it closed too early. */
  finish(state: State, cause?: ModelFailure): readonly ReplyEvent[]
}

/** Changes the bytes of a stream in steps. `State` belongs to the codec. */
export interface StreamFilter<State = unknown> {
  readonly initial: State
  step(state: State, chunk: Uint8Array): readonly [State, Uint8Array]
}

export type DecodeBodyResult =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly failure: ModelFailure }

/** A client's request as received. */
export interface ReceivedRequest {
  /** The parsed body. It is kept, so the caller must not change it later. */
  readonly body: JsonObject
  readonly headers: HeaderReader
  /** The text of the body, if there is one: exact texts of blocks are read from it. */
  readonly text?: string
}

/** A client's request as the engine sends it on: the whole body, and changes to the client's headers. */
export interface RewrittenRequest {
  readonly text: string
  /** Headers to set; null for one to remove. */
  readonly headers: Readonly<Record<string, string | null>>
}
