import { describe, expect, it } from 'vitest'
import { createWriteLock } from '../platform/node-ports.ts'
import { createReplyGate } from './session-locks.ts'

describe('the queue', () => {
  it('runs one piece of work at a time, in order, and continues after one that threw', async () => {
    const queue = createWriteLock()
    const steps: string[] = []
    const work = (name: string, fails = false) =>
      queue(async () => {
        steps.push(`${name} begins`)
        await Promise.resolve()
        steps.push(`${name} ends`)
        if (fails) throw new Error(name)
        return name
      })
    const ends = await Promise.allSettled([work('a'), work('b', true), work('c')])
    expect(steps).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})

describe('the reply gate', () => {
  it('holds callers while it is shut, also if it is shut again before they got through', async () => {
    const gate = createReplyGate()
    await gate.waitUntilOpen()
    gate.shut()
    let isThrough = false
    const passing = gate.waitUntilOpen().then(() => {
      isThrough = true
    })
    gate.open()
    gate.shut()
    await Promise.resolve()
    await Promise.resolve()
    expect([gate.isShut, isThrough]).toEqual([true, false])
    gate.open()
    await passing
    expect([gate.isShut, isThrough]).toEqual([false, true])
  })
})
