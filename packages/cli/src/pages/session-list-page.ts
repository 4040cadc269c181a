/** Renders the page of several sessions: a table, what cache breaks and clearings cost, and totals by day, model and project. */
import { basename } from 'node:path'
import {
  formatSessionTotals,
  formatTotalCost,
  renderSpentSince,
} from '@tidemark/terminal/pages/session-costs'
import {
  formatCost,
  formatCount,
  formatInteger,
  formatPercent,
  formatTokens,
} from '@tidemark/terminal/render/format-numbers'
import {
  placeSideBySide,
  renderHeading,
  renderTable,
  stackBlocks,
  type TableColumn,
} from '@tidemark/terminal/render/layout'
import type { Screen } from '@tidemark/terminal/render/screen'
import { formatPath, formatProjectName, toSafeLine, wrapText } from '@tidemark/terminal/render/text'
import { type SpendingTotal, shortenSessionIds, sumSessions } from 'tidemark/internal'
import type { SessionReport } from 'tidemark/logs'

interface SessionsView {
  /** Maximum number of rows in the table; 0 for no maximum. */
  readonly rows: number
  /** Number of sessions that were found but not read. */
  readonly unread: number
  /** First day that the totals include; null if they include all days. */
  readonly sinceDay: string | null
  /** True if standard output is a terminal. The page then ends with a hint about further commands. */
  readonly isTerminal: boolean
}

const HINT = 'To see one session, add --session NUMBER or --session ID.'

export function renderSessionsPage(
  sessions: readonly SessionReport[],
  { rows, unread, sinceDay, isTerminal }: SessionsView,
  screen: Screen,
): string {
  const listed = rows === 0 ? sessions : sessions.slice(0, rows)
  const totals = sumSessions(sessions, sinceDay)
  const blocks = [
    renderIncompleteSessions(sessions, screen),
    [
      renderHeading(
        'Sessions',
        `${formatCount(sessions.length, 'session')}, ${formatSessionTotals(sumSessions(sessions))}`,
        screen,
      ),
      ...renderTable(
        numberSessions(listed),
        [...sessionColumns(screen), ...sessionLostColumn(listed, screen)],
        screen,
      ),
      ...renderHiddenColumns(listed, screen),
      ...renderCopyRemark(listed, screen),
      ...renderOmittedSessions(sessions.length - listed.length, unread, screen),
      ...renderCacheLosses(sumSessions(sessions), screen),
    ],
    renderSpentSince(sessions, sinceDay, screen),
    renderTotals('By day', totals.byDay, screen),
    placeSideBySide(
      (on) => renderTotals('By model', totals.byModel, on),
      (on) => renderTotals('By project', shortProjects(totals.byProject), on),
    )(screen),
    renderDamageWarning(sessions, screen),
    isTerminal ? [screen.colors.dim(HINT)] : [],
  ]
  return `${stackBlocks(blocks).join('\n')}\n`
}

/** Renders a warning about incomplete logs. The page begins with it, because the totals are then incomplete too. */
function renderIncompleteSessions(sessions: readonly SessionReport[], screen: Screen): readonly string[] {
  const broken = sessions.filter((report) => report.brokenOff !== null)
  if (broken.length === 0) return []
  const [are, their] = broken.length === 1 ? ['is', 'its'] : ['are', 'their']
  const files = broken.map(({ file }) => formatPath(basename(file))).join(', ')
  const text = `${formatCount(broken.length, 'session')} ${are} incomplete; only ${their} readable part is counted: ${files}`
  return wrapText(text, screen.columns, `${screen.symbols.warning} `).map(screen.colors.yellow)
}

interface NumberedSession {
  readonly number: number
  readonly id: string
  readonly report: SessionReport
}

function numberSessions(reports: readonly SessionReport[]): readonly NumberedSession[] {
  const ids = shortenSessionIds(reports)
  return reports.map((report, index) => ({ number: index + 1, id: ids[index] ?? '', report }))
}

/**
 * Minimum screen widths at which these columns are shown: session id, cost of cache breaks, and peak context with cache
 * hits.
 */
const MIN_WIDTH_FOR_ID = 100
const MIN_WIDTH_FOR_LOST = 80
const MIN_WIDTH_FOR_PEAK = 72

const PEAK_AND_HITS: readonly TableColumn<NumberedSession>[] = [
  { title: 'peak', align: 'right', text: ({ report }) => formatTokens(report.peakContextTokens) },
  {
    title: 'hits',
    align: 'right',
    text: ({ report }) => (isCopy(report) ? '' : formatHitRate(report.hitRate)),
  },
]

