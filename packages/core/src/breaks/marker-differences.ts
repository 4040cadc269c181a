/** Markers: whether the same places are still asked for, for as long and for the same readers. */
import type { Difference } from './reason.ts'
import { sameJson } from './same-json.ts'
import type { SentMarker } from './sent.ts'

type Markers = readonly SentMarker[]

export function markerDifferences(before: Markers, after: Markers): readonly Difference[] {
  if (before === after) return []
  const changes = after.flatMap((marker) => {
    const old = counterpart(marker, before, after)
    return old === undefined ? [] : markerChanges(old, marker)
  })
  return [...removedMarkers(before, after), ...changes.filter(isFirstOfItsKind)]
}

/** What is the same for several markers of a zone is told once. */
function isFirstOfItsKind(change: Difference, index: number, all: readonly Difference[]): boolean {
  return all.findIndex((other) => sameJson(other, change)) === index
}

/** The marker of a message moves on with the conversation, so the last of each request are the ones to compare. */
function counterpart(marker: SentMarker, before: Markers, after: Markers): SentMarker | undefined {
  if (marker.zone === 'messages')
    return marker === after.findLast(isInMessages) ? before.findLast(isInMessages) : undefined
  return before.find(({ zone, index }) => zone === marker.zone && index === marker.index)
}

function markerChanges(old: SentMarker, { zone, ttl, scope }: SentMarker): readonly Difference[] {
  const [was, is] = [old.scope ?? null, scope ?? null]
  return [
    ...(old.ttl === ttl ? [] : [{ kind: 'marker-ttl-changed', zone, before: old.ttl, after: ttl } as const]),
    ...(was === is ? [] : [{ kind: 'marker-scope-changed', zone, before: was, after: is } as const]),
  ]
}

function removedMarkers(before: Markers, after: Markers): readonly Difference[] {
  const prefix = before.some(isInPrefix) && !after.some(isInPrefix)
  const messages = before.some(isInMessages) && !after.some(isInMessages)
  return [
    ...(prefix ? [{ kind: 'markers-removed', zone: 'prefix' } as const] : []),
    ...(messages ? [{ kind: 'markers-removed', zone: 'messages' } as const] : []),
  ]
}

function isInMessages({ zone }: SentMarker): boolean {
  return zone === 'messages'
}

function isInPrefix({ zone }: SentMarker): boolean {
  return zone !== 'messages'
}
