/** Which of many sessions, and in which order. */

import { promptOf } from './calls.ts'
import type { SessionReport } from './report.ts'

export const SORT_KEYS = ['cost', 'tokens', 'calls', 'date', 'hit'] as const
export type SortKey = (typeof SORT_KEYS)[number]

/** Most, newest or best first; what is not known comes last. Equal ones keep their order. */
export function sortReports(reports: readonly SessionReport[], key: SortKey): readonly SessionReport[] {
  const figure = FIGURES[key]
  return reports.toSorted((one, other) => {
    const [first, second] = [figure(one), figure(other)]
    return first === second ? 0 : second - first
  })
}

const FIGURES: Readonly<Record<SortKey, (report: SessionReport) => number>> = {
  cost: ({ costUsd, money }) => costUsd ?? money.pricedUsd,
  tokens: ({ usage }) => promptOf(usage) + usage.output,
  calls: ({ apiCalls }) => apiCalls,
  date: ({ startedAt }) => (startedAt === null ? -1 : Date.parse(startedAt)),
  hit: ({ hitRate }) => hitRate ?? -1,
}

export type Chosen =
  | { readonly ok: true; readonly report: SessionReport }
  | { readonly ok: false; readonly why: string }

/** The row that a number names; null for one with a zero before it, or of no row: that is the beginning of an id. */
export function rowMeant(wanted: string, rows: number): number | null {
  return /^[1-9]\d{0,8}$/.test(wanted) && Number(wanted) <= rows ? Number(wanted) : null
}

/** So many figures might as well begin an id; with fewer, hardly a row could be chosen. */
const LIKE_AN_ID = 4

/**
 * By its number in the list as shown, from 1, or by the beginning of its id. Where both could be meant, or the
 * beginning fits several, none is. `rows`: how many have a number; all of them unless given.
 */
export function chooseSession(
  reports: readonly SessionReport[],
  wanted: string,
  rows: number = reports.length,
): Chosen {
  const row = rowMeant(wanted, rows)
  const exact = reports.filter(({ sessionId }) => sessionId === wanted)
  const begun =
    exact.length > 0 ? exact : reports.filter(({ sessionId }) => sessionId?.startsWith(wanted) === true)
  const numbered = row === null ? undefined : reports[row - 1]
  if (numbered === undefined) return chooseById(begun, wanted, { isWhole: exact.length > 0, rows })
  const others = begun.filter((report) => report !== numbered)
  if (others.length === 0 || (exact.length === 0 && wanted.length < LIKE_AN_ID))
    return { ok: true, report: numbered }
  const named = shortIds([numbered])[0]
  return refused(
    `${wanted} is number ${wanted} (${named}) and an id that begins so: ${listed(others)}. Give more of the id that is meant`,
  )
}

function chooseById(
  begun: readonly SessionReport[],
  wanted: string,
  { isWhole, rows }: { readonly isWhole: boolean; readonly rows: number },
): Chosen {
  const [only] = begun
  if (only === undefined) {
    const isNumber = rows > 0 && /^[1-9]\d*$/.test(wanted)
    return refused(
      isNumber
        ? `no session is number ${wanted} or has an id that begins so`
        : `no session has an id that begins with ${wanted}`,
    )
  }
  if (begun.length === 1) return { ok: true, report: only }
  if (isWhole) {
    const files = begun.map(({ file }) => file).join(' or ')
    return refused(`${begun.length} sessions have the id ${wanted}: give the file, which is ${files}`)
  }
  return refused(
    `${begun.length} sessions have an id that begins with ${wanted}: ${listed(begun)}. Give more of it`,
  )
}

function refused(why: string): Chosen {
  return { ok: false, why }
}

const MOST_NAMED = 5

function listed(reports: readonly SessionReport[]): string {
  const more = reports.length - MOST_NAMED
  const named = shortIds(reports).slice(0, MOST_NAMED).join(', ')
  return more > 0 ? `${named} and ${more} more` : named
}

const SHORT_ID = 8

/** Their ids, as short as they can be told apart; no shorter than eight characters. */
export function shortIds(reports: readonly SessionReport[]): readonly string[] {
  const ids = reports.map(({ sessionId }) => sessionId ?? '')
  const different = new Set(ids)
  const most = ids.reduce((longest, id) => Math.max(longest, id.length), SHORT_ID)
  let length = SHORT_ID
  while (length < most && new Set(ids.map((id) => id.slice(0, length))).size < different.size) length += 1
  return ids.map((id) => id.slice(0, length))
}

/** Sessions that were going on at that moment or later; those without a time are kept. */
export function since(reports: readonly SessionReport[], moment: number): readonly SessionReport[] {
  return reports.filter(({ endedAt }) => endedAt === null || Date.parse(endedAt) >= moment)
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `7d`, `12h`, `2w`, or a day or moment as in `2026-11-01`; null for anything else. A day begins where the person is. */
export function readSince(text: string, now: number): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([mhdw])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (UNITS[unit] ?? 0)
  if (!/^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/.test(text)) return null
  const moment = Date.parse(text.length === 10 ? `${text}T00:00` : text)
  return Number.isNaN(moment) ? null : moment
}
