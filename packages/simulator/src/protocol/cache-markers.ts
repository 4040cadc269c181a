/**
 * The cache markers of a request: `cache_control` on its blocks, in the order `tools`, `system`, `messages`,
 * and the one the provider places itself when `cache_control` is set at the top level.
 */
import { blocksOf, isObject, type MessageParam, type MessagesBody } from './api.ts'

export type Ttl = '5m' | '1h'

export interface CacheMarker {
  /** Index of the marked block among all blocks of the request. A marker inside a tool result has the index of the result. */
  readonly order: number
  readonly path: string
  readonly location: Location
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
  /** The block already has an explicit marker, so nothing is added. */
  readonly taken: boolean
  /** Null if no block of the request can carry a marker. */
  readonly marker: CacheMarker | null
}

export interface Markers {
  readonly explicit: readonly CacheMarker[]
  readonly automatic: AutomaticMarker | null
}

export function markersOf(body: MessagesBody): Markers {
  const explicit: CacheMarker[] = []
  let order = 0
  let last: { readonly location: Place; readonly order: number } | null = null
  for (const location of placesOf(body)) {
    collect(location, order, explicit)
    if (mayCarry(location)) last = { location, order }
    order += 1
  }
  return { explicit, automatic: automaticMarker(body, last, explicit) }
}

export function ttlOf(cacheControl: unknown): Ttl {
  return isObject(cacheControl) && cacheControl.ttl === '1h' ? '1h' : '5m'
}

interface Place extends Location {
  readonly block: Readonly<Record<string, unknown>>
  readonly message: MessageParam | null
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

function collect(location: Place, order: number, into: CacheMarker[]): void {
  const { block } = location
  const nested = block.type === 'tool_result' && Array.isArray(block.content) ? block.content : []
  for (const [index, inner] of nested.entries()) {
    const marker: unknown = isObject(inner) ? inner.cache_control : undefined
    if (marker != null)
      into.push({ order, location, path: `${locationPath(location)}.content.${index}`, ttl: ttlOf(marker) })
  }
  const marker = block.cache_control
  if (marker != null) into.push({ order, location, path: locationPath(location), ttl: ttlOf(marker) })
}

function locationPath({ zone, at, index }: Location): string {
  return zone === 'messages' ? `messages.${at}.content.${index}` : `${zone}.${at}`
}

/** Automatic caching skips thinking, empty text, deferred tools and messages that are gone in the next turn. */
function mayCarry({ block, message }: Place): boolean {
  if (message?.clear_at === 'next_user_message') return false
  if (block.defer_loading === true) return false
  if (block.type === 'text') return block.text !== ''
  return !NEVER_MARKED.has(block.type)
}

const NEVER_MARKED = new Set<unknown>(['thinking', 'redacted_thinking', 'cache_edits'])

function automaticMarker(
  body: MessagesBody,
  last: { readonly location: Place; readonly order: number } | null,
  explicit: readonly CacheMarker[],
): AutomaticMarker | null {
  if (body.cache_control == null) return null
  if (last === null) return { taken: false, marker: null }
  const path = locationPath(last.location)
  const present = explicit.find((marker) => marker.path === path)
  if (present !== undefined) return { taken: true, marker: present }
  return { taken: false, marker: { ...last, path, ttl: ttlOf(body.cache_control) } }
}
