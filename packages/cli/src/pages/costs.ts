/** Where the money went, by class of token. */
import { type MoneyReport, type SessionReport, type Total, totalsOf } from 'tidemark'
import { cost, count, dollars, percent, tokens } from '../render/figures.ts'
import { bar } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { left, right, wrap } from '../render/text.ts'

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
    `${colors.bold(left('Money', NAME + 2))}${colors.dim(columns)}`,
    ...used.map(([kind, name]) =>
      row(report, { kind, name: isGuessed(kind, report) ? `${name} *` : name, width }, screen),
    ),
    ...fees(spent),
    `  ${left('total', NAME)}${right('', 10)}${colors.bold(right(cost(report.costUsd, spent.pricedUsd), 10))}`,
    ...remarks(report).flatMap((remark) => wrap(remark, screen.columns, '  ').map(colors.dim)),
  ]
}

function isGuessed(kind: string, { outputEstimated }: SessionReport): boolean {
  return kind === 'output' && outputEstimated
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
    `  ${left('fees by the request', NAME)}${right('', 10)}${right(feesUsd === null ? '?' : dollars(feesUsd), 10)}`,
  ]
}

/** Parts of the bill that the host chose to spend. */
function ownActs({
  spentOnCompaction: summaries,
  spentOnClearings: clearings,
}: MoneyReport): readonly string[] {
  return [
    ...(summaries === null || summaries > 0 ? [`spent on summaries: ${cost(summaries, 0)}`] : []),
    ...(clearings === null || clearings > 0
      ? [`spent on processing again what clearings changed: ${cost(clearings, 0)}`]
      : []),
  ]
}

function remarks(report: SessionReport): readonly string[] {
  const { money: spent, usage, outputEstimatedCalls: guessed, outputTokensEstimated } = report
  const saved = spent.savedByCache
  return [
    ...(guessed > 0
      ? [
          `* estimated for ${count(guessed, 'call')}: the log has ${tokens(usage.output)} in all, the text comes to ${tokens(outputTokensEstimated)}`,
        ]
      : []),
    ...(saved !== null && saved >= 0.005 ? [`the cache saved ${dollars(saved)}`] : []),
    ...(saved !== null && saved <= -0.005 ? [`the cache cost ${dollars(-saved)} more than it saved`] : []),
    ...ownActs(spent),
    ...spent.missing.map((what) => `not known: ${what}`),
    ...spent.assumed,
  ]
}

// Sessions are chosen by when they were last used, and shown whole: what of them was spent since then is said apart.

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
