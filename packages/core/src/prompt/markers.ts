/**
 * Where the cache markers of a request stand. All are counted here and nowhere else, and filled in this order:
 * tail, edge, end of the system prompt, lagging, then what is left over.
 */
import type { JsonObject } from '../conversation/json.ts'
import type { MarkersPolicy } from '../policy/groups/cache-policy.ts'
import type { CacheRules } from '../policy/profile.ts'
import { canCarry } from '../view/validate/cache.ts'
import { type Counted, countThrough } from './count.ts'
import { type Front, isOffered } from './front.ts'
import { comparePlaces, lastMarkable, lastResponse, type MessagePlace, type Place } from './place.ts'

/** `carriers` is the end of what stays unchanged across a compaction, `static` and `tool` parts of the front. */
export type MarkerKind = 'tail' | 'edge' | 'system' | 'lagging' | 'carriers' | 'static' | 'tool'

export interface PlannedMarker {
  readonly kind: MarkerKind
  readonly place: Place
  /** The `cache_control` to put there. */
  readonly control: JsonObject
}

export interface MarkerQuestion {
  readonly front: Front
  readonly counted: Counted
  readonly policy: MarkersPolicy
  readonly cache: CacheRules
  /** The lifetime in force, by name. */
  readonly ttl: string
  /** Tier 1 is on. Where it is off exactly one marker stands on the messages. */
  readonly clears: boolean
  /** The first result that tier 1 could still clear. */
  readonly firstClearable?: MessagePlace | null
  /** What that was before a clearing moved it: the first request behind the clearing stands on both places. */
  readonly leftClearable?: MessagePlace | null
  /** The last block of the carriers that a compaction left unchanged in front. */
  readonly carriersEnd?: MessagePlace | null
}

type Wanted = Pick<PlannedMarker, 'kind' | 'place'>

/** In the order of the request. */
export function planMarkers(question: MarkerQuestion): readonly PlannedMarker[] {
  const { policy, cache } = question
  const limit = Math.min(policy.maximum, cache.maxMarkers)
  const chosen: Wanted[] = []
  for (const { kind, place } of wanted(question)) {
    const isTaken = chosen.some((other) => comparePlaces(other.place, place) === 0)
    if (!isTaken && chosen.length < limit) chosen.push({ kind, place })
  }
  const inOrder = chosen.toSorted((one, other) => comparePlaces(one.place, other.place))
  return inOrder.map((marker) => ({ ...marker, control: controlOf(question, marker.place) }))
}

function wanted(question: MarkerQuestion): readonly Wanted[] {
  const { counted, cache, clears, policy, firstClearable, leftClearable, carriersEnd } = question
  const hasEdge = clears && policy.edge
  const edge = hasEdge ? before(question, firstClearable) : null
  const left = hasEdge ? before(question, leftClearable) : null
  const carriers = hasEdge ? (carriersEnd ?? null) : null
  return [
    ...at('tail', lastMarkable(counted.messages, cache)),
    ...at('edge', left ?? edge ?? carriers),
    ...at('system', systemEnd(question)),
    ...at('edge', left === null ? null : edge),
    ...at('lagging', clears ? laggingOf(question) : null),
    ...at('carriers', carriers),
    ...at('static', staticEnd(question)),
    ...at('tool', lastTool(question)),
  ]
}

function at(kind: MarkerKind, place: Place | null): readonly Wanted[] {
  return place === null ? [] : [{ kind, place }]
}

/** The block before a result that could be cleared: what is in front of it survives the clearing. */
function before({ counted, cache }: MarkerQuestion, result: MessagePlace | null = null): MessagePlace | null {
  return result === null ? null : lastMarkable(counted.messages, cache, result)
}

/** It covers the tools too, which come first; without a system prompt it is they that end the front. */
function systemEnd({ front, cache }: MarkerQuestion): Place | null {
  const index = front.system.findLastIndex(({ block }) => canCarry(block, cache))
  if (index !== -1) return { zone: 'system', index }
  const tool = front.tools.findLastIndex(isOffered)
  return tool === -1 ? null : { zone: 'tools', index: tool }
}

/**
 * A turn that adds more than the tail can look back over would lose all before it: a marker on the tail of the
 * request that was answered last, which the newest response follows, finds that entry where it stands.
 */
function laggingOf({ counted, cache, policy }: MarkerQuestion): MessagePlace | null {
  const { messages } = counted
  const response = lastResponse(messages)
  const tail = lastMarkable(messages, cache)
  const last = response === null ? null : lastMarkable(messages, cache, { index: response, block: 0 })
  if (tail === null || last === null) return null
  const added = positionOf(counted, tail) - positionOf(counted, last)
  return added > Math.min(policy.laggingAfterPositions, cache.lookBack - 1) ? last : null
}

function positionOf(counted: Counted, { index, block }: MessagePlace): number {
  return countThrough(counted, index, block).positions
}

function staticEnd({ front }: MarkerQuestion): Place | null {
  const index = front.system.findIndex(({ part }) => part === 'static')
  return index === -1 ? null : { zone: 'system', index }
}

function lastTool({ front }: MarkerQuestion): Place | null {
  return front.lastSharedTool === null ? null : { zone: 'tools', index: front.lastSharedTool }
}

/** The plain marker says as little as it can. A scope is written only where the provider has it and all may share. */
function controlOf({ front, cache, ttl }: MarkerQuestion, place: Place): JsonObject {
  const isStatic = place.zone === 'system' && front.system[place.index]?.part === 'static'
  const isGlobal = isStatic && front.isShareable && cache.scopes.includes('global')
  const asks = ttl !== cache.defaultTtl && cache.ttls.some(({ name }) => name === ttl)
  return { type: 'ephemeral', ...(asks ? { ttl } : {}), ...(isGlobal ? { scope: 'global' } : {}) }
}
