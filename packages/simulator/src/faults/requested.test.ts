import { describe, expect, it } from 'vitest'
import type { Fault } from './fault.ts'
import { FAULT_HEADER, requestedFault } from './requested.ts'
import { createFaultSchedule } from './schedule.ts'

const WAITING: Fault = { type: 'reset' }

function requested(header?: string): readonly [Fault | string | null, number] {
  const schedule = createFaultSchedule()
  schedule.add({ fault: WAITING })
  const read = requestedFault(header === undefined ? {} : { [FAULT_HEADER]: header }, schedule)
  return [read.ok ? read.fault : read.message, schedule.waiting.length]
}

describe('the fault of a request', () => {
  it('is the one waiting, which is then used up', () => {
    expect(requested()).toEqual([WAITING, 0])
  })

  it('is the one in its header, and the one waiting goes on waiting', () => {
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
  ])('is words that say why %s cannot be read', (header, message) => {
    expect(requested(header)).toEqual([message, 1])
  })
})
