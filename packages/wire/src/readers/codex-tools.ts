/** Converts Codex's tool calls, tool outputs and message content to content blocks. Other content is kept unchanged. */
import { type Block, isBlock } from '@tidemark/core/log/block'
import {
  formatJsonObject,
  isNestedTooDeep,
  isObject,
  type Json,
  parseJson,
  survivesJsonRoundTrip,
} from '@tidemark/core/log/json'
import type { RawBlockText } from '@tidemark/core/log/record'
import type { JsonFields } from './codex-line.ts'

interface ToolUse {
  readonly block: Block
  /** Exact JSON text of the block if parsing and stringifying its arguments would change them; otherwise empty. */
  readonly raw: readonly RawBlockText[]
}

/** Converts a tool call into a `tool_use` block. Returns null if the call has no tool name. */
export function toToolUse(item: JsonFields, id: string): ToolUse | null {
  const name = readToolName(item)
  if (name === null) return null
  const given = item.arguments
  const parsed = typeof given === 'string' ? parseArguments(given) : undefined
  const block = { type: 'tool_use', id, name, input: readToolInput(item, parsed) }
  const isExact = typeof given !== 'string' || !isObject(parsed) || survivesJsonRoundTrip(given)
  return { block, raw: isExact ? [] : [{ index: 0, text: encodeToolUse({ id, name }, given) }] }
}

/** Parses tool arguments. Returns undefined if the text is not JSON or is nested too deeply. */
function parseArguments(text: string): Json | undefined {
  const value = parseJson(text)
  return isNestedTooDeep(value) ? undefined : value
}

/**
 * Returns the id by which a tool output refers to this tool call; null if there is none. Older local shell calls have
 * only an item id.
 */
export function readToolCallId(item: JsonFields): string | null {
  if (typeof item.call_id === 'string' && item.call_id !== '') return item.call_id
  return item.type === 'local_shell_call' && typeof item.id === 'string' ? item.id : null
}

/** Converts a tool output into a `tool_result` block for the call `id`. Returns null if its content cannot be read. */
export function toToolResult(item: JsonFields, id: string): Block | null {
  if (item.type === 'tool_search_output')
    return createToolResult(id, Array.isArray(item.tools) ? JSON.stringify(item.tools) : null)
  const { output } = item
  if (!isObject(output)) return createToolResult(id, readResultContent(output))
  const block = createToolResult(id, readResultContent(output.content))
  return block !== null && output.success === false ? { ...block, is_error: true } : block
}

function createToolResult(id: string, content: string | readonly Block[] | null): Block | null {
  return content === null ? null : { type: 'tool_result', tool_use_id: id, content }
}

const BUILT_IN_TOOL_NAMES: ReadonlyMap<unknown, string> = new Map([
  ['local_shell_call', 'local_shell'],
  ['tool_search_call', 'tool_search'],
])

function readToolName({ type, name, namespace }: JsonFields): string | null {
  const own = BUILT_IN_TOOL_NAMES.get(type) ?? name
  if (typeof own !== 'string' || own === '') return null
  if (typeof namespace !== 'string' || namespace === '') return own
  return namespace.endsWith('__') ? `${namespace}${own}` : `${namespace}__${own}`
}

/**
 * Returns the input of a tool call, which must be an object. Free text, and arguments that are not a JSON object, are
 * put into a field of an object.
 */
function readToolInput(item: JsonFields, parsed: Json | undefined): unknown {
  if (isObject(parsed)) return parsed
  if (isObject(item.arguments)) return item.arguments
  if (item.arguments !== undefined) return { arguments: item.arguments }
  return item.action === undefined ? { input: item.input ?? '' } : { action: item.action }
}

function encodeToolUse({ id, name }: { readonly id: string; readonly name: string }, given: string): string {
  const texts = { type: '"tool_use"', id: JSON.stringify(id), name: JSON.stringify(name), input: given }
  return formatJsonObject(Object.entries(texts).map(([key, text]) => ({ key, text })))
}

/**
 * Returns the content of a tool result. A string is not converted to blocks, because the model received it as a string.
 */
function readResultContent(content: unknown): string | readonly Block[] | null {
  return typeof content === 'string' ? content : toCodexBlocks(content)
}

/** Converts message content into blocks. Returns null if it is neither a string nor a list of objects with a type. */
export function toCodexBlocks(content: unknown): readonly Block[] | null {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content) || !content.every(isBlock)) return null
  return content.map(toBlock)
}

/** Returns the text of message content, with its blocks joined by newlines; empty if there is no text. */
export function readContentText(content: unknown): string {
  const blocks = toCodexBlocks(content) ?? []
  const texts = blocks.flatMap((block) => (typeof block.text === 'string' ? [block.text] : []))
  return texts.join('\n')
}

const TEXT_TYPES = new Set(['input_text', 'output_text', 'summary_text', 'reasoning_text', 'text'])

function toBlock(item: Block): Block {
  if (TEXT_TYPES.has(item.type) && typeof item.text === 'string') return { type: 'text', text: item.text }
  return item.type === 'input_image' ? toImageBlock(item) : item
}

const DATA_URL = /^data:([^;,]+);base64,/

function toImageBlock(item: Block): Block {
  const { image_url: url } = item
  if (typeof url !== 'string') return item
  const mediaType = DATA_URL.exec(url)?.[1]
  if (mediaType === undefined) return { type: 'image', source: { type: 'url', url } }
  const data = url.slice(url.indexOf(',') + 1)
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } }
}

/**
 * Makes tool call ids unique within a session. Some model providers number their calls from 0 in every response, so the
 * same id would refer to several calls.
 */
export interface UniqueCallIds {
  /** Returns a unique id for a new tool call. */
  assign(callId: string): string
  /** Returns the unique id of the newest tool call with this `call_id`. */
  resolve(callId: string): string
}

/** Keeps ids as they are: to match items of a compacted history with their originals, or to read a single item. */
export const UNCHANGED_IDS: UniqueCallIds = { assign: (id) => id, resolve: (id) => id }

export function createUniqueCallIds(): UniqueCallIds {
  const counts = new Map<string, number>()
  return {
    assign(callId) {
      const count = (counts.get(callId) ?? 0) + 1
      counts.set(callId, count)
      return numberCallId(callId, count)
    },
    resolve: (callId) => numberCallId(callId, counts.get(callId) ?? 1),
  }
}

function numberCallId(callId: string, count: number): string {
  return count === 1 ? callId : `${callId}#${count}`
}
