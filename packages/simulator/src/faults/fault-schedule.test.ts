import { describe, expect, it } from 'vitest'
import { readDocument } from '../protocol/value-readers.ts'
import type { Fault } from './fault.ts'
import {
  createFaultSchedule,
  FAULT_HEADER,
  readScheduledFault,
  type ScheduledFault,
  takeRequestFault,
} from './fault-schedule.ts'

const HANG: Fault = { type: 'hang' }
const RESET: Fault = { type: 'reset' }

/** Returns the faults of the next requests as letters: h for hang, r for reset, . for none. */
function played(scheduled: readonly ScheduledFault[], requests: number): string {
  const schedule = createFaultSchedule()
  schedule.add(...scheduled)
  return Array.from({ length: requests }, () => schedule.takeNext()?.type[0] ?? '.').join('')
}

describe('scheduled faults', () => {
  it.each<[string, readonly ScheduledFault[], string]>([
    ['one, on the next request', [{ fault: HANG }], 'h....'],
    ['the next three', [{ fault: HANG, times: 3 }], 'hhh..'],
    ['after two have passed', [{ fault: HANG, skip: 2 }], '..h..'],
    ['every third', [{ fault: HANG, every: 3 }], '..h..h..h'],
    ['every third, from the first on', [{ fault: HANG, every: 3, skip: 0 }], 'h..h..h'],
    ['every second, twice', [{ fault: HANG, every: 2, times: 2 }], '.h.h....'],
    ['one after the other', [{ fault: HANG }, { fault: RESET }, { fault: HANG }], 'hrh.'],
    ['the older first where two are due', [{ fault: HANG, times: 2 }, { fault: RESET }], 'hhr.'],
    [
      'one that had to wait comes next',
      [
        { fault: HANG, every: 2 },
        { fault: RESET, skip: 1 },
      ],
      '.hrh',
    ],
  ])('%s', (_, scheduled, faults) => {
    expect(played(scheduled, faults.length)).toBe(faults)
  })

  it('are listed while they wait, and can be cleared', () => {
    const schedule = createFaultSchedule()
    schedule.add({ fault: HANG, times: 3 }, { fault: RESET, every: 4 })
    schedule.takeNext()
    expect(schedule.pending).toEqual([
      { fault: HANG, times: 2, skip: 0 },
      { fault: RESET, every: 4, skip: 2 },
    ])
    schedule.clear()
    expect([schedule.pending, schedule.takeNext()]).toEqual([[], null])
  })

  it.each([
    ['hang', { fault: HANG }],
    [{ type: 'hang' }, { fault: HANG }],
    [
      { fault: 'hang', times: 2, every: 3, skip: 1 },
      { fault: HANG, times: 2, every: 3, skip: 1 },
    ],
  ])('%j is read', (value, scheduled) => {
    expect(readDocument(readScheduledFault, value)).toEqual({ ok: true, value: scheduled })
  })

  it.each([
    [{ times: 2 }, ['fault'], 'is needed: what is to go wrong'],
    [{ fault: 'hang', times: 0 }, ['times'], 'expected a whole number of at least 1, found 0'],
    [{ fault: 'hang', often: 2 }, ['often'], 'is not known here; known: fault, times, every, skip'],
    [{ fault: 'hung' }, ['fault'], expect.stringMatching(/^"hung" is no fault/)],
  ])('%j is refused', (value, path, message) => {
    expect(readDocument(readScheduledFault, value)).toEqual({ ok: false, problems: [{ path, message }] })
  })
})

const WAITING: Fault = { type: 'reset' }

function requested(header?: string): readonly [Fault | string | null, number] {
  const schedule = createFaultSchedule()
  schedule.add({ fault: WAITING })
  const read = takeRequestFault(header === undefined ? {} : { [FAULT_HEADER]: header }, schedule)
  return [read.ok ? read.fault : read.message, schedule.pending.length]
}

describe('the fault of a request', () => {
  it('is the scheduled one, which is then used up', () => {
    expect(requested()).toEqual([WAITING, 0])
  })

  it('is the one in its header, and the scheduled one keeps waiting', () => {
    expect(requested('hang')).toEqual([{ type: 'hang' }, 1])
  })

  it('may be JSON', () => {
    expect(requested('{"type":"cut","afterEvents":2}')).toEqual([{ type: 'cut', afterEvents: 2 }, 1])
  })

  it.each([
    ['drip=fast', 'x-simulator-fault: "drip" needs a time, such as 50ms or 2s, not "fast"'],
    ['{"type":', 'x-simulator-fault: looks like JSON and is none'],
    [
      '{"type":"hang","after":1}',
      'x-simulator-fault: after: is not known here; known: afterBytes, afterEvents',
    ],
  ])('is a message about why %s cannot be read', (header, message) => {
    expect(requested(header)).toEqual([message, 1])
  })
})
