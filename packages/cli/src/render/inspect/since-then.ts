/** Sessions are chosen by when they were last used, and shown whole: what of them was spent since then is said apart. */
import { type SessionReport, type Total, totalsOf } from 'tidemark'
import { cost, count, percent } from '../figures.ts'
import type { Screen } from '../screen.ts'
import { wrap } from '../wrap.ts'

/** Nothing where no day was named, or none of it lies before that day. */
export function sinceThen(
  sessions: readonly SessionReport[],
  day: string | null,
  { columns, colors }: Screen,
): readonly string[] {
  if (day === null || !sessions.some(({ spending }) => spending.some((part) => isBefore(part.day, day))))
    return []
  const [whole, where] =
    sessions.length === 1 ? ['This is the whole session', ''] : ['These are whole sessions', ', and below']
  const sum = spent(totalsOf(sessions, day))
  return wrap(`${whole}, earlier days included. Since ${day}${where}: ${sum}.`, columns).map(colors.yellow)
}

function isBefore(one: string | null, day: string): boolean {
  return one === null || one < day
}

/** Calls, cost and hits, in one line. */
export function spent({ apiCalls, costUsd, pricedUsd, hitRate }: Omit<Total, 'name'>): string {
  const hits = hitRate === null ? '' : `, ${percent(hitRate)} cache hits`
  return `${count(apiCalls, 'call')}, ${cost(costUsd, pricedUsd)}${hits}`
}
