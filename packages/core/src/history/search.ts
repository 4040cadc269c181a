/** Searches the conversation, newest first, or one text, line by line; lists ranges of records. Work is bounded. */

import type { Block } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { isKnown, type SessionRecord } from '../log/record.ts'
import { placeOf, recordAt, type Session } from '../log/session.ts'
import type { HistoryPolicy } from '../policy/policy.ts'
import { headWithin, type Measure } from '../summary/truncate-text.ts'
import { type Found, recordBody, recordHeading, wholeRecord } from './find-record.ts'
import type { BlobReader } from './spill.ts'

/** Lines shown of one record, and characters of one line. */
const MOST_LINES = 3
const LONGEST_LINE = 300

/** `query.cursor`: index of the record to continue with. */
export async function searchPage(query: Query, finder: Finder, source: HistorySource): Promise<Page> {
  const { session, policy } = source
  const found: string[] = []
  let work = 0
  let position = startOf(session, query.cursor)
  for (; position >= 0 && found.length < policy.matches && work < policy.searchSteps; position -= 1) {
    const hit = await searchRecord(session.branch.at(position) ?? 0, finder, source)
    work += hit.work
    if (hit.text === null) continue
    if (found.length > 0 && isFull([...found, hit.text], source)) break
    found.push(hit.text)
  }
  const next = position < 0 ? null : (session.branch.at(position) ?? null)
  const heading = found.length === 0 ? nothing(next) : `${found.length} found, newest first:`
  return { heading, body: found.join('\n'), next }
}

function nothing(next: number | null): string {
  return next === null ? 'Nothing found.' : 'Nothing found yet: the search was cut short to bound its time.'
}

/** The position on the branch from which the search goes backwards. */
function startOf({ branch }: Session, cursor: number | null): number {
  if (cursor === null) return branch.length - 1
  let position = branch.length - 1
  while (position >= 0 && (branch.at(position) ?? 0) > cursor) position -= 1
  return position
}

function isFull(found: readonly string[], { measure, pageTokens }: HistorySource): boolean {
  return measure(found.join('\n')) > pageTokens
}

async function searchRecord(
  index: number,
  finder: Finder,
  source: HistorySource,
): Promise<{ readonly text: string | null; readonly work: number }> {
  const record = await wholeRecord(source, recordAt(source.session, index))
  const body = recordBody(record)
  const reach = Math.floor(source.policy.searchSteps / finder.stepsPerCharacter)
  const lines = body.slice(0, reach).split('\n').filter(finder.isIn)
  const work = (Math.min(body.length, reach) + 1) * finder.stepsPerCharacter
  if (lines.length === 0) return { text: null, work }
  const more = lines.length > MOST_LINES ? [`  … ${lines.length - MOST_LINES} more lines`] : []
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${shortened(line)}`)
  return { text: [recordHeading(record), ...shown, ...more].join('\n'), work }
}

function shortened(line: string): string {
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)} …`
}

/** `cursor`: index of the line to continue with. */
export function findInText(found: Found, finder: Finder, cursor: number | null, source: HistorySource): Page {
  const lines = found.text.split('\n')
  const shown: string[] = []
  let work = 0
  let at = cursor ?? 0
  for (; at < lines.length && shown.length < source.policy.matches; at += 1) {
    const line = lines[at] ?? ''
    const isSpent = work > 0 && work + line.length * finder.stepsPerCharacter > source.policy.searchSteps
    if (isSpent) break
    work += (line.length + 1) * finder.stepsPerCharacter
    if (!finder.isIn(line)) continue
    const text = `${at + 1}: ${shortened(line)}`
    if (shown.length > 0 && isFull([...shown, text], source)) break
    shown.push(text)
  }
  const next = at < lines.length ? at : null
  const what = shown.length === 0 ? nothing(next) : `${shown.length} lines found, with their numbers:`
  return { heading: `${found.heading}. ${what}`, body: shown.join('\n'), next }
}

// Search terms: words and quoted phrases that must all occur in one line, in any case.

interface Finder {
  /** The number of terms. */
  readonly stepsPerCharacter: number
  isIn(line: string): boolean
}

/** `login "not found"` finds lines that contain both `login` and `not found`. Null if there are no terms. */
function createFinder(text: string): Finder | null {
  const terms = [...text.toLowerCase().matchAll(/"([^"]+)"|[^\s"]+/g)]
    .map(([word, phrase]) => (phrase ?? word).trim())
    .filter((term) => term !== '')
  if (terms.length === 0) return null
  const isIn = (line: string): boolean => {
    const searched = line.toLowerCase()
    return terms.every((term) => searched.includes(term))
  }
  return { stepsPerCharacter: terms.length, isIn }
}

