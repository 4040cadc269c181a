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

// A conversation laid flat: each block with whose it is and where in the request it came from.

export interface Piece {
  readonly role: Role
  /** Index of the message in the request, and of the block in it. */
  readonly message: number
  readonly index: number
  readonly block: Block
}

export function piecesOf(messages: readonly MessageParam[]): readonly Piece[] {
  const pieces: Piece[] = []
  for (let message = 0; message < messages.length; message += 1) {
    const entry = messages[message]
    if (entry === undefined) continue
    const blocks = blocksOf(entry.content)
    for (let index = 0; index < blocks.length; index += 1) {
      const block = blocks[index]
      if (block !== undefined) pieces.push({ role: entry.role, message, index, block })
    }
  }
  return pieces
}

export function pathOf(piece: Piece): string {
  return `messages.${piece.message}.content.${piece.index}`
}

/** Back to messages, one for each that still has something in it. */
export function messagesFrom(pieces: readonly Piece[]): readonly MessageParam[] {
  const messages: { role: Role; content: Block[] }[] = []
  let last: Piece | undefined
  for (const piece of pieces) {
    if (last === undefined || last.message !== piece.message) messages.push({ role: piece.role, content: [] })
    messages.at(-1)?.content.push(piece.block)
    last = piece
  }
  return messages
}

/** The names of the betas that gate a feature here, and which request has asked for which. */
export const BETA = {
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
  threads: 'message-threads-2026-08-12',
  taskBudgets: 'task-budgets-2026-03-13',
  interleavedThinking: 'interleaved-thinking-2025-05-14',
  advisor: 'advisor-tool-2026-03-01',
  fallback: 'server-side-fallback-2026-07-01',
  fastMode: 'fast-mode-2026-02-01',
} as const

/** Betas come comma-joined in one header, or in several of the same name. */
export function betasOf(header: string | null | undefined): ReadonlySet<string> {
  const names = (header ?? '').split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

/** Whether a beta of a family (`mcp-client-…`, whatever its date) is among them. */
export function hasFamily(betas: ReadonlySet<string>, family: string): boolean {
  for (const beta of betas) if (beta.startsWith(family)) return true
  return false
}
