/**
 * A request as the engine builds it: neutral, in the JSON shape of the Messages API. A codec in `wire` turns
 * it into a provider's bytes.
 */
import type { Block, Content } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'

export type Role = 'user' | 'assistant' | 'system'

export interface ApiMessage {
  readonly role: Role
  readonly content: Content
  /** Fields of a system message in mid-conversation (`clear_at`, `output_config`). */
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
  /** Names of provider betas in force; a codec puts them where its provider wants them (a header). */
  readonly betas?: readonly string[]
  /** Everything else a provider takes (`metadata`, `context_management`, `output_config` …). */
  readonly [field: string]: unknown
}
