/**
 * The interface of one provider's protocol. Everything outside `wire` that depends on a provider's spelling asks a codec:
 * the connection to a model, and the drop-in under a client. All functions are pure; state is a value that is handed back.
 */
import type { Payload } from '@tidemark/core/context/payload'
import type { ModelCall } from '@tidemark/core/engine/ports'
import type { ModelFailure, Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import type { Steps } from '@tidemark/core/log/work-steps'
import type { FailedCall } from '../failure/classify-failure.ts'
import type { ClientList, ClientMessage, ClientRequest, CompactionAnswer } from './client-request.ts'

export interface ProviderCodec {
  /** Name of the protocol, as in `anthropic-messages`. */
  readonly name: string
  /** Name of the provider, as in telemetry. */
  readonly vendor: string
  /** What sentences call the API, as in `the Messages API`. */
  readonly title: string
  /** Address of the provider itself, without the paths below. */
  readonly baseUrl: string
  /** Path of each kind of request, from the base URL on. Only `reply` must exist. */
  readonly paths: Readonly<Partial<Record<RouteKind, string>> & { readonly reply: string }>
  /** The content type of a streamed reply. Default: `text/event-stream`. */
  readonly streamType?: string

  /** Returns the headers of every request: credentials and version. */
  authorize(credentials: Credentials, version?: string): TextHeaders
  /** Encodes the body of a model call in steps, so that a long history that is all new does not block the process. */
  encode(call: ModelCall, options: EncodeOptions): Steps<EncodedRequest>
  /** Returns the body of a request as an object, for callers that send it with an SDK. */
  toBody(payload: Payload): JsonObject
  /** Returns the headers that a body needs beside those of `authorize`; empty if it needs none. */
  toBodyHeaders(payload: Payload): TextHeaders

  /** Decodes the bytes of a streamed reply. */
  readonly decode: ReplyDecoder
  /** Decodes a reply that is one JSON body. */
  decodeBody(text: string): DecodedBody
  /** Classifies an error response, or an error inside a stream. */
  toFailure(response: FailedCall): ModelFailure

  /** What `tidemark.fetch` and the proxy need to stand between a client and the provider. */
  readonly client: ClientCodec
}

/** How requests of a client are read and answered. */
export interface ClientCodec {
  /** Returns what a POST to this path asks for; null if it is no request of this protocol. */
  matches(path: string): RouteKind | null
  /**
   * True if the headers show a client of this provider. Decides for paths that several providers have, such as that of the
   * models: the first provider of the list that knows the client gets the request.
   */
  knowsClient(headers: HeaderReader): boolean
  /** Returns a request in the neutral form; null if the engine cannot take it. */
  readRequest(given: ReceivedRequest): ClientRequest | null
  /** Adds to the engine's request what the client's own has for itself, and says which headers change. */
  writeRequest(engine: EncodedRequest, client: ClientRequest): WrittenRequest
  /** Returns the body of a request to count tokens with these messages instead of its own. */
  writeCount(body: JsonObject, messages: readonly ClientMessage[]): JsonObject
  /** Header that lists the betas of a request; null if the protocol has none. */
  readonly betaHeader: string | null
  /** Headers of a request that describe its body, so that a call of the engine replaces those of the client. */
  readonly bodyHeaders: readonly string[]
  /**
   * How clients send the arguments of a call back: as the `text` that they got, or as a `value`, which they parse and write
   * in their own way.
   */
  readonly argumentsAs: 'text' | 'value'
  /** Returns the names that a request gives its conversation, the most specific first. */
  readConversationNames(headers: HeaderReader, body: JsonObject): readonly string[]
  /** True if no conversation begins with the request, as with one for a title. */
  isSideCall(request: ClientRequest): boolean

  /** True if the provider stores each response whose id a request can continue, with all that came before it. */
  readonly storesResponses?: true
  /** True if a request may be refused within the stream of its answer, before anything was generated. */
  readonly mayRefuseInStream?: true
  /** What keeps a stream alive before the reply begins, as bytes of the stream. */
  readonly ping: string
  /** Returns an error in the provider's shape, as a response body. 402: a limit of money or use is reached. */
  refuse(status: number, message: string): JsonObject
  /** Returns the body of an error response, in whatever shape, as bytes of a stream that has begun. */
  writeErrorEvent(body: string): string
  /** Returns a reply that the engine gives itself, as a response body or as the bytes of a stream. */
  writeReply(reply: Reply, isStream: boolean): string
  /** Returns the answer to a request that asks for a compaction. Without it, clients of the protocol cannot ask for one. */
  writeCompaction?(answer: CompactionAnswer): string
  /** Returns a response body without the model's thinking. */
  removeThinking(body: string): string
  /** Takes the model's thinking out of the bytes of a stream. */
  readonly thinkingFilter: StreamFilter
}

/** `reply`: an answer of the model. `count`: the tokens of a request. `compact`: a compaction by the provider. */
export type RouteKind = 'reply' | 'count' | 'compact'

export type TextHeaders = Readonly<Record<string, string>>

/** `key`: in the provider's own header. `bearer`: in `authorization`. */
export interface Credentials {
  readonly style: 'key' | 'bearer'
  readonly secret: string
}

/** The part of `Headers` that reads. */
export interface HeaderReader {
  get(name: string): string | null
}

export interface EncodeOptions {
  /** Fields to add to the body, such as `stream`. */
  readonly fields?: JsonObject
  /** `state` of the last body of this conversation, so that only new messages are encoded. */
  readonly previous?: unknown
  /** Parts of the list that go out as a client wrote them. */
  readonly list?: ClientList
  /** What the codec made of messages of earlier bodies, for requests that alternate. */
  readonly texts?: MessageCache
}

/** A cache by message, for the codec alone. It may forget at any time; a purely functional codec cannot have one itself. */
export interface MessageCache {
  get(message: object): unknown
  set(message: object, made: object): void
}

export interface EncodedRequest {
  /** The JSON text of the body. */
  readonly text: string
  /** The headers that the body needs. */
  readonly headers: TextHeaders
  /** What the next call of `encode` gets as `previous`. */
  readonly state: unknown
}

/**
 * Decodes a stream in steps. `State` belongs to the codec. The events of a reply end with exactly one `reply-ended` or
 * `reply-failed`.
 */
export interface ReplyDecoder<State = unknown> {
  readonly initial: State
  step(state: State, chunk: Uint8Array): readonly [State, readonly ReplyEvent[]]
  /** Ends a reply whose connection has closed. `cause`: why; by default, that it closed too early. */
  finish(state: State, cause?: ModelFailure): readonly ReplyEvent[]
}

/** Changes the bytes of a stream in steps. `State` belongs to the codec. */
export interface StreamFilter<State = unknown> {
  readonly initial: State
  step(state: State, chunk: Uint8Array): readonly [State, Uint8Array]
}

export type DecodedBody =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly failure: ModelFailure }

export interface ReceivedRequest {
  /** The parsed body. It is kept, so the caller must not change it later. */
  readonly body: JsonObject
  readonly headers: HeaderReader
  /** The text of the body, if there is one: exact texts of blocks are read from it. */
  readonly text?: string
}

export interface WrittenRequest {
  readonly text: string
  /** Headers to set; null for one to remove. */
  readonly headers: Readonly<Record<string, string | null>>
}