// A range of the active branch in order; long records are shortened.

/** One record may take a quarter of a page; the rest can be read by its id. */
const LARGEST_PART = 4

/** `query.cursor`: index of the record to continue with. Returns an error message if an end of the range does not exist. */
export function rangePage(query: Query, source: HistorySource): Page | string {
  const stretch = stretchOf(query, source.session)
  if (typeof stretch === 'string') return stretch
  const shown: string[] = []
  let at = stretch.findIndex((index) => index >= (query.cursor ?? 0))
  if (at === -1) at = stretch.length
  for (; at < stretch.length; at += 1) {
    const text = shortRecord(recordAt(source.session, stretch[at] ?? 0), source)
    if (shown.length > 0 && isFull([...shown, text], source)) break
    shown.push(text)
  }
  const next = stretch[at] ?? null
  return { heading: `${stretch.length} records, oldest first:`, body: shown.join('\n'), next }
}

/** Indices of the requested records, or an error message. */
function stretchOf({ from, to, last }: Query, session: Session): readonly number[] | string {
  const [first, end] = [edge(session, from, 'from'), edge(session, to, 'to')]
  if (typeof first === 'string') return first
  if (typeof end === 'string') return end
  const branch = session.branch.toArray().filter((index) => isSaid(recordAt(session, index)))
  const within = branch.filter((index) => index >= (first ?? 0) && index <= (end ?? Number.POSITIVE_INFINITY))
  return last === null ? within : within.slice(-last)
}

function edge(session: Session, id: string | null, field: string): number | null | string {
  if (id === null) return null
  const place = placeOf(session, id) ?? session.calls.get(id) ?? session.responses.get(id)
  return place ?? `"${field}": there is no record ${id} in this session.`
}

function isSaid(record: SessionRecord): boolean {
  return isKnown(record) && record.type !== 'progress'
}

function shortRecord(record: SessionRecord, { measure, pageTokens }: HistorySource): string {
  const body = recordBody(record)
  const short = headWithin(body, Math.floor(pageTokens / LARGEST_PART), measure)
  const rest = body.length - short.length
  const more = rest === 0 ? [] : [`… ${rest} more characters; give ${record.uuid} as "id" for all of it`]
  return [recordHeading(record), ...(short === '' ? [] : [short]), ...more].join('\n')
}

// The input of the history tool, as written by the model.

export interface Query {
  readonly id: string | null
  /** Lines of the item with this id, counted from 1. */
  readonly lines: { readonly from: number; readonly to: number } | null
  readonly finder: Finder | null
  /** Ids of the first and last record; null for the ends of the conversation. */
  readonly from: string | null
  readonly to: string | null
  readonly last: number | null
  /** Where the previous page ended. */
  readonly cursor: number | null
}

/** Returns an error message for bad input. Models fill in fields they do not need, so blank ones count as absent. */
export function readQuery(given: unknown): Query | string {
  const input = isObject(given) ? given : {}
  const finder = createFinder(textIn(input.text) ?? '')
  const lines = linesIn(input.lines)
  if (lines === undefined) return '"lines" must be like "120-180".'
  const [id, from, to] = [textIn(input.id), textIn(input.from), textIn(input.to)]
  const [last, cursor] = [countIn(input.last), countIn(input.cursor)]
  if (last === undefined || last === 0) return '"last" must be a whole number of 1 or more.'
  if (cursor === undefined) return '"cursor" must be one that an answer of this tool gave.'
  if ([id, finder, from, to, last].every((field) => field === null))
    return 'Say what to look for: "id", "text", "from" and "to", or "last".'
  return { id, lines, finder, from, to, last, cursor }
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

// What the history tool reads from, and the pages it returns.

export interface HistorySource {
  readonly session: Session
  /** Null if nothing was ever spilled. */
  readonly blobs: BlobReader | null
  readonly policy: HistoryPolicy
  /** Tokens of a page: `budgets.historyPage`. */
  readonly pageTokens: number
  readonly measure: Measure
}

/** One page: a heading, its text, and the cursor of the next page. */
export interface Page {
  readonly heading: string
  readonly body: string
  readonly next: number | null
  readonly media?: readonly Block[]
}
