/**
 * Places the cache markers of a host's own request in the engine's request. A marker on something that the request no
 * longer has is left out.
 */
import { type Block, isToolResult, isToolUse } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { canCarryMarker } from '../validate/content-rules.ts'
import { countMessages, isSameJson, type MessageList, messageAt, toMessageBlocks } from './block-index.ts'
import {
  compareMarkerPlaces,
  findLastMarkableBlock,
  type MarkerPlace,
  type MessagePlace,
  type PlannedMarker,
} from './cache-markers.ts'
import type { RequestPrefix } from './prefix-snapshot.ts'

/** A cache marker that a host has set. `control`: the value of its `cache_control`. */
export type HostMarker = { readonly control: JsonObject } & (
  | { readonly zone: 'tools'; readonly name: string }
  | { readonly zone: 'system'; readonly index: number }
  /** `block`: the marked block, without its markers. */
  | { readonly zone: 'messages'; readonly block: Block }
  /** The field `cache_control` of the request itself: the last block that can be marked. */
  | { readonly zone: 'end' }
)

/** Returns the markers in request order, at most as many as the provider allows. */
export function placeHostMarkers(
  markers: readonly HostMarker[],
  request: { readonly front: RequestPrefix; readonly messages: MessageList; readonly cache: CacheRules },
): readonly PlannedMarker[] {
  const placed: PlannedMarker[] = []
  for (const marker of markers.toReversed()) {
    const place = findMarkedPlace(marker, request)
    const isTaken = placed.some((other) => place !== null && compareMarkerPlaces(other.place, place) === 0)
    if (place !== null && !isTaken && placed.length < request.cache.maxMarkers)
      placed.push({ kind: 'host', place, control: marker.control })
  }
  return placed.toSorted((one, other) => compareMarkerPlaces(one.place, other.place))
}

function findMarkedPlace(
  marker: HostMarker,
  { front, messages, cache }: Parameters<typeof placeHostMarkers>[1],
): MarkerPlace | null {
  if (marker.zone === 'end') return findLastMarkableBlock(messages, cache)
  if (marker.zone === 'messages') return findSameBlock(messages, marker.block)
  if (marker.zone === 'tools') {
    const index = front.tools.findIndex(({ name, type }) => (name ?? type) === marker.name)
    return index === -1 ? null : { zone: 'tools', index }
  }
  const index = Math.min(marker.index, front.system.length - 1)
  const section = front.system[index]
  return section !== undefined && canCarryMarker(section.block, cache) ? { zone: 'system', index } : null
}

/** Hosts mark blocks near the end, so the search begins there. */
function findSameBlock(messages: MessageList, block: Block): MessagePlace | null {
  for (let index = countMessages(messages) - 1; index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    const blocks = message === undefined ? [] : toMessageBlocks(message)
    const found = blocks.findLastIndex((each) => isSameBlock(each, block))
    if (found !== -1) return { zone: 'messages', index, block: found }
  }
  return null
}

/** Compares tool calls and results by their ids, since hosts may change their contents, and other blocks by content. */
function isSameBlock(one: Block, other: Block): boolean {
  if (isToolUse(one) && isToolUse(other)) return one.id === other.id
  if (isToolResult(one) && isToolResult(other)) return one.tool_use_id === other.tool_use_id
  return isSameJson(one, other)
}
