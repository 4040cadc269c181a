/**
 * Where a request asks for the cache: the markers on its blocks, in the order `tools`, `system`, `messages`,
 * and the one the provider sets itself when `cache_control` stands at the top level.
 */
import { blocksOf, isObject, type MessageParam, type MessagesBody } from './api.ts'

export type Ttl = '5m' | '1h'

export interface CacheMarker {
  /** Place in the whole request; grows with it. A marker inside a result has the place of the result. */
  readonly order: number
  readonly path: string
  readonly place: Location
  readonly ttl: Ttl
}

export interface Location {
  readonly zone: 'tools' | 'system' | 'messages'
  /** Index of the tool, of the system block, or of the message. */
  readonly at: number
  /** Index of the block in the message. */
  readonly index: number
}

export interface AutomaticMarker {
  /** The block it falls on already has one: nothing is added. */
  readonly taken: boolean
  /** Null where no block of the request can carry it. */
  readonly marker: CacheMarker | null
}

export interface Markers {
  readonly explicit: readonly CacheMarker[]
  readonly automatic: AutomaticMarker | null
}

interface Place extends Location {
  readonly block: Readonly<Record<string, unknown>>
  readonly message: MessageParam | null
}

export function locationPath({ zone, at, index }: Location): string {
  return zone === 'messages' ? `messages.${at}.content.${index}` : `${zone}.${at}`
}

export function ttlOf(cacheControl: unknown): Ttl {
  return isObject(cacheControl) && cacheControl.ttl === '1h' ? '1h' : '5m'
}

export function markersOf(body: MessagesBody): Markers {
  const explicit: CacheMarker[] = []
  let order = 0
  let last: { readonly place: Place; readonly order: number } | null = null
  for (const place of placesOf(body)) {
    collect(place, order, explicit)
    if (mayCarry(place)) last = { place, order }
    order += 1
  }
  return { explicit, automatic: automaticMarker(body, last, explicit) }
}

function* placesOf(body: MessagesBody): Iterable<Place> {
  for (const [at, tool] of (body.tools ?? []).entries())
    yield { block: tool, zone: 'tools', at, index: 0, message: null }
  for (const [at, block] of blocksOf(body.system).entries())
    yield { block, zone: 'system', at, index: 0, message: null }
  for (const [at, message] of body.messages.entries())
    for (const [index, block] of blocksOf(message.content).entries())
      yield { block, zone: 'messages', at, index, message }
}

function collect(place: Place, order: number, into: CacheMarker[]): void {
  const { block } = place
  const nested = block.type === 'tool_result' && Array.isArray(block.content) ? block.content : []
  for (const [index, inner] of nested.entries()) {
    const marker: unknown = isObject(inner) ? inner.cache_control : undefined
    if (marker != null)
      into.push({ order, place, path: `${locationPath(place)}.content.${index}`, ttl: ttlOf(marker) })
  }
  const marker = block.cache_control
  if (marker != null) into.push({ order, place, path: locationPath(place), ttl: ttlOf(marker) })
}

/** What automatic caching may fall on: no thinking, no empty text, nothing that is gone in the next turn. */
function mayCarry({ block, message }: Place): boolean {
  if (message?.clear_at === 'next_user_message') return false
  if (block.defer_loading === true) return false
  if (block.type === 'text') return block.text !== ''
  return !NEVER_MARKED.has(block.type)
}

const NEVER_MARKED = new Set<unknown>(['thinking', 'redacted_thinking', 'cache_edits'])

function automaticMarker(
  body: MessagesBody,
  last: { readonly place: Place; readonly order: number } | null,
  explicit: readonly CacheMarker[],
): AutomaticMarker | null {
  if (body.cache_control === undefined || body.cache_control === null) return null
  if (last === null) return { taken: false, marker: null }
  const path = locationPath(last.place)
  const there = explicit.find((marker) => marker.path === path)
  if (there !== undefined) return { taken: true, marker: there }
  return {
    taken: false,
    marker: { order: last.order, place: last.place, path, ttl: ttlOf(body.cache_control) },
  }
}
