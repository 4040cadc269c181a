/** Which session it is, and the figures that say most, at one look. */
import { basename } from 'node:path'
import type { SessionReport } from 'tidemark'
import { cost, count, duration, limit, percent, tokens, whole, wholePercent } from '../figures.ts'
import type { Screen } from '../screen.ts'
import { cutEnd, cutStart, left, right, widthOf } from '../width.ts'
import { wrap } from '../wrap.ts'
import { projectName, shown, shownPath } from './shown.ts'

export function head(report: SessionReport, screen: Screen): readonly string[] {
  const { columns, colors, symbols } = screen
  const format = report.format
  const file = cutStart(shownPath(basename(report.file)), columns - format.length - 2, symbols.more)
  const facts = [project(report), modelsIn(report), span(report, screen)].filter((fact) => fact !== '')
  return [
    `${colors.bold(left(file, columns - format.length))}${colors.dim(right(format, format.length))}`,
    ...wrapped(facts, screen).map(colors.dim),
    ...prompt(report, screen),
  ]
}

function project({ project: folder }: SessionReport): string {
  return folder === null ? '' : shown(projectName(folder))
}

function modelsIn({ models }: SessionReport): string {
  return models.map(shown).join(', ')
}

function span({ startedAt, endedAt, durationMs }: SessionReport, { moments, symbols }: Screen): string {
  if (startedAt === null || endedAt === null || durationMs === null) return ''
  const isOneDay = moments.day(startedAt) === moments.day(endedAt)
  const end = isOneDay ? moments.time(endedAt) : moments.full(endedAt)
  return `${moments.full(startedAt)} ${symbols.dash} ${end} (${duration(durationMs)})`
}

/** What is missing makes every figure on the page one of a part, so it comes before them. */
export function brokenOff({ brokenOff: why }: SessionReport, screen: Screen): readonly string[] {
  if (why === null) return []
  const text = `${shown(why)}. All figures are of the part before it`
  return wrap(text, screen.columns, `${screen.symbols.warning} `).map(screen.colors.yellow)
}

/** As many facts on a line as it takes. */
function wrapped(facts: readonly string[], { columns, symbols }: Screen): readonly string[] {
  const between = ` ${symbols.dot} `
  const lines: string[] = []
  for (const fact of facts) {
    const last = lines.at(-1)
    const joined = last === undefined ? fact : `${last}${between}${fact}`
    if (last === undefined || widthOf(joined) > columns) lines.push(cutEnd(fact, columns, symbols.more))
    else lines[lines.length - 1] = joined
  }
  return lines
}

function prompt({ firstPrompt }: SessionReport, { columns, symbols, colors }: Screen): readonly string[] {
  if (firstPrompt === null) return []
  return [colors.italic(`"${cutEnd(shown(firstPrompt), columns - 2, symbols.more)}"`)]
}

interface Tile {
  readonly name: string
  readonly value: string
}

/** Labels over figures, in columns as wide as the screen allows. */
export function tiles(report: SessionReport, screen: Screen): readonly string[] {
  const { colors, columns } = screen
  const all = tilesOf(report)
  const widths = all.map(({ name, value }) => Math.max(widthOf(name), widthOf(value)))
  const gap = Math.max(2, Math.min(8, Math.floor((columns - sum(widths)) / all.length)))
  const row = (text: (tile: Tile) => string): string =>
    all
      .map((tile, index) => left(text(tile), (widths[index] ?? 0) + gap))
      .join('')
      .trimEnd()
  return [colors.dim(row(({ name }) => name)), colors.bold(row(({ value }) => value))]
}

function tilesOf(report: SessionReport): readonly Tile[] {
  const { apiCalls, toolCalls, userMessages, hitRate } = report
  return [
    { name: 'peak context', value: peak(report) },
    { name: 'cost', value: cost(report.costUsd, report.money.pricedUsd) },
    { name: 'cache hits', value: hitRate === null ? '?' : percent(hitRate) },
    { name: 'calls', value: whole(apiCalls) },
    { name: 'tools', value: whole(toolCalls) },
    { name: 'prompts', value: whole(userMessages) },
  ]
}

function peak({ peakContextTokens, context: { window } }: SessionReport): string {
  const used = tokens(peakContextTokens)
  return window === null ? used : `${used} of ${limit(window)} (${wholePercent(peakContextTokens / window)})`
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}

/** A session in which nothing was asked of a model has nothing else to show. */
export function nothingSent(report: SessionReport): readonly string[] {
  return report.apiCalls > 0 || report.copiedCalls > 0
    ? []
    : [`No answer of a model in it: ${count(report.records, 'record')} read.`]
}
