/** A request in the JSON shape of the Messages API. A codec in the `wire` package encodes it for a provider. */
import type { Block, MessageContent } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'

export type Role = 'user' | 'assistant' | 'system'

export interface ApiMessage {
  readonly role: Role
  readonly content: MessageContent
  /** The other fields that a mid-conversation system message may have (`clear_at`, the effort). */
  readonly [field: string]: unknown
}

export interface Payload {
  readonly model: string
  readonly system?: string | readonly Block[]
  readonly tools?: readonly JsonObject[]
  readonly messages: readonly ApiMessage[]
  readonly thinking?: JsonObject
  readonly tool_choice?: JsonObject
  readonly stream?: boolean
  /** Names of the beta features in use. The encoder for each provider decides where to send them, for example in a header. */
  readonly betas?: readonly string[]
  /** Any other field that a provider accepts (`metadata`, limits of the answer, context edits …). */
  readonly [field: string]: unknown
}
