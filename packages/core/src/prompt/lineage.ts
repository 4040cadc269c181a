/**
 * What is known of a provider's cache: the prefixes that requests of this session left there, each up to where
 * a marker stood, and the tokens of prefixes as far as usage has told them. Bounded, and a value.
 */
import type { List } from '../conversation/list.ts'
import type { CacheKey, Level } from './cache-key.ts'
import type { SaidBlocks } from './shared-blocks.ts'

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
