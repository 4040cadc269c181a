/** The tab Tide: the chart of what filled the context at each request, and the details of the request under the cursor. */
import { formatDollars, formatPercent, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { PageSessionReport, SessionPageData } from 'tidemark/report'
import { listChartFlags } from '../chart/chart-flags.ts'
import { CONTENT_CLASSES, countClassTokens } from '../chart/content-classes.ts'
import { type ChartRange, isColdRequest } from '../chart/tide-layout.ts'
import type { PageSource } from '../data/page-source.ts'
import { formatDateTimeSeconds } from './display-names.ts'
import { FlagLine, FlagSign } from './flag-line.tsx'
import { Notice } from './notice.tsx'
import { RequestPanel } from './request-panel.tsx'
import { RequestTable } from './request-table.tsx'
import { TideChart } from './tide-chart.tsx'

interface TideViewProps {
  readonly source: PageSource
  readonly page: SessionPageData
  /** Index of the request at which the cursor starts; null for the newest. */
  readonly request: number | null
}

export function TideView({ source, page, request }: TideViewProps) {
  const { report, id } = page
  const count = report.requests.length
  const [range, setRange] = useState<ChartRange | null>(null)
  const [cursor, setCursor] = useState<number | null>(request === null || request >= count ? null : request)
  const [opened, setOpened] = useState<number | null>(null)
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    // A user who follows a link to a request wants to see the chart and the card below it.
    if (request !== null) section.current?.scrollIntoView()
  }, [request])
  const open = useCallback((request: number) => setOpened(request), [])
  if (count === 0) return <Notice text="This log has no request with a size." />
  const shown = range === null ? { from: 0, to: count } : { from: range.from, to: Math.min(range.to, count) }
  const at = Math.min(cursor ?? count - 1, count - 1)
  return (
    <section aria-label="Tide chart" ref={section}>
      <TideChart
        report={report}
        range={shown}
        cursor={cursor}
        onCursor={setCursor}
        onRange={setRange}
        onOpen={source.isExported ? null : open}
      />
      <Legend report={report} />
      <RangeBar range={shown} count={count} onRange={setRange} />
      <RequestCard id={id} report={report} index={at} onOpen={source.isExported ? null : open} />
      {opened === null ? null : (
        <RequestPanel source={source} page={page} index={opened} onClose={() => setOpened(null)} />
      )}
      <RequestTable report={report} onOpen={source.isExported ? null : open} />
    </section>
  )
}

const FLAG_KINDS = [
  { kind: 'break', label: 'Cache break' },
  { kind: 'compaction', label: 'Compaction' },
  { kind: 'clearing', label: 'Clearing' },
] as const

function Legend({ report }: { readonly report: PageSessionReport }) {
  const used = useMemo(
    () =>
      CONTENT_CLASSES.filter((kind) =>
        report.requests.some((request) => countClassTokens(request, kind) > 0),
      ),
    [report],
  )
  const flags = useMemo(() => new Set(listChartFlags(report).map(({ kind }) => kind)), [report])
  const hasCold = useMemo(() => report.requests.some(isColdRequest), [report])
  return (
    <ul class="legend" aria-label="Legend">
      {used.map(({ key, label }) => (
        <li key={key}>
          <i class={`swatch class-${key}`} />
          {label}
        </li>
      ))}
      {hasCold ? (
        <li>
          <i class="swatch cold" />
          Cache cold
        </li>
      ) : null}
      {report.requests.some(({ costUsd }) => costUsd !== null) ? (
        <li>
          <i class="swatch cost-all" />
          <i class="swatch cost-uncached" />
          Dollars of a request; red: for what was not in the cache
        </li>
      ) : null}
      {FLAG_KINDS.filter(({ kind }) => flags.has(kind)).map(({ kind, label }) => (
        <li key={kind} class={`flag-${kind}`}>
          <FlagSign kind={kind} /> {label}
        </li>
      ))}
    </ul>
  )
}

interface RangeBarProps {
  readonly range: ChartRange
  readonly count: number
  readonly onRange: (range: ChartRange | null) => void
}

/** Buttons for selecting a range, which can also be selected by dragging over the chart. */
function RangeBar({ range, count, onRange }: RangeBarProps) {
  const { from, to } = range
  const size = to - from
  const zoom = (factor: number): void => {
    const next = Math.max(8, Math.min(count, Math.round(size * factor)))
    const start = Math.max(0, Math.min(count - next, Math.round((from + to - next) / 2)))
    onRange(next >= count ? null : { from: start, to: start + next })
  }
  const move = (share: number): void => {
    const start = Math.max(0, Math.min(count - size, from + Math.round(size * share)))
    onRange({ from: start, to: start + size })
  }
  const isWhole = size >= count
  return (
    <div class="range">
      <button type="button" disabled={size <= 8} onClick={() => zoom(0.5)}>
        Zoom in
      </button>
      <button type="button" disabled={isWhole} onClick={() => zoom(2)}>
        Zoom out
      </button>
      <button type="button" disabled={from === 0} onClick={() => move(-0.5)}>
        Earlier
      </button>
      <button type="button" disabled={to >= count} onClick={() => move(0.5)}>
        Later
      </button>
      <button type="button" disabled={isWhole} onClick={() => onRange(null)}>
        All
      </button>
      <span role="status">
        Requests {from + 1} to {to} of {count}
      </span>
    </div>
  )
}

interface RequestCardProps {
  readonly id: string
  readonly report: PageSessionReport
  readonly index: number
  readonly onOpen: ((request: number) => void) | null
}

/** Details of the request under the cursor. */
function RequestCard({ id, report, index, onOpen }: RequestCardProps) {
  const request = report.requests[index]
  const flags = useMemo(() => listChartFlags(report), [report])
  if (request === undefined) return null
  const { tokens, usage, outputTokens, costUsd, uncachedUsd } = request
  const own = flags.filter((flag) => flag.request === index)
  return (
    <div class="request-card">
      <h2>
        Request {index + 1}{' '}
        <small>
          {formatDateTimeSeconds(request.at)} · {request.model} · line {request.line}
        </small>
      </h2>
      <p>
        <b>{formatTokens(tokens)}</b> tokens, {formatPercent(usage.cacheRead / Math.max(1, tokens))} from the
        cache, {formatTokens(outputTokens)} out, <b>{costUsd === null ? '$?' : formatDollars(costUsd)}</b>
        {uncachedUsd === null || uncachedUsd < 0.005
          ? null
          : `, ${formatDollars(uncachedUsd)} of it for what was not in the cache`}
      </p>
      {own.map((flag) => (
        <FlagLine key={`${flag.kind}${flag.title}`} flag={flag} id={id} />
      ))}
      <div class="bars">
        {CONTENT_CLASSES.map((kind) => ({ ...kind, part: countClassTokens(request, kind) }))
          .filter(({ part }) => part > 0)
          .toReversed()
          .map(({ key, label, part }) => (
            <div key={key}>
              <span>{label}</span>
              <ShareOfRequest className={`class-${key}`} share={part / tokens} />
              <span class="number">{formatTokens(part)}</span>
            </div>
          ))}
      </div>
      {onOpen === null ? null : (
        <button type="button" class="main" onClick={() => onOpen(index)}>
          Open its exact content
        </button>
      )}
    </div>
  )
}

function ShareOfRequest({ className, share }: { readonly className: string; readonly share: number }) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class={className} width={Math.max(0.6, 100 * share)} height="8" />
    </svg>
  )
}
