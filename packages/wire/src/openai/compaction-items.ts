/**
 * The `compaction` items that Tidemark answers with if a client of the Responses API asks for a compaction: each names the
 * place in the log up to which it stands for the conversation. Clients treat them as opaque and send them back.
 */
import { isJsonObject, type Json, type JsonObject, parseJson } from '@tidemark/core/log/json'
import type { CompactedPlace, CompactionAnswer } from '../providers/client-request.ts'

/** What tells our items from those of the provider, which only it can read. */
const MARK = 'tidemark.'

export function createCompactionItem({ session, record }: CompactedPlace): JsonObject {
  const place = toHex(JSON.stringify({ session, record }))
  return { id: `cmp_${record}`, type: 'compaction', encrypted_content: MARK + place }
}

/** Returns the place that an item of ours names; null for all other items. */
export function readCompactedPlace(item: JsonObject): CompactedPlace | null {
  const { type, encrypted_content: content } = item
  if (type !== 'compaction' || typeof content !== 'string' || !content.startsWith(MARK)) return null
  const place = parseJson(fromHex(content.slice(MARK.length)))
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

/** An item of the input that asks for a compaction. It must be the last one. */
export function isCompactionTrigger(item: Json | undefined): boolean {
  return isJsonObject(item) && item.type === 'compaction_trigger'
}

/** No model was asked, so that nothing is billed. */
export const NO_USAGE: JsonObject = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
}

/** Returns the answer to `/responses/compact`: the messages of the user, as the provider keeps them, and the item. */
export function createCompactionBody({ place, id, body }: CompactionAnswer): JsonObject {
  const { input } = body
  const items =
    typeof input === 'string' ? [{ role: 'user', content: input }] : Array.isArray(input) ? input : []
  const users = items.filter(isUserMessage).map((item, index) => ({
    id: `msg_${id}_${index}`,
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
    usage: NO_USAGE,
  }
}

function isUserMessage(item: Json): item is JsonObject {
  return isJsonObject(item) && item.role === 'user' && (item.type ?? 'message') === 'message'
}
