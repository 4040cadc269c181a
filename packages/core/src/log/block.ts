/**
 * Content blocks in the JSON shape of the Messages API, open to kinds nobody knows yet: a provider adds
 * new ones every month, and each passes through untouched. Read a block through the guards below.
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

/** What a message says: a string, or blocks. A string and one text block mean the same to a model. */
export type Content = string | readonly Block[]

export function isText(block: Block): block is TextBlock {
  return block.type === 'text' && typeof block.text === 'string'
}

export function isToolUse(block: Block): block is ToolUseBlock {
  return block.type === 'tool_use' && typeof block.id === 'string'
}

export function isToolResult(block: Block): block is ToolResultBlock {
  return block.type === 'tool_result' && typeof block.tool_use_id === 'string'
}

/** Thinking in any form: readable, signed without text, or redacted. */
export function isThinking(block: Block): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}

export function isMedia(block: Block): boolean {
  return block.type === 'image' || block.type === 'document'
}

/** A call that the provider runs itself (`server_tool_use`, `mcp_tool_use` …); its answer is a block of the model's own turn. */
export function isServerToolUse(block: Block): block is Block & { readonly id: string } {
  return block.type !== 'tool_use' && block.type.endsWith('_tool_use') && typeof block.id === 'string'
}

/** The answer to such a call: `web_search_tool_result`, `mcp_tool_result` … */
export function isServerToolResult(block: Block): block is Block & { readonly tool_use_id: string } {
  return block.type.endsWith('_tool_result') && typeof block.tool_use_id === 'string'
}

/** A provider's own summary block, which may stand first in a conversation. */
export function isCompactionBlock(block: Block): boolean {
  return block.type === 'compaction'
}

/** Deletions in the provider's prompt cache (see clearing/cached-clearing.ts): an instruction, and no part of the prompt. */
export function isCacheEdits(block: Block): boolean {
  return block.type === 'cache_edits'
}

/** A text block the provider would refuse: nothing in it but white space. */
export function isBlankText(block: Block): boolean {
  return isText(block) && block.text.trim() === ''
}

export function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value.type === 'string'
}

export function blocksOf(content: Content): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}
