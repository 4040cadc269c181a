/** A fault asked for from outside: in a header of the request itself, or ahead of it. */
import { problemText, readAll } from '../script/fields.ts'
import type { Fault } from './fault.ts'
import { type ParsedFault, parseFault } from './parse-fault.ts'
import { readFault } from './read-fault.ts'

export const FAULT_HEADER = 'x-simulator-fault'

/** The header wins, and what was asked for ahead of time then waits. A header that cannot be read is told of in words. */
export function requestedFault(
  headers: Readonly<Record<string, string>>,
  schedule: { shift(): Fault | null | undefined },
): ParsedFault | { readonly ok: true; readonly fault: null } {
  const header = headers[FAULT_HEADER]
  if (header === undefined) return { ok: true, fault: schedule.shift() ?? null }
  const parsed = /^\s*[[{]/.test(header) ? parseJson(header) : parseFault(header)
  return parsed.ok ? parsed : { ok: false, message: `${FAULT_HEADER}: ${parsed.message}` }
}

function parseJson(text: string): ParsedFault {
  const value = jsonIn(text)
  if (value === undefined) return { ok: false, message: 'looks like JSON and is none' }
  const reading = readAll(readFault, value)
  if (reading.ok) return { ok: true, fault: reading.value }
  return { ok: false, message: reading.problems.map(problemText).join('; ') }
}

/** Undefined where the text is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
