/** Spans of time as people write them: `50ms`, `2s`, `1m`, or a plain number of milliseconds. */
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, '': 1 }

/** Milliseconds; null where it is no span of time. */
export function durationOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : null
  const found = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|)$/.exec(value.trim()) : null
  const unit = UNIT_MS[found?.[2] ?? '']
  return found === null || unit === undefined ? null : Number(found[1]) * unit
}