/** Returns true if all calls of this session are also in other listed sessions, so that it has no figures of its own. */
function isCopy({ apiCalls, copiedCalls }: SessionReport): boolean {
  return apiCalls === 0 && copiedCalls > 0
}

function formatHitRate(hitRate: number | null): string {
  return hitRate === null ? '?' : formatPercent(hitRate)
}

function renderCopyRemark(sessions: readonly SessionReport[], screen: Screen): readonly string[] {
  if (!sessions.some(isCopy)) return []
  const text = 'copy: all calls of the session are in another one that was read, and are counted there'
  return wrapText(text, screen.columns).map(screen.colors.dim)
}

function sessionColumns({ time, colors, columns }: Screen): readonly TableColumn<NumberedSession>[] {
  const id: TableColumn<NumberedSession> = {
    title: 'id',
    text: (row) => toSafeLine(row.id),
    color: colors.dim,
  }
  return [
    { title: '#', align: 'right', text: ({ number }) => formatInteger(number), color: colors.dim },
    {
      title: 'started',
      text: ({ report }) => (report.startedAt === null ? '?' : time.full(report.startedAt)),
    },
    ...(columns < MIN_WIDTH_FOR_ID ? [] : [id]),
    {
      title: 'project',
      cutAt: 'end',
      text: ({ report }) => toSafeLine(formatProjectName(report.project ?? '')),
    },
    { title: 'model', cutAt: 'end', text: ({ report }) => toSafeLine(shortModel(report.models)) },
    {
      title: 'calls',
      align: 'right',
      text: ({ report }) => (isCopy(report) ? '' : formatInteger(report.apiCalls)),
    },
    ...(columns < MIN_WIDTH_FOR_PEAK ? [] : PEAK_AND_HITS),
    {
      title: 'cost',
      align: 'right',
      text: ({ report }) => (isCopy(report) ? 'copy' : formatCost(report.costUsd, report.money.pricedUsd)),
      color: colors.bold,
    },
  ]
}

function sessionLostColumn(
  listed: readonly SessionReport[],
  { columns }: Screen,
): readonly TableColumn<NumberedSession>[] {
  if (columns < MIN_WIDTH_FOR_LOST || listed.every(({ cacheBreaks }) => cacheBreaks.length === 0)) return []
  const text = ({ report }: NumberedSession) => (isCopy(report) ? '' : formatTotalCost(report.cacheBreaks))
  return [{ title: 'lost', align: 'right', text }]
}

/** Names the columns that are hidden because the screen is too narrow. */
function renderHiddenColumns(
  listed: readonly SessionReport[],
  { columns, colors, symbols }: Screen,
): readonly string[] {
  const hidden = [
    ...(columns < MIN_WIDTH_FOR_PEAK ? ['peak', 'hits'] : []),
    ...(columns < MIN_WIDTH_FOR_LOST && listed.some(({ cacheBreaks }) => cacheBreaks.length > 0)
      ? ['lost']
      : []),
  ]
  if (hidden.length === 0) return []
  return [
    colors.dim(
      `${symbols.more} no room for ${hidden.join(', ')}: use at least ${MIN_WIDTH_FOR_LOST} columns`,
    ),
  ]
}

/** Shortens model names to the form `opus-4-5`, without vendor and date. */
function shortModel(models: readonly string[]): string {
  const names = models.map((model) => model.replace(/^claude-/, '').replace(/-20\d{6}$/, ''))
  return names.join(', ')
}

function renderOmittedSessions(
  unlisted: number,
  unread: number,
  { colors, symbols }: Screen,
): readonly string[] {
  const lines = [
    ...(unlisted > 0
      ? [
          `${symbols.more} and ${formatCount(unlisted, 'more session')}, included in the totals (--limit 0 lists all)`,
        ]
      : []),
    ...(unread > 0
      ? [
          `${symbols.more} and ${formatCount(unread, 'older session')} not read (--since DATE or --limit 0 reads more)`,
        ]
      : []),
  ]
  return lines.map((line) => colors.dim(line))
}

function renderCacheLosses(total: Omit<SpendingTotal, 'name'>, screen: Screen): readonly string[] {
  return [...formatBreakCost(total), ...formatClearingCost(total)].flatMap((text) =>
    wrapText(text, screen.columns).map(screen.colors.dim),
  )
}

function formatClearingCost({
  spentOnClearings,
  pricedSpentOnClearings,
}: Omit<SpendingTotal, 'name'>): readonly string[] {
  if (spentOnClearings === 0) return []
  return [`${formatCost(spentOnClearings, pricedSpentOnClearings)} spent on re-caching after clearings`]
}

