/** What the history tool was asked for, read from the input a model wrote. */
import { isObject } from '../conversation/json.ts'
import { type Finder, patternFinder, textFinder } from './finder.ts'

export interface Query {
  readonly id: string | null
  /** Lines of what the id stands for, from 1 on. */
  readonly lines: { readonly from: number; readonly to: number } | null
  readonly finder: Finder | null
  /** Ids of the first and the last record; null for the ends of the conversation. */
  readonly from: string | null
  readonly to: string | null
  readonly last: number | null
  /** Where the page before ended. */
  readonly cursor: number | null
}

/** A sentence where the input cannot be read. Models fill in fields they do not need: blank ones count as not given. */
export function readQuery(given: unknown): Query | string {
  const input = isObject(given) ? given : {}
  const [text, pattern] = [textIn(input.text), textIn(input.pattern)]
  const finder = pattern === null ? (text === null ? null : textFinder(text)) : patternFinder(pattern)
  if (typeof finder === 'string') return finder
  const lines = linesIn(input.lines)
  if (lines === undefined) return '"lines" must be like "120-180".'
  const query = { id: textIn(input.id), lines, finder, from: textIn(input.from), to: textIn(input.to) }
  const [last, cursor] = [countIn(input.last), countIn(input.cursor)]
  if (last === undefined || last === 0) return '"last" must be a whole number of 1 or more.'
  if (cursor === undefined) return '"cursor" must be one that an answer of this tool gave.'
  const isAsked =
    query.id !== null || finder !== null || query.from !== null || query.to !== null || last !== null
  if (!isAsked) return 'Say what to look for: "id", "text", "pattern", "from" and "to", or "last".'
  return { ...query, last, cursor }
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

/** A whole number, written as such or as a string; undefined for anything else. */
function countIn(value: unknown): number | null | undefined {
  if (value === undefined || value === null || value === '') return null
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

function linesIn(value: unknown): Query['lines'] | undefined {
  if (value === undefined || value === null || value === '') return null
  const found = /^\s*(\d{1,9})\s*(?:[-–:,]\s*(\d{1,9}))?\s*$/.exec(String(value))
  if (found === null) return undefined
  const from = Math.max(1, Number(found[1]))
  const to = Number(found[2] ?? found[1])
  return to < from ? undefined : { from, to }
}
