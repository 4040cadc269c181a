/** What happens before anyone can listen, and between two tries of a request, is told all the same. */

import { createFakeClock } from '@tidemark/core/testing'
import { createSimulator, echo } from '@tidemark/simulator'
import { anthropic, createTidemark, type SessionEvent, user } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const DAMAGE = [{ line: 2, byte: 10, kind: 'unreadable' }] as never

function damaged() {
  const journal = createMemoryJournal(new Map())
  return {
    ...journal,
    read: async (...given: Parameters<typeof journal.read>) => ({
      ...(await journal.read(...given)),
      damage: DAMAGE,
    }),
  }
}

describe('what is told while a session opens', () => {
  it('is told to the first who asks for it, once, and the damage can be asked for', async () => {
    const { tide } = createTestTidemark({ journal: damaged(), env: { DISABLE_COMPACT: 'perhaps' } })
    const session = await tide.open('a')
    expect(session.damage).toBe(DAMAGE)
    const told: unknown[] = []
    session.on('compact', () => told.push('compact'))
    session.on('log-damaged', ({ damage }) => told.push(damage))
    session.on('log-damaged', () => told.push('again'))
    expect(told).toEqual([DAMAGE])
    session.on('*', ({ type }) => told.push(type))
    expect(told).toEqual([DAMAGE, 'notice'])
  })
})

describe('a request that is tried again', () => {
  it('is told, with the cause, the wait, and how many have failed', async () => {
    const clock = createFakeClock()
    const simulator = createSimulator({ script: echo })
    let failures = 2
    const fetch: typeof globalThis.fetch = async (...given) => {
      if (failures === 0) return simulator.fetch(...given)
      failures -= 1
      throw new TypeError('fetch failed')
    }
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch })
    const session = await createTidemark({ model, memory: true, env: {}, clock }).open('a')
    const told: SessionEvent[] = []
    session.on('retrying', (event) => {
      told.push(event)
      setImmediate(() => clock.advance(event.delayMs))
    })
    await session.append(user('hello'))
    expect(await session.run(null).outcome).toMatchObject({ ok: true })
    const shape = { type: 'retrying', cause: { retryable: true }, delayMs: expect.any(Number) }
    expect(told).toMatchObject([
      { ...shape, attempt: 1 },
      { ...shape, attempt: 2 },
    ])
  })
})
