/**
 * Schedules faults for future requests (the next one, several, or every third one) and determines the fault of a
 * request.
 */
import { isObject } from '../protocol/messages-request.ts'
import {
  addReadProblem,
  describeDeepNesting,
  enterField,
  formatReadProblem,
  partialObjectReader,
  readDocument,
  type ValueReader,
  wholeNumberReader,
} from '../protocol/value-readers.ts'
import type { Fault } from './fault.ts'
import { type ParseFaultResult, parseFault, readFault } from './parse-fault.ts'

export interface ScheduledFault {
  readonly fault: Fault
  /** Number of requests the fault applies to. Default: 1, or no limit if `every` is given. */
  readonly times?: number
  /** Applies the fault to every n-th request: `3` means every third one. */
  readonly every?: number
  /** Number of requests to skip before the fault applies for the first time. */
  readonly skip?: number
}

export interface FaultSchedule {
  add(...scheduled: readonly ScheduledFault[]): void
  /**
   * Returns the fault for the current request; null if none is due. If several faults are due, the one added first is
   * returned and the others stay due. Every call counts as one request for all scheduled faults.
   */
  takeNext(): Fault | null
  clear(): void
  /** Scheduled faults that are not used up, oldest first, with their remaining counts. */
  readonly pending: readonly ScheduledFault[]
}

export function createFaultSchedule(): FaultSchedule {
  let waiting: readonly ScheduledFault[] = []
  return {
    add: (...scheduled) => {
      waiting = [...waiting, ...scheduled]
    },
    takeNext() {
      const due = waiting.find(isFaultDue)
      waiting = waiting.flatMap((each) => advanceSchedule(each, each === due))
      return due?.fault ?? null
    },
    clear: () => {
      waiting = []
    },
    get pending() {
      return waiting
    },
  }
}

/** Checks whether a scheduled fault applies to the current request: no requests are left to skip. */
function isFaultDue(scheduled: ScheduledFault): boolean {
  return (scheduled.skip ?? (scheduled.every ?? 1) - 1) === 0
}

function advanceSchedule(scheduled: ScheduledFault, isUsed: boolean): readonly ScheduledFault[] {
  const { every = 1, skip = every - 1, times = scheduled.every === undefined ? 1 : null } = scheduled
  if (skip > 0) return [{ ...scheduled, skip: skip - 1 }]
  if (!isUsed) return [scheduled]
  if (times === 1) return []
  return [{ ...scheduled, skip: every - 1, ...(times === null ? {} : { times: times - 1 }) }]
}

const scheduleReader = partialObjectReader<ScheduledFault>({
  fault: readFault,
  times: wholeNumberReader(1),
  every: wholeNumberReader(1),
  skip: wholeNumberReader(0),
})

/** Reads a scheduled fault: `{fault, times, every, skip}`, or only a fault, which applies to the next request. */
export const readScheduledFault: ValueReader<ScheduledFault> = (value, place) => {
  if (!isObject(value) || 'type' in value) {
    const fault = readFault(value, place)
    return fault === undefined ? undefined : { fault }
  }
  const { fault, ...rest } = scheduleReader(value, place) ?? {}
  if (fault !== undefined) return { fault, ...rest }
  return value.fault === undefined
    ? addReadProblem(enterField(place, 'fault'), 'is needed: what is to go wrong')
    : undefined
}

/** Name of the request header that sets the fault for that request, in the text notation or as JSON. */
export const FAULT_HEADER = 'x-simulator-fault'

/**
 * Returns the fault in the header `x-simulator-fault`, otherwise the next scheduled fault; null if there is neither.
 * Without the header, the call counts as one request for all scheduled faults. Returns an error message if the header
 * is not valid.
 */
export function takeRequestFault(
  headers: Readonly<Record<string, string>>,
  schedule: { takeNext(): Fault | null | undefined },
): ParseFaultResult | { readonly ok: true; readonly fault: null } {
  const header = headers[FAULT_HEADER]
  if (header === undefined) return { ok: true, fault: schedule.takeNext() ?? null }
  const parsed = /^\s*[[{]/.test(header) ? parseFaultJson(header) : parseFault(header)
  return parsed.ok ? parsed : { ok: false, message: `${FAULT_HEADER}: ${parsed.message}` }
}

function parseFaultJson(text: string): ParseFaultResult {
  const value = tryParseJson(text)
  if (value === undefined) return { ok: false, message: 'looks like JSON and is none' }
  const deep = describeDeepNesting(value)
  if (deep !== null) return { ok: false, message: deep }
  const reading = readDocument(readFault, value)
  if (reading.ok) return { ok: true, fault: reading.value }
  return { ok: false, message: reading.problems.map(formatReadProblem).join('; ') }
}

/** Parses JSON; returns undefined if the text is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
