/** Where a conversation stands on the ladder of lines. A line is reached at, not above, its place. */
import type { Lines } from '../policy/lines.ts'

export interface LadderState {
  readonly used: number
  /** Per cent of the limit that is left, whole, never below 0. */
  readonly percentLeft: number
  readonly isAboveWarningThreshold: boolean
  readonly isAboveErrorThreshold: boolean
  /** Only where auto-compaction is on. */
  readonly isAboveAutoCompactThreshold: boolean
  readonly isAtBlockingLimit: boolean
}

export function standOn(lines: Lines, used: number): LadderState {
  const autoCompactOn = lines.limit === lines.autoCompact
  return {
    used,
    percentLeft: Math.max(0, Math.round(((lines.limit - used) / lines.limit) * 100)),
    isAboveWarningThreshold: used >= lines.warning,
    isAboveErrorThreshold: used >= lines.error,
    isAboveAutoCompactThreshold: autoCompactOn && used >= lines.autoCompact,
    isAtBlockingLimit: used >= lines.blocking,
  }
}
