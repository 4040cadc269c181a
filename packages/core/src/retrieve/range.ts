/** A stretch of the conversation that counts, in order, record by record; long ones shortened. */
import { isKnown, type SessionRecord } from '../conversation/record.ts'
import type { Session } from '../conversation/session.ts'
import { placeOf, recordAt } from '../conversation/tree.ts'
import { headWithin } from './fit-text.ts'
import type { HistorySource, Page } from './page.ts'
import type { Query } from './query.ts'
import { recordBody, recordHeading } from './record-text.ts'

/** The part of a page that one record may take: the rest is read by its id. */
const LARGEST_PART = 4

/** `cursor`: the index of the record to go on with. A sentence where an end of the stretch is not to be found. */
export function rangePage(query: Query, source: HistorySource): Page | string {
  const stretch = stretchOf(query, source.session)
  if (typeof stretch === 'string') return stretch
  const shown: string[] = []
  let at = stretch.findIndex((index) => index >= (query.cursor ?? 0))
  if (at === -1) at = stretch.length
  for (; at < stretch.length; at += 1) {
    const text = shortRecord(recordAt(source.session, stretch[at] ?? 0), source)
    const isFull = shown.length > 0 && source.measure([...shown, text].join('\n')) > source.pageTokens
    if (isFull) break
    shown.push(text)
  }
  const next = stretch[at] ?? null
  return { heading: `${stretch.length} records, oldest first:`, body: shown.join('\n'), next }
}

/** Indices of the records asked for. */
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
