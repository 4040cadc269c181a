/** The tip beside the pointer about the request under it. Screen readers get the same text as the value of the slider. */
import { formatDollars, formatPercent, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { useMemo } from 'preact/hooks'
import type { PageSessionReport } from 'tidemark/report'
import { listChartFlags } from '../chart/chart-flags.ts'
import { CONTENT_CLASSES, countClassTokens } from '../chart/content-classes.ts'
import { formatTimeOfDay } from './display-names.ts'
import { FlagLine } from './flag-line.tsx'

interface RequestTipProps {
  readonly report: PageSessionReport
  readonly index: number
  /** Position of the request in the chart, and the width of the chart. */
  readonly x: number
  readonly width: number
  readonly canOpen: boolean
}

const LARGEST_CLASSES = 4
const DISTANCE = 14

export function RequestTooltip({ report, index, x, width, canOpen }: RequestTipProps) {
  const flags = useMemo(() => listChartFlags(report), [report])
  const request = report.requests[index]
  if (request === undefined) return null
  const { at, tokens, usage, costUsd } = request
  const classes = CONTENT_CLASSES.map((kind) => ({ ...kind, part: countClassTokens(request, kind) }))
    .filter(({ part }) => part > 0)
    .toSorted((one, other) => other.part - one.part)
    .slice(0, LARGEST_CLASSES)
  // The tip is moved by a transform, so that the browser need not repaint what is below it.
  const place =
    x > width / 2 ? `translateX(${x - DISTANCE}px) translateX(-100%)` : `translateX(${x + DISTANCE}px)`
  return (
    <div class="tip" aria-hidden="true" style={{ transform: place }}>
      <p>
        <b>Request {index + 1}</b> <small>{formatTimeOfDay(at)}</small>
      </p>
      <p>
        <b>{costUsd === null ? '$?' : formatDollars(costUsd)}</b> · {formatTokens(tokens)} tokens,{' '}
        {formatPercent(usage.cacheRead / Math.max(1, tokens))} from the cache
      </p>
      {flags
        .filter((flag) => flag.request === index)
        .map((flag) => (
          <FlagLine key={`${flag.kind}${flag.title}`} flag={flag} />
        ))}
      {classes.map(({ key, label, part }) => (
        <p key={key} class="tip-class">
          <i class={`swatch class-${key}`} />
          <span>{label}</span>
          <span class="number">{formatTokens(part)}</span>
        </p>
      ))}
      <small>{canOpen ? 'Click: its exact content. ' : ''}Drag: zoom.</small>
    </div>
  )
}
