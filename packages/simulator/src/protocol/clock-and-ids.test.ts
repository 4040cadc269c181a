import { describe, expect, it } from 'vitest'
import { createAdjustableClock, createManualClock, systemClock } from './clock-and-ids.ts'

describe('a manual clock', () => {
  it('wakes sleepers in order, at their time', async () => {
    const clock = createManualClock(0)
    const woken: string[] = []
    const sleep = async (name: string, ms: number): Promise<void> => {
      await clock.sleep(ms)
      woken.push(`${name} at ${clock.now()}`)
    }
    const all = [sleep('late', 300), sleep('early', 100), sleep('never', 1_000)]
    await clock.advance(500)
    expect(woken).toEqual(['early at 100', 'late at 300'])
    expect(clock.now()).toBe(500)
    await clock.advance(500)
    await Promise.all(all)
  })

  it('wakes sleepers that were added meanwhile', async () => {
    const clock = createManualClock(0)
    const times: number[] = []
    const sleeper = (async () => {
      for (const _ of [1, 2, 3]) {
        await clock.sleep(10)
        times.push(clock.now())
      }
    })()
    await clock.advance(30)
    await sleeper
    expect(times).toEqual([10, 20, 30])
  })

  it('releases an aborted sleeper', async () => {
    const clock = createManualClock(0)
    const control = new AbortController()
    const sleeping = clock.sleep(1_000, control.signal)
    control.abort()
    await sleeping
    expect(clock.now()).toBe(0)
  })
})

describe('other clocks', () => {
  it('the system clock releases an aborted sleeper', async () => {
    await systemClock.sleep(1_000_000, AbortSignal.abort())
    const control = new AbortController()
    const sleeping = systemClock.sleep(1_000_000, control.signal)
    control.abort()
    await sleeping
    expect(systemClock.now()).toBeGreaterThan(0)
  })

  it('an adjustable clock runs ahead', () => {
    const clock = createAdjustableClock(createManualClock(100))
    clock.advance(50)
    clock.advance(7)
    expect(clock.now()).toBe(157)
  })
})
