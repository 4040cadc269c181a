/**
 * Keeps texts free of lone surrogates: halves of a character outside the basic plane, such as an emoji. Providers
 * refuse a request that contains one, for good, so text is repaired when it arrives and never cut inside a character.
 * Text that is quoted also loses what controls a terminal.
 */

/** Cuts a text as `slice` does, but never inside a surrogate pair: half a pair at an end of the cut is left out. */
export function sliceText(text: string, from: number, to: number = text.length): string {
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

/** Nesting beyond this depth is left alone: such a value is refused elsewhere. */
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
export function repairRecordText<R extends object>(record: R): R {
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
