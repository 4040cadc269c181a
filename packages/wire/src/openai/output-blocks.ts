/**
 * Converts output items of the Responses API to content blocks. What a block cannot express is kept as the item of its
 * origin, so that the item can be sent back unchanged.
 */
import { type Block, PROVIDER_ITEM_TYPE, readBlockOrigin } from '@tidemark/core/log/block'
import {
  findUnstableJsonText,
  formatJsonObject,
  isJsonObject,
  type Json,
  type JsonObject,
  omitUndefined,
  parseJson,
  splitJsonObject,
  withJsonMember,
} from '@tidemark/core/log/json'
import { OPENAI_VENDOR } from './openai-errors.ts'

/**
 * A finished block of a reply. `raw`: its exact JSON text if it must be kept; `cutInput`: the text of an input that is
 * no JSON.
 */
export interface DecodedBlock {
  readonly block: Block
  readonly raw?: string
  readonly cutInput?: string
}

/** The origin of items. `account`: name of the account to which encrypted items are bound. */
interface ItemSource {
  readonly account?: string | undefined
  /** True if the provider stores the items. */
  readonly isStored?: boolean
}

/** Converts one output item to blocks: a message to one for each content part, any other item to one. */
export function decodeOutputItem(
  given: JsonObject,
  { account, isStored = false }: ItemSource = {},
): readonly DecodedBlock[] {
  const decoded = decodeItem(given, account)
  const { id } = given
  return isStored && typeof id === 'string' ? decoded.map((each) => withStoredId(each, id)) : decoded
}

function withStoredId({ block, ...decoded }: DecodedBlock, id: string): DecodedBlock {
  return { ...decoded, block: { ...block, origin: { vendor: OPENAI_VENDOR, ...readBlockOrigin(block), id } } }
}

function decodeItem(item: JsonObject, account: string | undefined): readonly DecodedBlock[] {
  switch (item.type) {
    case 'message':
      return toTextBlocks(item)
    case 'reasoning':
      return [{ block: toThinking(withoutStatus(item), account) }]
    case 'function_call':
      return [toFunctionCall(item, account)]
    case 'custom_tool_call':
      return [toCustomCall(withoutStatus(item), account)]
    default:
      return [{ block: toProviderItem(item, account) }]
  }
}

/**
 * Drops the status of a finished item, which the API does not need back: only some clients send it, and items must stay
 * equal.
 */
function withoutStatus({ status: _, ...item }: JsonObject): JsonObject {
  return item
}

/** Returns an item whole. The result of a call has the call's id, in a field of its own for some types. */
function toProviderItem(item: JsonObject, account: string | undefined): Block {
  const { type, id, call_id: call, approval_request_id: request } = item
  const isNamed = type === 'mcp_approval_request' || type === 'local_shell_call_output'
  const pair = call ?? request ?? (isNamed ? id : undefined)
  const { origin } = withOrigin(item, account)
  return {
    type: PROVIDER_ITEM_TYPE,
    origin: { ...Object(origin), ...(typeof pair === 'string' ? { pair } : {}) },
  }
}

function withOrigin(item: JsonObject, account: string | undefined): JsonObject {
  return { origin: { vendor: OPENAI_VENDOR, ...(account === undefined ? {} : { account }), item } }
}

/** `phase` tells a remark from the final answer. Models that set it want it sent back. */
function toTextBlocks({ content, phase }: JsonObject): readonly DecodedBlock[] {
  const parts: Json = typeof content === 'string' ? [{ text: content }] : (content ?? [])
  const own = typeof phase === 'string' ? { origin: { vendor: OPENAI_VENDOR, item: { phase } } } : {}
  return (Array.isArray(parts) ? parts.filter(isJsonObject) : []).map(({ text, refusal }) => {
    const said = text ?? refusal
    return { block: { type: 'text', text: typeof said === 'string' ? said : '', ...own } }
  })
}

function toThinking(item: JsonObject, account: string | undefined): Block {
  // Clients omit empty fields, so these are dropped here, too.
  const kept = Object.entries(item).filter(([, value]) => value !== null && !isEmptyList(value))
  const whole = { summary: [], ...Object.fromEntries(kept) }
  return { type: 'thinking', thinking: readReasoningText(item), ...withOrigin(whole, account) }
}

function isEmptyList(value: Json): boolean {
  return Array.isArray(value) && value.length === 0
}

/** Returns the text of a reasoning item, or of its summary. */
function readReasoningText({ content, summary }: JsonObject): string {
  return (
    [content, summary]
      .map((list) => (Array.isArray(list) ? list.filter(isJsonObject) : []))
      .map((parts) => parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n\n'))
      .find((text) => text !== '') ?? ''
  )
}

function toFunctionCall(item: JsonObject, account: string | undefined): DecodedBlock {
  const { call_id: call, name, arguments: text, namespace, caller } = item
  const rest = omitUndefined({ namespace, caller })
  const written = typeof text === 'string' ? text : ''
  const own = isJsonObject(parseJson(written)) ? rest : { ...rest, arguments: written }
  const block = { type: 'tool_use', id: String(call), name: String(name), input: {} }
  return withCallInput(
    Object.keys(own).length === 0 ? block : { ...block, ...withOrigin(own, account) },
    written,
  )
}

/**
 * Returns a call with the input that the model wrote. The exact text is kept where parsing and stringifying would change
 * it, because a changed text misses the cache.
 */
export function withCallInput(call: Block, written: string): DecodedBlock {
  if (written.trim() === '') return { block: call }
  const input = parseJson(written)
  if (input === undefined) return { block: call, cutInput: written }
  // The input of a tool call must be an object. Other values are kept in the origin of the block and sent back unchanged.
  if (!isJsonObject(input)) return { block: { ...call, input: { value: input } } }
  const block = { ...call, input }
  const members = withJsonMember(splitJsonObject(JSON.stringify(block)), 'input', written)
  const raw = findUnstableJsonText(formatJsonObject(members))
  return raw === undefined ? { block } : { block, raw }
}

/** Keeps arguments that are not a JSON object, so that they are sent back unchanged. */
export function keepNonObjectArguments(call: Block, written: string): Block {
  if (isJsonObject(parseJson(written))) return call
  return { ...call, origin: { vendor: OPENAI_VENDOR, item: { arguments: written } } }
}

/** Converts a call of a custom tool. Its free text becomes the field `input` of an object. */
function toCustomCall(item: JsonObject, account: string | undefined): DecodedBlock {
  const { id: _, call_id: call, name, input, ...rest } = item
  const text = typeof input === 'string' ? input : ''
  const block = { type: 'tool_use', id: String(call), name: String(name), input: { input: text } }
  return { block: { ...block, ...withOrigin(rest, account) } }
}
