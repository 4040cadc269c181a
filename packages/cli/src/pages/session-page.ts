/** The page of one session: header, key figures, context, costs, cache breaks, warnings. */
import { basename } from 'node:path'
import type { DamagedPlace, SessionReport } from 'tidemark'
import { cost, count, duration, limit, percent, tokens, whole, wholePercent } from '../render/figures.ts'
import { type Draw, heading, pair, stacked } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import {
  cutEnd,
  cutStart,
  left,
  projectName,
  right,
  shown,
  shownPath,
  widthOf,
  wrap,
} from '../render/text.ts'
import { breaks, money, sinceThen } from './costs.ts'
import { acts, classes, context, largest, readAgain, tools } from './session-context.ts'

/** `sinceDay`: the day given with `--since`; the page covers the whole session all the same. */
export function sessionPage(report: SessionReport, screen: Screen, sinceDay: string | null = null): string {
  const of =
    (draw: (report: SessionReport, screen: Screen) => readonly string[]): Draw =>
    (on) =>
      draw(report, on)
  const blocks = [
    head(report, screen),
    brokenOff(report, screen),
    sinceThen([report], sinceDay, screen),
    report.apiCalls + report.copiedCalls > 0
      ? tiles(report, screen)
      : [`No model response in this session: ${count(report.records, 'record')} read.`],
    context(report, screen),
    pair(of(classes), of(tools))(screen),
    pair(of(largest), of(readAgain))(screen),
    pair(of(money), of(acts))(screen),
    breaks(report, screen),
    pair(of(estimator), of(agents))(screen),
    warnings(report, screen),
  ]
  return `${stacked(blocks).join('\n')}\n`
}

// Header and key figures.

function head(report: SessionReport, screen: Screen): readonly string[] {
  const { columns, colors, symbols } = screen
  const { format } = report
  const file = cutStart(shownPath(basename(report.file)), columns - format.length - 2, symbols.more)
  const facts = [
    report.project === null ? '' : shown(projectName(report.project)),
    report.models.map(shown).join(', '),
    span(report, screen),
  ].filter((fact) => fact !== '')
  return [
    `${colors.bold(left(file, columns - format.length))}${colors.dim(right(format, format.length))}`,
    ...wrapped(facts, screen).map(colors.dim),
    ...prompt(report, screen),
  ]
}

function span({ startedAt, endedAt, durationMs }: SessionReport, { moments, symbols }: Screen): string {
  if (startedAt === null || endedAt === null || durationMs === null) return ''
  const isOneDay = moments.day(startedAt) === moments.day(endedAt)
  const end = isOneDay ? moments.time(endedAt) : moments.full(endedAt)
  return `${moments.full(startedAt)} ${symbols.dash} ${end} (${duration(durationMs)})`
}

/** Comes before the figures, because it limits what all of them cover. */
function brokenOff({ brokenOff: why }: SessionReport, screen: Screen): readonly string[] {
  if (why === null) return []
  const text = `${shown(why)}. All figures cover only the part before it`
  return wrap(text, screen.columns, `${screen.symbols.warning} `).map(screen.colors.yellow)
}

/** As many facts on a line as fit. */
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

