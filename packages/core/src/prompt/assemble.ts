/**
 * A request put together from what stays (the front of its epoch) and the messages by reference. Markers are
 * places, put on by whoever spells the request: they move every turn onto messages that have long been settled,
 * and must not make anybody copy those. A turn costs what it added.
 */
import type { JsonObject } from '../conversation/json.ts'
import type { MarkersPolicy } from '../policy/groups/cache-policy.ts'
import type { Profile } from '../policy/profile.ts'
import { type Counted, countMessages, type MessageList } from './count.ts'
import { type HeldEdge, NO_EDGE } from './edge.ts'
import type { Front } from './front.ts'
import { type PlannedMarker, planMarkers } from './markers.ts'
import { type CallPlaces, placeOfRecord, placeOfResult } from './place.ts'
import { type Unmarked, unmarkedMessages } from './unmarked.ts'

export interface AssembledRequest {
  readonly front: Front
  readonly messages: MessageList
  /** The frozen messages as they were given, where markers of others' were taken out of `messages`. */
  readonly given?: Unmarked['given']
  readonly counted: Counted
  /** In the order of the request. */
  readonly markers: readonly PlannedMarker[]
  /** The lifetime the markers ask for; null where there are none to be. */
  readonly ttl: string | null
  /** Fields of this request alone (`context_management`, `diagnostics`): they come behind the parameters. */
  readonly extra: JsonObject
  /** Results in front of the last marker carry a reference to themselves, so that they can be deleted later. */
  readonly refers: boolean
}

export interface AssembleQuestion {
  readonly front: Front
  /** As flattening gives them. */
  readonly flat: CallPlaces
  readonly profile: Profile
  readonly markers: MarkersPolicy
  /** The lifetime in force; null: caching is off, and there are no markers. */
  readonly ttl: string | null
  /** Tier 1 is on. */
  readonly clears: boolean
  /** Where the edge is held. */
  readonly edge?: HeldEdge
  /** The last record of the carriers that a compaction left unchanged in front. */
  readonly carriersEnd?: string | null
  readonly extra?: JsonObject
}

const NO_FIELDS: JsonObject = {}

/** `previous`: the request before, of which everything that still holds is taken over. */
export function assembleRequest(question: AssembleQuestion, previous?: AssembledRequest): AssembledRequest {
  const { front, profile, ttl, extra = NO_FIELDS } = question
  const { given, ...messages } = messagesOf(question, previous)
  const counted = countMessages(messages, profile.cache.collapsesToolRuns, previous?.counted)
  const markers = ttl === null ? [] : markersOf(question, counted, ttl)
  const request = { front, messages, counted, markers, ttl, extra, refers: profile.capabilities.cacheEdits }
  return given === undefined ? request : { ...request, given }
}

/** Where caching is off, what was given goes out as it is. */
function messagesOf(
  { flat: { frozen, tail }, ttl }: AssembleQuestion,
  previous: AssembledRequest | undefined,
): MessageList & Pick<AssembledRequest, 'given'> {
  return ttl === null ? { frozen, tail } : unmarkedMessages({ frozen, tail }, unmarkedOf(previous))
}

/** What was made of the messages of a request. */
export function unmarkedOf(request: AssembledRequest | undefined): Unmarked | undefined {
  return request?.given === undefined ? undefined : { ...request.messages, given: request.given }
}

function markersOf(question: AssembleQuestion, counted: Counted, ttl: string): readonly PlannedMarker[] {
  const { front, flat, profile, markers: policy, clears, edge = NO_EDGE, carriersEnd = null } = question
  return planMarkers({
    front,
    counted,
    policy,
    cache: profile.cache,
    ttl,
    clears,
    firstClearable: edge.result === null ? null : placeOfResult(flat, edge.result),
    leftClearable: edge.left === null ? null : placeOfResult(flat, edge.left),
    carriersEnd: carriersEnd === null ? null : placeOfRecord(flat, carriersEnd),
  })
}
