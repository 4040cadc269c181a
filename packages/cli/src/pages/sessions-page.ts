/** The page of many sessions: a table, and totals by day, model and project. */
import { basename } from 'node:path'
import { type SessionReport, shortIds, type Total, totalsOf } from 'tidemark'
import { cost, count, percent, tokens, whole } from '../render/figures.ts'
import { type Column, heading, pair, stacked, table } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { projectName, shown, shownPath, wrap } from '../render/text.ts'
import { sinceThen, spent } from './costs.ts'

interface SessionsView {
  /** Rows of the table; 0 for all. */
  readonly rows: number
  /** Sessions found but not read. */
  readonly left: number
  /** The first day that totals include; null for all days. */
  readonly sinceDay: string | null
  /** The output is a terminal: show how to continue. */
  readonly isWatched: boolean
}

const HINT = 'To see one session, add --session NUMBER or --session ID.'

export function sessionsPage(
  sessions: readonly SessionReport[],
  { rows, left, sinceDay, isWatched }: SessionsView,
  screen: Screen,
): string {
  const listed = rows === 0 ? sessions : sessions.slice(0, rows)
  const totals = totalsOf(sessions, sinceDay)
  const blocks = [
    brokenOff(sessions, screen),
    [
      heading('Sessions', `${count(sessions.length, 'session')}, ${spent(totalsOf(sessions))}`, screen),
      ...table(numbered(listed), [...sessionColumns(screen), ...lostColumn(listed, screen)], screen),
      ...narrow(listed, screen),
      ...rest(sessions.length - listed.length, left, screen),
      ...broke(totalsOf(sessions), screen),
    ],
    sinceThen(sessions, sinceDay, screen),
    totalsTable('By day', totals.byDay, screen),
    pair(
      (on) => totalsTable('By model', totals.byModel, on),
      (on) => totalsTable('By project', shortProjects(totals.byProject), on),
    )(screen),
    damage(sessions, screen),
    isWatched ? [screen.colors.dim(HINT)] : [],
  ]
  return `${stacked(blocks).join('\n')}\n`
}

/** Comes before the sums, because it limits what they cover. */
function brokenOff(sessions: readonly SessionReport[], screen: Screen): readonly string[] {
  const broken = sessions.filter((report) => report.brokenOff !== null)
  if (broken.length === 0) return []
  const [are, their] = broken.length === 1 ? ['is', 'its'] : ['are', 'their']
  const files = broken.map(({ file }) => shownPath(basename(file))).join(', ')
  const text = `${count(broken.length, 'session')} ${are} incomplete; only ${their} readable part is counted: ${files}`
  return wrap(text, screen.columns, `${screen.symbols.warning} `).map(screen.colors.yellow)
}

interface Numbered {
  readonly number: number
  readonly id: string
  readonly report: SessionReport
}

function numbered(reports: readonly SessionReport[]): readonly Numbered[] {
  const ids = shortIds(reports)
  return reports.map((report, index) => ({ number: index + 1, id: ids[index] ?? '', report }))
}

/** Widths from which on there is room for the id, for the cost of cache breaks, and for peak and hits. */
const ROOM_FOR_ID = 100
const ROOM_FOR_LOST = 80
const ROOM_FOR_PEAK = 72

const PEAK_AND_HITS: readonly Column<Numbered>[] = [
  { title: 'peak', align: 'right', text: ({ report }) => tokens(report.peakContextTokens) },
  {
    title: 'hits',
    align: 'right',
    text: ({ report }) => (report.hitRate === null ? '?' : percent(report.hitRate)),
  },
]

function sessionColumns({ moments, colors, columns: width }: Screen): readonly Column<Numbered>[] {
  const id: Column<Numbered> = { title: 'id', text: (row) => shown(row.id), paint: colors.dim }
  return [
    { title: '#', align: 'right', text: ({ number }) => whole(number), paint: colors.dim },
    {
      title: 'started',
      text: ({ report }) => (report.startedAt === null ? '?' : moments.full(report.startedAt)),
    },
    ...(width < ROOM_FOR_ID ? [] : [id]),
    { title: 'project', gives: 'end', text: ({ report }) => shown(projectName(report.project ?? '')) },
    { title: 'model', gives: 'end', text: ({ report }) => shown(shortModel(report.models)) },
    { title: 'calls', align: 'right', text: ({ report }) => whole(report.apiCalls) },
    ...(width < ROOM_FOR_PEAK ? [] : PEAK_AND_HITS),
    {
      title: 'cost',
      align: 'right',
      text: ({ report }) => cost(report.costUsd, report.money.pricedUsd),
      paint: colors.bold,
    },
  ]
}

