/**
 * Stores responses (`store`, on by default) for `previous_response_id` and `item_reference`. Also stores after which
 * reasoning each item was generated, which the provider knows from the ids of items.
 */
import {
  createOpenaiError,
  createParameterError,
  type OpenaiError,
  type OpenaiResult,
  toOpenaiRefusal,
} from '../openai-error.ts'
import type { JsonFields } from '../openai-shape.ts'
import { type ItemWithPath, readItemType } from '../validation/responses-rules.ts'
import type { ResponsesBody } from '../validation/responses-shape.ts'

interface StoredResponse {
  readonly organization: string
  readonly previous: string | null
  /** Input of the request, without the items of earlier responses. */
  readonly input: readonly JsonFields[]
  readonly output: readonly JsonFields[]
  /** The response object, for `GET /v1/responses/{id}`. */
  readonly body: JsonFields
}

export interface StoredResponses {
  /**
   * Returns the whole conversation of a request: the items of `previous_response_id`, then its own. References are
   * replaced by stored items. Refused if a response or an item is not stored, or belongs to another organization.
   */
  collectConversation(
    body: ResponsesBody,
    organization: string,
  ): OpenaiResult<{ items: readonly ItemWithPath[] }>
  add(id: string, response: StoredResponse): void
  find(id: string, organization: string): JsonFields | undefined
  remove(id: string, organization: string): boolean
}

const MAX_KEPT = 5_000
const MAX_KNOWN_ITEMS = 100_000

export function createStoredResponses(): StoredResponses {
  const responses = new Map<string, StoredResponse>()
  const items = new Map<string, StoredItem>()

  return {
    collectConversation(body, organization) {
      const previous = body.previous_response_id ?? null
      const before = previous === null ? [] : collectItems(responses, previous, organization)
      if (before === null) return toOpenaiRefusal(describeMissingResponse(String(previous)))
      const resolved: ItemWithPath[] = [...before]
      for (const placed of listInput(body)) {
        const found = resolveItem(items, placed, body, organization)
        if (!found.ok) return found
        resolved.push({ item: found.item, path: found.path })
      }
      return { ok: true, items: resolved }
    },
    add(id, response) {
      forgetOldest(responses, MAX_KEPT)
      responses.set(id, response)
      for (const item of [...response.input, ...response.output])
        if (typeof item.id === 'string') {
          forgetOldest(items, MAX_KNOWN_ITEMS)
          items.set(item.id, { organization: response.organization, item })
        }
    },
    find(id, organization) {
      const found = responses.get(id)
      return found?.organization === organization ? found.body : undefined
    },
    remove(id, organization) {
      return responses.get(id)?.organization === organization && responses.delete(id)
    },
  }
}

interface StoredItem {
  readonly organization: string
  readonly item: JsonFields
}

/** Lists the items of a response and of all responses before it; null if one of them is not stored. */
function collectItems(
  responses: ReadonlyMap<string, StoredResponse>,
  id: string,
  organization: string,
): readonly ItemWithPath[] | null {
  const parts: (readonly ItemWithPath[])[] = []
  for (let at: string | null = id; at !== null; ) {
    const found: StoredResponse | undefined = responses.get(at)
    if (found === undefined || found.organization !== organization) return null
    const path = at
    parts.unshift([...found.input, ...found.output].map((item) => ({ item, path })))
    at = found.previous
  }
  return parts.flat()
}

/** Returns the stored item for a reference, or for a reasoning item that has only its id. */
function resolveItem(
  items: ReadonlyMap<string, StoredItem>,
  { item, path }: ItemWithPath,
  body: ResponsesBody,
  organization: string,
): OpenaiResult<ItemWithPath> {
  const isReference = readItemType(item) === 'item_reference'
  if (!isReference && (item.type !== 'reasoning' || typeof item.encrypted_content === 'string'))
    return { ok: true, item, path }
  // Reasoning without its content is looked up by id, as a reference is. Without an id there is nothing to look up.
  if (!isReference && typeof item.id !== 'string') return { ok: true, item, path }
  const stored = items.get(String(item.id))
  if (stored === undefined || stored.organization !== organization)
    return toOpenaiRefusal(describeMissingItem(String(item.id), body))
  return { ok: true, item: stored.item, path }
}

/** Stores after which reasoning each item was generated, even if the response itself is not stored. */
export interface ReasoningIndex {
  remember(output: readonly JsonFields[]): void
  find(itemId: string): string | undefined
}

export function createReasoningIndex(): ReasoningIndex {
  const before = new Map<string, string>()
  return {
    remember(output) {
      let reasoning: string | null = null
      for (const { id, type } of output) {
        if (typeof id !== 'string') continue
        if (type === 'reasoning') reasoning = id
        else if (reasoning !== null) {
          forgetOldest(before, MAX_KNOWN_ITEMS)
          before.set(id, reasoning)
        }
      }
    },
    find: (itemId) => before.get(itemId),
  }
}

/** Lists the items of a request's own input. A text becomes one user message. */
export function listInput({ input }: Pick<ResponsesBody, 'input'>): readonly ItemWithPath[] {
  if (typeof input === 'string')
    return [{ item: { type: 'message', role: 'user', content: input }, path: 'input' }]
  return (input ?? []).map((item, index) => ({ item, path: `input[${index}]` }))
}

function forgetOldest<Value>(map: Map<string, Value>, limit: number): void {
  if (map.size >= limit) map.delete(map.keys().next().value ?? '')
}

function describeMissingItem(id: string, { store }: ResponsesBody): OpenaiError {
  const why =
    store === false
      ? ' Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.'
      : ''
  return createOpenaiError(404, `Item with id '${id}' not found.${why}`, { param: 'input' })
}

function describeMissingResponse(id: string): OpenaiError {
  return createParameterError(
    `Previous response with id '${id}' not found.`,
    'previous_response_id',
    'previous_response_not_found',
  )
}
