/**
 * The shapes that cross the wire, as the simulator sees them once a body has passed `validation/`. They are
 * open: what the rules do not look at passes through as it came.
 */
import type { Block, Json, JsonObject } from '@tidemark/core'

export type { Block, Json, JsonObject }

export type Role = 'user' | 'assistant' | 'system'

export interface MessageParam {
  readonly role: Role
  readonly content: string | readonly Block[]
  /** On a system message in mid-conversation: how long its text is shown. */
  readonly clear_at?: 'next_user_message' | 'never' | null
  readonly output_config?: JsonObject | null
}

/** The body of a request to `/v1/messages` or `/v1/messages/count_tokens`. */
export interface MessagesBody {
  readonly model: string
  readonly max_tokens?: number
  readonly messages: readonly MessageParam[]
  readonly system?: string | readonly Block[] | null
  readonly tools?: readonly JsonObject[] | null
  readonly tool_choice?: JsonObject | null
  readonly thinking?: JsonObject | null
  readonly output_config?: JsonObject | null
  readonly output_format?: JsonObject | null
  readonly cache_control?: JsonObject | null
  readonly context_management?: JsonObject | null
  readonly compaction?: JsonObject | null
  readonly diagnostics?: JsonObject | null
  readonly thread?: JsonObject | null
  readonly stop_sequences?: readonly string[] | null
  readonly speed?: string | null
  readonly stream?: boolean | null
  readonly [field: string]: unknown
}

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string and one text block mean the same. */
export function blocksOf(content: string | readonly Block[] | null | undefined): readonly Block[] {
  if (content === null || content === undefined) return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

export function isThinking(block: Block): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}

/** The answer to a call that the provider ran itself: `web_search_tool_result`, `mcp_tool_result` … */
export function isServerToolResult(block: Block): boolean {
  return block.type.endsWith('_tool_result')
}

/** A call that the provider runs itself: `server_tool_use`, `mcp_tool_use` … */
export function isServerToolUse(block: Block): boolean {
  return block.type.endsWith('_tool_use')
}

/** A field of a block that must be a string; empty where it is not. */
export function textField(block: Block, field: string): string {
  const value = block[field]
  return typeof value === 'string' ? value : ''
}
