/** Faults asked for ahead of time: on the next request, on the next few, on every third one. */
import { isObject } from '../protocol/api.ts'
import {
  count,
  fieldsOf,
  inside,
  problemText,
  type Reader,
  readAll,
  report,
} from '../protocol/json-fields.ts'
import type { Fault } from './fault.ts'
import { type ParsedFault, parseFault, readFault } from './parse-fault.ts'

export interface ScheduledFault {
  readonly fault: Fault
  /** On how many requests; default 1, or without end where `every` is given. */
  readonly times?: number
  /** On every so-manieth request only. */
  readonly every?: number
  /** Requests that are let through first. */
  readonly skip?: number
}

export interface FaultSchedule {
  add(...scheduled: readonly ScheduledFault[]): void
  /**
   * The fault of the next request. Of those that are due the oldest is used up, so that single faults come one
   * after the other in the order they were asked for; each counts every request from the one after its asking.
   */
  shift(): Fault | null
  clear(): void
  /** What is still to come, oldest first, with what is left of it. */
  readonly waiting: readonly ScheduledFault[]
}

export function createFaultSchedule(): FaultSchedule {
  let waiting: readonly ScheduledFault[] = []
  return {
    add: (...scheduled) => {
      waiting = [...waiting, ...scheduled]
    },
    shift() {
      const due = waiting.find(isDue)
      waiting = waiting.flatMap((each) => afterRequest(each, each === due))
      return due?.fault ?? null
    },
    clear: () => {
      waiting = []
    },
    get waiting() {
      return waiting
    },
  }
}

/** `skip` counts down to the next request it falls on. */
function isDue(scheduled: ScheduledFault): boolean {
  return (scheduled.skip ?? (scheduled.every ?? 1) - 1) === 0
}

function afterRequest(scheduled: ScheduledFault, isUsed: boolean): readonly ScheduledFault[] {
  const { every = 1, skip = every - 1, times = scheduled.every === undefined ? 1 : null } = scheduled
  if (skip > 0) return [{ ...scheduled, skip: skip - 1 }]
  if (!isUsed) return [scheduled]
  if (times === 1) return []
  return [{ ...scheduled, skip: every - 1, ...(times === null ? {} : { times: times - 1 }) }]
}

const readSchedule = fieldsOf<ScheduledFault>({
  fault: readFault,
  times: count(1),
  every: count(1),
  skip: count(0),
})

/** `{fault, times, every, skip}`, or a fault by itself for the next request. */
export const readScheduledFault: Reader<ScheduledFault> = (value, place) => {
  if (!isObject(value) || 'type' in value) {
    const fault = readFault(value, place)
    return fault === undefined ? undefined : { fault }
  }
  const { fault, ...rest } = readSchedule(value, place) ?? {}
  if (fault !== undefined) return { fault, ...rest }
  return value.fault === undefined
    ? report(inside(place, 'fault'), 'is needed: what is to go wrong')
    : undefined
}

// A fault asked for from outside: in a header of the request itself, or ahead of it.

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
