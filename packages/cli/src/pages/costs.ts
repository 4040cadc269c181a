/** What a session cost: by class of token, what cache breaks and clearings cost, and what was spent since a day. */
import {
  type BreakCause,
  type CacheBreak,
  type ClearingCost,
  type MoneyReport,
  type SessionReport,
  type Total,
  totalsOf,
} from 'tidemark'
import { cost, count, dollars, percent, tokens, whole } from '../render/figures.ts'
import { bar, heading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, left, right, shown, widthOf, wrap } from '../render/text.ts'

const CLASS_NAMES: readonly (readonly [keyof MoneyReport['byClass'], string])[] = [
  ['cacheRead', 'cache reads'],
  ['write5m', 'cache writes, 5 minutes'],
  ['write1h', 'cache writes, 1 hour'],
  ['input', 'input, not cached'],
  ['output', 'output'],
]

const NAME = 25

export function money(report: SessionReport, screen: Screen): readonly string[] {
  const { money: spent } = report
  const used = CLASS_NAMES.filter(([kind]) => spent.byClass[kind].tokens > 0)
  if (used.length === 0) return []
  const { colors } = screen
  const width = screen.columns - NAME - 33
  const columns = right('tokens', 10) + right('cost', 10) + right('share', 9)
  return [
    `${colors.bold(left('Cost', NAME + 2))}${colors.dim(columns)}`,
    ...used.map(([kind, name]) =>
      row(
        report,
        { kind, name: kind === 'output' && report.outputEstimated ? `${name} *` : name, width },
        screen,
      ),
    ),
    ...fees(spent),
    `  ${left('total', NAME)}${right('', 10)}${colors.bold(right(cost(report.costUsd, spent.pricedUsd), 10))}`,
    ...remarks(report).flatMap((remark) => wrap(remark, screen.columns, '  ').map(colors.dim)),
  ]
}

interface ClassRow {
  readonly kind: keyof MoneyReport['byClass']
  readonly name: string
  readonly width: number
}

function row({ money: spent }: SessionReport, { kind, name, width }: ClassRow, screen: Screen): string {
  const { tokens: amount, usd } = spent.byClass[kind]
  const share = usd === null || spent.pricedUsd === 0 ? null : usd / spent.pricedUsd
  const figures = right(tokens(amount), 10) + right(usd === null ? '?' : dollars(usd), 10)
  const drawn = share === null ? '' : bar(share, width, screen.symbols)
  const shareText = right(share === null ? '' : percent(share), 9)
  return `  ${left(name, NAME)}${figures}${shareText}  ${screen.colors.cyan(drawn)}`.trimEnd()
}

function fees({ feesUsd }: MoneyReport): readonly string[] {
  if (feesUsd === 0) return []
  return [
    `  ${left('per-request fees', NAME)}${right('', 10)}${right(feesUsd === null ? '?' : dollars(feesUsd), 10)}`,
  ]
}

/** Parts of the cost that the host chose to spend. */
function ownActs({
  spentOnCompaction: summaries,
  spentOnClearings: clearings,
}: MoneyReport): readonly string[] {
  return [
    ...(summaries === null || summaries > 0 ? [`spent on summaries: ${cost(summaries, 0)}`] : []),
    ...(clearings === null || clearings > 0
      ? [`spent on re-caching after clearings: ${cost(clearings, 0)}`]
      : []),
  ]
}

function remarks(report: SessionReport): readonly string[] {
  const { money: spent, usage, outputEstimatedCalls: guessed, outputTokensEstimated } = report
  const saved = spent.savedByCache
  return [
    ...(guessed > 0
      ? [
          `* estimated for ${count(guessed, 'call')}: the log has ${tokens(usage.output)} tokens in total, the text about ${tokens(outputTokensEstimated)}`,
        ]
      : []),
    ...(saved !== null && saved >= 0.005 ? [`the cache saved ${dollars(saved)}`] : []),
    ...(saved !== null && saved <= -0.005 ? [`the cache cost ${dollars(-saved)} more than it saved`] : []),
    ...ownActs(spent),
    ...spent.missing.map((what) => `not known: ${what}`),
    ...spent.assumed,
  ]
}

// Where the prompt cache broke: the most expensive breaks first.

const MOST_BREAKS = 5

export function breaks(report: SessionReport, screen: Screen): readonly string[] {
  const { cacheBreaks, clearingCosts } = report
  if (cacheBreaks.length === 0 && clearingCosts.length === 0) return []
  const listed = cacheBreaks.toSorted(dearer).slice(0, MOST_BREAKS)
  return [
    heading('Cache breaks', breakTotals(report), screen),
    ...byCause(cacheBreaks, screen),
    ...listed.flatMap((found) => breakLines(found, screen)),
    ...more(cacheBreaks.length - listed.length, screen),
    ...clearings(clearingCosts, screen),
    ...longerLife(report, screen),
  ]
}

/** If 5-minute entries expired: whether a 1-hour TTL would have been worth its more expensive writes. */
function longerLife(
  { cacheBreaks, hourWouldSave: saved }: SessionReport,
  { columns, colors }: Screen,
): readonly string[] {
  if (saved === null || !cacheBreaks.some(({ cause }) => cause === 'expired')) return []
  const text =
    saved > 0
      ? `a 1-hour cache TTL would have saved ${dollars(saved)} in this session`
      : `a 1-hour cache TTL would have cost ${dollars(-saved)} more in this session`
  return wrap(text, columns, '  ').map(colors.dim)
}

