/**
 * What is known of a provider's cache: the prefixes that requests of this session left there, each up to where
 * a marker stood, and the tokens of prefixes as far as usage has told them. Bounded, and a value.
 */
import type { List } from '../log/append-list.ts'
import type { Block } from '../log/block.ts'
import { type JsonObject, jsonBytes } from '../log/json.ts'
import {
  blocksIn,
  type CacheKey,
  type Counted,
  countBefore,
  countThrough,
  frontBlocks,
  type Level,
  messageAt,
  type SaidBlocks,
} from '../request/block-index.ts'
import { type AssembledRequest, blocksOfRequest, messageHolding } from '../request/build-request.ts'
import { isBefore, type Place, type SentMarker, type SentRequest } from './sent-request.ts'

/** A prefix that the provider keeps. */
export interface CachedPrefix {
  /** Blocks in it, those in front of the messages included. */
  readonly blocks: number
  readonly level: Level
  /** About; where usage has told, `sizes` has the figure. */
  readonly tokens: number
  /** It may be too short to be kept: its size is not known, and near the least that is. */
  readonly isDoubtful: boolean
  readonly ttl: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** Tokens of a prefix, as usage told them. */
export interface KnownSize {
  readonly blocks: number
  readonly tokens: number
}

/** Requests that each went on from the one before, as the last of them was sent. */
export interface Strand extends SaidBlocks {
  readonly key: CacheKey
  /** Shortest first. */
  readonly prefixes: readonly CachedPrefix[]
  /** In the order in which they became known. */
  readonly sizes: List<KnownSize>
}

/** The newest strand first. A rewrite begins another; going back to what was said before finds the old one again. */
export interface Lineage {
  readonly strands: readonly Strand[]
}

export const NO_LINEAGE: Lineage = { strands: [] }

const STRANDS = 8
const PREFIXES = 256

/** `follows`: the strand goes on from the newest and takes its place. */
export function withStrand({ strands }: Lineage, strand: Strand, follows: boolean): Lineage {
  const older = follows ? strands.slice(1) : strands
  const prefixes = bounded(strand.prefixes)
  return { strands: [{ ...strand, prefixes }, ...older].slice(0, STRANDS) }
}

/** Those that would lapse first are forgotten first: the ones that requests still mark live longest. */
function bounded(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  if (prefixes.length <= PREFIXES) return prefixes
  const byLife = prefixes.toSorted((one, other) => other.expiresAt - one.expiresAt)
  const kept = new Set(byLife.slice(0, PREFIXES))
  return prefixes.filter((prefix) => kept.has(prefix))
}

/** When the cache of the newest request lapses unless it is used again; null where nothing is known to be kept. */
export function cacheExpiry({ strands: [newest] }: Lineage): number | null {
  return newest?.prefixes.at(-1)?.expiresAt ?? null
}

// Tokens of a prefix: as usage told them, or read off between two that it told by what lies between.

/** About how many tokens a block is: an estimator's, where there is one. */
export type Weigh = (block: Block | JsonObject) => number

export interface Sized {
  readonly request: AssembledRequest
  readonly sizes: List<KnownSize>
  readonly weigh?: Weigh | undefined
}

export interface PrefixSize {
  readonly tokens: number
  /** Told by usage, and not read off. */
  readonly isKnown: boolean
}

const BYTES_PER_TOKEN = 4
const byBytes: Weigh = (block) => (jsonBytes(block) ?? 0) / BYTES_PER_TOKEN

export function knownSize(sizes: List<KnownSize>, blocks: number): number | null {
  for (let index = sizes.length - 1; index >= 0; index -= 1) {
    const size = sizes.at(index)
    if (size?.blocks === blocks) return size.tokens
  }
  return null
}

export function sizeAt(sized: Sized, blocks: number): PrefixSize {
  const known = knownSize(sized.sizes, blocks)
  if (known !== null) return { tokens: known, isKnown: true }
  let below: KnownSize = { blocks: 0, tokens: 0 }
  let above: KnownSize | null = null
  for (const size of sized.sizes) {
    if (size.blocks < blocks && size.blocks > below.blocks) below = size
    if (size.blocks > blocks && size.blocks < (above?.blocks ?? Number.POSITIVE_INFINITY)) above = size
  }
  const inside = weightBetween(sized, below.blocks, blocks)
  if (above === null) return { tokens: below.tokens + Math.round(inside), isKnown: false }
  const all = inside + weightBetween(sized, blocks, above.blocks)
  const share = all === 0 ? 0 : inside / all
  return { tokens: Math.round(below.tokens + share * (above.tokens - below.tokens)), isKnown: false }
}

/** Of the blocks behind the first `from`, up to and including number `to`. */
function weightBetween({ request, weigh = byBytes }: Sized, from: number, to: number): number {
  const front = frontBlocks(request.front)
  let weight = front.slice(from, to).reduce((sum, block) => sum + weigh(block), 0)
  const end = Math.min(to, blocksOfRequest(request))
  for (let at = Math.max(from, front.length); at < end; at += 1) {
    const block = blockAt(request, at - front.length)
    weight += block === undefined ? 0 : weigh(block)
  }
  return weight
}

function blockAt({ counted }: AssembledRequest, at: number): Block | undefined {
  const index = messageHolding(counted, at + 1)
  const message = messageAt(counted.messages, index)
  return message === undefined ? undefined : blocksIn(message)[at - countBefore(counted, index).blocks]
}

// What a provider keeps: an entry at each place where the last marker of a request stood, with the tokens up to
// there, which usage tells exactly. A later request reads an entry only if one of its markers looks back that far.

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
