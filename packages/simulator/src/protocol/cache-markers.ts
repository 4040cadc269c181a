/**
 * Finds the cache markers of a request: `cache_control` on blocks, in the order `tools`, `system`, `messages`, and
 * the marker that the provider places itself when `cache_control` is set at the top level.
 */
import { isObject, type MessageParam, type MessagesBody, toBlocks } from './messages-request.ts'

export type CacheTtl = '5m' | '1h'

export interface CacheMarker {
  /**
   * Index of the marked block among all tools, system blocks and message blocks of the request. A marker inside a
   * tool result has the index of that tool result.
   */
  readonly order: number
  readonly path: string
  readonly location: BlockLocation
  readonly ttl: CacheTtl
}

export interface BlockLocation {
  readonly zone: 'tools' | 'system' | 'messages'
  /** Index of the tool, of the system block, or of the message. */
  readonly at: number
  /** Index of the block in the message. */
  readonly index: number
}

export interface AutomaticMarker {
  /** True if the client already marked the last cacheable block, so that the provider adds no marker. */
  readonly isAlreadyMarked: boolean
  /** The marker on the last cacheable block; null if no block of the request can carry a marker. */
  readonly marker: CacheMarker | null
}

export interface CacheMarkers {
  readonly explicit: readonly CacheMarker[]
  readonly automatic: AutomaticMarker | null
}

/** Finds all cache markers, also those inside tool results. `automatic` is null without a top-level `cache_control`. */
export function findCacheMarkers(body: MessagesBody): CacheMarkers {
  const explicit: CacheMarker[] = []
  let order = 0
  let last: { readonly location: LocatedBlock; readonly order: number } | null = null
  for (const location of locateBlocks(body)) {
    collectMarkers(location, order, explicit)
    if (canCarryMarker(location)) last = { location, order }
    order += 1
  }
  return { explicit, automatic: findAutomaticMarker(body, last, explicit) }
}

export function readCacheTtl(cacheControl: unknown): CacheTtl {
  return isObject(cacheControl) && cacheControl.ttl === '1h' ? '1h' : '5m'
}

interface LocatedBlock extends BlockLocation {
  readonly block: Readonly<Record<string, unknown>>
  readonly message: MessageParam | null
}

function* locateBlocks(body: MessagesBody): Iterable<LocatedBlock> {
  for (const [at, tool] of (body.tools ?? []).entries())
    yield { block: tool, zone: 'tools', at, index: 0, message: null }
  for (const [at, block] of toBlocks(body.system).entries())
    yield { block, zone: 'system', at, index: 0, message: null }
  for (const [at, message] of body.messages.entries())
    for (const [index, block] of toBlocks(message.content).entries())
      yield { block, zone: 'messages', at, index, message }
}

function collectMarkers(location: LocatedBlock, order: number, into: CacheMarker[]): void {
  const { block } = location
  const nested = block.type === 'tool_result' && Array.isArray(block.content) ? block.content : []
  for (const [index, inner] of nested.entries()) {
    const marker: unknown = isObject(inner) ? inner.cache_control : undefined
    if (marker != null)
      into.push({
        order,
        location,
        path: `${formatLocation(location)}.content.${index}`,
        ttl: readCacheTtl(marker),
      })
  }
  const marker = block.cache_control
  if (marker != null)
    into.push({ order, location, path: formatLocation(location), ttl: readCacheTtl(marker) })
}

function formatLocation({ zone, at, index }: BlockLocation): string {
  return zone === 'messages' ? `messages.${at}.content.${index}` : `${zone}.${at}`
}

/**
 * Checks whether automatic caching may mark a block. It does not mark thinking, empty text, deferred tools, or system
 * messages that are removed after one turn.
 */
function canCarryMarker({ block, message }: LocatedBlock): boolean {
  if (message?.clear_at === 'next_user_message') return false
  if (block.defer_loading === true) return false
  if (block.type === 'text') return block.text !== ''
  return !UNMARKABLE_TYPES.has(block.type)
}

const UNMARKABLE_TYPES = new Set<unknown>(['thinking', 'redacted_thinking', 'cache_edits'])

function findAutomaticMarker(
  body: MessagesBody,
  last: { readonly location: LocatedBlock; readonly order: number } | null,
  explicit: readonly CacheMarker[],
): AutomaticMarker | null {
  if (body.cache_control == null) return null
  if (last === null) return { isAlreadyMarked: false, marker: null }
  const path = formatLocation(last.location)
  const present = explicit.find((marker) => marker.path === path)
  if (present !== undefined) return { isAlreadyMarked: true, marker: present }
  return { isAlreadyMarked: false, marker: { ...last, path, ttl: readCacheTtl(body.cache_control) } }
}