/** Labels above values, in columns as wide as the screen allows. */
function tiles(report: SessionReport, screen: Screen): readonly string[] {
  const { colors, columns } = screen
  const all = tilesOf(report)
  const widths = all.map(({ name, value }) => Math.max(widthOf(name), widthOf(value)))
  const used = widths.reduce((sum, width) => sum + width, 0)
  const gap = Math.max(2, Math.min(8, Math.floor((columns - used) / all.length)))
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

// Quality of the estimates, subagents, and warnings about the log.

const REASONS: Readonly<Record<string, string>> = {
  boundary: 'after a compaction',
  clearing: 'after a clearing',
  restart: 'after a restart',
  rewind: 'after a rewind',
  'model-change': 'after a change of model',
  'negative-growth': 'where the context shrank',
}

function estimator({ estimator: found }: SessionReport, screen: Screen): readonly string[] {
  const { turns, medianAbsError, bias, excluded } = found
  if (turns === 0 || medianAbsError === null || bias === null) return []
  const direction = Math.abs(bias) < 0.0005 ? 'off' : bias > 0 ? 'over' : 'under'
  const apart = excluded.map(({ reason, count: number }) => `${whole(number)} ${REASONS[reason] ?? reason}`)
  const text = `${count(turns, 'turn')} predicted: median error ${tokens(medianAbsError)} tokens, ${percent(Math.abs(bias))} ${direction} in total`
  return [
    screen.colors.bold('Estimator'),
    ...wrap(text, screen.columns, '  '),
    ...(apart.length === 0
      ? []
      : wrap(`excluded: ${apart.join(', ')}`, screen.columns, '  ').map(screen.colors.dim)),
  ]
}

const MOST_AGENTS = 5

function agents(report: SessionReport, screen: Screen): readonly string[] {
  const { agents: all } = report
  if (all.length === 0) return []
  const calls = all.reduce((sum, agent) => sum + agent.apiCalls, 0)
  const dearest = all
    .toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0))
    .slice(0, MOST_AGENTS)
  const rows = dearest.map((agent) => {
    const room = Math.min(40, screen.columns - 26)
    const name = left(cutEnd(shown(agent.id), room, screen.symbols.more), room)
    return `  ${name}${right(count(agent.apiCalls, 'call'), 12)}${right(cost(agent.costUsd, 0), 10)}`
  })
  return [heading('Subagents', `${whole(all.length)}, with ${count(calls, 'call')}`, screen), ...rows]
}

const MOST_KINDS = 8

function warnings(report: SessionReport, screen: Screen): readonly string[] {
  const { symbols, colors } = screen
  const kinds = [...Map.groupBy(report.damaged, reasonOf).values()]
  const more = kinds.length - MOST_KINDS
  const lines = [
    ...kinds.slice(0, MOST_KINDS).map(damageLine),
    ...(more > 0 ? [`and ${count(more, 'more kind')} of damage (--json lists them all)`] : []),
    ...uncounted(report),
  ]
  return lines.flatMap((line) => wrap(line, screen.columns, `${symbols.warning} `).map(colors.yellow))
}

/** Groups places of damage: their reason without the ids and numbers in it. */
function reasonOf({ kind, why }: DamagedPlace): string {
  const reason = why
    .replace(/^lines \d+ to \d+: /, '')
    .replace(/(?<=\b(?:uuid|record|parent|of) )\S+(?= )|^\S+(?= (?:has|is|was) )/g, '')
    .replace(/\S*\d\S*/g, '')
  return `${kind} ${reason}`
}

/** The first of its kind, and the number of the others. */
function damageLine(places: readonly DamagedPlace[]): string {
  const [first] = places
  if (first === undefined) return ''
  const file = first.file === undefined ? '' : `${shownPath(first.file)}, `
  // A reason for several lines names them itself.
  const isNamed = first.line === 0 || first.why.startsWith('lines ')
  const place = isNamed ? file : `${file}line ${whole(first.line)}: `
  const others = places.length - 1
  return `${place}${shown(first.why)}${others > 0 ? ` (and ${whole(others)} more like it)` : ''}`
}

function uncounted({ copiedCalls, callsWithoutUsage, format }: SessionReport): readonly string[] {
  return [
    ...(copiedCalls > 0
      ? [`${count(copiedCalls, 'call')} copied from a session listed before: counted there`]
      : []),
    ...(callsWithoutUsage > 0
      ? [`${count(callsWithoutUsage, 'response')} without usage in the log: ${unknownCost(format)}`]
      : []),
  ]
}

/** Codex counts its calls itself, so a call that it did not count is not part of any total. */
function unknownCost(format: SessionReport['format']): string {
  return format === 'codex' ? 'not included in any figure; cost not known' : 'tokens and cost are not known'
}
