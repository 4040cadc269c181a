/**
 * Shortens texts to a number of characters or tokens, and fits many texts into one budget. What remains never ends in half a
 * character. The functions named `truncate…` mark the cut.
 */

const ELLIPSIS = '…'

/** Returns the first `most` characters and an ellipsis, or the whole text if it is short enough. */
export function truncateEnd(text: string, most: number): string {
  if (text.length <= most) return text
  return `${sliceWholeCharacters(text, 0, most)}${ELLIPSIS}`
}

/** Returns an ellipsis and the last `most` characters, or the whole text if it is short enough. */
export function truncateStart(text: string, most: number): string {
  if (text.length <= most) return text
  return `${ELLIPSIS}${sliceWholeCharacters(text, text.length - most)}`
}

/** Returns the words by which a shortened text refers to the record that holds it whole. */
export function formatRecordPointer(id: string): string {
  return `in full in record ${id}`
}

/**
 * Returns `each` characters of both ends of a text, not counting white space there, with a note between them: how many
 * characters are missing, and that record `id` has them. Returns the whole text if none would be missing.
 */
export function truncateMiddleWithPointer(text: string, each: number, id: string): string {
  const lead = text.length - text.trimStart().length
  const trail = text.length - text.trimEnd().length
  const head = sliceWholeCharacters(text, 0, lead + each)
  const tail = sliceWholeCharacters(text, -(trail + each))
  const missing = text.length - head.length - tail.length
  return missing <= 0
    ? text
    : `${head}\n[${ELLIPSIS} ${missing} characters, ${formatRecordPointer(id)} ${ELLIPSIS}]\n${tail}`
}

/** Returns both ends of a text with an ellipsis between them, or the whole text if it is short enough. */
export function truncateMiddle(text: string, head: number, tail: number): string {
  if (text.length <= head + tail) return text
  return `${sliceWholeCharacters(text, 0, head)}${ELLIPSIS}${sliceWholeCharacters(text, -tail)}`
}

/** Returns a text on one line, with each run of white space as one blank, cut to `most` characters. */
export function toOneLine(text: string, most: number = Number.POSITIVE_INFINITY): string {
  // Notes quote the beginnings of all messages at every call, so only the beginning is read if that is enough.
  const start = text.length > 2 * most ? joinWhiteSpace(sliceWholeCharacters(text, 0, 2 * most)) : ''
  if (start.length > most) return truncateEnd(start, most)
  // Of a long text with much white space, the beginning has enough characters unless nearly all are white space.
  const isLong = text.length > 20 * most
  const line = joinWhiteSpace(isLong ? sliceWholeCharacters(text, 0, 20 * most) : text)
  return isLong && line.length <= most ? `${line}${ELLIPSIS}` : truncateEnd(line, most)
}

function joinWhiteSpace(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** Returns a text on one line, cut to `most` characters, in quotation marks. */
export function quoteInline(text: string, most: number): string {
  return `"${toOneLine(text, most)}"`
}

// Functions that cut a text to its beginning or end within a number of tokens.

/** Counts the tokens of a text. The count must never decrease when text is appended. */
export type TokenCounter = (text: string) => number

/**
 * No token has more characters, except runs of blanks: text beyond `tokens` times this length cannot fit and is not measured.
 */
const MAX_TOKEN_CHARACTERS = 24

/**
 * Returns the longest beginning of a text with at most `tokens` tokens, without a mark of the cut. It ends at a line end,
 * unless that would lose more than half of it.
 */
export function takeHeadWithinTokens(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(0, size)))
  const head = sliceWholeCharacters(text, 0, length)
  if (head.length === text.length) return text
  const line = head.lastIndexOf('\n') + 1
  return line * 2 >= head.length ? head.slice(0, line) : head
}

/**
 * Returns the longest end of a text with at most `tokens` tokens, without a mark of the cut. It begins at a line start,
 * unless that would lose more than half of it.
 */
export function takeTailWithinTokens(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(text.length - size)))
  const tail = sliceWholeCharacters(text, text.length - length)
  if (tail.length === text.length) return text
  const line = tail.indexOf('\n') + 1
  return line * 2 <= tail.length ? tail.slice(line) : tail
}

/** Returns the largest number of characters whose tokens (`measured`) are at most `tokens`, by binary search. */
function findLongest(text: string, tokens: number, measured: (size: number) => number): number {
  let most = Math.min(text.length, Math.max(0, tokens) * MAX_TOKEN_CHARACTERS)
  if (measured(most) <= tokens) return most
  let least = 0
  while (least < most) {
    const size = Math.ceil((least + most) / 2)
    if (measured(size) <= tokens) least = size
    else most = size - 1
  }
  return least
}

// Keeps texts free of lone surrogates: halves of a character outside the basic plane, such as an emoji. Providers
// refuse every request that contains one, so text is repaired when it arrives and never cut inside a character. Quoted
// text also loses the characters that control a terminal.

