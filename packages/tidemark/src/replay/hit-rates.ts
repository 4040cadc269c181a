/** How near a replay comes to what was logged: the share of all that was sent which was read from cache. */
import type { ReplayedCall } from './replay-trace.ts'

export interface HitRates {
  /** Null where nothing was sent. */
  readonly foreseen: number | null
  readonly logged: number | null
  /** Foreseen less logged, in points: hundredths of what was sent. */
  readonly points: number | null
}

export function hitRatesOf(calls: readonly ReplayedCall[]): HitRates {
  const sent = calls.reduce((sum, call) => sum + call.sent, 0)
  if (sent === 0) return { foreseen: null, logged: null, points: null }
  const foreseen = calls.reduce((sum, call) => sum + call.foreseen, 0) / sent
  const logged = calls.reduce((sum, call) => sum + call.logged, 0) / sent
  return { foreseen, logged, points: (foreseen - logged) * 100 }
}
