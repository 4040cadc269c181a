/** Finds the session that a user names by row or id in a list of reports, and filters the list by time. */
import type { SessionReport } from './report.ts'

type SessionChoice =
  | { readonly ok: true; readonly report: SessionReport }
  | { readonly ok: false; readonly why: string }

/**
 * Parses the number of a row in the displayed list. Returns null for any other text, for a leading zero and for a
 * number above `rows`. Such text is read as the beginning of a session id.
 */
export function parseRowNumber(wanted: string, rows: number): number | null {
  return /^[1-9]\d{0,8}$/.test(wanted) && Number(wanted) <= rows ? Number(wanted) : null
}

/**
 * A number with at least this many digits is refused as ambiguous if it is both a row and the beginning of a session
 * id. A shorter number means the row, unless it is the whole id of another session.
 */
const AMBIGUOUS_DIGITS = 4

/**
 * Selects a session by its row number in the displayed list (from 1) or by the beginning of its id. An ambiguous choice
 * is refused with a list of the candidates. `rows`: number of reports that have a row number. Default: all.
 */
export function chooseSession(
  reports: readonly SessionReport[],
  wanted: string,
  rows: number = reports.length,
): SessionChoice {
  const row = parseRowNumber(wanted, rows)
  const exact = reports.filter(({ sessionId }) => sessionId === wanted)
  const matches =
    exact.length > 0 ? exact : reports.filter(({ sessionId }) => sessionId?.startsWith(wanted) === true)
  const numbered = row === null ? undefined : reports[row - 1]
  if (numbered !== undefined) {
    const others = matches.filter((report) => report !== numbered)
    if (others.length === 0 || (exact.length === 0 && wanted.length < AMBIGUOUS_DIGITS))
      return { ok: true, report: numbered }
    const why = `${wanted} is both number ${wanted} (${shortenSessionIds([numbered])[0]}) and the beginning of an id: ${formatIdList(others)}. Give more of the id`
    return { ok: false, why }
  }
  const [only] = matches
  if (only !== undefined && matches.length === 1) return { ok: true, report: only }
  return {
    ok: false,
    why: describeRefusal(matches, wanted, { isExact: exact.length > 0, hasRows: rows > 0 }),
  }
}

function describeRefusal(
  matches: readonly SessionReport[],
  wanted: string,
  { isExact, hasRows }: { readonly isExact: boolean; readonly hasRows: boolean },
): string {
  if (matches.length === 0)
    return hasRows && /^[1-9]\d*$/.test(wanted)
      ? `no session has number ${wanted} or an id that begins with ${wanted}`
      : `no session has an id that begins with ${wanted}`
  const ids = new Set(matches.map(({ sessionId }) => sessionId))
  if (!isExact && ids.size > 1)
    return `${matches.length} sessions have an id that begins with ${wanted}: ${formatIdList(matches)}. Give more of it`
  const files = matches.map(({ file }) => file).join(' or ')
  return `${matches.length} sessions have the id ${[...ids][0]}. Give the file instead: ${files}`
}

const MAX_LISTED = 5

function formatIdList(reports: readonly SessionReport[]): string {
  const ids = [...new Set(shortenSessionIds(reports))]
  const more = ids.length - MAX_LISTED
  const named = ids.slice(0, MAX_LISTED).join(', ')
  return more > 0 ? `${named} and ${more} more` : named
}

const MIN_ID_LENGTH = 8

/** Cuts session ids to the shortest length at which they differ, but at least eight characters. */
export function shortenSessionIds(reports: readonly SessionReport[]): readonly string[] {
  const ids = reports.map(({ sessionId }) => sessionId ?? '')
  const different = new Set(ids)
  const most = ids.reduce((longest, id) => Math.max(longest, id.length), MIN_ID_LENGTH)
  let length = MIN_ID_LENGTH
  while (length < most && new Set(ids.map((id) => id.slice(0, length))).size < different.size) length += 1
  return ids.map((id) => id.slice(0, length))
}

/** Returns the sessions that ended at `moment` (milliseconds since 1970) or later, and the sessions without an end time. */
export function filterSessionsSince(
  reports: readonly SessionReport[],
  moment: number,
): readonly SessionReport[] {
  return reports.filter(({ endedAt }) => endedAt === null || Date.parse(endedAt) >= moment)
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/**
 * Parses an age (`30m`, `12h`, `7d`, `2w`) or a date such as `2026-11-01` (local midnight), perhaps with a time.
 * Returns the time in milliseconds since 1970, or null for any other text.
 */
export function parseSinceTime(text: string, now: number): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([mhdw])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (UNIT_MS[unit] ?? 0)
  if (!/^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/.test(text)) return null
  const moment = Date.parse(text.length === 10 ? `${text}T00:00` : text)
  return Number.isNaN(moment) ? null : moment
}
