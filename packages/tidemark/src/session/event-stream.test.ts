import { describe, expect, it } from 'vitest'
import { streamOf } from './event-stream.ts'

async function* counting(to: number): AsyncGenerator<number, string> {
  for (let value = 0; value < to; value += 1) yield value
  return 'done'
}

const nothing = (): void => {}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

describe('a stream of events', () => {
  it('goes on by itself, keeps what it told, and ends with its outcome', async () => {
    const told: number[] = []
    const stream = streamOf({ events: counting(3), onEvent: (value) => told.push(value), callOff: nothing })
    expect(await stream.outcome).toBe('done')
    expect(told).toEqual([0, 1, 2])
    expect(await all(stream)).toEqual([0, 1, 2])
  })

  it('that nobody watches any more is called off, and waited for', async () => {
    let isOff = false
    const go = Promise.withResolvers<void>()
    async function* events(): AsyncGenerator<number, string> {
      yield 1
      await go.promise
      return isOff ? 'called off' : 'done'
    }
    const callOff = (): void => {
      isOff = true
      go.resolve()
    }
    const stream = streamOf({ events: events(), onEvent: nothing, callOff })
    for await (const _ of stream) break
    expect(await stream.outcome).toBe('called off')
  })

  it('that breaks is told to whoever watches', async () => {
    async function* broken(): AsyncGenerator<number, string> {
      yield 1
      throw new Error('the disk is full')
    }
    const stream = streamOf({ events: broken(), onEvent: nothing, callOff: nothing })
    await expect(all(stream)).rejects.toThrow('the disk is full')
  })
})
