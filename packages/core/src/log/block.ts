/**
 * Content blocks in the JSON shape of the Messages API. The set is open: providers keep adding block types, and an
 * unknown one passes through untouched. Read a block through the guards below.
 */
import { isObject, type Json } from './json.ts'

export interface Block {
  readonly type: string
  readonly [field: string]: unknown
}

interface TextBlock extends Block {
  readonly type: 'text'
  readonly text: string
}

export interface ToolUseBlock extends Block {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: Json
}

export interface ToolResultBlock extends Block {
  readonly type: 'tool_result'
  readonly tool_use_id: string
  readonly content?: string | readonly Block[]
  readonly is_error?: boolean
}

/** Content of a message: a string, or blocks. A string means the same as one text block. */
export type MessageContent = string | readonly Block[]

export function isText(block: Block): block is TextBlock {
  return block.type === 'text' && typeof block.text === 'string'
}

export function isToolUse(block: Block): block is ToolUseBlock {
  return block.type === 'tool_use' && typeof block.id === 'string'
}

export function isToolResult(block: Block): block is ToolResultBlock {
  return block.type === 'tool_result' && typeof block.tool_use_id === 'string'
}

/** Thinking in any form: with text, with only a signature, or redacted. */
export function isThinking(block: Block): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}

export function isMedia(block: Block): boolean {
  return block.type === 'image' || block.type === 'document'
}

/** A call that the provider runs itself (`server_tool_use`, `mcp_tool_use` …); its result is a block of the same assistant turn. */
export function isServerToolUse(block: Block): block is Block & { readonly id: string } {
  return block.type !== 'tool_use' && block.type.endsWith('_tool_use') && typeof block.id === 'string'
}

/** The result of a server tool call: `web_search_tool_result`, `mcp_tool_result` … */
export function isServerToolResult(block: Block): block is Block & { readonly tool_use_id: string } {
  return block.type.endsWith('_tool_result') && typeof block.tool_use_id === 'string'
}

/** A summary written by the provider; it may be the first block of a conversation. */
export function isCompactionBlock(block: Block): boolean {
  return block.type === 'compaction'
}

/** Deletions in the provider's prompt cache (clearing/cached-clearing.ts): an instruction, not part of the prompt. */
export function isCacheEdits(block: Block): boolean {
  return block.type === 'cache_edits'
}

/** A text block with only white space, which providers refuse. */
export function isBlankText(block: Block): boolean {
  return isText(block) && block.text.trim() === ''
}

export function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value.type === 'string'
}

export function toBlocks(content: MessageContent): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}
