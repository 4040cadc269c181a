/** Renders what a session cost: by token class, by cache break and since a given day; and the list of its rewrites. */
import { type SessionReport, sumSessions } from 'tidemark/logs'
import {
  formatCost,
  formatCount,
  formatDollars,
  formatInteger,
  formatPercent,
  formatTokens,
} from '../render/format-numbers.ts'
import { renderBar, renderHeading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { alignLeft, alignRight, cutTextEnd, measureTextWidth, toSafeLine, wrapText } from '../render/text.ts'

type CostReport = SessionReport['money']
type LoggedCacheBreak = SessionReport['cacheBreaks'][number]
type LoggedClearing = SessionReport['clearings'][number]
type LoggedCompaction = SessionReport['compactions'][number]

type CostClass = keyof CostReport['byClass']

const COST_CLASSES: readonly CostClass[] = ['cacheRead', 'write5m', 'write1h', 'input', 'output']

function nameCostClass(kind: CostClass, { writeSeconds }: CostReport): string {
  if (kind === 'cacheRead') return 'cache reads'
  if (kind === 'input') return 'input, not cached'
  if (kind === 'output') return 'output'
  const seconds = writeSeconds[kind]
  if (seconds === null) return kind === 'write1h' ? 'cache writes, for longer' : 'cache writes'
  const [hours, minutes] = [seconds / 3_600, seconds / 60]
  return `cache writes, ${Number.isInteger(hours) ? formatCount(hours, 'hour') : formatCount(minutes, 'minute')}`
}

const COST_NAME_WIDTH = 25

export function renderCosts(report: SessionReport, screen: Screen): readonly string[] {
  const { money } = report
  const used = COST_CLASSES.filter((kind) => money.byClass[kind].tokens > 0)
  if (used.length === 0) return []
  const { colors } = screen
  const width = screen.columns - COST_NAME_WIDTH - 33
  const columns = alignRight('tokens', 10) + alignRight('cost', 10) + alignRight('share', 9)
  return [
    `${colors.bold(alignLeft('Cost', COST_NAME_WIDTH + 2))}${colors.dim(columns)}`,
    ...used.map((kind) => {
      const name = nameCostClass(kind, money)
      return renderCostRow(
        report,
        { kind, name: kind === 'output' && report.outputEstimated ? `${name} *` : name, width },
        screen,
      )
    }),
    ...renderFees(money),
    ...renderUnlogged(money),
    `  ${alignLeft('total', COST_NAME_WIDTH)}${alignRight('', 10)}${colors.bold(alignRight(formatCost(report.costUsd, money.pricedUsd), 10))}`,
    ...describeCosts(report).flatMap((remark) => wrapText(remark, screen.columns, '  ').map(colors.dim)),
  ]
}

interface ClassRow {
  readonly kind: keyof CostReport['byClass']
  readonly name: string
  readonly width: number
}

function renderCostRow({ money }: SessionReport, { kind, name, width }: ClassRow, screen: Screen): string {
  const { tokens, usd } = money.byClass[kind]
  const share = usd === null || money.pricedUsd === 0 ? null : usd / money.pricedUsd
  const figures =
    alignRight(formatTokens(tokens), 10) + alignRight(usd === null ? '?' : formatDollars(usd), 10)
  const drawn = share === null ? '' : renderBar(share, width, screen.symbols)
  const shareText = alignRight(share === null ? '' : formatPercent(share), 9)
  return `  ${alignLeft(name, COST_NAME_WIDTH)}${figures}${shareText}  ${screen.colors.cyan(drawn)}`.trimEnd()
}

function renderFees({ feesUsd }: CostReport): readonly string[] {
  if (feesUsd === 0) return []
  return [
    `  ${alignLeft('per-request fees', COST_NAME_WIDTH)}${alignRight('', 10)}${alignRight(feesUsd === null ? '?' : formatDollars(feesUsd), 10)}`,
  ]
}

/** Renders what the host spent on calls that are not in the log, if it logged its own totals. */
function renderUnlogged({ notInLog: { usd, tokens } }: CostReport): readonly string[] {
  if (usd === null || tokens === null || Math.abs(usd) < 0.005) return []
  return [
    `  ${alignLeft('not in the log', COST_NAME_WIDTH)}${alignRight(formatTokens(tokens), 10)}${alignRight(formatDollars(usd), 10)}`,
  ]
}

function describeUnlogged({ notInLog: { usd, summaries } }: CostReport): readonly string[] {
  if (usd !== null) return ["the total is the host's own, with the calls that it does not log"]
  if (summaries === 0) return []
  const which =
    summaries === 1 ? 'the call that wrote the summary' : `the calls that wrote ${summaries} summaries`
  return [`not included: ${which}, which the host does not log`]
}

/** Describes what rewrites of the context cost: summaries, and re-caching after clearings. */
function describeOwnRewrites({ money, clearingCosts }: SessionReport): readonly string[] {
  const { spentOnCompaction, spentOnClearings } = money
  return [
    ...(spentOnCompaction === null || spentOnCompaction > 0
      ? [`spent on summaries: ${formatCost(spentOnCompaction, 0)}`]
      : []),
    ...(spentOnClearings === null || spentOnClearings > 0
      ? [`spent on re-caching after clearings: ${formatTotalCost(clearingCosts)}`]
      : []),
  ]
}

function describeCosts(report: SessionReport): readonly string[] {
  const { money, usage, outputEstimatedCalls, outputTokensEstimated } = report
  const saved = money.savedByCache
  return [
    ...(outputEstimatedCalls > 0
      ? [
          `* estimated for ${formatCount(outputEstimatedCalls, 'call')}: the log has ${formatTokens(usage.output)} tokens in total, the text about ${formatTokens(outputTokensEstimated)}`,
        ]
      : []),
    ...(saved !== null && saved >= 0.005 ? [`the cache saved ${formatDollars(saved)}`] : []),
    ...(saved !== null && saved <= -0.005
      ? [`the cache cost ${formatDollars(-saved)} more than it saved`]
      : []),
    ...describeOwnRewrites(report),
    ...describeUnlogged(money),
    ...money.missing.map((what) => `not known: ${toSafeLine(what)}`),
    ...money.assumed.map(toSafeLine),
  ]
}

// Cache breaks, most expensive first.

const MAX_BREAKS = 5

export function renderCacheBreaks(report: SessionReport, screen: Screen): readonly string[] {
  const { cacheBreaks, clearingCosts } = report
  if (cacheBreaks.length === 0 && clearingCosts.length === 0) return []
  const listed = cacheBreaks.toSorted(compareCost).slice(0, MAX_BREAKS)
  return [
    renderHeading('Cache breaks', formatBreakTotals(report), screen),
    ...renderCauses(cacheBreaks, screen),
    ...listed.flatMap((found) => renderBreak(found, screen)),
    ...renderOmitted(cacheBreaks.length - listed.length, screen),
    ...renderClearingCosts(clearingCosts, screen),
    ...renderHourTtl(report, screen),
  ]
}

/**
 * Renders how much a 1-hour cache TTL would have saved, or cost in addition, because its cache writes are more
 * expensive. Empty if no cache entry expired, or if the difference is not known.
 */
function renderHourTtl(
  { cacheBreaks, hourWouldSave }: SessionReport,
  { columns, colors }: Screen,
): readonly string[] {
  if (hourWouldSave === null || !cacheBreaks.some(({ cause }) => cause === 'expired')) return []
  const text =
    hourWouldSave > 0
      ? `a 1-hour cache TTL would have saved ${formatDollars(hourWouldSave)} in this session`
      : `a 1-hour cache TTL would have cost ${formatDollars(-hourWouldSave)} more in this session`
  return wrapText(text, columns, '  ').map(colors.dim)
}

function compareCost(one: LoggedCacheBreak, other: LoggedCacheBreak): number {
  return (other.costUsd ?? 0) - (one.costUsd ?? 0) || other.tokensRewritten - one.tokensRewritten
}

function formatBreakTotals({ cacheBreaks, money }: SessionReport): string {
  if (cacheBreaks.length === 0) return 'none'
  const { shareLostToBreaks } = money
  const part = shareLostToBreaks === null ? '' : `, ${formatPercent(shareLostToBreaks)} of the cost`
  return `${formatInteger(cacheBreaks.length)}, ${formatTotalCost(cacheBreaks)} lost${part}`
}

/** Adds up costs, as of cache breaks or clearings, and formats the sum: `>$0.42` or `?` if one of them is unknown (null). */
export function formatTotalCost(costs: readonly Pick<LoggedCacheBreak, 'costUsd'>[]): string {
  const known = costs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  return formatCost(costs.some(({ costUsd }) => costUsd === null) ? null : known, known)
}

/** Renders the number and the cost of cache breaks by cause; empty if all breaks have the same cause. */
function renderCauses(
  all: readonly LoggedCacheBreak[],
  { columns, colors, symbols }: Screen,
): readonly string[] {
  const causes = [...Map.groupBy(all, ({ cause }) => cause)]
  if (causes.length < 2) return []
  const sum = (group: readonly LoggedCacheBreak[]): number =>
    group.reduce((total, { costUsd }) => total + (costUsd ?? 0), 0)
  const totals = causes
    .toSorted(([, one], [, other]) => sum(other) - sum(one) || other.length - one.length)
    .map(
      ([cause, group]) =>
        `${formatCause(cause)} ${formatInteger(group.length)}${symbols.times} ${formatTotalCost(group)}`,
    )
  return wrapText(totals.join(', '), columns, '  ').map(colors.dim)
}

/** Column width of a time such as `2026-02-08 09:24`. */
const TIME_WIDTH = 16
/** Column width of an amount of tokens or dollars. */
const FIGURE_WIDTH = 8

function renderBreak(found: LoggedCacheBreak, screen: Screen): readonly string[] {
  const { time, colors, columns, symbols } = screen
  const { at, tokensRewritten, costUsd, cause, evidence, agent, source } = found
  const when = Number.isNaN(Date.parse(at)) ? '?' : time.full(at)
  const paid = costUsd === null ? '?' : formatDollars(costUsd)
  const figures = `  ${alignLeft(when, TIME_WIDTH)}${alignRight(formatTokens(tokensRewritten), FIGURE_WIDTH)}  ${alignRight(paid, FIGURE_WIDTH)}  `
  const beside = source === undefined ? '' : ` (${toSafeLine(source)})`
  const who = agent === undefined ? beside : ` (agent ${toSafeLine(agent)})`
  const why = cutTextEnd(`${formatCause(cause)}${who}`, columns - measureTextWidth(figures), symbols.more)
  return [
    `${figures}${colors.bold(why)}`,
    ...wrapText(toSafeLine(evidence), columns, '      ').map(colors.dim),
  ]
}

function formatCause(cause: LoggedCacheBreak['cause']): string {
  return cause.replaceAll('-', ' ')
}

function renderOmitted(rest: number, { colors, symbols }: Screen): readonly string[] {
  return rest > 0
    ? [colors.dim(`  ${symbols.more} and ${formatInteger(rest)} cheaper (--json lists them all)`)]
    : []
}

/**
 * Renders what it cost to re-cache the prompt after content was cleared. This cost is shown separately, because a
 * clearing is not counted as a cache break.
 */
function renderClearingCosts(
  costs: SessionReport['clearingCosts'],
  { columns, colors, symbols }: Screen,
): readonly string[] {
  if (costs.length === 0) return []
  const rewritten = costs.reduce((sum, { tokensRewritten }) => sum + tokensRewritten, 0)
  const calls = costs.map(({ breakEvenCalls }) => breakEvenCalls).filter((number) => number !== null)
  const back = calls.length === 0 ? '' : `; each pays for itself after ${formatCallRange(calls)}`
  const text = `not breaks: ${formatClearings(costs)}, ${formatTokens(rewritten)} tokens re-cached for ${formatTotalCost(costs)}${back}`
  return wrapText(text, columns, `  ${symbols.cleared} `).map(colors.dim)
}

function formatCallRange(calls: readonly number[]): string {
  const [least, most] = [Math.min(...calls), Math.max(...calls)]
  return least === most
    ? formatCount(least, 'call')
    : `${formatInteger(least)} to ${formatCount(most, 'call')}`
}

/**
 * Renders what was spent since `day`. The other figures of the page cover whole sessions and may include earlier days.
 * Empty if `day` is null or nothing was spent before it.
 */
export function renderSpentSince(
  sessions: readonly SessionReport[],
  day: string | null,
  { columns, colors }: Screen,
): readonly string[] {
  const isBefore = (one: string | null): boolean => day !== null && (one === null || one < day)
  if (!sessions.some(({ spending }) => spending.some((part) => isBefore(part.day)))) return []
  const [what, where] =
    sessions.length === 1 ? ['This is the whole session', ''] : ['These are whole sessions', ', and below']
  const sum = formatSessionTotals(sumSessions(sessions, day))
  return wrapText(`${what}, earlier days included. Since ${day}${where}: ${sum}.`, columns).map(colors.yellow)
}

/** Formats totals of sessions: `41 calls, $5.20, 93.1% cache hits`. */
export function formatSessionTotals({
  apiCalls,
  costUsd,
  pricedUsd,
  hitRate,
}: ReturnType<typeof sumSessions>): string {
  const hits = hitRate === null ? '' : `, ${formatPercent(hitRate)} cache hits`
  return `${formatCount(apiCalls, 'call')}, ${formatCost(costUsd, pricedUsd)}${hits}`
}

// Compactions and clearings, in the order in which they happened.

/** Renders one row for each compaction and clearing. A rewrite that was undone stays listed and says so. */
export function renderRewrites(report: SessionReport, screen: Screen): readonly string[] {
  const { compactions, clearings } = report
  const rows = [
    ...compactions.map((act) => ({ act, text: renderCompaction(act, screen) })),
    ...clearings.map((act) => ({ act, text: renderClearing(act, screen) })),
  ].sort((one, other) => one.act.afterCall - other.act.afterCall || compareTime(one.act.at, other.act.at))
  if (rows.length === 0) return []
  const undone = [...compactions, ...clearings].filter(({ isUndone }) => isUndone).length
  const counts = [
    ...(compactions.length > 0 ? [formatCount(compactions.length, 'compaction')] : []),
    ...(clearings.length > 0 ? [formatClearings(clearings)] : []),
    ...(undone > 0 ? [`${formatInteger(undone)} undone`] : []),
  ]
  return [renderHeading('Rewrites', counts.join(', '), screen), ...rows.map(({ text }) => text)]
}

function compareTime(one: string | null, other: string | null): number {
  return Number((one ?? '') > (other ?? '')) - Number((one ?? '') < (other ?? ''))
}

function renderCompaction(act: LoggedCompaction, screen: Screen): string {
  const how = act.trigger === null ? 'compacted' : `compacted (${toSafeLine(act.trigger)})`
  const sizes = `${formatSize(act.preTokens)} ${screen.symbols.arrow} ${formatSize(act.postTokens)}`
  return renderRewrite(act, { mark: screen.symbols.compacted, how, sizes }, screen)
}

/**
 * Renders a clearing and the tokens that it saved. The context size before it is not shown, because hosts log it in
 * different ways.
 */
function renderClearing(act: LoggedClearing, screen: Screen): string {
  const how = act.results > 0 ? `cleared ${formatCount(act.results, 'result')}` : 'cleared'
  const sizes = `${formatSize(act.savedTokens)} saved`
  return renderRewrite(act, { mark: screen.symbols.cleared, how, sizes }, screen)
}

const KIND_WIDTH = 20
const SIZES_WIDTH = 16

function renderRewrite(
  { afterCall, at, isUndone }: LoggedCompaction | LoggedClearing,
  { mark, how, sizes }: { readonly mark: string; readonly how: string; readonly sizes: string },
  screen: Screen,
): string {
  const { symbols, colors, columns, time } = screen
  const place = `${isUndone ? 'undone, ' : ''}after call ${formatInteger(afterCall)}${at === null ? '' : `, ${time.full(at)}`}`
  const where = cutTextEnd(place, columns - KIND_WIDTH - SIZES_WIDTH - 6, symbols.more)
  const what = alignLeft(cutTextEnd(how, KIND_WIDTH, symbols.more), KIND_WIDTH)
  return `  ${colors.yellow(mark)} ${what}${alignRight(sizes, SIZES_WIDTH)}  ${colors.dim(where)}`
}

function formatSize(amount: number | null): string {
  return amount === null ? '?' : formatTokens(amount)
}

const ACTOR_NAMES: Readonly<Record<LoggedClearing['by'], string>> = {
  host: 'the host',
  tidemark: 'Tidemark',
  provider: 'the provider',
}

/** Counts clearings by who made them: `3 clearings by the provider`, `1 clearing by Tidemark, 2 by the provider`. */
function formatClearings(clearings: readonly Pick<LoggedClearing, 'by'>[]): string {
  const groups = [...Map.groupBy(clearings, ({ by }) => by)]
  return groups
    .map(([by, { length }], index) =>
      index === 0
        ? `${formatCount(length, 'clearing')} by ${ACTOR_NAMES[by]}`
        : `${formatInteger(length)} by ${ACTOR_NAMES[by]}`,
    )
    .join(', ')
}
