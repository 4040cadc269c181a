/** What every clock does. */
import assert from 'node:assert/strict'
import type { Clock } from '@tidemark/core'
import { type ConformanceCase, casesFor } from './conformance.ts'

export interface ClockSubject {
  readonly clock: Clock
  /** Lets that much time pass. */
  pass(ms: number): Promise<void>
}

export function clockCases(make: () => ClockSubject | Promise<ClockSubject>): readonly ConformanceCase[] {
  return casesFor(make, () => {}, checks)
}

const checks: Readonly<Record<string, (subject: ClockSubject) => Promise<void>>> = {
  async 'tells the time in milliseconds, and it moves on'({ clock, pass }) {
    const before = clock.now()
    assert.ok(Number.isFinite(before) && before >= 0, `${before} is a time`)
    await pass(3)
    assert.ok(clock.now() > before, 'later is later')
  },

  async 'a sleep ends when its time has passed'({ clock, pass }) {
    let isAwake = false
    const sleep = clock.sleep(5).then(() => {
      isAwake = true
    })
    assert.equal(isAwake, false)
    await Promise.all([sleep, pass(6)])
    assert.equal(isAwake, true)
  },

  async 'those who sleep shorter wake earlier'({ clock, pass }) {
    const woken: number[] = []
    const sleeps = [30, 1].map((ms) => clock.sleep(ms).then(() => woken.push(ms)))
    await Promise.all([...sleeps, pass(31)])
    assert.deepEqual(woken, [1, 30])
  },

  async 'no time, less than none, and no number are no wait'({ clock }) {
    await Promise.all([0, -5, Number.NaN].map((ms) => clock.sleep(ms)))
  },

  async 'a sleep that was called off before it began ends at once'({ clock }) {
    await clock.sleep(1_000_000, { aborted: true })
    await clock.sleep(1_000_000, AbortSignal.abort())
  },

  async 'a sleep that is called off ends early and quietly'({ clock, pass }) {
    const abort = new AbortController()
    const sleep = clock.sleep(1_000_000, abort.signal)
    abort.abort()
    await Promise.all([sleep, pass(1)])
  },

  async 'a sleep of more than a timer can hold does not end at once'({ clock, pass }) {
    const abort = new AbortController()
    let isAwake = false
    const sleep = clock.sleep(2 ** 40, abort.signal).then(() => {
      isAwake = true
    })
    await pass(5)
    assert.equal(isAwake, false)
    abort.abort()
    await Promise.all([sleep, pass(1)])
  },
}
