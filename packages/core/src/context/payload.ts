/** A request in the JSON shape of the Messages API. A codec in `wire` turns it into a provider's bytes. */
import type { Block, MessageContent } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'

export type Role = 'user' | 'assistant' | 'system'

export interface ApiMessage {
  readonly role: Role
  readonly content: MessageContent
  /** Fields of a mid-conversation system message (`clear_at`, `output_config`). */
  readonly [field: string]: unknown
}

export interface Payload {
  readonly model: string
  readonly max_tokens?: number
  readonly system?: string | readonly Block[]
  readonly tools?: readonly JsonObject[]
  readonly messages: readonly ApiMessage[]
  readonly thinking?: JsonObject
  readonly tool_choice?: JsonObject
  readonly stream?: boolean
  /** Beta features in use; a codec sends them where its provider expects them (a header). */
  readonly betas?: readonly string[]
  /** Any other field a provider accepts (`metadata`, `context_management`, `output_config` …). */
  readonly [field: string]: unknown
}
