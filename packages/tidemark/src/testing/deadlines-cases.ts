/** What every implementation of bounded work does. */
import assert from 'node:assert/strict'
import type { Deadlines } from '@tidemark/core'
import { type ConformanceCase, casesFor } from './conformance.ts'

export interface DeadlinesSubject {
  readonly deadlines: Deadlines
  /** Lets that much time pass. */
  pass(ms: number): Promise<void>
}

export function deadlinesCases(
  make: () => DeadlinesSubject | Promise<DeadlinesSubject>,
): readonly ConformanceCase[] {
  return casesFor(make, () => {}, checks)
}

const NEVER = new Promise<never>(() => {})
const LONG = 1_000_000

const checks: Readonly<Record<string, (subject: DeadlinesSubject) => Promise<void>>> = {
  async 'work that ends in time gives its value'({ deadlines }) {
    assert.deepEqual(await deadlines.within(LONG, async () => 7), { ok: true, value: 7 })
  },

  async 'what the work throws in time is thrown on'({ deadlines }) {
    const broken = deadlines.within(LONG, async () => {
      throw new RangeError('broken')
    })
    await assert.rejects(broken, { name: 'RangeError', message: 'broken' })
  },

  async 'work that is too late is left, and hears so'({ deadlines, pass }) {
    let heard = false
    const late = deadlines.within(5, (signal) => {
      if (signal instanceof AbortSignal) signal.addEventListener('abort', () => (heard = true))
      return NEVER
    })
    const [end] = await Promise.all([late, pass(6)])
    assert.deepEqual([end, heard], [{ ok: false, why: 'timeout' }, true])
  },

  async 'what a left work throws later is nobody else’s concern'({ deadlines, pass }) {
    const fails = Promise.withResolvers<never>()
    const late = deadlines.within(5, () => fails.promise)
    const [end] = await Promise.all([late, pass(6)])
    fails.reject(new Error('too late to matter'))
    await pass(1)
    assert.deepEqual(end, { ok: false, why: 'timeout' })
  },

  async 'an abort is heard at once, whatever the work does'({ deadlines }) {
    const abort = new AbortController()
    const end = deadlines.within(LONG, () => NEVER, abort.signal)
    abort.abort()
    assert.deepEqual(await end, { ok: false, why: 'aborted' })
  },

  async 'with a signal already aborted the work is not begun'({ deadlines }) {
    let isBegun = false
    const work = async (): Promise<void> => {
      isBegun = true
    }
    for (const signal of [AbortSignal.abort(), { aborted: true }])
      assert.deepEqual(await deadlines.within(LONG, work, signal), { ok: false, why: 'aborted' })
    assert.equal(isBegun, false)
  },

  async 'nothing that the work began outlives it: its signal ends with it'({ deadlines }) {
    let seen: { readonly aborted: boolean } = { aborted: false }
    await deadlines.within(LONG, async (signal) => {
      seen = signal
      assert.equal(signal.aborted, false)
    })
    assert.equal(seen.aborted, true)
  },
}
