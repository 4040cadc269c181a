/**
 * Cache markers that are put on messages after these were checked. They move at every turn, onto messages
 * that have long been settled; looking at the settled ones again for their sake would cost the whole history.
 */
import { isBlock } from '../../conversation/block.ts'
import type { Json } from '../../conversation/json.ts'
import { jsonBytes } from '../../conversation/utf8.ts'
import type { ApiMessage } from '../payload.ts'
import { type CacheState, type Marker, type MarkerRules, readMarker, reportScoped } from './cache.ts'
import { isTurnScoped } from './system.ts'

/** `control` becomes the `cache_control` of a block that has none. The content of its message is a list. */
export interface PlacedMarker {
  readonly message: ApiMessage
  /** Where the message stands in the request. */
  readonly index: number
  /** Which of its blocks. */
  readonly block: number
  readonly control: Json
}

export interface Placement {
  /** Those that were met and those that were placed, in the order of the messages. */
  readonly markers: readonly Marker[]
  /** Bytes of JSON that the placed ones add. */
  readonly added: number
}

const FIELD_BYTES = ',"cache_control":'.length

export function withPlaced(
  state: CacheState,
  placed: readonly PlacedMarker[],
  rules: MarkerRules,
): Placement {
  const found = placed.map((marker) => place(marker, rules)).filter((marker) => marker !== null)
  const markers = [...state.markers, ...found].sort(inOrder)
  const added = placed.reduce((sum, { control }) => sum + FIELD_BYTES + (jsonBytes(control) ?? 0), 0)
  return { markers, added }
}

function place({ message, index, block: at, control }: PlacedMarker, rules: MarkerRules): Marker | null {
  const path = `messages.${index}.content.${at}`
  const { content } = message
  const block = Array.isArray(content) ? content[at] : undefined
  if (!isBlock(block)) {
    rules.report('marker-refused', `${path}.cache_control`, 'Expected a block to put the marker on.')
    return null
  }
  if (isTurnScoped(message)) reportScoped(path, rules.report)
  return readMarker({ ...block, cache_control: control }, path, rules)
}

/** By message and block. A marker covers all up to the end of its block, so those inside a result come before its own. */
function inOrder(one: Marker, other: Marker): number {
  const [left, right] = [placeOf(one), placeOf(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  if (differs < 0) return right.length - left.length
  return (left[differs] ?? 0) - (right[differs] ?? Number.POSITIVE_INFINITY)
}

function placeOf({ path }: Marker): readonly number[] {
  return path.match(/\d+/g)?.map(Number) ?? []
}
