/** Items of the notes below titles, as many as fit. A line says how many were left out. */
import { type FitItem, fitItems } from '../text/fit-items.ts'
import type { TokenCounter } from '../text/truncate-text.ts'

/** Items with rank 0 are left out only if the whole file has no room for them. */
export type NoteItem = FitItem

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
  /** Number of older items that are not among them. */
  readonly dropped?: number
}

export interface SectionBudget {
  readonly tokens: number
  readonly countTokens: TokenCounter
  /** True if items of rank 0 may be left out too. */
  readonly mayDropAll?: boolean
  /** Tokens that longer forms of items may add. Default: 0. */
  readonly spareTokens?: number
}

/** Tokens reserved for the title of a group and the line about what was left out. */
const GROUP_TOKENS = 24

/** Returns the text of a section with as many items as fit. */
export function writeGroups(groups: readonly NoteGroup[], budget: SectionBudget): string {
  const filled = groups.filter(({ items, dropped = 0 }) => items.length > 0 || dropped > 0)
  const placed = placeItems(
    filled.flatMap(({ items }) => items),
    { ...budget, tokens: budget.tokens - GROUP_TOKENS * filled.length },
  )
  return filled.flatMap((group) => formatGroup(group, placed)).join('\n\n')
}

/** Chooses the items that fit, each with the line break after it. */
export function placeItems<Item extends NoteItem>(
  items: readonly Item[],
  {
    countTokens,
    mayDropAll = false,
    ...options
  }: SectionBudget & { readonly caps?: ReadonlyMap<string, number> },
): ReadonlyMap<NoteItem, string> {
  return fitItems(items, {
    ...options,
    countTokens: (text) => countTokens(text) + 1,
    isKept: ({ rank }) => rank === 0 && !mayDropAll,
  })
}

function formatGroup(group: NoteGroup, placed: ReadonlyMap<NoteItem, string>): readonly string[] {
  const { title, items, isOldestFirst = false, isSpaced = false, dropped = 0 } = group
  const shown = items.flatMap((item) => placed.get(item) ?? [])
  const separator = isSpaced ? '\n\n' : '\n'
  const text = (isOldestFirst ? shown.toReversed() : shown).join(separator)
  const note = formatMissing(items.length - shown.length + dropped, shown.length)
  if (text === '' && note === '') return []
  const parts = isOldestFirst ? [note, text] : [text, note]
  const body = parts.filter((part) => part !== '').join(separator)
  return [title === '' ? body : `${title}\n${body}`]
}

/** Says how many items are missing beside those that are shown; empty for none. */
export function formatMissing(missing: number, shown: number): string {
  if (missing === 0) return ''
  const older = shown === 0 ? '' : ' older'
  return missing === 1
    ? `… one${older} is in the transcript`
    : `… ${missing}${older}${older === '' ? '' : ' ones'} are in the transcript`
}

/** Returns a group of lines that matter as much as each other. */
export function toGroup(title: string, lines: readonly string[], rank = 1): NoteGroup {
  return { title, items: lines.map((full) => ({ full, rank })) }
}
