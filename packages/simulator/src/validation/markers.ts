/** Cache markers: how many, where, in which order. */
import { type Block, blocksOf, type MessagesBody, textField } from '../api.ts'
import { type AutomaticMarker, type CacheMarker, ttlOf } from '../cache/markers.ts'
import { invalid, type Refusal } from '../refusal.ts'
import type { Rule } from './rule.ts'

export const MAX_MARKERS = 4

export const emptyMarked: Rule = ({ body }) => {
  const inSystem = typeof body.system === 'string' ? -1 : blocksOf(body.system).findIndex(isEmptyMarked)
  if (inSystem >= 0) return emptyRefusal(`system.${inSystem}`)
  for (const [message, { content }] of body.messages.entries()) {
    const index = typeof content === 'string' ? -1 : blocksOf(content).findIndex(isEmptyMarked)
    if (index >= 0) return emptyRefusal(`messages.${message}.content.${index}.text`)
  }
  return null
}

function isEmptyMarked(block: Block): boolean {
  return block.type === 'text' && block.cache_control != null && textField(block, 'text') === ''
}

function emptyRefusal(path: string): Refusal {
  return invalid(`${path}: cache_control cannot be set for empty text blocks`)
}

export const markerCount: Rule = ({ markers }) => {
  const { explicit, automatic } = markers
  const found = explicit.length + (automatic === null ? 0 : 1)
  return found <= MAX_MARKERS
    ? null
    : invalid(`A maximum of ${MAX_MARKERS} blocks with cache_control may be provided. Found ${found}.`)
}

export const markerOrder: Rule = ({ body, markers }) => {
  const { explicit, automatic } = markers
  const conflict = automaticConflict(body, automatic)
  if (conflict !== null) return conflict
  const ordered =
    automatic === null || automatic.taken || automatic.marker === null
      ? explicit
      : [...explicit, automatic.marker].sort(byPosition)
  return lateHour(ordered)
}

function byPosition(one: CacheMarker, other: CacheMarker): number {
  return one.order - other.order
}

function lateHour(markers: readonly CacheMarker[]): Refusal | null {
  let short = false
  for (const marker of markers) {
    if (marker.ttl === '5m') short = true
    else if (short)
      return invalid(
        `${marker.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`,
      )
  }
  return null
}

function automaticConflict(body: MessagesBody, automatic: AutomaticMarker | null): Refusal | null {
  if (automatic === null || !automatic.taken || automatic.marker === null) return null
  const asked = ttlOf(body.cache_control)
  return automatic.marker.ttl === asked
    ? null
    : invalid(
        `cache_control: the last cacheable block already has a cache_control with ttl='${automatic.marker.ttl}', which differs from ttl='${asked}'`,
      )
}

export const deferredMarked: Rule = ({ body }) => {
  const index = (body.tools ?? []).findIndex(
    (tool) => tool.defer_loading === true && tool.cache_control != null,
  )
  return index < 0
    ? null
    : invalid(`tools.${index}: a tool with defer_loading=true cannot have cache_control`)
}
