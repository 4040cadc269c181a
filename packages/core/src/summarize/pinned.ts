/** Pinned records on the summarised side of a compaction: kept within a budget, newest first, never torn out of a round. */
import type { Entry } from '../view/entry.ts'

export interface Pins {
  /** uuids of the records that are to survive verbatim. */
  readonly targets: readonly string[]
  /** Tokens that all of them together may take. */
  readonly budgetTokens: number
  readonly tokensOf: (entry: Entry) => number
}

export const NO_PINS: Pins = { targets: [], budgetTokens: 0, tokensOf: () => 0 }

export interface PinContext {
  readonly pins: Pins
  readonly cuts: readonly number[]
  /** Whether the entry at this place would be summarised if it were not pinned. */
  readonly isFree: (at: number) => boolean
}

export interface Pinned {
  /** Places of the entries kept: each pinned record with those between the same two cuts. */
  readonly pinned: ReadonlySet<number>
  /** Places of pinned records that found no room. */
  readonly unpinned: readonly number[]
}

export function pinnedIn(entries: readonly Entry[], context: PinContext): Pinned {
  const { pins, isFree } = context
  const targets = new Set(pins.targets)
  const pinned = new Set<number>()
  const unpinned: number[] = []
  let left = pins.budgetTokens
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    if (!isPinnable(entries[at], targets) || !isFree(at) || pinned.has(at)) continue
    const group = groupAt(at, entries.length, context).filter((place) => !pinned.has(place))
    const tokens = group.reduce((sum, place) => sum + tokensAt(entries, place, pins), 0)
    if (tokens > left) unpinned.unshift(at)
    else for (const place of group) pinned.add(place)
    left -= tokens > left ? 0 : tokens
  }
  return { pinned, unpinned }
}

/** A summary is never a pin: it is written anew each time. */
function isPinnable(entry: Entry | undefined, targets: ReadonlySet<string>): boolean {
  return entry !== undefined && targets.has(entry.record.uuid) && entry.record.isCompactSummary !== true
}

function groupAt(at: number, length: number, { cuts, isFree }: PinContext): readonly number[] {
  const start = cuts.findLast((cut) => cut <= at) ?? 0
  const end = cuts.find((cut) => cut > at) ?? length
  return Array.from({ length: end - start }, (_, index) => start + index).filter(isFree)
}

function tokensAt(entries: readonly Entry[], place: number, { tokensOf }: Pins): number {
  const entry = entries[place]
  return entry === undefined ? 0 : tokensOf(entry)
}
