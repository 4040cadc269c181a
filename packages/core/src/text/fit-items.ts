/**
 * Fits texts into a number of tokens: what matters most first, in a short form before anything is shown at length. Notes
 * and summaries both choose by this rule.
 */
import type { TokenCounter } from './truncate-text.ts'

export interface FitItem {
  readonly full: string
  /** The form that is used if the full one does not fit; null or missing if there is none. */
  readonly short?: string | null
  /** The form that is used if tokens are left after everything else has been placed. */
  readonly longer?: string
  /** Items with a lower rank are placed first, those of the same rank in their order. */
  readonly rank: number
  /** Names of the groups whose limits count for the item. */
  readonly groups?: readonly string[]
}

export interface FitOptions<Item extends FitItem> {
  readonly tokens: number
  readonly countTokens: TokenCounter
  /** Maximum tokens of the items of a group; a group that is not listed has no limit. */
  readonly caps?: ReadonlyMap<string, number>
  /** Returns true for items that are placed in their short form whether they fit or not. */
  readonly isKept?: (item: Item) => boolean
  /** True if all items are placed before any gets its full form. Otherwise those of one rank do before the next rank. */
  readonly isBroad?: boolean
  /** Tokens that longer forms of items may add. Default: 0. */
  readonly spareTokens?: number
}

/** Returns the text of each item that fits. An item that does not fit is left out, and the next one is tried. */
export function fitItems<Item extends FitItem>(
  items: readonly Item[],
  { tokens, countTokens, caps = new Map(), ...options }: FitOptions<Item>,
): ReadonlyMap<Item, string> {
  const placed = new Map<Item, string>()
  const left = new Map(caps)
  let room = tokens
  const put = (item: Item, text: string, isKept = false): void => {
    const before = placed.get(item)
    // Every text has at least one token, so nothing is measured once all tokens are spent.
    if (before === undefined && room <= 0 && !isKept) return
    const cost = countTokens(text) - (before === undefined ? 0 : countTokens(before))
    const { groups = [] } = item
    const most = Math.min(room, ...groups.map((group) => left.get(group) ?? Number.POSITIVE_INFINITY))
    if (cost > most && !isKept) return
    placed.set(item, text)
    room -= cost
    for (const group of groups) left.set(group, (left.get(group) ?? Number.POSITIVE_INFINITY) - cost)
  }
  const place = (own: readonly Item[]): void => {
    for (const item of own) put(item, item.short ?? item.full, options.isKept?.(item))
  }
  const extend = (own: readonly Item[]): void => {
    for (const item of own) if (typeof item.short === 'string' && placed.has(item)) put(item, item.full)
  }
  const ranks = groupByRank(items)
  for (const own of ranks) {
    place(own)
    if (options.isBroad !== true) extend(own)
  }
  if (options.isBroad === true) for (const own of ranks) extend(own)
  room = Math.min(room, options.spareTokens ?? 0)
  for (const [item, text] of placed)
    if (room > 0 && item.longer !== undefined && text === item.full) put(item, item.longer)
  return placed
}

function groupByRank<Item extends FitItem>(items: readonly Item[]): readonly (readonly Item[])[] {
  const ranks = new Map<number, Item[]>()
  for (const item of items) {
    const own = ranks.get(item.rank)
    if (own === undefined) ranks.set(item.rank, [item])
    else own.push(item)
  }
  return [...ranks].toSorted(([one], [other]) => one - other).map(([, own]) => own)
}
