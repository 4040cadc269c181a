/** Reads a trace from a file, packed or not. */
import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { packingOf } from '../reading/packing.ts'
import { type LogRefusal, refuse, refuseForError } from '../reading/refusal.ts'
import { type Trace, traceFrom } from './trace.ts'

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
