/**
 * A trace is a recorded session without its texts: for each model call the tokens that were added, the time, and the
 * usage that the provider reported. The file is one JSON value, plain or gzipped, with arrays in place of named fields.
 */
import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { isObject, toTokenCount } from '@tidemark/core'
import { type LogRefusal, refuseForReadError, refuseLog } from '../logs/log-search-result.ts'
import { detectCompression } from '../logs/read-lines.ts'

export interface SessionTrace {
  readonly id: string
  readonly model: string
  /** Tokens of the first request without the user's prompt: tools, system prompt, and context added by the host. */
  readonly baseTokens: number
  readonly calls: readonly TraceCall[]
  /** Compactions and clearings recorded in the session's log. */
  readonly events: readonly TraceEvent[]
}

export interface TraceCall {
  /** Time when the response began, in milliseconds since the first response. */
  readonly at: number
  /** Input blocks added to the conversation since the previous response. */
  readonly added: readonly TraceInputBlock[]
  readonly outputTokens: number
  readonly usage: TraceUsage
}

export interface TraceInputBlock {
  readonly kind: 'result' | 'prompt' | 'host'
  readonly tokens: number
}

/** Prompt tokens of a model call, as the provider reported them. */
export interface TraceUsage {
  /** Input tokens after the last cache marker, neither read from nor written to the cache. */
  readonly input: number
  readonly read: number
  readonly written: number
}

export interface TraceEvent {
  readonly at: number
  readonly kind: string
}

const TRACE_VERSION = 1
/** Kinds of input blocks. A trace file stores a kind as its index in this list. */
const KINDS = ['result', 'prompt', 'host'] as const

/** Decodes a trace. Returns null if the value is not a trace of the current version. Invalid token counts become 0. */
export function decodeTrace(value: unknown): SessionTrace | null {
  if (!isObject(value) || value.v !== TRACE_VERSION) return null
  const { id, model, base_tokens: base, steps, events } = value
  if (typeof id !== 'string' || typeof model !== 'string' || !Array.isArray(steps)) return null
  const calls = steps.map((step: unknown) => decodeCall(step))
  if (!calls.every((call) => call !== null)) return null
  const list: readonly unknown[] = Array.isArray(events) ? events : []
  const decoded = list
    .filter(isObject)
    .map(({ t, kind }) => ({ at: toMilliseconds(t), kind: String(kind ?? 'unknown') }))
  return { id, model, baseTokens: toTokenCount(base), calls, events: decoded }
}

function decodeCall(step: unknown): TraceCall | null {
  if (!Array.isArray(step)) return null
  const [seconds, added, output, _used, _anchors, usage]: readonly unknown[] = step
  if (!Array.isArray(added) || !Array.isArray(output) || !Array.isArray(usage)) return null
  const [input, read, written]: readonly unknown[] = usage
  return {
    at: toMilliseconds(seconds),
    added: added
      .filter((piece): piece is readonly unknown[] => Array.isArray(piece))
      .map(([kind, tokens]) => ({ kind: KINDS[toTokenCount(kind)] ?? 'host', tokens: toTokenCount(tokens) })),
    outputTokens: toTokenCount(output[0]),
    usage: { input: toTokenCount(input), read: toTokenCount(read), written: toTokenCount(written) },
  }
}

function toMilliseconds(seconds: unknown): number {
  return Math.round(toTokenCount(seconds) * 1000)
}

/** Returns true if the session's log records no compaction and no clearing. */
export function hasNoRewrites({ events }: SessionTrace): boolean {
  return events.length === 0
}

/** Returns all prompt tokens of a model call: uncached, read from the cache, and written to it. */
export function countSentTokens({ usage: { input, read, written } }: TraceCall): number {
  return input + read + written
}

/** Returns the tokens that a model call sent for the first time. */
export function countNewTokens({ added }: TraceCall): number {
  return added.reduce((sum, { tokens }) => sum + tokens, 0)
}

export type ReadTraceResult = { readonly ok: true; readonly trace: SessionTrace } | LogRefusal

/** Reads a trace file. Returns an error message with the file name if the file cannot be read or is not a trace. */
export async function readTrace(path: string): Promise<ReadTraceResult> {
  let text: string
  try {
    const bytes = await readFile(path)
    text = (detectCompression(bytes) === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8')
  } catch (error) {
    return refuseForReadError(path, error)
  }
  const trace = decodeTrace(parseJson(text))
  return trace === null
    ? refuseLog(path, 'unknown-format', 'is no trace: expected one JSON value of version 1, with "steps"')
    : { ok: true, trace }
}

/** Returns the parsed value, or null for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
