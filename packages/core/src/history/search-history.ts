/**
 * The queries of the history tool: searches the conversation, newest record first, or the lines of one record, and lists
 * ranges of records. Each search stops after a limited number of steps.
 */

import type { Block } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { isKnownRecord, type SessionRecord } from '../log/record.ts'
import { findRecordIndex, requireRecordAt, type SessionLog } from '../log/session-log.ts'
import type { HistoryPolicy } from '../policy/turn-policy.ts'
import { sliceWholeCharacters, type TokenCounter, takeHeadWithinTokens } from '../text/truncate-text.ts'
import {
  type FoundHistoryItem,
  formatRecordBody,
  formatRecordHeading,
  restoreSpilledRecord,
} from './history-items.ts'
import type { BlobReader } from './spill-results.ts'

/** Maximum number of matching lines shown of one record; each line is cut to `MAX_MATCH_LINE_CHARACTERS`. */
const MAX_LINES_PER_RECORD = 3
const MAX_LINE_CHARACTERS = 300

/**
 * Searches the active branch from the newest record backwards and returns one page of matches. `query.cursor`: log
 * index of the record to continue with.
 */
export async function searchConversation(
  query: HistoryQuery,
  finder: TextMatcher,
  source: HistoryToolContext,
): Promise<HistoryPage> {
  const { session, policy } = source
  const found: string[] = []
  let matches = 0
  let work = 0
  let position = findStart(session, query.cursor)
  for (; position >= 0 && found.length < policy.matches && work < policy.searchSteps; position -= 1) {
    const hit = await searchRecord(session.branch.at(position) ?? 0, finder, source)
    work += hit.work
    if (hit.text === null) continue
    if (found.length > 0 && isPageFull([...found, hit.text], source)) break
    found.push(hit.text)
    matches += hit.isMatch ? 1 : 0
  }
  const next = position < 0 ? null : (session.branch.at(position) ?? null)
  const heading = matches === 0 ? describeNothingFound(next) : `${matches} found, newest first:`
  return { heading, body: found.join('\n'), next }
}

function describeNothingFound(next: number | null): string {
  return next === null ? 'Nothing found.' : 'Nothing found yet: the search was cut short to bound its time.'
}

/** Returns the position on the active branch from which to search backwards. */
function findStart({ branch }: SessionLog, cursor: number | null): number {
  if (cursor === null) return branch.length - 1
  let position = branch.length - 1
  while (position >= 0 && (branch.at(position) ?? 0) > cursor) position -= 1
  return position
}

function isPageFull(found: readonly string[], { measure, pageTokens }: HistoryToolContext): boolean {
  return measure(found.join('\n')) > pageTokens
}

interface SearchedRecord {
  /** What to show of the record: its matching lines, or that it is too long to be searched here; null for nothing. */
  readonly text: string | null
  readonly isMatch: boolean
  readonly work: number
}

/** Searches one record, as far into it as the steps of one search reach. */
async function searchRecord(
  index: number,
  finder: TextMatcher,
  source: HistoryToolContext,
): Promise<SearchedRecord> {
  const record = await restoreSpilledRecord(source, requireRecordAt(source.session, index))
  const body = formatRecordBody(record)
  const reach = Math.floor(source.policy.searchSteps / finder.stepsPerCharacter)
  const lines = body.slice(0, reach).split('\n').filter(finder.isIn)
  const work = (Math.min(body.length, reach) + 1) * finder.stepsPerCharacter
  const isMatch = lines.length > 0
  if (!isMatch && body.length <= reach) return { text: null, isMatch, work }
  const unsearched =
    body.length <= reach
      ? []
      : [
          `  … only the first ${reach} of ${body.length} characters were searched; give ${record.uuid} as "id" with "text" to search all`,
        ]
  const more =
    lines.length > MAX_LINES_PER_RECORD
      ? [`  … ${formatFound(lines.length - MAX_LINES_PER_RECORD, 'more line')}`]
      : []
  const shown = lines.slice(0, MAX_LINES_PER_RECORD).map((line) => `  ${shortenLine(line)}`)
  const text = [formatRecordHeading(record), ...shown, ...more, ...unsearched].join('\n')
  return { text, isMatch, work }
}

function formatFound(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function shortenLine(line: string): string {
  return line.length <= MAX_LINE_CHARACTERS ? line : `${sliceWholeCharacters(line, 0, MAX_LINE_CHARACTERS)} …`
}

/**
 * Searches the lines of one record, tool call, response or blob, and returns one page of matches. `cursor`: index of
 * the line to continue with.
 */
export function searchItemText(
  found: FoundHistoryItem,
  finder: TextMatcher,
  cursor: number | null,
  source: HistoryToolContext,
): HistoryPage {
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
    const text = `${at + 1}: ${shortenLine(line)}`
    if (shown.length > 0 && isPageFull([...shown, text], source)) break
    shown.push(text)
  }
  const next = at < lines.length ? at : null
  const what =
    shown.length === 0
      ? describeNothingFound(next)
      : `${formatFound(shown.length, 'line')} found, with line numbers:`
  return { heading: `${found.heading}. ${what}`, body: shown.join('\n'), next }
}

// Search terms are words and quoted phrases that must all occur in one line; case is ignored.

interface TextMatcher {
  /** Search steps that one character costs, which is the number of search terms. */
  readonly stepsPerCharacter: number
  isIn(line: string): boolean
}

/**
 * Creates a matcher: `login "not found"` matches lines that contain both `login` and `not found`. Returns null if
 * there are no terms.
 */
