/**
 * A trace: a recorded session without its words. What was added before each call and by it, in tokens, when, and
 * the usage the provider reported. Written as one JSON value, with lists in place of named fields.
 */

import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { countOf, isObject } from '@tidemark/core'
import { type LogRefusal, refuse, refuseForError } from '../logs/found-log.ts'
import { packingOf } from '../logs/read-lines.ts'

export interface Trace {
  readonly id: string
  readonly model: string
  /** What stands in front of the conversation: tools, system prompt, and what a host sends with the first prompt. */
  readonly baseTokens: number
  readonly calls: readonly TraceCall[]
  /** Compactions and clearings that the session's log announced. */
  readonly events: readonly TraceEvent[]
}

export interface TraceCall {
  /** When the answer began, in milliseconds since the first one. */
  readonly at: number
  /** What was added since the answer before. */
  readonly added: readonly TracePiece[]
  readonly outputTokens: number
  readonly usage: TraceUsage
}

export interface TracePiece {
  readonly kind: 'result' | 'prompt' | 'host'
  readonly tokens: number
}

/** As the provider reported it. */
export interface TraceUsage {
  /** Behind the last marker. */
  readonly input: number
  readonly read: number
  readonly written: number
}

export interface TraceEvent {
  readonly at: number
  readonly kind: string
}

const VERSION = 1
const KINDS = ['result', 'prompt', 'host'] as const

/** Null for what is no trace. */
export function traceFrom(value: unknown): Trace | null {
  if (!isObject(value) || value.v !== VERSION) return null
  const { id, model, base_tokens: base, steps, events } = value
  if (typeof id !== 'string' || typeof model !== 'string' || !Array.isArray(steps)) return null
  const calls = steps.map((step: unknown) => callFrom(step))
  if (!calls.every((call) => call !== null)) return null
  const told: readonly unknown[] = Array.isArray(events) ? events : []
  return { id, model, baseTokens: countOf(base), calls, events: told.filter(isObject).map(eventFrom) }
}

function callFrom(step: unknown): TraceCall | null {
  if (!Array.isArray(step)) return null
  const [seconds, added, output, _used, _anchors, usage]: readonly unknown[] = step
  if (!Array.isArray(added) || !Array.isArray(output) || !Array.isArray(usage)) return null
  const [input, read, written]: readonly unknown[] = usage
  return {
    at: milliseconds(seconds),
    added: added.filter((piece) => Array.isArray(piece)).map(pieceFrom),
    outputTokens: countOf(output[0]),
    usage: { input: countOf(input), read: countOf(read), written: countOf(written) },
  }
}

function pieceFrom([kind, tokens]: readonly unknown[]): TracePiece {
  return { kind: KINDS[countOf(kind)] ?? 'host', tokens: countOf(tokens) }
}

function eventFrom({ t, kind }: { readonly [field: string]: unknown }): TraceEvent {
  return { at: milliseconds(t), kind: String(kind ?? 'unknown') }
}

function milliseconds(seconds: unknown): number {
  return Math.round(countOf(seconds) * 1000)
}

/** The log of the session announced no rewrite of what had been sent. */
export function isEventFree({ events }: Trace): boolean {
  return events.length === 0
}

/** Everything a call sent. */
export function sentTokens({ usage: { input, read, written } }: TraceCall): number {
  return input + read + written
}

/** What a call sent for the first time. */
export function freshTokens({ added }: TraceCall): number {
  return added.reduce((sum, { tokens }) => sum + tokens, 0)
}

// Reads a trace from a file, packed or not.

export type TraceReading = { readonly ok: true; readonly trace: Trace } | LogRefusal

export async function readTrace(path: string): Promise<TraceReading> {
  let text: string
  try {
    const bytes = await readFile(path)
    text = (packingOf(bytes) === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8')
  } catch (error) {
    return refuseForError(path, error)
  }
  const trace = traceFrom(parsed(text))
  return trace === null
    ? refuse(path, 'unknown-format', 'is no trace: expected one JSON value of version 1, with "steps"')
    : { ok: true, trace }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
