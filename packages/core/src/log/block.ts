/**
 * Content blocks in the JSON shape of the Messages API. Providers keep adding block types, so a block of an unknown
 * type is passed through unchanged. The functions of this file tell the known types apart.
 */
import { isObject, type Json } from './json.ts'

export interface Block {
  readonly type: string
  readonly [field: string]: unknown
}

export interface TextBlock extends Block {
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

/** Content of a message: a string, or a list of blocks. A string means the same as one text block. */
export type MessageContent = string | readonly Block[]

type BlockGuard<B extends Block> = (block: Block) => block is B

/** Returns a type guard that accepts blocks of the given type if their field `field` is a string. */
function blockGuard<B extends Block>(type: string, field: string): BlockGuard<B> {
  return (block): block is B => block.type === type && typeof block[field] === 'string'
}

export const isTextBlock: BlockGuard<TextBlock> = blockGuard('text', 'text')
export const isToolUse: BlockGuard<ToolUseBlock> = blockGuard('tool_use', 'id')
export const isToolResult: BlockGuard<ToolResultBlock> = blockGuard('tool_result', 'tool_use_id')

/**
 * Returns true for a tool call that the provider runs itself (`server_tool_use`, `mcp_tool_use` …). Its result is a
 * block of the same assistant turn.
 */
export function isServerToolUse(block: Block): block is Block & { readonly id: string } {
  return block.type !== 'tool_use' && block.type.endsWith('_tool_use') && typeof block.id === 'string'
}

/** Returns true for the result of a server tool call: `web_search_tool_result`, `mcp_tool_result` … */
export function isServerToolResult(block: Block): block is Block & { readonly tool_use_id: string } {
  return block.type.endsWith('_tool_result') && typeof block.tool_use_id === 'string'
}

type BlockTest = (block: Block) => boolean

function ofType(...types: readonly string[]): BlockTest {
  return ({ type }) => types.includes(type)
}

/** True for thinking in any form: with text, with only a signature, or redacted. */
export const isThinkingBlock: BlockTest = ofType('thinking', 'redacted_thinking')
export const isMediaBlock: BlockTest = ofType('image', 'document')
/** True for a compaction block: a summary that the provider wrote. It may be the first block of a conversation. */
export const isCompactionBlock: BlockTest = ofType('compaction')

/** Returns true for a block of a system message that tells the provider to add or remove a tool. */
export function isToolChangeBlock({ type }: Block): boolean {
  return type === 'tool_addition' || type === 'tool_removal'
}

/** Returns true for a text block with only white space, which providers refuse. */
export function isBlankText(block: Block): boolean {
  return isTextBlock(block) && block.text.trim() === ''
}

export function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value.type === 'string'
}

export function toBlocks(content: MessageContent): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}
