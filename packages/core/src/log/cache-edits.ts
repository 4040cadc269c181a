/**
 * Cached clearing as the API and the log spell it. A tool result sent with a `cache_reference` can be deleted from the
 * provider's cached prefix: a `cache_edits` block names it, and every later request repeats the block, until a record says
 * that the cache has expired. Only this file knows these names. When to delete: `clearing/cached-clearing.ts`.
 */
import { type Block, isToolResult, type MessageContent, toBlocks } from './block.ts'
import { isObject } from './json.ts'

/** Creates the block that tells the provider to delete the results of these tool calls from its cached prefix. */
export function createCacheEdits(toolUseIds: readonly string[]): Block {
  const edits = toolUseIds.map((id) => ({ type: 'delete', cache_reference: id }))
  return { type: 'cache_edits', edits }
}

/** True for a block with deletions. It is an instruction to the cache and not part of the prompt. */
export function isCacheEditsBlock({ type }: Block): boolean {
  return type === 'cache_edits'
}

/** True for the content of a message that only deletes. */
export function isCacheEditsContent(content: MessageContent): boolean {
  const blocks = toBlocks(content)
  return blocks.length > 0 && blocks.every(isCacheEditsBlock)
}

/** True if `edits`, the field of a block with deletions, is as the provider expects it. */
export function isDeletionList(edits: unknown): boolean {
  const isDeletion = (edit: unknown): boolean =>
    isObject(edit) &&
    edit.type === 'delete' &&
    typeof edit.cache_reference === 'string' &&
    edit.cache_reference !== ''
  return Array.isArray(edits) && edits.every(isDeletion)
}

/** Adds the reference by which a tool result can be deleted, if it has none. Other blocks stay as they are. */
export function withCacheReference(block: Block): Block {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? { ...block, cache_reference: block.tool_use_id } : block
}

/** True for a block that only a provider with cached clearing takes. */
export function needsCacheEdits(block: Block): boolean {
  return isCacheEditsBlock(block) || block.cache_reference != null
}

/** What the record of a system notice says when deletions are no longer sent, because that cache has expired. */
export const CACHE_EDITS_END = { subtype: 'cache_edits_dropped' } as const

export function endsCacheEdits(record: object): boolean {
  return 'subtype' in record && record.subtype === CACHE_EDITS_END.subtype
}
