import { describe, expect, it } from 'vitest'
import { createListeners, type SessionEvent, streamOf } from './events.ts'

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

const notice: SessionEvent = { type: 'notice', message: 'hear' }

describe('listeners', () => {
  it('hear the type they asked for, until they ask no more', () => {
    const heard: string[] = []
    const { on, emit } = createListeners((event) => heard.push(`always ${event.type}`))
    const off = on('notice', ({ message }) => heard.push(`notice ${message}`))
    on('undone', () => heard.push('undone'))
    on('*', ({ type }) => heard.push(`all ${type}`))
    emit(notice)
    off()
    emit(notice)
    expect(heard).toEqual(['always notice', 'notice hear', 'all notice', 'always notice', 'all notice'])
  })

  it('that throw are told to the others and stop nobody, themselves included', () => {
    const heard: SessionEvent[] = []
    const { on, emit } = createListeners()
    on('*', () => {
      throw new Error('mine')
    })
    on('*', (event) => heard.push(event))
    emit(notice)
    expect(heard).toEqual([{ type: 'listener-failed', about: 'notice', message: 'mine' }, notice])
  })
})