/** Cuts a text as `slice` does, but never inside a surrogate pair: half a pair at an end of the cut is left out. */
export function sliceWholeCharacters(text: string, from: number, to: number = text.length): string {
  const start = from < 0 ? Math.max(0, text.length + from) : from
  const end = to < 0 ? Math.max(0, text.length + to) : Math.min(to, text.length)
  return text.slice(
    isInsidePair(text, start) ? start + 1 : start,
    isInsidePair(text, end) ? Math.max(0, end - 1) : end,
  )
}

/** True if position `at` is between the two halves of a surrogate pair. */
function isInsidePair(text: string, at: number): boolean {
  return at > 0 && at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff
}

/** Strings nested deeper than this are neither checked nor repaired, so that no value is too deep for the stack. */
const MAX_DEPTH = 200

/**
 * Replaces each lone surrogate in the strings of a JSON value by U+FFFD, as UTF-8 encoders do. Returns the same object
 * if there is none.
 */
export function replaceLoneSurrogates<T>(value: T): T {
  return repairValue(value, MAX_DEPTH) as T
}

/** Looks at every string of a value. Nothing is copied, because each record of a log is checked when it is read. */
function hasLoneSurrogate(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return !value.isWellFormed()
  if (depth === 0 || typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) {
    for (const item of value) if (hasLoneSurrogate(item, depth - 1)) return true
    return false
  }
  const fields = value as Readonly<Record<string, unknown>>
  for (const key in fields) if (!key.isWellFormed() || hasLoneSurrogate(fields[key], depth - 1)) return true
  return false
}

function repairValue(value: unknown, depth: number): unknown {
  if (!hasLoneSurrogate(value, depth)) return value
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map((item) => repairValue(item, depth - 1))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([key, item]) => [key.toWellFormed(), repairValue(item, depth - 1)]))
}

/**
 * Replaces lone surrogates in a record. The exact JSON texts of its blocks (`rawBlocks`) are dropped then, because they
 * still contain them.
 */
export function repairRecordSurrogates<R extends object>(record: R): R {
  const repaired = replaceLoneSurrogates(record)
  if (repaired === record || !('rawBlocks' in repaired)) return repaired
  const { rawBlocks: _, ...rest } = repaired
  return rest as R
}

/** Matches the rest of a colour or cursor sequence of a terminal, after the escape character. */
const TERMINAL_SEQUENCE = '\\[[0-?]*[ -/]*[@-~]'
const ESCAPE_SEQUENCE = new RegExp(`\\u001b(?:${TERMINAL_SEQUENCE})?`, 'g')
const CONTROL_CHARACTER = /[^\P{Cc}\t\n\r]/gu

/**
 * Removes terminal escape sequences and control characters other than tab and line ends, and replaces lone surrogates,
 * which a provider refuses, by U+FFFD.
 */
export function removeControlCharacters(text: string): string {
  return replaceLoneSurrogates(text.replace(ESCAPE_SEQUENCE, '').replace(CONTROL_CHARACTER, ''))
}

// Fits texts into a number of tokens: the most important first, all in a short form before any is shown at length.
// Notes and summaries both choose texts by this rule.

/** A text to place, in up to three lengths. */
export interface RankedText {
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

export interface FitTextsOptions<Item extends RankedText> {
  readonly tokens: number
  readonly countTokens: TokenCounter
  /** Maximum tokens of the items of a group; a group that is not listed has no limit. */
  readonly caps?: ReadonlyMap<string, number>
  /** Returns true for items that are placed in their short form whether they fit or not. */
  readonly isKept?: (item: Item) => boolean
  /**
   * True: every item is placed in its short form before any gets its full form. False: each rank is placed and extended
   * before the next rank.
   */
  readonly isBroad?: boolean
  /** Maximum of the remaining tokens that go into `longer` forms. Default: 0. */
  readonly spareTokens?: number
}

/**
 * Chooses for each item the longest form that fits into the tokens, by rank (see `FitTextsOptions`). Returns the chosen texts; an
 * item whose short form does not fit is left out, and the next one is tried.
 */
export function fitTextsToTokens<Item extends RankedText>(
  items: readonly Item[],
  { tokens, countTokens, caps = new Map(), ...options }: FitTextsOptions<Item>,
): ReadonlyMap<Item, string> {
  const placed = new Map<Item, string>()
  const left = new Map(caps)
  let room = tokens
  const put = (item: Item, text: string, isKept = false): void => {
    const before = placed.get(item)
    // A text has at least one token, so counting can stop once all tokens are spent.
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

function groupByRank<Item extends RankedText>(items: readonly Item[]): readonly (readonly Item[])[] {
  const ranks = new Map<number, Item[]>()
  for (const item of items) {
    const own = ranks.get(item.rank)
    if (own === undefined) ranks.set(item.rank, [item])
    else own.push(item)
  }
  return [...ranks].toSorted(([one], [other]) => one - other).map(([, own]) => own)
}