function formatBreakCost({
  cacheBreaks,
  lostToBreaks,
  pricedLostToBreaks,
  costUsd,
}: Omit<SpendingTotal, 'name'>): readonly string[] {
  if (cacheBreaks === 0) return []
  const isKnown = lostToBreaks !== null && costUsd !== null && costUsd > 0
  const share = isKnown ? `, ${formatPercent(lostToBreaks / costUsd)} of the cost` : ''
  return [
    `${formatCount(cacheBreaks, 'cache break')}, ${formatCost(lostToBreaks, pricedLostToBreaks)} lost${share}; the page of each session shows the causes`,
  ]
}

function renderDamageWarning(
  sessions: readonly SessionReport[],
  { colors, symbols }: Screen,
): readonly string[] {
  const damaged = sessions.filter((report) => report.damaged.length > 0)
  if (damaged.length === 0) return []
  const places = damaged.reduce((sum, report) => sum + report.damaged.length, 0)
  return [
    colors.yellow(
      `${symbols.warning} ${formatCount(places, 'damaged place')} in ${formatCount(damaged.length, 'session')}; the page of each session lists them`,
    ),
  ]
}

// Totals per day, model and project.

const MAX_TOTALS = 10

/**
 * Minimum screen width for the column with the number of sessions. On a narrower screen, the cost of clearings takes
 * its place.
 */
const MIN_WIDTH_FOR_SESSIONS = 72

const SESSIONS_COLUMN: TableColumn<SpendingTotal> = {
  title: 'sessions',
  align: 'right',
  text: ({ sessions }) => formatInteger(sessions),
}

function renderTotals(title: string, totals: readonly SpendingTotal[], screen: Screen): readonly string[] {
  if (totals.length < 2) return []
  const cleared = clearedColumn(totals)
  const columns: readonly TableColumn<SpendingTotal>[] = [
    { title, cutAt: 'end', text: ({ name }) => toSafeLine(name) },
    ...(screen.columns < MIN_WIDTH_FOR_SESSIONS && cleared.length > 0 ? [] : [SESSIONS_COLUMN]),
    { title: 'calls', align: 'right', text: ({ apiCalls }) => formatInteger(apiCalls) },
    {
      title: 'tokens',
      align: 'right',
      text: ({ usage }) => formatTokens(usage.input + usage.cacheRead + usage.cacheCreation + usage.output),
    },
    {
      title: 'hits',
      align: 'right',
      text: ({ hitRate }) => formatHitRate(hitRate),
    },
    {
      title: 'cost',
      align: 'right',
      text: ({ costUsd, pricedUsd }) => formatCost(costUsd, pricedUsd),
      color: screen.colors.bold,
    },
    ...totalLostColumn(totals),
    ...cleared,
  ]
  const more = totals.length - MAX_TOTALS
  return [
    ...renderTable(totals.slice(0, MAX_TOTALS), columns, screen),
    ...(more > 0 ? [screen.colors.dim(`${screen.symbols.more} and ${formatInteger(more)} more`)] : []),
  ]
}

/** Returns the table column for the cost of cache breaks; an empty list if there were no cache breaks. */
function totalLostColumn(totals: readonly SpendingTotal[]): readonly TableColumn<SpendingTotal>[] {
  if (totals.every(({ cacheBreaks }) => cacheBreaks === 0)) return []
  const text = ({ lostToBreaks, pricedLostToBreaks }: SpendingTotal): string =>
    formatCost(lostToBreaks, pricedLostToBreaks)
  return [{ title: 'lost', align: 'right', text }]
}

/** Returns the table column for the cost of clearings; an empty list if clearings cost nothing. */
function clearedColumn(totals: readonly SpendingTotal[]): readonly TableColumn<SpendingTotal>[] {
  if (totals.every(({ spentOnClearings }) => spentOnClearings === 0)) return []
  const text = ({ spentOnClearings, pricedSpentOnClearings }: SpendingTotal): string =>
    formatCost(spentOnClearings, pricedSpentOnClearings)
  return [{ title: 'cleared', align: 'right', text }]
}

/** Shortens each project path to its last folders: as few as distinguish it from the other projects. */
function shortProjects(totals: readonly SpendingTotal[]): readonly SpendingTotal[] {
  return totals.map((total) => {
    const others = totals.filter(({ name }) => name !== total.name).map(({ name }) => name)
    return { ...total, name: shortestUniqueEnd(total.name, others) }
  })
}

function shortestUniqueEnd(path: string, others: readonly string[]): string {
  const parts = path.split('/')
  const tails = parts.map((_, index) => parts.slice(parts.length - 1 - index).join('/'))
  const isAlone = (tail: string): boolean =>
    !others.some((other) => other === tail || other.endsWith(`/${tail}`))
  return tails.find((tail) => tail !== '' && isAlone(tail)) ?? path
}
