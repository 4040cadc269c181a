import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { type GuardedProcess, guardTerminal, RESTORE_SEQUENCE } from './terminal-guard.ts'

function createFakeProcess() {
  const events = new EventEmitter()
  const seen: { out: string; err: string; code: number | null; isRaw: boolean } = {
    ...{ out: '', err: '', code: null, isRaw: true },
  }
  const guarded: GuardedProcess = {
    on: (event, listener) => events.on(event, listener),
    off: (event, listener) => events.off(event, listener),
    exit(code) {
      seen.code = code
    },
    stdin: {
      isTTY: true,
      setRawMode(isRaw) {
        seen.isRaw = isRaw
      },
    },
    stdout: {
      on: (_, listener) => events.on('stdout error', listener),
      off: (_, listener) => events.off('stdout error', listener),
      write(text) {
        seen.out += text
      },
    },
    stderr: {
      on: (_, listener) => events.on('stderr error', listener),
      off: (_, listener) => events.off('stderr error', listener),
      write(text) {
        seen.err += text
      },
    },
  }
  return { guarded, events, seen }
}

const nothing = { stop() {}, close: () => Promise.resolve() }

describe('the terminal is given back', () => {
  it.each([
    ['uncaughtException', 1],
    ['unhandledRejection', 1],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['stdout error', 129],
  ])('after %s', async (event, code) => {
    const { guarded, events, seen } = createFakeProcess()
    guardTerminal(guarded, nothing)
    events.emit(event, new Error('broken'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toMatchObject({ out: RESTORE_SEQUENCE, code, isRaw: false })
    if (code === 1) expect(seen.err).toContain('broken')
  })

  it('if the screen itself has failed, also from its second screen', () => {
    const { guarded, events, seen } = createFakeProcess()
    const stop = (): never => {
      throw new Error('no screen')
    }
    guardTerminal(guarded, { ...nothing, stop })
    events.emit('exit')
    expect(seen).toMatchObject({ out: `\u001b[?1049l${RESTORE_SEQUENCE}`, isRaw: false })
  })

  it('once, and nothing is watched any longer', () => {
    const { guarded, events, seen } = createFakeProcess()
    guardTerminal(guarded, nothing).release()
    events.emit('exit')
    expect(seen.out).toBe(RESTORE_SEQUENCE)
    expect(events.eventNames()).toEqual([])
  })

  it('if the terminal was closed, and what fails then does not hurry the end of the session', async () => {
    const { guarded, events, seen } = createFakeProcess()
    const closing = Promise.withResolvers<void>()
    const stdin = {
      isTTY: true,
      setRawMode(): never {
        throw new Error('EIO')
      },
    }
    guardTerminal({ ...guarded, stdin }, { ...nothing, close: () => closing.promise })
    for (const event of ['SIGHUP', 'stdout error', 'uncaughtException']) events.emit(event, new Error('EIO'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toMatchObject({ code: null, err: '' })
    closing.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen.code).toBe(129)
  })

  it('before a signal waits for the session, which has a second to close', async () => {
    const { guarded, events, seen } = createFakeProcess()
    const closing = Promise.withResolvers<void>()
    guardTerminal(guarded, { ...nothing, close: () => closing.promise })
    events.emit('SIGTERM')
    expect(seen).toMatchObject({ out: RESTORE_SEQUENCE, code: null })
    closing.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen.code).toBe(143)
  })
})