function lostColumn(listed: readonly SessionReport[], { columns }: Screen): readonly Column<Numbered>[] {
  if (columns < ROOM_FOR_LOST || listed.every(({ cacheBreaks }) => cacheBreaks.length === 0)) return []
  return [{ title: 'lost', align: 'right', text: ({ report }) => cost(report.money.lostToBreaks, 0) }]
}

/** Names the columns that are hidden for lack of width. */
function narrow(listed: readonly SessionReport[], { columns, colors, symbols }: Screen): readonly string[] {
  const hidden = [
    ...(columns < ROOM_FOR_PEAK ? ['peak', 'hits'] : []),
    ...(columns < ROOM_FOR_LOST && listed.some(({ cacheBreaks }) => cacheBreaks.length > 0) ? ['lost'] : []),
  ]
  if (hidden.length === 0) return []
  return [
    colors.dim(`${symbols.more} no room for ${hidden.join(', ')}: use at least ${ROOM_FOR_LOST} columns`),
  ]
}

/** Without vendor and date: `opus-4-5`. */
function shortModel(models: readonly string[]): string {
  const names = models.map((model) => model.replace(/^claude-/, '').replace(/-20\d{6}$/, ''))
  return names.join(', ')
}

function rest(unlisted: number, unread: number, { colors, symbols }: Screen): readonly string[] {
  const lines = [
    ...(unlisted > 0
      ? [
          `${symbols.more} and ${count(unlisted, 'more session')}, included in the totals (--limit 0 lists all)`,
        ]
      : []),
    ...(unread > 0
      ? [
          `${symbols.more} and ${count(unread, 'older session')} not read (--since DATE or --limit 0 reads more)`,
        ]
      : []),
  ]
  return lines.map((line) => colors.dim(line))
}

function broke(total: Omit<Total, 'name'>, screen: Screen): readonly string[] {
  return [...lostText(total), ...clearedText(total)].flatMap((text) =>
    wrap(text, screen.columns).map(screen.colors.dim),
  )
}

function clearedText({ spentOnClearings: spent }: Pick<Total, 'spentOnClearings'>): readonly string[] {
  if (spent === 0) return []
  return [`${cost(spent, 0)} spent on re-caching after clearings`]
}

function lostText({
  cacheBreaks,
  lostToBreaks,
  costUsd,
}: Pick<Total, 'cacheBreaks' | 'lostToBreaks' | 'costUsd'>): readonly string[] {
  if (cacheBreaks === 0) return []
  const isKnown = lostToBreaks !== null && costUsd !== null && costUsd > 0
  const share = isKnown ? `, ${percent(lostToBreaks / costUsd)} of the cost` : ''
  return [
    `${count(cacheBreaks, 'cache break')}, ${cost(lostToBreaks, 0)} lost${share}; the page of each session shows the causes`,
  ]
}

function damage(sessions: readonly SessionReport[], { colors, symbols }: Screen): readonly string[] {
  const damaged = sessions.filter((report) => report.damaged.length > 0)
  if (damaged.length === 0) return []
  const places = damaged.reduce((sum, report) => sum + report.damaged.length, 0)
  return [
    colors.yellow(
      `${symbols.warning} ${count(places, 'damaged place')} in ${count(damaged.length, 'session')}; the page of each session lists them`,
    ),
  ]
}

// Totals: a row for each day, model or project.

const MOST_TOTALS = 10

/** Below this width the cost of clearings replaces the number of sessions. */
const ROOM_FOR_ALL = 72

const SESSIONS: Column<Total> = {
  title: 'sessions',
  align: 'right',
  text: ({ sessions }) => whole(sessions),
}

function totalsTable(title: string, totals: readonly Total[], screen: Screen): readonly string[] {
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
    ...lostColumnTotalsTable(totals),
    ...cleared,
  ]
  const more = totals.length - MOST_TOTALS
  return [
    ...table(totals.slice(0, MOST_TOTALS), columns, screen),
    ...(more > 0 ? [screen.colors.dim(`${screen.symbols.more} and ${whole(more)} more`)] : []),
  ]
}

/** Cost of cache breaks, if there were any. */
function lostColumnTotalsTable(totals: readonly Total[]): readonly Column<Total>[] {
  if (totals.every(({ cacheBreaks }) => cacheBreaks === 0)) return []
  return [{ title: 'lost', align: 'right', text: ({ lostToBreaks }) => cost(lostToBreaks, 0) }]
}

/** Cost of re-caching after clearings, if there were any. */
function clearedColumn(totals: readonly Total[]): readonly Column<Total>[] {
  if (totals.every(({ spentOnClearings }) => spentOnClearings === 0)) return []
  return [{ title: 'cleared', align: 'right', text: ({ spentOnClearings }) => cost(spentOnClearings, 0) }]
}

/** The shortest end of each path that is unique among them. */
function shortProjects(totals: readonly Total[]): readonly Total[] {
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
