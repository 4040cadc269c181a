/**
 * How much of a request the provider's cache will answer, said before it is sent. Exact wherever usage has told
 * the size of the prefix that is found and nothing unforeseen happens on the provider's side.
 */
import { isThinking } from '../conversation/block.ts'
import { List } from '../conversation/list.ts'
import type { Profile } from '../policy/profile.ts'
import type { AssembledRequest } from './assemble.ts'
import { type CacheKey, sameKey } from './cache-key.ts'
import { blocksIn, type Counted, countBefore, messageAt, messageCount } from './count.ts'
import type { CachedPrefix, KnownSize, Lineage, Strand } from './lineage.ts'
import { blocksOfRequest, keyOf, type Mark, marksOf, messageHolding, positionAt } from './marks.ts'
import { frontBlocks, sharedBlocks } from './shared-blocks.ts'
import { knownSize, type Weigh } from './size.ts'

export interface ForecastQuestion {
  readonly request: AssembledRequest
  /** Milliseconds since 1970: when the request starts. */
  readonly now: number
  readonly profile: Profile
  /** For prefixes whose size nobody has told. */
  readonly weigh?: Weigh
}

/** Why it is so much and no more. `warm`: all that the request before left is read. */
export type ForecastReason =
  | 'warm'
  | 'first' // nothing was sent yet
  | 'off' // the request carries no marker
  | 'key' // model, a parameter or a trait of the whole changed
  | 'rewritten' // the request no longer says what the one before said
  | 'expired'
  | 'out-of-reach' // further back than a marker looks

export interface Forecast {
  /** Tokens. */
  readonly read: number
  /** The figure was told by usage, and not read off between two others. */
  readonly isCertain: boolean
  readonly why: ForecastReason
  readonly hit: CachedPrefix | null
  /** For what is learnt from the response. */
  readonly asked: Asked
}

/** The request as the cache will remember it. */
export interface Asked extends ForecastQuestion {
  readonly key: CacheKey
  readonly marks: readonly Mark[]
  /** Prefixes there may be, lapsed ones among them, and what is known of sizes. */
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: List<KnownSize>
  /** It goes on from the newest strand. */
  readonly follows: boolean
}

export function forecastRead(lineage: Lineage, question: ForecastQuestion): Forecast {
  const asked = askedOf(lineage, question)
  const hit = hitOf(asked)
  const known = hit === null ? 0 : knownSize(asked.sizes, hit.blocks)
  const why = reasonOf(lineage, asked, hit)
  const isCertain = known !== null && hit?.isDoubtful !== true
  return { read: known ?? hit?.tokens ?? 0, isCertain, why, hit, asked }
}

function askedOf(lineage: Lineage, question: ForecastQuestion): Asked {
  const { request, profile } = question
  const key = keyOf(request)
  const [newest, ...older] = lineage.strands
  const own = newest === undefined ? null : usable(newest, question, key)
  const follows = own !== null && newest !== undefined && own.isWhole
  const all = follows || own === null ? [own] : [own, ...older.map((strand) => usable(strand, question, key))]
  const found = all.filter((each) => each !== null)
  return {
    ...question,
    key,
    marks: marksOf(request, profile.cache),
    prefixes: merged(found.flatMap(({ prefixes }) => prefixes)),
    sizes: follows && own !== null ? own.sizes : together(found.map(({ sizes }) => sizes)),
    follows,
  }
}

interface Usable {
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: List<KnownSize>
  /** The request repeats all of the strand, under the same key. */
  readonly isWhole: boolean
}

function usable(strand: Strand, { request, profile }: ForecastQuestion, key: CacheKey): Usable {
  const shared = Math.min(sharedBlocks(strand, request), strippedFrom(strand, request, profile))
  const isWhole = shared >= blocksOfRequest(strand) && sameKey(strand.key, key, 'messages')
  if (isWhole) return { prefixes: strand.prefixes, sizes: strand.sizes, isWhole }
  const isOfModel = strand.front.model === request.front.model
  return {
    prefixes: strand.prefixes.filter(
      ({ blocks, level }) => blocks <= shared && sameKey(strand.key, key, level),
    ),
    sizes: isOfModel ? List.of([...strand.sizes].filter(({ blocks }) => blocks <= shared)) : List.of(),
    isWhole,
  }
}

/**
 * Where a model loses the thinking of finished turns, a new prompt changes the prefix from the first thinking of
 * the turn it finishes on, though no byte of ours does. In blocks before that.
 */
function strippedFrom(strand: Strand, request: AssembledRequest, { thinking }: Profile): number {
  const [one, other] = [strand.counted.end.prompt, request.counted.end.prompt]
  if (!thinking.stripsFinishedTurns || one === other) return Number.POSITIVE_INFINITY
  const further = other > one ? request.counted : strand.counted
  const first = firstThinking(further, Math.min(one, other), Math.max(one, other))
  return first === null ? Number.POSITIVE_INFINITY : frontBlocks(request.front).length + first
}

function firstThinking(counted: Counted, from: number, to: number): number | null {
  for (let index = messageHolding(counted, from + 1); index < messageCount(counted.messages); index += 1) {
    const start = countBefore(counted, index).blocks
    if (start >= to) return null
    const message = messageAt(counted.messages, index)
    const blocks = message === undefined ? [] : blocksIn(message)
    const found = blocks.findIndex((block, at) => start + at >= from && isThinking(block))
    if (found !== -1) return start + found < to ? start + found : null
  }
  return null
}

/** One of each; those of newer strands come first. */
function together(all: readonly List<KnownSize>[]): List<KnownSize> {
  const byLength = new Map<number, KnownSize>()
  for (const size of all.flatMap((sizes) => [...sizes])) {
    if (!byLength.has(size.blocks)) byLength.set(size.blocks, size)
  }
  return List.of(byLength.values())
}

/** One of each, the one that lives longest. Shortest first. */
function merged(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  const byLength = prefixes.toSorted(
    (one, other) => one.blocks - other.blocks || one.expiresAt - other.expiresAt,
  )
  return byLength.filter(({ blocks }, index) => byLength[index + 1]?.blocks !== blocks)
}

/** From the last marker back: the nearest prefix within its reach, else on from the marker before it. */
function hitOf({ request, profile, marks, prefixes, now }: Asked): CachedPrefix | null {
  const live = prefixes.filter(({ expiresAt }) => now < expiresAt)
  const position = (blocks: number): number =>
    positionAt(request, blocks, profile.thinking.stripsFinishedTurns)
  for (const mark of marks.toReversed()) {
    const nearest = live.findLast(({ blocks }) => blocks <= mark.blocks)
    if (nearest === undefined) continue
    if (position(mark.blocks) - position(nearest.blocks) < profile.cache.lookBack) return nearest
  }
  return null
}

function reasonOf({ strands: [newest] }: Lineage, asked: Asked, hit: CachedPrefix | null): ForecastReason {
  if (asked.marks.length === 0) return 'off'
  const left = newest?.prefixes.at(-1)
  if (newest === undefined || left === undefined) return 'first'
  if (hit !== null && hit.blocks >= left.blocks) return 'warm'
  if (!sameKey(newest.key, asked.key, left.level)) return 'key'
  const there = asked.prefixes.find(({ blocks }) => blocks === left.blocks)
  if (there === undefined) return 'rewritten'
  return there.expiresAt <= asked.now ? 'expired' : 'out-of-reach'
}
