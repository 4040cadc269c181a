/**
 * Draws the tide chart and a strip of dollars below it. The curve is drawn again only when the report, the range or the width changes.
 * Cursor and tip are separate layers that move with the pointer. Keyboard: arrows, page keys, Enter, Escape.
 */
import { formatDollars, formatPercent, formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { RefObject, TargetedPointerEvent } from 'preact'
import { memo } from 'preact/compat'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { PageSessionReport } from 'tidemark/report'
import { FLAG_SIGN_PATHS, formatFlagLabel } from '../chart/chart-flags.ts'
import { CONTENT_CLASSES } from '../chart/content-classes.ts'
import { layOutCosts } from '../chart/cost-strip.ts'
import {
  type ChartRange,
  findRequestAt,
  layOutTide,
  type PlacedFlag,
  type TideLayout,
} from '../chart/tide-layout.ts'
import { RequestTooltip } from './request-tooltip.tsx'

interface TideChartProps {
  readonly report: PageSessionReport
  readonly range: ChartRange
  /** Index of the request under the cursor; null if it was not moved yet. */
  readonly cursor: number | null
  readonly onCursor: (request: number | null) => void
  /** Called with the range that the user chose; null for all requests. */
  readonly onRange: (range: ChartRange | null) => void
  /** Null if the content of requests cannot be opened. */
  readonly onOpen: ((request: number) => void) | null
}

const FLAG_HEIGHT = 62
const COST_HEIGHT = 46
const AXIS_HEIGHT = 20
/** Height of the line of text above the strip of dollars. */
const COST_TITLE_HEIGHT = 16

export function TideChart({ report, range, cursor, onCursor, onRange, onOpen }: TideChartProps) {
  const [box, width] = useElementWidth()
  const { from, to } = range
  const at = cursor ?? to - 1
  const height = width < 600 ? 280 : 400
  const place = { width, from, to }
  // The tip is shown for a cursor that pointer or arrow keys have moved. For a cursor set by a link, there is the card below the chart.
  const [hasTip, setHasTip] = useState(false)
  const requestAt = (event: TargetedPointerEvent<HTMLDivElement>): number =>
    findRequestAt(event.clientX - event.currentTarget.getBoundingClientRect().left, place)
  const step = width / Math.max(1, to - from)
  const { dragFrom, handlers } = useDrag({ requestAt, step, onRange, onOpen })
  const x = cursor === null ? null : (cursor - from + 0.5) * step
  const dragX = dragFrom === null ? null : (dragFrom - from + 0.5) * step
  return (
    <div
      class="chart"
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label="Context by request"
      aria-valuemin={from + 1}
      aria-valuemax={to}
      aria-valuenow={at + 1}
      aria-valuetext={describeRequest(report, at)}
      onPointerMove={(event) => {
        onCursor(requestAt(event))
        setHasTip(true)
      }}
      onPointerLeave={() => setHasTip(false)}
      onBlur={() => setHasTip(false)}
      {...handlers}
      onKeyDown={(event) => {
        const next = moveCursor(event.key, at, range)
        if (event.key === 'Enter') onOpen?.(at)
        else if (next !== null) {
          onCursor(next)
          setHasTip(true)
        } else if (event.key === 'Escape') {
          setHasTip(false)
          onRange(null)
        } else return
        event.preventDefault()
      }}
    >
      <Drawing report={report} from={from} to={to} width={width} height={height} />
      {x === null ? null : <Cursor x={x} dragX={dragX} height={height} />}
      {hasTip && cursor !== null && x !== null && dragFrom === null ? (
        <RequestTooltip report={report} index={cursor} x={x} width={width} canOpen={onOpen !== null} />
      ) : null}
    </div>
  )
}

interface DragOptions extends Pick<TideChartProps, 'onRange' | 'onOpen'> {
  readonly requestAt: (event: TargetedPointerEvent<HTMLDivElement>) => number
  /** Pixels of one request. */
  readonly step: number
}

/** A drag with the main button chooses a range, a click opens a request. */
function useDrag({ requestAt, step, onRange, onOpen }: DragOptions) {
  const [dragFrom, setDragFrom] = useState<number | null>(null)
  const handlers = {
    onPointerDown(event: TargetedPointerEvent<HTMLDivElement>) {
      if (event.button !== 0) return
      // A drag may end outside the chart.
      event.currentTarget.setPointerCapture(event.pointerId)
      setDragFrom(requestAt(event))
    },
    onPointerCancel: () => setDragFrom(null),
    onPointerUp(event: TargetedPointerEvent<HTMLDivElement>) {
      if (dragFrom === null) return
      const end = requestAt(event)
      setDragFrom(null)
      if (Math.abs(end - dragFrom) * step > 12 && Math.abs(end - dragFrom) >= 4)
        onRange({ from: Math.min(dragFrom, end), to: Math.max(dragFrom, end) + 1 })
      else onOpen?.(end)
    },
  }
  return { dragFrom, handlers }
}

/** Drawn again when the report, the range or the width changes, but not when the cursor moves. */
const Drawing = memo(function Drawing({ report, from, to, width, height }: CurveProps) {
  const stripTop = height + AXIS_HEIGHT + COST_TITLE_HEIGHT
  return (
    <svg width={width} height={stripTop + COST_HEIGHT} aria-hidden="true">
      <Curve report={report} from={from} to={to} width={width} height={height} />
      <CostStrip report={report} from={from} to={to} width={width} top={stripTop} />
    </svg>
  )
})

interface CursorProps {
  readonly x: number
  /** Position at which a drag began; null without a drag. */
  readonly dragX: number | null
  readonly height: number
}

/** A separate layer above the drawing, which the browser can move without repainting the drawing. */
function Cursor({ x, dragX, height }: CursorProps) {
  return (
    <>
      {dragX === null ? null : (
        <div
          class="drag"
          style={{
            left: `${Math.min(x, dragX)}px`,
            width: `${Math.abs(x - dragX)}px`,
            top: `${FLAG_HEIGHT}px`,
            height: `${height - FLAG_HEIGHT}px`,
          }}
        />
      )}
      <div class="cursor" style={{ top: `${FLAG_HEIGHT}px`, transform: `translateX(${x}px)` }} />
    </>
  )
}

/** Returns the position to which a key moves the cursor; null for other keys. */
function moveCursor(key: string, cursor: number, { from, to }: ChartRange): number | null {
  const page = Math.max(1, Math.round((to - from) / 10))
  const moves: Readonly<Record<string, number>> = {
    ArrowLeft: cursor - 1,
    ArrowRight: cursor + 1,
    PageDown: cursor - page,
    PageUp: cursor + page,
    Home: from,
    End: to - 1,
  }
  const next = moves[key]
  return next === undefined ? null : Math.max(from, Math.min(to - 1, next))
}

function describeRequest({ requests }: PageSessionReport, index: number): string {
  const request = requests[index]
  if (request === undefined) return ''
  const { tokens, usage, costUsd } = request
  const cost = costUsd === null ? 'price unknown' : formatDollars(costUsd)
  return `Request ${index + 1}: ${formatTokens(tokens)} tokens, ${formatPercent(usage.cacheRead / Math.max(1, tokens))} from the cache, ${cost}`
}

/** Returns a reference for an element, and its width in pixels: 0 at first, then updated when it changes. */
export function useElementWidth(): readonly [RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [box, width]
}

interface CurveProps {
  readonly report: PageSessionReport
  readonly from: number
  readonly to: number
  readonly width: number
  readonly height: number
}

function Curve({ report, from, to, width, height }: CurveProps) {
  const layout = useMemo(
    () => layOutTide(report, { width, height, from, to, flagHeight: FLAG_HEIGHT }),
    [report, from, to, width, height],
  )
  if (width === 0) return null
  return (
    <g>
      <defs>
        <pattern id="cold" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="cold-ground" width="6" height="6" />
          <rect class="cold-stripe" width="2" height="6" />
        </pattern>
        <clipPath id="whole">
          <path d={layout.whole} />
        </clipPath>
      </defs>
      {layout.tokenTicks.map(({ y, tokens }) => (
        <line key={tokens} class="grid" x1={0} x2={width} y1={y} y2={y} />
      ))}
      {layout.areas.map((path, index) =>
        path === '' ? null : (
          <path key={CONTENT_CLASSES[index]?.key} class={`class-${CONTENT_CLASSES[index]?.key}`} d={path} />
        ),
      )}
      <path class="edge" d={layout.edge} />
      <g clip-path="url(#whole)">
        {layout.coldBands.map(({ x, width: wide }) => (
          <rect
            key={x}
            class="cold-band"
            x={x}
            y={layout.top}
            width={wide}
            height={layout.bottom - layout.top}
          />
        ))}
      </g>
      <Axes layout={layout} width={width} />
      {layout.flags.map((flag) => (
        <Flag key={`${flag.kind}${flag.request}${flag.title}`} flag={flag} />
      ))}
      {layout.flags.map((flag) => (
        <FlagLabel key={`${flag.kind}${flag.request}${flag.title}`} flag={flag} width={width} />
      ))}
    </g>
  )
}

function Axes({ layout, width }: { readonly layout: TideLayout; readonly width: number }) {
  return (
    <g class="axes">
      {layout.tokenTicks.map(({ y, tokens }) => (
        <text key={tokens} x={4} y={y - 4}>
          {formatTokens(tokens).replace('.0', '')}
        </text>
      ))}
      {layout.limits.map(({ y, label, kind }) => (
        <g key={kind} class={`limit-${kind}`}>
          <line x1={0} x2={width} y1={y} y2={y} />
          <text x={width - 4} y={y - 4} text-anchor="end">
            {label}
          </text>
        </g>
      ))}
      {layout.requestTicks.map(({ x, request }) => (
        <text key={request} x={x} y={layout.bottom + 14} text-anchor={x > width - 16 ? 'end' : 'middle'}>
          {request + 1}
        </text>
      ))}
    </g>
  )
}

const LABEL_HALF = 30

function nameFlag({ kind, isUndone }: PlacedFlag): string {
  return `flag flag-${kind}${isUndone ? ' undone' : ''}`
}

function placeLabel(row: number): number {
  return row * 20 + 14
}

function Flag({ flag }: { readonly flag: PlacedFlag }) {
  const { x, y, row, kind, title, detail } = flag
  return (
    <g class={nameFlag(flag)}>
      <title>{`${title}: ${detail}`}</title>
      <line
        x1={x}
        x2={x}
        y1={row === null ? FLAG_HEIGHT - 4 : placeLabel(row) + 4}
        y2={Math.max(y, FLAG_HEIGHT)}
      />
      <path d={FLAG_SIGN_PATHS[kind]} transform={`translate(${x} ${Math.max(y, FLAG_HEIGHT)})`} />
    </g>
  )
}

/** The dollars of a flag, above the lines of its neighbours. */
function FlagLabel({ flag, width }: { readonly flag: PlacedFlag; readonly width: number }) {
  const { x, row } = flag
  if (row === null) return null
  const anchor = x < LABEL_HALF ? 'start' : x > width - LABEL_HALF ? 'end' : 'middle'
  return (
    <g class={nameFlag(flag)}>
      <text x={x} y={placeLabel(row)} text-anchor={anchor}>
        {formatFlagLabel(flag)}
      </text>
    </g>
  )
}

interface CostStripProps extends Omit<CurveProps, 'height'> {
  readonly top: number
}

/** Draws the cost of each request, and the part of it for tokens that were not in the cache. */
function CostStrip({ report, from, to, width, top }: CostStripProps) {
  const strip = useMemo(
    () => layOutCosts(report.requests, { width, height: COST_HEIGHT, from, to }),
    [report, from, to, width],
  )
  return (
    <g class="axes" transform={`translate(0 ${top})`}>
      <path class="cost-all" d={strip.all} />
      <path class="cost-uncached" d={strip.uncached} />
      <text x={4} y={-4}>
        {strip.most === 0 ? '' : `Dollars of each request, up to ${formatDollars(strip.most)}`}
      </text>
    </g>
  )
}
