/** A session on one page. */
import type { SessionReport } from 'tidemark'
import { limit } from '../figures.ts'
import { type Draw, heading, pair, stacked } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { acts, marksOf } from './acts.ts'
import { breaks } from './breaks.ts'
import { classes, largest, readAgain, tools } from './contents.ts'
import { brokenOff, head, nothingSent, tiles } from './head.ts'
import { money } from './money.ts'
import { plot } from './plot.ts'
import { agents, estimator, warnings } from './remarks.ts'
import { rowOf, scaleFor } from './scale.ts'
import { sinceThen } from './since-then.ts'

/** `sinceDay`: where only what was used from that day on was asked for; the page is of the whole session all the same. */
export function sessionPage(report: SessionReport, screen: Screen, sinceDay: string | null = null): string {
  const of =
    (draw: (report: SessionReport, screen: Screen) => readonly string[]): Draw =>
    (on) =>
      draw(report, on)
  const blocks = [
    head(report, screen),
    brokenOff(report, screen),
    sinceThen([report], sinceDay, screen),
    report.apiCalls + report.copiedCalls > 0 ? tiles(report, screen) : nothingSent(report),
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

function context(report: SessionReport, screen: Screen): readonly string[] {
  const drawn = plot(report.context, marksOf(report), screen)
  return drawn.length === 0 ? [] : [heading('Context over time', legend(report, screen), screen), ...drawn]
}

function legend({ context: curve, compactions, clearings }: SessionReport, { symbols }: Screen): string {
  const scale = scaleFor(curve)
  const line = (value: number, name: string, symbol: string): string =>
    `${rowOf(value, scale) === null ? '' : `${symbol} `}${name} ${limit(value)}`
  return [
    curve.window === null ? 'window not known' : line(curve.window, 'window', symbols.edge),
    ...(curve.autoCompact === null ? [] : [line(curve.autoCompact, 'auto-compact', symbols.rule)]),
    ...(compactions.length === 0 ? [] : [`${symbols.compacted} compacted`]),
    ...(clearings.length === 0 ? [] : [`${symbols.cleared} cleared`]),
  ].join('  ')
}
