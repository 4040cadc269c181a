/** Traces for tests, built call by call. */
import type { Trace, TraceCall, TracePiece, TraceUsage } from '../src/replay/trace.ts'

export function callAt(
  seconds: number,
  usage: Partial<TraceUsage>,
  given: Partial<Pick<TraceCall, 'added' | 'outputTokens'>> = {},
): TraceCall {
  const { added = [], outputTokens = 0 } = given
  return { at: seconds * 1000, added, outputTokens, usage: { input: 0, read: 0, written: 0, ...usage } }
}

export function traceOf(calls: readonly TraceCall[], given: Partial<Trace> = {}): Trace {
  return { id: 'made-up', model: 'claude-opus-4-5', baseTokens: 20_000, calls, events: [], ...given }
}

export const prompt = (tokens: number): TracePiece => ({ kind: 'prompt', tokens })
export const result = (tokens: number): TracePiece => ({ kind: 'result', tokens })
export const host = (tokens: number): TracePiece => ({ kind: 'host', tokens })
