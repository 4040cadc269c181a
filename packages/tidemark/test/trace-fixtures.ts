/** Traces for tests, built call by call. */
import type { SessionTrace, TraceCall, TraceInputBlock, TraceUsage } from '../src/replay/trace-file.ts'

export function createTraceCall(
  seconds: number,
  usage: Partial<TraceUsage>,
  given: Partial<Pick<TraceCall, 'added' | 'outputTokens'>> = {},
): TraceCall {
  const { added = [], outputTokens = 0 } = given
  return { at: seconds * 1000, added, outputTokens, usage: { input: 0, read: 0, written: 0, ...usage } }
}

export function createTrace(calls: readonly TraceCall[], given: Partial<SessionTrace> = {}): SessionTrace {
  return { id: 'made-up', model: 'claude-opus-4-5', baseTokens: 20_000, calls, events: [], ...given }
}

export const prompt = (tokens: number): TraceInputBlock => ({ kind: 'prompt', tokens })
export const result = (tokens: number): TraceInputBlock => ({ kind: 'result', tokens })
export const host = (tokens: number): TraceInputBlock => ({ kind: 'host', tokens })
