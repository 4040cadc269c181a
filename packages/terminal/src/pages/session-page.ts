/** Renders the page of one session: header, key figures, context, costs, rewrites, cache breaks, subagents, warnings. */
import { basename } from 'node:path'
import type { SessionReport } from 'tidemark/logs'
import {
  formatCost,
  formatCount,
  formatDuration,
  formatInteger,
  formatPercent,
  formatTokenLimit,
  formatTokens,
  formatWholePercent,
} from '../render/format-numbers.ts'
import { type BlockRenderer, placeSideBySide, renderHeading, stackBlocks } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import {
  alignLeft,
  alignRight,
  cutTextEnd,
  cutTextStart,
  formatPath,
  formatProjectName,
  measureTextWidth,
  toSafeLine,
  wrapText,
} from '../render/text.ts'
import {
  renderContextCurve,
  renderLargestItems,
  renderRepeatedReads,
  renderTokenClasses,
  renderToolUsage,
} from './session-context.ts'
import { renderCacheBreaks, renderCosts, renderRewrites, renderSpentSince } from './session-costs.ts'

/**
 * Renders the page of one session. `sinceDay` is the day of `--since`; the page shows the spending since then in
 * addition to the whole session.
 */
export function renderSessionPage(
  report: SessionReport,
  screen: Screen,
  sinceDay: string | null = null,
): string {
  const of =
    (draw: (report: SessionReport, screen: Screen) => readonly string[]): BlockRenderer =>
    (on) =>
      draw(report, on)
  const blocks = [
    renderHeader(report, screen),
    renderTruncationWarning(report, screen),
    renderSpentSince([report], sinceDay, screen),
    report.apiCalls + report.copiedCalls > 0
      ? renderKeyFigures(report, screen)
      : [`No model response in this session: ${formatCount(report.records, 'record')} read.`],
    renderContextCurve(report, screen),
    placeSideBySide(of(renderTokenClasses), of(renderToolUsage))(screen),
    placeSideBySide(of(renderLargestItems), of(renderRepeatedReads))(screen),
    placeSideBySide(of(renderCosts), of(renderRewrites))(screen),
    renderCacheBreaks(report, screen),
    of(renderAgents)(screen),
    renderWarnings(report, screen),
  ]
  return `${stackBlocks(blocks).join('\n')}\n`
}

// The header and the key figures of the page.

function renderHeader(report: SessionReport, screen: Screen): readonly string[] {
  const { columns, colors, symbols } = screen
  const { format } = report
  const file = cutTextStart(formatPath(basename(report.file)), columns - format.length - 2, symbols.more)
  const facts = [
    report.project === null ? '' : toSafeLine(formatProjectName(report.project)),
    report.models.map(toSafeLine).join(', '),
    formatTimeSpan(report, screen),
  ].filter((fact) => fact !== '')
  return [
    `${colors.bold(alignLeft(file, columns - format.length))}${colors.dim(alignRight(format, format.length))}`,
    ...wrapFacts(facts, screen).map(colors.dim),
    ...renderFirstPrompt(report, screen),
  ]
}

function formatTimeSpan(
  { startedAt, endedAt, durationMs }: SessionReport,
  { time, symbols }: Screen,
): string {
  if (startedAt === null || endedAt === null || durationMs === null) return ''
  const isOneDay = time.day(startedAt) === time.day(endedAt)
  const end = isOneDay ? time.time(endedAt) : time.full(endedAt)
  return `${time.full(startedAt)} ${symbols.dash} ${end} (${formatDuration(durationMs)})`
}

/**
 * Renders a warning that the log is incomplete. The page begins with it, because all figures are then incomplete too.
 */
function renderTruncationWarning({ brokenOff }: SessionReport, screen: Screen): readonly string[] {
  if (brokenOff === null) return []
  const text = `${toSafeLine(brokenOff)}. All figures cover only the part before it`
  return wrapText(text, screen.columns, `${screen.symbols.warning} `).map(screen.colors.yellow)
}

/** Joins short facts to lines, with as many facts on a line as fit the screen. */
function wrapFacts(facts: readonly string[], { columns, symbols }: Screen): readonly string[] {
  const between = ` ${symbols.dot} `
  const lines: string[] = []
  for (const fact of facts) {
    const last = lines.at(-1)
    const joined = last === undefined ? fact : `${last}${between}${fact}`
    if (last === undefined || measureTextWidth(joined) > columns)
      lines.push(cutTextEnd(fact, columns, symbols.more))
    else lines[lines.length - 1] = joined
  }
  return lines
}

function renderFirstPrompt(
  { firstPrompt }: SessionReport,
  { columns, symbols, colors }: Screen,
): readonly string[] {
  if (firstPrompt === null) return []
  return [colors.italic(`"${cutTextEnd(toSafeLine(firstPrompt), columns - 2, symbols.more)}"`)]
}

interface KeyFigure {
  readonly name: string
  readonly value: string
}

