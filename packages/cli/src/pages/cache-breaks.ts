/** Where the prompt cache broke: when, how much was processed again, what that cost, and why; the dearest first. */
import type { BreakCause, CacheBreak, ClearingCost, SessionReport } from 'tidemark'
import { cost, count, dollars, percent, tokens, whole } from '../render/figures.ts'
import { heading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, left, right, shown, widthOf, wrap } from '../render/text.ts'

const MOST_BREAKS = 5

export function breaks(report: SessionReport, screen: Screen): readonly string[] {
  const { cacheBreaks, clearingCosts } = report
  if (cacheBreaks.length === 0 && clearingCosts.length === 0) return []
  const listed = cacheBreaks.toSorted(dearer).slice(0, MOST_BREAKS)
  return [
    heading('Cache breaks', told(report), screen),
    ...byCause(cacheBreaks, screen),
    ...listed.flatMap((found) => breakLines(found, screen)),
    ...more(cacheBreaks.length - listed.length, screen),
    ...clearings(clearingCosts, screen),
    ...longerLife(report, screen),
  ]
}

/** Where entries lapsed after five minutes: whether an hour would have been worth its dearer writes. */
function longerLife(
  { cacheBreaks, hourWouldSave: saved }: SessionReport,
  { columns, colors }: Screen,
): readonly string[] {
  if (saved === null || !cacheBreaks.some(({ cause }) => cause === 'expired')) return []
  const text =
    saved > 0
      ? `a cache lifetime of an hour would have saved ${dollars(saved)} here: by these gaps it pays`
      : `a cache lifetime of an hour would have cost ${dollars(-saved)} more here: by these gaps it does not pay`
  return wrap(text, columns, '  ').map(colors.dim)
}

function dearer(one: CacheBreak, other: CacheBreak): number {
  return (other.costUsd ?? 0) - (one.costUsd ?? 0) || other.tokensRewritten - one.tokensRewritten
}

function told({ cacheBreaks, money }: SessionReport): string {
  if (cacheBreaks.length === 0) return 'none'
  const { shareLostToBreaks: share } = money
  const part = share === null ? '' : `, ${percent(share)} of the bill`
  return `${whole(cacheBreaks.length)}, ${lost(cacheBreaks)} lost${part}`
}

function lost(costs: readonly Pick<CacheBreak, 'costUsd'>[]): string {
  const known = costs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  return cost(costs.some(({ costUsd }) => costUsd === null) ? null : known, known)
}

/** Where there is more than one cause, what each of them came to. */
function byCause(all: readonly CacheBreak[], { columns, colors, symbols }: Screen): readonly string[] {
  const causes = [...Map.groupBy(all, ({ cause }) => cause)]
  if (causes.length < 2) return []
  const sum = (group: readonly CacheBreak[]): number =>
    group.reduce((total, { costUsd }) => total + (costUsd ?? 0), 0)
  const words = causes
    .toSorted(([, one], [, other]) => sum(other) - sum(one) || other.length - one.length)
    .map(([cause, group]) => `${inWords(cause)} ${whole(group.length)}${symbols.times} ${lost(group)}`)
  return wrap(words.join(', '), columns, '  ').map(colors.dim)
}

/** Room for `2026-02-08 09:24`, then tokens and dollars. */
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

/** The host cleared old results, and what stood behind them had to be processed again. */
function clearings(costs: readonly ClearingCost[], { columns, colors, symbols }: Screen): readonly string[] {
  if (costs.length === 0) return []
  const rewritten = costs.reduce((sum, { tokensRewritten }) => sum + tokensRewritten, 0)
  const calls = costs.map(({ breakEvenCalls }) => breakEvenCalls).filter((number) => number !== null)
  const back = calls.length === 0 ? '' : `; each pays back in ${span(calls)}`
  const text = `the host's own acts, no breaks: ${count(costs.length, 'clearing')}, ${tokens(rewritten)} tokens processed again for ${lost(costs)}${back}`
  return wrap(text, columns, `  ${symbols.cleared} `).map(colors.dim)
}

function span(calls: readonly number[]): string {
  const [least, most] = [Math.min(...calls), Math.max(...calls)]
  return least === most ? count(least, 'call') : `${whole(least)} to ${count(most, 'call')}`
}
