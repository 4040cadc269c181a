/** What a response's usage tells of the cache: which prefixes are there now, how long, and how large they are. */
import type { Usage } from '../conversation/record.ts'
import { billedParts } from '../measure/billed.ts'
import type { CacheRules } from '../policy/profile.ts'
import type { Asked, Forecast } from './forecast.ts'
import { type CachedPrefix, type KnownSize, type Lineage, withStrand } from './lineage.ts'
import type { Mark } from './marks.ts'
import { knownSize, sizeAt } from './size.ts'

interface Figures {
  readonly read: number
  readonly written: number
}

/** The lineage once the response to a forecast request has begun: from then on others can read what it wrote. */
export function learnFromResponse(lineage: Lineage, forecast: Forecast, usage: Usage): Lineage {
  const figures = figuresOf(usage)
  const { asked } = forecast
  const { request, key, follows } = asked
  const sizes = withSizes(forecast, figures)
  const kept = stillThere(forecast, figures)
  const prefixes = refreshed({ ...asked, sizes }, kept, figures)
  const { front, counted } = request
  return withStrand(lineage, { front, counted, key, prefixes, sizes }, follows)
}

/**
 * A fork reads where its parent's last marker stood, which keeps that alive, and leaves all else as it was. One
 * that had to write is remembered beside its parent: what it wrote can be read.
 */
export function learnFromFork(lineage: Lineage, forecast: Forecast, usage: Usage): Lineage {
  const [newest, ...older] = lineage.strands
  const mark = forecast.asked.marks.at(-1)
  const { read, written } = figuresOf(usage)
  if (newest === undefined || mark === undefined || read + written === 0) return lineage
  if (written > 0) return learnFromResponse(lineage, forecast, usage)
  const { now, profile } = forecast.asked
  const prefixes = newest.prefixes.map((prefix) =>
    prefix.blocks === mark.blocks ? lived(prefix, now, profile.cache) : prefix,
  )
  return { strands: [{ ...newest, prefixes }, ...older] }
}

/** The last run of the model: what it saw is what is in the cache. */
function figuresOf(usage: Usage): Figures {
  const tokens = billedParts(usage).at(-1)?.tokens
  return { read: tokens?.cacheRead ?? 0, written: (tokens?.write5m ?? 0) + (tokens?.write1h ?? 0) }
}

/** All up to the last marker was read or written; what was read ends where the prefix found does. */
function withSizes(forecast: Forecast, { read, written }: Figures): Asked['sizes'] {
  const { marks, sizes } = forecast.asked
  const last = marks.at(-1)
  if (last === undefined || read + written === 0) return sizes
  const all = told(sizes, { blocks: last.blocks, tokens: read + written })
  const found = read === 0 || written === 0 ? null : foundAt(forecast, all, read)
  return found === null ? all : told(all, { blocks: found, tokens: read })
}

function told(sizes: Asked['sizes'], size: KnownSize): Asked['sizes'] {
  return knownSize(sizes, size.blocks) === size.tokens ? sizes : sizes.push(size)
}

/** Blocks of the prefix that was read: the one foreseen, or the marked one that comes nearest to the figure. */
function foundAt(
  { asked, hit, read: expected }: Forecast,
  sizes: Asked['sizes'],
  read: number,
): number | null {
  if (hit !== null && isNear(read, expected, FAR)) return hit.blocks
  const sized = asked.marks
    .slice(0, -1)
    .map(({ blocks }) => ({ blocks, ...sizeAt({ ...asked, sizes }, blocks) }))
  const near = sized.filter(({ tokens, isKnown }) => !isKnown && isNear(read, tokens, FAR))
  const nearest = near.toSorted(
    (one, other) => Math.abs(one.tokens - read) - Math.abs(other.tokens - read),
  )[0]
  return nearest?.blocks ?? null
}

/** How far off a figure may be that was read off between two others, at the worst … */
const FAR = 0.5
/** … and as a rule. */
const NEAR = 0.25

function isNear(one: number, other: number, within: number): boolean {
  return Math.abs(one - other) <= within * Math.max(one, other)
}

/** Where less was read than was foreseen, what lies beyond it is gone, whatever the reason. */
function stillThere(
  { asked, isCertain, read: expected }: Forecast,
  { read }: Figures,
): readonly CachedPrefix[] {
  const live = asked.prefixes.filter(({ expiresAt }) => asked.now < expiresAt)
  const isForeseen = read >= expected || (!isCertain && isNear(read, expected, FAR))
  if (isForeseen) return live
  return live.filter(({ blocks, tokens }) => (knownSize(asked.sizes, blocks) ?? tokens) <= read)
}

/** What was found lives on, and so does all that a marker stands on; what was not there is written. */
function refreshed(
  asked: Asked,
  kept: readonly CachedPrefix[],
  { read, written: added }: Figures,
): readonly CachedPrefix[] {
  const { now, profile, marks } = asked
  if (marks.length === 0) return kept
  if (read + added === 0) return []
  const byLength = new Map(kept.map((prefix) => [prefix.blocks, prefix]))
  const found = kept.findLast(({ blocks }) => knownSize(asked.sizes, blocks) === read)
  if (found !== undefined)
    byLength.set(found.blocks, lived({ ...found, isDoubtful: false }, now, profile.cache))
  for (const mark of marks) {
    const there = byLength.get(mark.blocks) ?? written(asked, mark)
    if (there !== null) byLength.set(mark.blocks, lived(there, now, profile.cache))
  }
  return [...byLength.values()].sort((one, other) => one.blocks - other.blocks)
}

/** Null where it is too short to be kept. */
function written(asked: Asked, { blocks, level, ttl }: Mark): CachedPrefix | null {
  const least = asked.profile.cache.minimumTokens ?? 0
  const { tokens, isKnown } = sizeAt(asked, blocks)
  const isDoubtful = !isKnown && isNear(tokens, least, NEAR)
  return tokens < least && !isDoubtful ? null : { blocks, level, ttl, tokens, isDoubtful, expiresAt: 0 }
}

/** Lifetimes count from the start of the request that wrote or read. */
function lived(prefix: CachedPrefix, now: number, { ttls }: CacheRules): CachedPrefix {
  const seconds = ttls.find(({ name }) => name === prefix.ttl)?.seconds ?? 0
  return { ...prefix, expiresAt: Math.max(prefix.expiresAt, now + seconds * 1000) }
}
