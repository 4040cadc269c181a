/** How much room is left in the window, and where its lines lie. */
import { type LadderState, type Lines, measureNow, standOn } from '@tidemark/core'
import { type Desk, hostOf } from './desk.ts'

export interface ContextLeft {
  /** Tokens of the conversation as it stands, system prompt and tools included. */
  readonly tokens: number
  /** The same on the safe side: what decisions are made by. */
  readonly high: number
  /** `both`: the provider's count, and an estimate of what has come since. */
  readonly source: 'measured' | 'estimated' | 'both'
  /** Tokens up to the line where something is done by itself; null where the window is not known. */
  readonly left: number | null
  /** Whole per cent of that line; null where the window is not known. */
  readonly percentLeft: number | null
  readonly lines: Lines | null
  /** Which lines are reached; null where there are none. */
  readonly ladder: LadderState | null
}

export function contextLeft(desk: Desk): ContextLeft {
  const host = hostOf(desk)
  const { expected, high, source } = measureNow(desk.shared.state, host, host.room)
  const { scaled } = desk.fitted
  const lines = scaled.known ? scaled.lines : null
  const ladder = lines === null ? null : standOn(lines, expected)
  return {
    tokens: expected,
    high,
    source,
    left: lines === null ? null : Math.max(0, lines.limit - expected),
    percentLeft: ladder?.percentLeft ?? null,
    lines,
    ladder,
  }
}
