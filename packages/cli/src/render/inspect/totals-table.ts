/** Sessions added up by one of their sides: a row for each day, model or project. */
import type { Total } from 'tidemark'
import { cost, percent, tokens, whole } from '../figures.ts'
import type { Screen } from '../screen.ts'
import { type Column, table } from '../table.ts'
import { shown } from './shown.ts'

const MOST_TOTALS = 10

/** Below this width the number of sessions makes way for what clearings cost. */
const ROOM_FOR_ALL = 72

const SESSIONS: Column<Total> = {
  title: 'sessions',
  align: 'right',
  text: ({ sessions }) => whole(sessions),
}

export function totalsTable(title: string, totals: readonly Total[], screen: Screen): readonly string[] {
  if (totals.length < 2) return []
  const cleared = clearedColumn(totals)
  const columns: readonly Column<Total>[] = [
    { title, gives: 'end', text: ({ name }) => shown(name) },
    ...(screen.columns < ROOM_FOR_ALL && cleared.length > 0 ? [] : [SESSIONS]),
    { title: 'calls', align: 'right', text: ({ apiCalls }) => whole(apiCalls) },
    {
      title: 'tokens',
      align: 'right',
      text: ({ usage }) => tokens(usage.input + usage.cacheRead + usage.cacheCreation + usage.output),
    },
    { title: 'hits', align: 'right', text: ({ hitRate }) => (hitRate === null ? '?' : percent(hitRate)) },
    {
      title: 'cost',
      align: 'right',
      text: ({ costUsd, pricedUsd }) => cost(costUsd, pricedUsd),
      paint: screen.colors.bold,
    },
    ...lostColumn(totals),
    ...cleared,
  ]
  const more = totals.length - MOST_TOTALS
  return [
    ...table(totals.slice(0, MOST_TOTALS), columns, screen),
    ...(more > 0 ? [screen.colors.dim(`${screen.symbols.more} and ${whole(more)} more`)] : []),
  ]
}

/** What breaks of the cache cost, where there were any. */
function lostColumn(totals: readonly Total[]): readonly Column<Total>[] {
  if (totals.every(({ cacheBreaks }) => cacheBreaks === 0)) return []
  return [{ title: 'lost', align: 'right', text: ({ lostToBreaks }) => cost(lostToBreaks, 0) }]
}

/** What clearings made necessary to process again, where there were any. */
function clearedColumn(totals: readonly Total[]): readonly Column<Total>[] {
  if (totals.every(({ spentOnClearings }) => spentOnClearings === 0)) return []
  return [{ title: 'cleared', align: 'right', text: ({ spentOnClearings }) => cost(spentOnClearings, 0) }]
}

/** The last part of the path, and as much before it as it takes to tell it from the others. */
export function shortProjects(totals: readonly Total[]): readonly Total[] {
  return totals.map((total) => {
    const others = totals.filter(({ name }) => name !== total.name).map(({ name }) => name)
    return { ...total, name: shortest(total.name, others) }
  })
}

function shortest(path: string, others: readonly string[]): string {
  const parts = path.split('/')
  const tails = parts.map((_, index) => parts.slice(parts.length - 1 - index).join('/'))
  const isAlone = (tail: string): boolean =>
    !others.some((other) => other === tail || other.endsWith(`/${tail}`))
  return tails.find((tail) => tail !== '' && isAlone(tail)) ?? path
}
