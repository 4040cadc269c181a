/** Looks through the conversation, newest first, or through one text, line by line. Stops where its work is bounded. */
import type { Session } from '../conversation/session.ts'
import { recordAt } from '../conversation/tree.ts'
import type { Finder } from './finder.ts'
import { type Found, wholeRecord } from './look-up.ts'
import type { HistorySource, Page } from './page.ts'
import type { Query } from './query.ts'
import { recordBody, recordHeading } from './record-text.ts'

/** Lines shown of one record, and characters of one line. */
const MOST_LINES = 3
const LONGEST_LINE = 300

/** `cursor`: the index of the record to go on with. */
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

/** The place along the branch from which to go back. */
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
  const reach = Math.floor(source.policy.searchSteps / finder.states)
  const lines = body.slice(0, reach).split('\n').filter(finder.isIn)
  const work = (Math.min(body.length, reach) + 1) * finder.states
  if (lines.length === 0) return { text: null, work }
  const more = lines.length > MOST_LINES ? [`  … ${lines.length - MOST_LINES} more lines`] : []
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${shortened(line)}`)
  return { text: [recordHeading(record), ...shown, ...more].join('\n'), work }
}

function shortened(line: string): string {
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)} …`
}

interface Asked {
  readonly query: Query
  readonly source: HistorySource
}

/** `cursor`: the number of the line to go on with. */
export function findInText(found: Found, finder: Finder, { query, source }: Asked): Page {
  const lines = found.text.split('\n')
  const shown: string[] = []
  let work = 0
  let at = query.cursor ?? 0
  for (; at < lines.length && shown.length < source.policy.matches; at += 1) {
    const line = lines[at] ?? ''
    const isSpent = work > 0 && work + line.length * finder.states > source.policy.searchSteps
    if (isSpent) break
    work += (line.length + 1) * finder.states
    if (!finder.isIn(line)) continue
    const text = `${at + 1}: ${shortened(line)}`
    if (shown.length > 0 && isFull([...shown, text], source)) break
    shown.push(text)
  }
  const next = at < lines.length ? at : null
  const what = shown.length === 0 ? nothing(next) : `${shown.length} lines found, with their numbers:`
  return { heading: `${found.heading}. ${what}`, body: shown.join('\n'), next }
}
