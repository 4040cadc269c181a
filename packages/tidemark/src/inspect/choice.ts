/** Which of many sessions, and in which order. */
import type { SessionReport } from './report.ts'
import { promptOf } from './usage-totals.ts'

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

/** By its number in the list as shown, from 1, or by the beginning of its id. A whole id comes first. */
export function chooseSession(reports: readonly SessionReport[], wanted: string): Chosen {
  const exact = reports.filter(({ sessionId }) => sessionId === wanted)
  const byNumber = /^\d{1,6}$/.test(wanted) ? reports[Number(wanted) - 1] : undefined
  const begun = reports.filter(({ sessionId }) => sessionId?.startsWith(wanted) === true)
  const [only] = exact.length > 0 ? exact : byNumber === undefined ? begun : [byNumber]
  if (only === undefined)
    return { ok: false, why: `no session is number ${wanted} or has an id that begins so` }
  if (exact.length === 0 && byNumber === undefined && begun.length > 1) {
    return {
      ok: false,
      why: `${begun.length} sessions have an id that begins with ${wanted}: give more of it`,
    }
  }
  return { ok: true, report: only }
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
