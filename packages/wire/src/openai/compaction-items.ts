/**
 * The `compaction` items with which Tidemark answers a client of the Responses API that asks for a compaction. An item
 * names a record in the log, and stands for the conversation up to that record. Clients treat items as opaque and send
 * them back.
 */
import { isJsonObject, type Json, type JsonObject, parseJson } from '@tidemark/core/log/json'
import type { CompactedLogPlace, CompactionAnswerInput } from '../providers/client-request.ts'

/** Prefixes by which Tidemark recognizes its own items and response ids; those of the provider never have them. */
const ITEM_MARK = 'tidemark.'
const ID_MARK = 'resp_tidemark_'

export function createCompactionItem(place: CompactedLogPlace): JsonObject {
  return { id: `cmp_${place.record}`, type: 'compaction', encrypted_content: ITEM_MARK + writePlace(place) }
}

/** Returns the place that an item of Tidemark names; null for other items. */
export function readCompactedPlace({
  type,
  encrypted_content: content,
}: JsonObject): CompactedLogPlace | null {
  return type === 'compaction' ? readPlace(content, ITEM_MARK) : null
}

/** Returns the id of the response with a compaction item. A client may continue that response by its id alone. */
export function createCompactedResponseId(place: CompactedLogPlace): string {
  return ID_MARK + writePlace(place)
}

/** Returns the place that the response id names if Tidemark created it; null for other ids. */
export function readCompactedResponseId(id: Json | undefined): CompactedLogPlace | null {
  return readPlace(id, ID_MARK)
}

function writePlace({ session, record }: CompactedLogPlace): string {
  return toHex(JSON.stringify({ session, record }))
}

function readPlace(text: Json | undefined, mark: string): CompactedLogPlace | null {
  if (typeof text !== 'string' || !text.startsWith(mark)) return null
  const place = parseJson(fromHex(text.slice(mark.length)))
  if (!isJsonObject(place)) return null
  const { session, record } = place
  return typeof session === 'string' && typeof record === 'string' ? { session, record } : null
}

function toHex(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function fromHex(text: string): string {
  const bytes = (text.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))
  return new TextDecoder().decode(Uint8Array.from(bytes))
}

/** Checks whether an item of the input asks for a compaction. Such an item must be the last one. */
export function isCompactionTrigger(item: Json | undefined): boolean {
  return isJsonObject(item) && item.type === 'compaction_trigger'
}

/** The usage of a compaction without a model call: nothing is billed. */
export const NO_COMPACTION_USAGE: JsonObject = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
}

/** Returns the response of `/responses/compact`: the user's messages, as the provider keeps them, and the compaction item. */
export function createCompactionBody({ place, body }: CompactionAnswerInput): JsonObject {
  const id = createCompactedResponseId(place)
  const { input } = body
  const items =
    typeof input === 'string' ? [{ role: 'user', content: input }] : Array.isArray(input) ? input : []
  const users = items.filter(isUserMessage).map((item, index) => ({
    id: `msg_${place.record}_${index}`,
    type: 'message',
    status: 'completed',
    ...item,
    content:
      typeof item.content === 'string' ? [{ type: 'input_text', text: item.content }] : (item.content ?? []),
  }))
  return {
    id,
    object: 'response.compaction',
    created_at: 0,
    output: [...users, createCompactionItem(place)],
    usage: NO_COMPACTION_USAGE,
  }
}

function isUserMessage(item: Json): item is JsonObject {
  return isJsonObject(item) && item.role === 'user' && (item.type ?? 'message') === 'message'
}
