import { describe, expect, it } from 'vitest'
import { createListeners } from './listeners.ts'
import type { SessionEvent } from './session-event.ts'

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
