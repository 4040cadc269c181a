import { describe, expect, it } from 'vitest'
import { createEventStream, createListeners, type SessionEvent } from './events.ts'

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
  it('runs by itself, keeps its events until they are read, and ends with its outcome', async () => {
    const emitted: number[] = []
    const stream = createEventStream({
      events: counting(3),
      onEvent: (value) => emitted.push(value),
      abort: nothing,
    })
    expect(await stream.outcome).toBe('done')
    expect(emitted).toEqual([0, 1, 2])
    expect(await all(stream)).toEqual([0, 1, 2])
  })

  it('is aborted and waited for when its reader leaves the loop', async () => {
    let isOff = false
    const go = Promise.withResolvers<void>()
    async function* events(): AsyncGenerator<number, string> {
      yield 1
      await go.promise
      return isOff ? 'aborted' : 'done'
    }
    const abort = (): void => {
      isOff = true
      go.resolve()
    }
    const stream = createEventStream({ events: events(), onEvent: nothing, abort })
    for await (const _ of stream) break
    expect(await stream.outcome).toBe('aborted')
  })

  it('rejects its reader when the operation fails', async () => {
    async function* broken(): AsyncGenerator<number, string> {
      yield 1
      throw new Error('the disk is full')
    }
    const stream = createEventStream({ events: broken(), onEvent: nothing, abort: nothing })
    await expect(all(stream)).rejects.toThrow('the disk is full')
  })
})

const notice: SessionEvent = { type: 'notice', message: 'hear' }

describe('listeners', () => {
  it('receive the events of their type until they are removed', () => {
    const heard: string[] = []
    const { on, emit } = createListeners([(event) => heard.push(`always ${event.type}`)])
    const off = on('notice', ({ message }) => heard.push(`notice ${message}`))
    on('undone', () => heard.push('undone'))
    on('*', ({ type }) => heard.push(`all ${type}`))
    emit(notice)
    off()
    emit(notice)
    expect(heard).toEqual(['always notice', 'notice hear', 'all notice', 'always notice', 'all notice'])
  })

  it('that throw are reported to the others and stop no listener, themselves included', () => {
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
