/**
 * Encodes messages as input items of the Responses API. The items of a message do not depend on later messages, so
 * appending a message only appends items. Items that OpenAI created are sent back unchanged.
 */
import type { ApiMessage } from '@tidemark/core/context/payload'
import {
  type Block,
  isTextBlock,
  isToolResult,
  isToolUse,
  PROVIDER_ITEM_TYPE,
  readBlockOrigin,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { findJsonMember, isJsonObject, isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import { OPENAI_VENDOR } from './openai-errors.ts'

/** A message with the exact JSON texts of blocks that parsing and stringifying would change, by block index. */
interface ExactMessage {
  readonly message: ApiMessage
  readonly raw?: ReadonlyMap<number, string> | undefined
}

/**
 * Returns the input items of a message. `before`: the previous message, which has the calls of its results. `marked`:
 * indexes of the blocks that end a prefix to be cached.
 */
export function toInputItems(
  { message, raw }: ExactMessage,
  before: ApiMessage | undefined,
  marked: ReadonlySet<number> = NO_MARKS,
): readonly JsonObject[] {
  if (message.role === 'assistant') return toOutputItems(toBlocks(message.content), raw)
  const role = message.role === 'system' ? (readClientRole(toBlocks(message.content)) ?? 'developer') : 'user'
  const calls = toBlocks(before?.content ?? []).filter(isToolUse)
  const items: JsonObject[] = []
  let parts: JsonObject[] = []
  const endMessage = (): void => {
    if (parts.length > 0) items.push({ type: 'message', role, content: parts })
    parts = []
  }
  for (const [index, block] of toBlocks(message.content).entries()) {
    if (isToolResult(block)) {
      endMessage()
      items.push(toOutputOf(block, calls))
    } else if (isInputItem(block)) {
      endMessage()
      items.push(...toOwnItem(block))
    } else parts.push(...toInputParts(block, marked.has(index)))
  }
  endMessage()
  return items
}

/** True for an item of the list. Other content that no block describes, such as audio, is a part of a message. */
function isInputItem(block: Block): boolean {
  return block.type === PROVIDER_ITEM_TYPE && isClientItemType(String(readResponsesItem(block)?.type))
}

/** True for types of items, besides messages, that the client creates; all others come from the model. */
export function isClientItemType(type: string): boolean {
  return type.endsWith('_output') || INPUT_TYPES.has(type)
}

const INPUT_TYPES: ReadonlySet<string> = new Set([
  'mcp_approval_response',
  'additional_tools',
  'configuration_update',
  'compaction_trigger',
])

const NO_MARKS: ReadonlySet<number> = new Set()
/** Field of a part at whose end the prompt is cached, and its value. */
export const BREAKPOINT_FIELD = 'prompt_cache_breakpoint'
export const EXPLICIT_BREAKPOINT: JsonObject = { mode: 'explicit' }

/** Returns content parts of a user or developer message. A block without a counterpart in the API is sent as JSON text. */
function toInputParts(block: Block, isMarked: boolean): readonly JsonObject[] {
  const marker = isMarked ? { [BREAKPOINT_FIELD]: EXPLICIT_BREAKPOINT } : {}
  return [{ ...toInputPart(block), ...marker }]
}

export function toInputPart(block: Block): JsonObject {
  const own = readResponsesItem(block)
  if (own !== null && own.role === undefined) return own
  if (isTextBlock(block)) return { type: 'input_text', text: block.text }
  const source = block.source as Json | undefined
  if (isJsonObject(source)) {
    const url = toDataUrl(source)
    if (block.type === 'image' && url !== null) return { type: 'input_image', detail: 'auto', image_url: url }
    if (block.type === 'document') return toFilePart(block, source, url)
  }
  return { type: 'input_text', text: JSON.stringify(block) }
}

function toFilePart({ title }: Block, source: JsonObject, url: string | null): JsonObject {
  if (typeof source.data === 'string' && source.type === 'text')
    return { type: 'input_text', text: source.data }
  const filename = typeof title === 'string' ? title : 'document.pdf'
  if (source.type === 'url' && url !== null) return { type: 'input_file', file_url: url }
  return { type: 'input_file', filename, file_data: url ?? '' }
}

/** Returns the URL of an image or a document; for data, a `data:` URL. */
export function toDataUrl({ type, url, data, media_type: media }: JsonObject): string | null {
  if (type === 'url' && typeof url === 'string') return url
  return typeof data === 'string' && typeof media === 'string' ? `data:${media};base64,${data}` : null
}

/** Text before the result of a failed call, because the API has no field for failure. */
export const FAILED_NOTE = '[The call failed]\n'

function toOutputOf(result: ToolResultBlock, calls: readonly ToolUseBlock[]): JsonObject {
  const call = calls.find(({ id }) => id === result.tool_use_id)
  const kind = call === undefined ? undefined : readResponsesItem(call)?.type
  const type = kind === 'custom_tool_call' ? 'custom_tool_call_output' : 'function_call_output'
  return { type, call_id: result.tool_use_id, output: toOutput(result) }
}

function toOutput({ content = '', is_error: isError }: ToolResultBlock): string | readonly JsonObject[] {
  const note = isError === true ? FAILED_NOTE : ''
  if (typeof content === 'string') return note + content
  if (content.every(isTextBlock)) return note + content.map(({ text }) => text).join('\n')
  const parts = content.map(toInputPart)
  return note === '' ? parts : [{ type: 'input_text', text: note.trim() }, ...parts]
}

/** Returns the items of a response. Calls are sent without ids: the API refuses a call with an id whose reasoning is missing. */
function toOutputItems(
  blocks: readonly Block[],
  raw: ReadonlyMap<number, string> | undefined,
): readonly JsonObject[] {
  return blocks.flatMap((block, index) => {
    if (isToolUse(block)) return [toCallItem(block, raw?.get(index))]
    if (isTextBlock(block)) return block.text === '' ? [] : [toAnswerItem(block)]
    return toOwnItem(block)
  })
}

function toAnswerItem(block: Block): JsonObject {
  const part = { type: 'output_text', text: String(block.text), annotations: [] }
  return { type: 'message', role: 'assistant', ...readResponsesItem(block), content: [part] }
}

function toCallItem(block: ToolUseBlock, raw: string | undefined): JsonObject {
  const { id, name, input } = block
  const own = readResponsesItem(block) ?? {}
  if (own.type === 'custom_tool_call') return { ...own, call_id: id, name, input: readCustomToolInput(input) }
  const exact = raw === undefined ? undefined : findJsonMember(raw, 'input')
  const text = typeof own.arguments === 'string' ? own.arguments : (exact ?? JSON.stringify(input))
  return { type: 'function_call', ...own, call_id: id, name, arguments: text }
}

/** Returns the free text that is a custom tool's input: the field `input` of the block's input, else that input as JSON. */
export function readCustomToolInput(input: unknown): string {
  return isObject(input) && typeof input.input === 'string' ? input.input : JSON.stringify(input)
}

function toOwnItem(block: Block): readonly JsonObject[] {
  const item = readResponsesItem(block)
  return item === null ? [] : [item]
}

/** Returns the OpenAI item that a block was read from; null if it has none or came from another provider. */
export function readOpenaiItem(block: Block): JsonObject | null {
  const origin = readBlockOrigin(block)
  return origin?.vendor === OPENAI_VENDOR ? (origin.item ?? null) : null
}

/** As `readOpenaiItem`, but null if the block came by Chat Completions, whose parts this API refuses. */
function readResponsesItem(block: Block): JsonObject | null {
  const own = readOpenaiItem(block)
  return own === null || CHAT_ONLY_TYPES.has(String(own.type)) ? null : own
}

/** Types of content and calls that only Chat Completions has. */
export const CHAT_ONLY_TYPES: ReadonlySet<string> = new Set([
  'text',
  'image_url',
  'file',
  'refusal',
  'custom',
])

/** Returns the role that a client gave a system message; null if it is the usual one. */
export function readClientRole(blocks: readonly Block[]): string | null {
  const role = blocks[0] === undefined ? undefined : readOpenaiItem(blocks[0])?.role
  return typeof role === 'string' ? role : null
}
