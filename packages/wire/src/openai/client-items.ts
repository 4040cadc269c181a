/**
 * Reads the input items of a client of the Responses API as messages; the inverse of `input-items.ts`. Successive items
 * of one role become one message. Content that no block describes is kept as a whole item.
 */
import { type Block, PROVIDER_ITEM_TYPE } from '@tidemark/core/log/block'
import { isJsonObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { ClientMessage } from '../providers/client-request.ts'
import { withSystemRole } from './client-requests.ts'
import { isClientItemType } from './input-items.ts'
import { OPENAI_VENDOR } from './openai-errors.ts'
import { decodeOutputItem } from './output-blocks.ts'

interface ReadItems {
  readonly messages: readonly ClientMessage[]
  /** Exact texts of calls, by their id. */
  readonly exactCalls: ReadonlyMap<string, string>
  /** True if an item only refers to a stored item by its id. */
  readonly namesItems: boolean
}

/** Reads the `input` of a request. Returns null if it is neither a text nor a list of objects. */
export function readClientItems(input: Json | undefined): ReadItems | null {
  if (typeof input === 'string')
    return { messages: [{ role: 'user', content: input }], exactCalls: new Map(), namesItems: false }
  if (!Array.isArray(input) || !input.every(isJsonObject)) return null
  const messages: { role: ClientMessage['role']; content: Block[] }[] = []
  const exactCalls = new Map<string, string>()
  for (const item of input) {
    const { role, blocks: read } = readItem(item)
    const isLeading = messages.every((each) => each.role === 'system')
    const blocks: ReadItem['blocks'] =
      role === 'system' && !isLeading ? read.map(({ block }) => ({ block: keepRole(block, item) })) : read
    for (const { block, raw } of blocks) if (raw !== undefined) exactCalls.set(String(block.id), raw)
    const last = messages.at(-1)
    const content = blocks.map(({ block }) => block)
    // System messages are not joined.
    if (last?.role === role && role !== 'system') last.content.push(...content)
    else messages.push({ role, content })
  }
  return { messages, exactCalls, namesItems: input.some((item) => readItemType(item) === REFERENCE) }
}

function keepRole(block: Block, { role }: JsonObject): Block {
  return withSystemRole([block], String(role), 'developer')[0] ?? block
}

interface ReadItem {
  readonly role: ClientMessage['role']
  readonly blocks: readonly { readonly block: Block; readonly raw?: string }[]
}

function readItem(item: JsonObject): ReadItem {
  const { role, call_id: call, output } = item
  const type = readItemType(item)
  if (type === REFERENCE && typeof item.id === 'string')
    return { role: 'assistant', blocks: [{ block: toReference(item, item.id) }] }
  if (type === 'message' && role !== 'assistant') {
    const side = role === 'developer' || role === 'system' ? 'system' : 'user'
    return { role: side, blocks: readParts(item.content).map((block) => ({ block })) }
  }
  if (type === 'function_call_output' || type === 'custom_tool_call_output') {
    const content = typeof output === 'string' ? output : readParts(output)
    return { role: 'user', blocks: [{ block: { type: 'tool_result', tool_use_id: String(call), content } }] }
  }
  return {
    role: isClientItemType(String(type)) ? 'user' : 'assistant',
    blocks: decodeOutputItem({ ...item, type }),
  }
}

const REFERENCE = 'item_reference'

function readItemType({ type, role }: JsonObject): Json {
  return type ?? (role === undefined ? REFERENCE : 'message')
}

function toReference(item: JsonObject, refersTo: string): Block {
  return { type: PROVIDER_ITEM_TYPE, origin: { vendor: OPENAI_VENDOR, item, refersTo } }
}

function readParts(content: Json | undefined): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isJsonObject).map(readPart) : []
}

/** Reads a content part. A part with fields besides its text is kept whole, so that it is sent again unchanged. */
function readPart(part: JsonObject): Block {
  const origin = { origin: { vendor: OPENAI_VENDOR, item: part } }
  const { type, text, image_url: url, file_data: data, filename } = part
  if (typeof text === 'string' && (type === 'input_text' || type === 'output_text')) {
    const isPlain = type === 'input_text' && Object.keys(part).length === 2
    return { type: 'text', text, ...(isPlain ? {} : origin) }
  }
  if (type === 'input_image' && typeof url === 'string')
    return { type: 'image', source: toSource(url), ...origin }
  const address = data ?? part.file_url
  // Only OpenAI knows what a file id stands for.
  if (type !== 'input_file' || typeof address !== 'string') return { type: PROVIDER_ITEM_TYPE, ...origin }
  const title = typeof filename === 'string' ? { title: filename } : {}
  return { type: 'document', source: toSource(address), ...title, ...origin }
}

/** Returns the source of an image or document: the data if the URL contains it, else the URL. */
function toSource(address: string): JsonObject {
  const [, media, data] = /^data:([^;,]+);base64,(.*)$/s.exec(address) ?? []
  return media === undefined || data === undefined
    ? { type: 'url', url: address }
    : { type: 'base64', media_type: media, data }
}
