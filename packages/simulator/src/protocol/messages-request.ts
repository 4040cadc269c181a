/**
 * Types for a request body of the Messages API that has passed validation, and helpers to read blocks and betas. The
 * types are open: fields that no rule reads pass through unchanged.
 */
import type { Block } from '@tidemark/core/log/block'
import type { Json, JsonObject } from '@tidemark/core/log/json'

export type { Block, Json, JsonObject }

type Role = 'user' | 'assistant' | 'system'

export interface MessageParam {
  readonly role: Role
  readonly content: string | readonly Block[]
  /** How long the model sees a system message in mid-conversation. Other messages do not have this field. */
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

/** Returns true if two JSON values are equal. The keys of objects must be in the same order. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && isSameList(one, other)
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return isSameList(names, Object.keys(other)) && names.every((name) => isSameValue(one[name], other[name]))
}

function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => isSameValue(item, other[index]))
}

/** Converts message content to blocks. A string becomes one text block; null and undefined become an empty list. */
export function toBlocks(content: string | readonly Block[] | null | undefined): readonly Block[] {
  if (content === null || content === undefined) return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

export function isThinkingBlock(block: { readonly type: string }): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}

/** Checks whether a block is the result of a server tool, such as `web_search_tool_result` or `mcp_tool_result`. */
export function isServerToolResult(block: Block): boolean {
  return block.type.endsWith('_tool_result')
}

/** Checks whether a block is the call of a server tool, such as `server_tool_use` or `mcp_tool_use`. */
export function isServerToolUse(block: Block): boolean {
  return block.type.endsWith('_tool_use')
}

/** Returns the string in a field of a block; the empty string if the field is missing or has another type. */
export function readTextField(block: Block, field: string): string {
  const value = block[field]
  return typeof value === 'string' ? value : ''
}

/** A content block with its role and its location in the request. */
export interface RequestBlock {
  readonly role: Role
  /** Index of the message in the request. */
  readonly message: number
  /** Index of the block in the message. */
  readonly index: number
  readonly block: Block
}

/** Lists all blocks of a conversation in order. */
export function listMessageBlocks(messages: readonly MessageParam[]): readonly RequestBlock[] {
  const pieces: RequestBlock[] = []
  for (const [message, { role, content }] of messages.entries())
    for (const [index, block] of toBlocks(content).entries()) pieces.push({ role, message, index, block })
  return pieces
}

export function formatBlockPath(piece: RequestBlock): string {
  return `messages.${piece.message}.content.${piece.index}`
}

/**
 * Groups blocks into messages again after `listMessageBlocks`. Only role and content are restored, not `clear_at` or
 * `output_config`. A message is left out if all its blocks were removed.
 */
export function groupIntoMessages(pieces: readonly RequestBlock[]): readonly MessageParam[] {
  const messages: { role: Role; content: Block[] }[] = []
  let last: RequestBlock | undefined
  for (const piece of pieces) {
    if (last === undefined || last.message !== piece.message) messages.push({ role: piece.role, content: [] })
    messages.at(-1)?.content.push(piece.block)
    last = piece
  }
  return messages
}

/** Names of the betas that enable a feature of the simulator. */
export const BETA_NAMES = {
  contextManagement: 'context-management-2025-06-27',
  thresholdCompaction: 'compact-2026-01-12',
  onDemandCompaction: 'compact-2026-09-04',
  thinkingBinding: 'thinking-binding-controls-2026-08-01',
  thinkingTokenCount: 'thinking-token-count-2026-05-13',
  thinkingUpdates: 'thinking-display-updates-2026-08-18',
  toolChanges: 'mid-conversation-tool-changes-2026-07-01',
  inlineTools: 'inline-tools-2026-09-15',
  mcpListing: 'mcp-client-2026-09-15',
  clearAt: 'mid-conversation-system-clear-at-2026-08-21',
  messageOutputConfig: 'mid-conversation-output-config-2026-07-01',
  perTurnControl: 'per-turn-control-2026-07-01',
  threads: 'message-threads-2026-08-12',
  taskBudgets: 'task-budgets-2026-03-13',
  interleavedThinking: 'interleaved-thinking-2025-05-14',
  advisor: 'advisor-tool-2026-03-01',
  fallback: 'server-side-fallback-2026-07-01',
  fastMode: 'fast-mode-2026-02-01',
  safeguards: 'dangerous-tool-use-2026-09-03',
} as const

/** Parses the betas of an `anthropic-beta` header, in which commas separate the names. */
export function parseBetas(header: string | null | undefined): ReadonlySet<string> {
  const names = (header ?? '').split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

/**
 * Checks whether the set contains a beta of this family, regardless of its date. Example of a family: `mcp-client-`.
 */
export function hasBetaFamily(betas: ReadonlySet<string>, family: string): boolean {
  for (const beta of betas) if (beta.startsWith(family)) return true
  return false
}