/** Renders key figures in columns, with labels above values. */
function renderKeyFigures(report: SessionReport, screen: Screen): readonly string[] {
  const { colors, columns } = screen
  const all = keyFigures(report)
  const widths = all.map(({ name, value }) => Math.max(measureTextWidth(name), measureTextWidth(value)))
  const used = widths.reduce((sum, width) => sum + width, 0)
  const gap = Math.max(2, Math.min(8, Math.floor((columns - used) / all.length)))
  const row = (text: (tile: KeyFigure) => string): string =>
    all
      .map((tile, index) => alignLeft(text(tile), (widths[index] ?? 0) + gap))
      .join('')
      .trimEnd()
  return [colors.dim(row(({ name }) => name)), colors.bold(row(({ value }) => value))]
}

function keyFigures(report: SessionReport): readonly KeyFigure[] {
  const { apiCalls, toolCalls, userMessages, hitRate } = report
  return [
    { name: 'peak context', value: formatPeak(report) },
    { name: 'cost', value: formatCost(report.costUsd, report.money.pricedUsd) },
    { name: 'cache hits', value: hitRate === null ? '?' : formatPercent(hitRate) },
    { name: 'calls', value: formatInteger(apiCalls) },
    { name: 'tools', value: formatInteger(toolCalls) },
    { name: 'prompts', value: formatInteger(userMessages) },
  ]
}

function formatPeak({ peakContextTokens, context: { window } }: SessionReport): string {
  const used = formatTokens(peakContextTokens)
  if (window === null) return used
  // A peak above the window was reached while the session had another window.
  if (peakContextTokens > window) return `${used} (window now ${formatTokenLimit(window)})`
  return `${used} of ${formatTokenLimit(window)} (${formatWholePercent(peakContextTokens / window)})`
}

// Subagents, and warnings about the log.

const MAX_AGENTS = 5

function renderAgents(report: SessionReport, screen: Screen): readonly string[] {
  const { agents } = report
  if (agents.length === 0) return []
  const calls = agents.reduce((sum, agent) => sum + agent.apiCalls, 0)
  const dearest = agents
    .toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0))
    .slice(0, MAX_AGENTS)
  const rows = dearest.map((agent) => {
    const room = Math.min(40, screen.columns - 26)
    const name = alignLeft(cutTextEnd(toSafeLine(agent.id), room, screen.symbols.more), room)
    return `  ${name}${alignRight(formatCount(agent.apiCalls, 'call'), 12)}${alignRight(formatCost(agent.costUsd, 0), 10)}`
  })
  return [
    renderHeading('Subagents', `${formatInteger(agents.length)}, with ${formatCount(calls, 'call')}`, screen),
    ...rows,
  ]
}

const MAX_DAMAGE_KINDS = 8

function renderWarnings(report: SessionReport, screen: Screen): readonly string[] {
  const { symbols, colors } = screen
  const kinds = [...Map.groupBy(report.damaged, damageGroup).values()]
  const more = kinds.length - MAX_DAMAGE_KINDS
  const lines = [
    ...kinds.slice(0, MAX_DAMAGE_KINDS).map(formatDamage),
    ...(more > 0 ? [`and ${formatCount(more, 'more kind')} of damage (--json lists them all)`] : []),
    ...describeUncounted(report),
  ]
  return lines.flatMap((line) => wrapText(line, screen.columns, `${symbols.warning} `).map(colors.yellow))
}

/** Returns a key for grouping similar damage of a log: the reason of the damage without ids and numbers. */
function damageGroup({ kind, why }: SessionReport['damaged'][number]): string {
  const reason = why
    .replace(/^lines \d+ to \d+: /, '')
    .replace(/(?<=\b(?:uuid|record|parent|of) )\S+(?= )|^\S+(?= (?:has|is|was) )/g, '')
    .replace(/\S*\d\S*/g, '')
  return `${kind} ${reason}`
}

/** Describes the first damaged place in the log of a group of similar ones, and how many more there are. */
function formatDamage(places: SessionReport['damaged']): string {
  const [first] = places
  if (first === undefined) return ''
  const file = first.file === undefined ? '' : `${formatPath(first.file)}, `
  // If the damage covers several lines, its reason already names the lines.
  const isNamed = first.line === 0 || first.why.startsWith('lines ')
  const place = isNamed ? file : `${file}line ${formatInteger(first.line)}: `
  const others = places.length - 1
  return `${place}${toSafeLine(first.why)}${others > 0 ? ` (and ${formatInteger(others)} more like it)` : ''}`
}

function describeUncounted(report: SessionReport): readonly string[] {
  const { copiedCalls, callsWithoutUsage, format, copiedFrom } = report
  return [
    ...(copiedCalls > 0
      ? [
          `${formatCount(copiedCalls, 'call')} that another session has, too: counted there. Calls, tools, prompts, cost and cache hits are of this session alone; the context is of the whole conversation`,
        ]
      : []),
    ...(callsWithoutUsage > 0
      ? [
          `${formatCount(callsWithoutUsage, 'response')} without usage in the log: ${describeUnknownCost(copiedFrom ?? format)}`,
        ]
      : []),
  ]
}

/**
 * Describes what is unknown about model calls without usage. The figures of Codex sessions come from Codex's own
 * totals, which do not include these calls.
 */
function describeUnknownCost(format: SessionReport['format']): string {
  return format === 'codex' ? 'not included in any figure; cost not known' : 'tokens and cost are not known'
}
