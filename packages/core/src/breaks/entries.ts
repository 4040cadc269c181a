/**
 * What a provider keeps: an entry at each place where the last marker of a request stood, with the tokens up to
 * there, which usage tells exactly. A later request reads an entry only if one of its markers looks back that far.
 */
import { type Counted, countThrough } from '../prompt/count.ts'
import { isBefore, type Place } from './parting.ts'
import type { SentMarker, SentRequest } from './sent.ts'

export interface CachedEntry {
  readonly place: Place
  readonly tokens: number
  readonly at: number
  readonly seconds: number
}

/** Nobody goes back further than this; if somebody does, nothing is expected. */
const MOST_ENTRIES = 50

/** In front of all messages. */
const START: Place = { message: -1, block: 0 }

/** Where the last marker of a request stands: up to there, what it reads and writes is kept. */
export function lastMarked({ markers }: SentRequest): Place {
  const last = markers.findLast(({ zone }) => zone === 'messages')
  return last === undefined ? START : placeOf(last)
}

function placeOf({ index, block }: SentMarker): Place {
  return { message: index, block: block ?? 0 }
}

/** With what the request has left behind; entries that have lived too long are let go. */
export function withEntry(
  entries: readonly CachedEntry[],
  sent: SentRequest,
  tokens: number,
): readonly CachedEntry[] {
  const seconds = sent.markers.at(-1)?.seconds ?? 0
  const place = lastMarked(sent)
  const alive = entries.filter((entry) => isAlive(entry, sent.at) && isBefore(entry.place, place))
  return [...alive.slice(1 - MOST_ENTRIES), { place, tokens, at: sent.at, seconds }]
}

export function isAlive({ at, seconds }: CachedEntry, now: number): boolean {
  return now - at < seconds * 1000
}

export interface EntryQuestion {
  readonly entries: readonly CachedEntry[]
  readonly sent: SentRequest
  /** The messages of `sent`. */
  readonly counted: Counted
  readonly lookBack: number
  /** Only those that end in front of this place. */
  readonly limit: Place
}

/** The newest living entry that the request can read. */
export function readableEntry(question: EntryQuestion): CachedEntry | undefined {
  const { entries, sent, limit } = question
  return entries.findLast(
    (entry) => isBefore(entry.place, limit) && isAlive(entry, sent.at) && reaches(question, entry.place),
  )
}

export type ReachQuestion = Pick<EntryQuestion, 'sent' | 'counted' | 'lookBack'>

/** Does a marker of the request look back to that place? */
export function reaches({ sent, counted, lookBack }: ReachQuestion, place: Place): boolean {
  if (place.message < 0) return true
  const from = positionOf(counted, place)
  return sent.markers.some((marker) => {
    if (marker.zone !== 'messages' || isBefore(placeOf(marker), place)) return false
    return positionOf(counted, placeOf(marker)) - from < lookBack
  })
}

function positionOf(counted: Counted, { message, block }: Place): number {
  return countThrough(counted, message, block).positions
}
