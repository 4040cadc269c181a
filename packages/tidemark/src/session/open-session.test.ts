import { describe, expect, it } from 'vitest'
import { createGate, createQueue } from './open-session.ts'

describe('the queue', () => {
  it('lets one in at a time, in order, and goes on after one that threw', async () => {
    const queue = createQueue()
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

describe('the gate', () => {
  it('holds those who come while it is shut, also where it was shut again before they got through', async () => {
    const gate = createGate()
    await gate.passed()
    gate.shut()
    let isThrough = false
    const passing = gate.passed().then(() => {
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
