/**
 * Computes the positions in the tide chart, for a range of requests and a size in pixels. Pure: the page draws elements from them, the
 * picture card a string. If there are more requests than pixels, each column shows its largest request.
 */
import { formatTokenLimit } from '@tidemark/terminal/render/format-numbers'
import type { PageModelRequest, PageSessionReport } from 'tidemark/report'
import { type ChartFlag, listChartFlags } from './chart-flags.ts'
import { CONTENT_CLASSES, countClassTokens } from './content-classes.ts'

/** The range of requests that is shown. */
export interface ChartRange {
  /** Index of the first request. */
  readonly from: number
  /** Index after the last request. */
  readonly to: number
}

interface TideOptions extends ChartRange {
  readonly width: number
  readonly height: number
  /** Height of the strip above the curve that holds the flags. */
  readonly flagHeight: number
}

export interface TideLayout {
  readonly top: number
  readonly bottom: number
  /** Path data of each kind of content, in the order of `CONTENT_CLASSES`; empty for a kind without tokens. */
  readonly areas: readonly string[]
  /** Path data of the upper edge of all areas together. */
  readonly edge: string
  /** Path data of all areas together, to which cold bands are clipped. */
  readonly whole: string
  /** Where less than half of the tokens was read from the cache. */
  readonly coldBands: readonly { readonly x: number; readonly width: number }[]
  readonly flags: readonly PlacedFlag[]
  readonly tokenTicks: readonly { readonly y: number; readonly tokens: number }[]
  readonly limits: readonly {
    readonly y: number
    readonly label: string
    readonly kind: 'window' | 'compact'
  }[]
  readonly requestTicks: readonly { readonly x: number; readonly request: number }[]
  /** Tokens at the upper edge. */
  readonly most: number
}

export interface PlacedFlag extends ChartFlag {
  readonly x: number
  /** The y position of the curve at the flag. */
  readonly y: number
  /** Row of the flag's label, 0 at the top; null if there is no room for a label. */
  readonly row: number | null
}

/** A request is cold if less than this share of its tokens was read from the cache. */
const COLD_SHARE = 0.5

export function isColdRequest({ tokens, usage }: PageModelRequest): boolean {
  return tokens > 0 && usage.cacheRead < COLD_SHARE * tokens
}

export function layOutTide(report: PageSessionReport, options: TideOptions): TideLayout {
  const { width, height, from, to, flagHeight } = options
  const { requests } = report
  const most = findScale(report)
  const [top, bottom] = [flagHeight, height]
  const toX = createRequestScale({ width, from, to })
  const toY = (tokens: number): number => bottom - ((bottom - top) * Math.min(tokens, most)) / most
  const columns = groupRequests(requests, options)
  const drops = new Set(report.compactions.map(({ afterCall }) => afterCall))
  const stacks = columns.map(({ request }) => stackContent(request))
  const points = columns.map(({ index }) => ({ x: toX(index), isDrop: drops.has(index) }))
  const total = CONTENT_CLASSES.length
  const areas = CONTENT_CLASSES.map((_, level) =>
    stacks.some((stack) => (stack[level + 1] ?? 0) > (stack[level] ?? 0))
      ? drawArea(
          points,
          stacks.map((stack) => toY(stack[level + 1] ?? 0)),
          stacks.map((stack) => toY(stack[level] ?? 0)),
        )
      : '',
  )
  const edge = drawLine(
    points,
    stacks.map((stack) => toY(stack[total] ?? 0)),
  )
  const whole = drawArea(
    points,
    stacks.map((stack) => toY(stack[total] ?? 0)),
    stacks.map(() => bottom),
  )
  const flags = listChartFlags(report).filter(({ request }) => request >= from && request < to)
  return {
    top,
    bottom,
    areas,
    edge,
    whole,
    coldBands: findColdBands(requests, options, toX),
    flags: placeFlags(flags, toX, (request) => toY(requests[request]?.tokens ?? 0), width),
    tokenTicks: listTokenTicks(most).map((tokens) => ({ tokens, y: toY(tokens) })),
    limits: listLimits(report.context, most).map((limit) => ({ ...limit, y: toY(limit.tokens) })),
    requestTicks: listRequestTicks(from, to, width).map((request) => ({ request, x: toX(request) })),
    most,
  }
}

/** Lists the limits of the session (window, automatic compaction), if the chart is high enough to show them. */
function listLimits({ window, autoCompact }: PageSessionReport['context'], most: number) {
  return [
    { kind: 'window' as const, name: 'window', tokens: window },
    { kind: 'compact' as const, name: 'auto-compact', tokens: autoCompact },
  ].flatMap(({ kind, name, tokens }) =>
    tokens === null || tokens > most ? [] : [{ kind, tokens, label: `${name} ${formatTokenLimit(tokens)}` }],
  )
}

interface RequestScale extends ChartRange {
  readonly width: number
}

/** Returns a function from the index of a request to its x position: the middle of its column. */
function createRequestScale({ width, from, to }: RequestScale): (request: number) => number {
  const step = width / Math.max(1, to - from)
  return (request) => (request - from + 0.5) * step
}

/** Returns the index of the request at an x position; outside the chart, the nearest one. */
export function findRequestAt(x: number, { width, from, to }: RequestScale): number {
  const step = width / Math.max(1, to - from)
  return Math.max(from, Math.min(to - 1, from + Math.floor(x / step)))
}

