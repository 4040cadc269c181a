/**
 * Fits the items of a section into its tokens. What matters most stays, then what is newest; the oldest items go first,
 * and a line says how many were left out.
 */
import type { TokenCounter } from '../text/truncate-text.ts'

export interface NoteItem {
  readonly full: string
  /** The form that is used if the full one does not fit. */
  readonly short?: string
  /** The form that is used if the whole file has room left after everything else is in it. */
  readonly longer?: string
  /** Items with a lower rank are placed first. Those with rank 0 are left out only if the whole file has no room for them. */
  readonly rank: number
}

/** Items below one title. */
export interface NoteGroup {
  /** The line above the items; empty for none. */
  readonly title: string
  /** The items, newest first. */
  readonly items: readonly NoteItem[]
  /** True if the oldest item is shown first. */
  readonly isOldestFirst?: boolean
  /** True if a blank line separates the items, as quotations need. */
  readonly isSpaced?: boolean
  /** Number of older items that the keeper no longer has. */
  readonly dropped?: number
}

export interface FitOptions {
  readonly tokens: number
  readonly countTokens: TokenCounter
  /** True if items of rank 0 may be left out too. */
  readonly mayDropAll?: boolean
  /** Tokens that longer forms of items may add. Default: 0. */
  readonly spareTokens?: number
}

/** Tokens reserved for the title of a group and the line about what was left out. */
const GROUP_TOKENS = 24

/** Returns the text of a section with as many items as fit. Measures each form of an item at most twice. */
export function fitNoteGroups(groups: readonly NoteGroup[], options: FitOptions): string {
  const filled = groups.filter(({ items, dropped = 0 }) => items.length > 0 || dropped > 0)
  const placed = placeItems(filled, {
    ...options,
    tokens: options.tokens - GROUP_TOKENS * filled.length,
  })
  return filled.flatMap((group) => formatGroup(group, placed)).join('\n\n')
}

type PlacedItems = ReadonlyMap<NoteItem, string>

function placeItems(groups: readonly NoteGroup[], options: FitOptions): PlacedItems {
  const placed = new Map<NoteItem, string>()
  const full = new Set<NoteGroup>()
  let left = options.tokens
  const measure = (text: string): number => options.countTokens(text) + 1
  const ranks = [...new Set(groups.flatMap(({ items }) => items.map(({ rank }) => rank)))]
  for (const rank of ranks.toSorted((one, other) => one - other)) {
    const isKept = rank === 0 && options.mayDropAll !== true
    const own = groups.map((group) => ({ group, items: group.items.filter((item) => item.rank === rank) }))
    for (const { group, items } of own) {
      for (const item of items) {
        if (full.has(group) && !isKept) break
        const text = item.short ?? item.full
        const tokens = measure(text)
        if (tokens > left && !isKept) full.add(group)
        else {
          placed.set(item, text)
          left -= tokens
        }
      }
    }
    for (const item of own.flatMap(({ items }) => items)) {
      if (left <= 0) break
      if (item.short === undefined || !placed.has(item)) continue
      const more = measure(item.full) - measure(item.short)
      if (more > left) continue
      placed.set(item, item.full)
      left -= more
    }
  }
  left = Math.min(left, options.spareTokens ?? 0)
  for (const item of placed.keys()) {
    if (left <= 0) break
    if (item.longer === undefined || placed.get(item) !== item.full) continue
    const more = measure(item.longer) - measure(item.full)
    if (more > left) continue
    placed.set(item, item.longer)
    left -= more
  }
  return placed
}

function formatGroup(group: NoteGroup, placed: PlacedItems): readonly string[] {
  const { title, items, isOldestFirst = false, isSpaced = false, dropped = 0 } = group
  const shown = items.flatMap((item) => placed.get(item) ?? [])
  const missing = items.length - shown.length + dropped
  const separator = isSpaced ? '\n\n' : '\n'
  const text = (isOldestFirst ? shown.toReversed() : shown).join(separator)
  const note = missing === 0 ? '' : formatLeftOut(missing, shown.length)
  if (text === '' && note === '') return []
  const parts = isOldestFirst ? [note, text] : [text, note]
  const body = parts.filter((part) => part !== '').join(separator)
  return [title === '' ? body : `${title}\n${body}`]
}

function formatLeftOut(missing: number, shown: number): string {
  const older = shown === 0 ? '' : ' older'
  return missing === 1
    ? `… one${older} is in the transcript`
    : `… ${missing}${older}${older === '' ? '' : ' ones'} are in the transcript`
}
