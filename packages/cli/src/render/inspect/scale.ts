/** The upright side of a plot: round steps, two rows each, high enough for the curve and the limits worth showing. */
import type { ContextCurve } from 'tidemark'

export interface Scale {
  readonly top: number
  readonly step: number
  readonly rows: number
}

const ROWS_A_STEP = 2
const LEAST_STEPS = 4
/** A window that is mostly empty would flatten the curve: it is then left out of the picture. */
const LEAST_FILLED = 0.35
const ROUND = [10, 5, 2.5, 2]

export function scaleFor({ window, autoCompact, points }: ContextCurve): Scale {
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 1)
  const limits = [window, autoCompact].flatMap((line) =>
    line !== null && peak >= line * LEAST_FILLED ? [line] : [],
  )
  const most = Math.max(peak, ...limits)
  const step = stepFor(most)
  const steps = Math.ceil(most / step)
  return { top: step * steps, step, rows: steps * ROWS_A_STEP }
}

/** The largest round step of which it takes at least four. */
function stepFor(most: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(most))
  const steps = [magnitude, magnitude / 10].flatMap((power) => ROUND.map((round) => (round * power) / 10))
  return steps.find((step) => Math.ceil(most / step) >= LEAST_STEPS) ?? magnitude / LEAST_STEPS
}

/** The row, from below, in which a value lies; null above the picture. */
export function rowOf(value: number | null, { top, rows }: Scale): number | null {
  if (value === null || value > top) return null
  return Math.min(rows - 1, Math.floor((value / top) * rows))
}

/** What stands beside a row: the value at its upper edge where that is a whole step. */
export function labelOf(row: number, { step }: Scale): number | null {
  return (row + 1) % ROWS_A_STEP === 0 ? ((row + 1) / ROWS_A_STEP) * step : null
}