function dearer(one: CacheBreak, other: CacheBreak): number {
  return (other.costUsd ?? 0) - (one.costUsd ?? 0) || other.tokensRewritten - one.tokensRewritten
}

function breakTotals({ cacheBreaks, money }: SessionReport): string {
  if (cacheBreaks.length === 0) return 'none'
  const { shareLostToBreaks: share } = money
  const part = share === null ? '' : `, ${percent(share)} of the cost`
  return `${whole(cacheBreaks.length)}, ${lost(cacheBreaks)} lost${part}`
}

function lost(costs: readonly Pick<CacheBreak, 'costUsd'>[]): string {
  const known = costs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  return cost(costs.some(({ costUsd }) => costUsd === null) ? null : known, known)
}

/** If there is more than one cause: the number and cost of each. */
function byCause(all: readonly CacheBreak[], { columns, colors, symbols }: Screen): readonly string[] {
  const causes = [...Map.groupBy(all, ({ cause }) => cause)]
  if (causes.length < 2) return []
  const sum = (group: readonly CacheBreak[]): number =>
    group.reduce((total, { costUsd }) => total + (costUsd ?? 0), 0)
  const totals = causes
    .toSorted(([, one], [, other]) => sum(other) - sum(one) || other.length - one.length)
    .map(([cause, group]) => `${inWords(cause)} ${whole(group.length)}${symbols.times} ${lost(group)}`)
  return wrap(totals.join(', '), columns, '  ').map(colors.dim)
}

/** Widths of `2026-02-08 09:24`, and of tokens and dollars. */
const WHEN = 16
const FIGURES = 8

function breakLines(found: CacheBreak, screen: Screen): readonly string[] {
  const { moments, colors, columns, symbols } = screen
  const { at, tokensRewritten, costUsd, cause, evidence, agent, source } = found
  const when = Number.isNaN(Date.parse(at)) ? '?' : moments.full(at)
  const paid = costUsd === null ? '?' : dollars(costUsd)
  const figures = `  ${left(when, WHEN)}${right(tokens(tokensRewritten), FIGURES)}  ${right(paid, FIGURES)}  `
  const beside = source === undefined ? '' : ` (${shown(source)})`
  const who = agent === undefined ? beside : ` (agent ${shown(agent)})`
  const why = cutEnd(`${inWords(cause)}${who}`, columns - widthOf(figures), symbols.more)
  return [`${figures}${colors.bold(why)}`, ...wrap(shown(evidence), columns, '      ').map(colors.dim)]
}

function inWords(cause: BreakCause): string {
  return cause.replaceAll('-', ' ')
}

function more(rest: number, { colors, symbols }: Screen): readonly string[] {
  return rest > 0 ? [colors.dim(`  ${symbols.more} and ${whole(rest)} cheaper (--json lists them all)`)] : []
}

/** Clearings by the host, after which the rest of the prompt had to be cached again: not breaks. */
function clearings(costs: readonly ClearingCost[], { columns, colors, symbols }: Screen): readonly string[] {
  if (costs.length === 0) return []
  const rewritten = costs.reduce((sum, { tokensRewritten }) => sum + tokensRewritten, 0)
  const calls = costs.map(({ breakEvenCalls }) => breakEvenCalls).filter((number) => number !== null)
  const back = calls.length === 0 ? '' : `; each pays for itself in ${span(calls)}`
  const text = `not breaks: ${count(costs.length, 'clearing')} by the host, ${tokens(rewritten)} tokens re-cached for ${lost(costs)}${back}`
  return wrap(text, columns, `  ${symbols.cleared} `).map(colors.dim)
}

function span(calls: readonly number[]): string {
  const [least, most] = [Math.min(...calls), Math.max(...calls)]
  return least === most ? count(least, 'call') : `${whole(least)} to ${count(most, 'call')}`
}

/**
 * Sessions are selected by their last use and shown whole, so this line says what was spent since then. None if no day was
 * given, or if nothing is older.
 */
export function sinceThen(
  sessions: readonly SessionReport[],
  day: string | null,
  { columns, colors }: Screen,
): readonly string[] {
  const isBefore = (one: string | null): boolean => day !== null && (one === null || one < day)
  if (!sessions.some(({ spending }) => spending.some((part) => isBefore(part.day)))) return []
  const [what, where] =
    sessions.length === 1 ? ['This is the whole session', ''] : ['These are whole sessions', ', and below']
  const sum = spent(totalsOf(sessions, day))
  return wrap(`${what}, earlier days included. Since ${day}${where}: ${sum}.`, columns).map(colors.yellow)
}

/** Calls, cost and hits, in one line. */
export function spent({ apiCalls, costUsd, pricedUsd, hitRate }: Omit<Total, 'name'>): string {
  const hits = hitRate === null ? '' : `, ${percent(hitRate)} cache hits`
  return `${count(apiCalls, 'call')}, ${cost(costUsd, pricedUsd)}${hits}`
}
