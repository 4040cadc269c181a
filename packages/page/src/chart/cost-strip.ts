/** The bars of the strip below the tide chart: dollars of each request, or of the most expensive one in a column. */
import type { PageModelRequest } from 'tidemark/report'

interface StripOptions {
  readonly width: number
  readonly height: number
  readonly from: number
  readonly to: number
}

interface CostStripLayout {
  /** Path data of all bars. */
  readonly all: string
  /** Path data of the parts of the bars for tokens that were not read from the cache. */
  readonly uncached: string
  /** Dollars of the highest bar. */
  readonly most: number
}

const BAR_PIXELS = 2

export function layOutCosts(
  requests: readonly PageModelRequest[],
  { width, height, from, to }: StripOptions,
): CostStripLayout {
  const shown = requests.slice(from, to)
  const most = shown.reduce((highest, { costUsd }) => Math.max(highest, costUsd ?? 0), 0)
  if (most === 0 || width === 0) return { all: '', uncached: '', most: 0 }
  const size = Math.max(1, Math.ceil(shown.length / Math.max(1, Math.floor(width / BAR_PIXELS))))
  const step = width / shown.length
  let all = ''
  let uncached = ''
  for (let start = 0; start < shown.length; start += size) {
    const group = shown.slice(start, start + size)
    const highest = group.reduce((one, other) => ((other.costUsd ?? 0) > (one.costUsd ?? 0) ? other : one))
    const bar = (usd: number): string => {
      const tall = Math.max(0, (usd / most) * (height - 2))
      const wide = Math.max(0.8, step * group.length - (step > 3 ? 1 : 0))
      return `M${(start * step).toFixed(1)} ${height}v${-tall.toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}z`
    }
    all += bar(highest.costUsd ?? 0)
    if ((highest.uncachedUsd ?? 0) > 0) uncached += bar(highest.uncachedUsd ?? 0)
  }
  return { all, uncached, most }
}