/** Returns the tokens at the upper edge: the whole window if the session came near it, else what the largest request needs. */
function findScale({ requests, context }: PageSessionReport): number {
  const peak = requests.reduce((most, { tokens }) => Math.max(most, tokens), 1)
  const { window } = context
  if (window !== null && peak > 0.45 * window) return Math.max(window, peak) * 1.04
  return peak * 1.12
}

interface Column {
  readonly index: number
  readonly request: PageModelRequest
}

const COLUMN_PIXELS = 2

function groupRequests(
  requests: readonly PageModelRequest[],
  { width, from, to }: TideOptions,
): readonly Column[] {
  const size = Math.max(1, Math.ceil((to - from) / Math.max(1, Math.floor(width / COLUMN_PIXELS))))
  const columns: Column[] = []
  for (let start = from; start < Math.min(to, requests.length); start += size) {
    let largest = start
    for (let index = start; index < Math.min(start + size, to, requests.length); index += 1)
      if ((requests[index]?.tokens ?? 0) > (requests[largest]?.tokens ?? 0)) largest = index
    const request = requests[largest]
    if (request !== undefined) columns.push({ index: largest, request })
  }
  return columns
}

/** Returns the tokens below each kind of content; the last value is the sum of all kinds. */
function stackContent(request: PageModelRequest): readonly number[] {
  const stack = [0]
  for (const kind of CONTENT_CLASSES) stack.push((stack.at(-1) ?? 0) + countClassTokens(request, kind))
  return stack
}

interface CurvePoint {
  readonly x: number
  /** True for the first request after a compaction: the curve falls straight down before it. */
  readonly isDrop: boolean
}

function listVertices(points: readonly CurvePoint[], heights: readonly number[]): readonly string[] {
  const vertices: string[] = []
  for (const [index, { x, isDrop }] of points.entries()) {
    const y = heights[index] ?? 0
    const before = points[index - 1]
    if (before === undefined) vertices.push(`0 ${round(y)}`)
    else if (isDrop) {
      const middle = (before.x + x) / 2
      vertices.push(`${round(middle)} ${round(heights[index - 1] ?? 0)}`, `${round(middle)} ${round(y)}`)
    }
    vertices.push(`${round(x)} ${round(y)}`)
    if (index === points.length - 1) vertices.push(`${round(x + (points[0]?.x ?? 0))} ${round(y)}`)
  }
  return vertices
}

function drawArea(points: readonly CurvePoint[], upper: readonly number[], lower: readonly number[]): string {
  return `M${listVertices(points, upper).join('L')}L${listVertices(points, lower).toReversed().join('L')}Z`
}

function drawLine(points: readonly CurvePoint[], heights: readonly number[]): string {
  return points.length === 0 ? '' : `M${listVertices(points, heights).join('L')}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function findColdBands(
  requests: readonly PageModelRequest[],
  { from, to, width }: TideOptions,
  toX: (request: number) => number,
): TideLayout['coldBands'] {
  const step = width / Math.max(1, to - from)
  const bands: { x: number; width: number }[] = []
  for (let index = from; index < Math.min(to, requests.length); index += 1) {
    const request = requests[index]
    if (request === undefined || !isColdRequest(request)) continue
    const x = toX(index) - step / 2
    const last = bands.at(-1)
    // Neighbouring cold requests, also those in the same pixel, share one band: of ten thousand requests, thousands may be cold.
    if (last !== undefined && x - (last.x + last.width) < 1) last.width = x + step - last.x
    else bands.push({ x, width: Math.max(step, 1.5) })
  }
  return bands
}

const LABEL_PIXELS = 62
const LABEL_ROWS = 3

/** Places the labels of flags, the most expensive first, each in the first row with room. */
function placeFlags(
  flags: readonly ChartFlag[],
  toX: (request: number) => number,
  toY: (request: number) => number,
  width: number,
): readonly PlacedFlag[] {
  const rows: number[][] = Array.from({ length: LABEL_ROWS }, () => [])
  const byDollars = flags.toSorted((one, other) => (other.usd ?? 0) - (one.usd ?? 0))
  const rowOf = new Map<ChartFlag, number>()
  for (const flag of byDollars) {
    const x = toX(flag.request)
    const row = rows.findIndex((taken) => taken.every((other) => Math.abs(other - x) >= LABEL_PIXELS))
    if (row === -1 || x < 0 || x > width) continue
    rows[row]?.push(x)
    rowOf.set(flag, row)
  }
  return flags.map((flag) => ({
    ...flag,
    x: toX(flag.request),
    y: toY(flag.request),
    row: rowOf.get(flag) ?? null,
  }))
}

/** Lists round numbers of tokens up to `most`, about four, for grid lines. */
export function listTokenTicks(most: number): readonly number[] {
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? 10 * power
  const ticks: number[] = []
  for (let tokens = step; tokens < most * 0.97; tokens += step) ticks.push(tokens)
  return ticks
}

/** Lists the indexes of the requests that are numbered below a chart: round numbers, as many as the width has room for. */
export function listRequestTicks(from: number, to: number, width: number): readonly number[] {
  const wanted = Math.max(3, Math.floor(width / 90))
  const rough = Math.max(1, (to - from) / wanted)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(
    1,
    Math.round([1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough),
  )
  const marks: number[] = []
  for (let number = Math.ceil((from + 1) / step) * step; number <= to; number += step) marks.push(number - 1)
  return marks
}
