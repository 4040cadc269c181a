/** A fault asked for from outside: in a header of the request itself, or ahead of it. */
import { problemText, readAll } from '../script/fields.ts'
import type { Fault } from './fault.ts'
import { type ParsedFault, parseFault } from './parse-fault.ts'
import { readFault } from './read-fault.ts'

export const FAULT_HEADER = 'x-simulator-fault'

/** The header wins, and what was asked for ahead of time then waits. A header that cannot be read is told of by a 400. */
export function requestedFault(
  headers: Readonly<Record<string, string>>,
  schedule: { shift(): Fault | null | undefined },
): Fault | null {
  const header = headers[FAULT_HEADER]
  if (header === undefined) return schedule.shift() ?? null
  const parsed = /^\s*[[{]/.test(header) ? parseJson(header) : parseFault(header)
  if (parsed.ok) return parsed.fault
  return { type: 'status', status: 400, message: `${FAULT_HEADER}: ${parsed.message}` }
}

function parseJson(text: string): ParsedFault {
  const value = jsonIn(text)
  if (value === undefined) return { ok: false, message: 'looks like JSON and is none' }
  const reading = readAll(readFault, value)
  if (reading.ok) return { ok: true, fault: reading.value }
  return { ok: false, message: reading.problems.map(problemText).join('; ') }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
