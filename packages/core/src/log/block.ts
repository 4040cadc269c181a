/**
 * Content blocks in the JSON shape of the Messages API, tests that tell their types apart, and the few message fields whose
 * names in the log are that API's. A block of an unknown type is passed through unchanged, since providers keep adding types.
 * The architecture test keeps words of one provider's protocol out of the other files of core.
 */
import { isObject, type Json, type JsonObject } from './json.ts'

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

/** True for a block of the type that has its required string (`text`, `id`, `tool_use_id`). */
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

/**
 * Who made a block that only its maker can read, such as encrypted reasoning. Blocks without an origin come from the
 * provider whose block shapes these are.
 */
interface BlockOrigin {
  readonly vendor: string
  /** Name of the account, for items that are bound to it. */
  readonly account?: string
  /** The provider's own item, if the block does not contain all of it. */
  readonly item?: JsonObject
  /** The id under which the provider stores the item, so that a client can name it instead of sending it. */
  readonly id?: string
  /** Set if the block only names an item by that id. */
  readonly refersTo?: string
  /** Id that the item shares with its counterpart, as a call does with its result: one is not sent without the other. */
  readonly pair?: string
}

/** Vendor and account that made an item; absent or null for blocks without an origin. */
interface ItemMaker {
  readonly vendor?: string | null
  readonly account?: string | null
}

/** Type of a block that carries an item of a provider whole, in `origin.item`, because no other type describes it. */
export const PROVIDER_ITEM_TYPE = 'provider_item'

/** Returns the origin of a block; null if it has none. */
export function readBlockOrigin({ origin }: Block): BlockOrigin | null {
  return isObject(origin) && typeof origin.vendor === 'string' ? (origin as unknown as BlockOrigin) : null
}

/** True for a block that means something to its provider only: thinking, server tools, items carried whole. */
export function isOpaqueBlock(block: Block): boolean {
  return (
    isThinkingBlock(block) ||
    block.type === PROVIDER_ITEM_TYPE ||
    isServerToolUse(block) ||
    isServerToolResult(block)
  )
}

/** True if another vendor or account than `target` made an opaque block or the provider's item behind a block. */
export function isForeignBlock(block: Block, target: ItemMaker): boolean {
  const origin = readBlockOrigin(block)
  return (origin !== null || isOpaqueBlock(block)) && !isSameOrigin(origin ?? {}, target)
}

/** An origin without an account fits every account of its vendor: under a client, the account is not known. */
function isSameOrigin(one: ItemMaker, other: ItemMaker): boolean {
  if ((one.vendor ?? null) !== (other.vendor ?? null)) return false
  return one.account == null || other.account == null || one.account === other.account
}

type BlockTest = (block: Block) => boolean

/** Returns a test for blocks of these types. */
function ofType(...types: readonly string[]): BlockTest {
  return ({ type }) => types.includes(type)
}

/** True for thinking in any form: with text, with only a signature, or redacted. */
export const isThinkingBlock: BlockTest = ofType('thinking', 'redacted_thinking')
/** True for an image or a document. */
export const isMediaBlock: BlockTest = ofType('image', 'document')

/** True for a block that counts towards a provider's image limit: every image, and every paged document such as a PDF. */
export function countsAsImage({ type, source }: Block): boolean {
  if (type === 'image') return true
  if (type !== 'document' || !isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

/** True for a compaction block: a summary that the provider wrote. It may be the first block of a conversation. */
export const isCompactionBlock: BlockTest = ofType('compaction')

/** True for a block of a system message that tells the provider to add or remove a tool. */
export const isToolChangeBlock: BlockTest = ofType('tool_addition', 'tool_removal')

/** Type of a block that deletes tool results from the provider's cache. `CACHE_DELETIONS_END` is derived from it. */
export const CACHE_DELETION_TYPE = 'cache_edits'
/**
 * True for a block of cached clearing (`clearing/cached-clearing.ts`): an instruction to the provider's cache, and no part of
 * the prompt.
 */
export const isCacheDeletionBlock: BlockTest = ofType(CACHE_DELETION_TYPE)

/** True for content of nothing but deletions from the provider's cache. */
export function hasOnlyCacheDeletions(content: MessageContent): boolean {
  const blocks = toBlocks(content)
  return blocks.length > 0 && blocks.every(isCacheDeletionBlock)
}

/** The field with the cache marker of a block, tool or request: what precedes it is cached. The provider defines its value. */
export const CACHE_MARKER_FIELD = 'cache_control'

/** The field with which a system message among the messages sets the effort from there on. The provider defines its value. */
export const EFFORT_FIELD = 'output_config'

/** The field that limits a system message among the messages to one turn. */
export const TURN_SCOPE_FIELD = 'clear_at'

/** Returns the provider's own word for why a reply ended, which is passed on and never interpreted; null if there is none. */
export function readStopReason(message: object): string | null {
  const { stop_reason: word } = message as { readonly stop_reason?: unknown }
  return typeof word === 'string' ? word : null
}

/** Returns the value without its cache marker; blocks inside keep theirs. */
export function withoutCacheMarker<T extends object>(value: T): T {
  if (!(CACHE_MARKER_FIELD in value)) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== CACHE_MARKER_FIELD)) as T
}

/** Returns true for a text block with only white space, which providers refuse. */
export function isBlankTextBlock(block: Block): boolean {
  return isTextBlock(block) && block.text.trim() === ''
}

export function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value.type === 'string'
}

export function toBlocks(content: MessageContent): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/** Joins the text blocks of a message, each on a line of its own. Other blocks are left out. */
export function joinTextBlocks(content: MessageContent): string {
  return toBlocks(content)
    .flatMap((block) => (isTextBlock(block) ? [block.text] : []))
    .join('\n')
}