function createTextMatcher(text: string): TextMatcher | null {
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

// Listing of a range of the active branch, oldest record first; long records are shortened.

/** A listed record is cut to a quarter of a page; its id gives access to the whole text. */
const RECORDS_PER_PAGE = 4

/**
 * Lists the records of a range, one page at a time. `query.cursor`: index of the record to continue with. Returns an
 * error message if an end of the range does not exist.
 */
export function listRecordRange(query: HistoryQuery, source: HistoryToolContext): HistoryPage | string {
  const stretch = selectRange(query, source.session)
  if (typeof stretch === 'string') return stretch
  const shown: string[] = []
  let at = stretch.findIndex((index) => index >= (query.cursor ?? 0))
  if (at === -1) at = stretch.length
  for (; at < stretch.length; at += 1) {
    const text = formatShortRecord(requireRecordAt(source.session, stretch[at] ?? 0), source)
    if (shown.length > 0 && isPageFull([...shown, text], source)) break
    shown.push(text)
  }
  const next = stretch[at] ?? null
  return { heading: `${formatFound(stretch.length, 'record')}, oldest first:`, body: shown.join('\n'), next }
}

/** Returns the indices of the requested records, or an error message. */
function selectRange({ from, to, last }: HistoryQuery, session: SessionLog): readonly number[] | string {
  const [first, end] = [findRangeEnd(session, from, 'from'), findRangeEnd(session, to, 'to')]
  if (typeof first === 'string') return first
  if (typeof end === 'string') return end
  const branch = session.branch.toArray().filter((index) => isListedRecord(requireRecordAt(session, index)))
  const within = branch.filter((index) => index >= (first ?? 0) && index <= (end ?? Number.POSITIVE_INFINITY))
  return last === null ? within : within.slice(-last)
}

/** Returns the log index of an end of a range, null if it is not given, or an error message if there is no such record. */
function findRangeEnd(session: SessionLog, id: string | null, field: string): number | null | string {
  if (id === null) return null
  const place = findRecordIndex(session, id) ?? session.callRecords.get(id) ?? session.responseStarts.get(id)
  return place ?? `"${field}": there is no record ${id} in this session.`
}

function isListedRecord(record: SessionRecord): boolean {
  return isKnownRecord(record) && record.type !== 'progress'
}

function formatShortRecord(record: SessionRecord, { measure, pageTokens }: HistoryToolContext): string {
  const body = formatRecordBody(record)
  const short = takeHeadWithinTokens(body, Math.floor(pageTokens / RECORDS_PER_PAGE), measure)
  const rest = body.length - short.length
  const more = rest === 0 ? [] : [`… ${rest} more characters; give ${record.uuid} as "id" for all of it`]
  return [formatRecordHeading(record), ...(short === '' ? [] : [short]), ...more].join('\n')
}

// Parsing of the input that the model passes to the history tool.

/** One call of the history tool, checked. */
export interface HistoryQuery {
  /** Id of the record, tool call, response or blob to read or search; null for the conversation. */
  readonly id: string | null
  /** Lines to read of the item `id`, counted from 1; null for all lines. */
  readonly lines: { readonly from: number; readonly to: number } | null
  readonly matcher: TextMatcher | null
  /** Id of the first record of a range; null for the start of the conversation. `to`: id of the last record; null for its end. */
  readonly from: string | null
  readonly to: string | null
  /** How many of the newest records of the range to list; null for all. */
  readonly last: number | null
  /** Position at which the previous page ended; null for the first page. */
  readonly cursor: number | null
}

/**
 * Parses the input of the history tool; returns an error message if it is invalid. Blank fields count as absent, since
 * models fill in fields they do not need.
 */
export function parseHistoryQuery(given: unknown): HistoryQuery | string {
  const input = isObject(given) ? given : {}
  const finder = createTextMatcher(readText(input.text) ?? '')
  const lines = readLineRange(input.lines)
  if (lines === undefined) return '"lines" must be like "120-180".'
  const [id, from, to] = [readText(input.id), readText(input.from), readText(input.to)]
  const [last, cursor] = [readCount(input.last), readCount(input.cursor)]
  if (last === undefined || last === 0) return '"last" must be a whole number of 1 or more.'
  if (cursor === undefined) return '"cursor" must be one that an answer of this tool gave.'
  if ([id, finder, from, to, last].every((field) => field === null))
    return 'Say what to look for: "id", "text", "from" and "to", or "last".'
  return { id, lines, matcher: finder, from, to, last, cursor }
}

function readText(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

/** Reads a whole number, also from a string. Returns null if the value is absent, undefined if it is not a whole number. */
function readCount(value: unknown): number | null | undefined {
  if (value === undefined || value === null || value === '') return null
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

/** Reads a range such as `120-180` or `120`. Returns null if the value is absent, undefined if it is not a range. */
function readLineRange(value: unknown): HistoryQuery['lines'] | undefined {
  if (value === undefined || value === null || value === '') return null
  const found = /^\s*(\d{1,9})\s*(?:[-–:,]\s*(\d{1,9}))?\s*$/.exec(String(value))
  if (found === null) return undefined
  const from = Math.max(1, Number(found[1]))
  const to = Number(found[2] ?? found[1])
  return to < from ? undefined : { from, to }
}

/** What the history tool reads from, and the limits of its pages. */
export interface HistoryToolContext {
  readonly session: SessionLog
  /** Reads tool results that were stored as blobs; null if the session has none. */
  readonly blobs: BlobReader | null
  readonly policy: HistoryPolicy
  /** Maximum tokens of a page, from `budgets.historyPage`. */
  readonly pageTokens: number
  readonly measure: TokenCounter
}

/** One page of a history tool result: a heading, its text, and the cursor of the next page (null at the end). */
export interface HistoryPage {
  readonly heading: string
  readonly body: string
  readonly next: number | null
  readonly media?: readonly Block[]
}
