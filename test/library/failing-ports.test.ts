/** A port of the caller that fails: outcomes stay values with a plain line, and the session goes on once it is mended. */
import { randomUUID } from 'node:crypto'
import type { Journal } from '@tidemark/core/engine/ports'
import { user } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

/** A journal whose disk can be filled up. */
function createDisk() {
  const journal = createMemoryJournal(new Map())
  const disk = { isFull: false, writesLeft: Number.POSITIVE_INFINITY }
  const append: Journal['append'] = async (...input) => {
    disk.writesLeft -= 1
    if (disk.isFull || disk.writesLeft < 0)
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    return journal.append(...input)
  }
  return { disk, journal: { ...journal, append } }
}

const FULL =
  'The session could not be saved: journal: append() failed: ENOSPC: no space left on device, write. Everything before is in the log; repair the storage, then continue.'

describe('a journal on a full disk', () => {
  it.each([0, 1, 2, 3, 4, 6])('after %i writes ends the run with a plain line', async (writes) => {
    const { disk, journal } = createDisk()
    const world = createTestTidemark({ journal })
    const session = await world.tide.open('a')
    const types: string[] = []
    session.on('*', ({ type }) => types.push(type))
    disk.writesLeft = writes
    const outcome = await session.run('Mend the sums.', world.tools).outcome
    expect(outcome).toMatchObject({ ok: false, reason: 'port', message: FULL })
    expect('unsaved' in outcome && outcome.unsaved.length).toBeGreaterThan(0)
    expect(types.filter((type) => type !== 'status').at(-1)).toBe('turn-ended')
    disk.writesLeft = Number.POSITIVE_INFINITY
    const prompt = writes === 0 ? 'Mend the sums.' : null
    expect(await session.run(prompt, world.tools).outcome).toMatchObject({ ok: true })
    expect(world.simulator.requests.every(({ status }) => status === 200)).toBe(true)
  })

  it('is told by every other operation too, and nothing is changed', async () => {
    const { disk, journal } = createDisk()
    const world = createTestTidemark({ journal })
    const session = await world.tide.open('a')
    await session.run('Mend the sums.', world.tools).outcome
    const [uuid = ''] = await session.append(user('And the dates.'))
    const before = session.messages()
    disk.isFull = true
    const failed = { ok: false, reason: 'port', message: FULL }
    await expect(session.append(user('More.'))).rejects.toMatchObject({
      code: 'io-failed',
      message: `append: ${FULL}`,
    })
    expect(await session.compact()).toMatchObject(failed)
    expect(await session.pin(uuid)).toMatchObject(failed)
    expect(await session.rewind(uuid)).toMatchObject(failed)
    expect(await session.clear()).toMatchObject(failed)
    expect(await session.next({ system: 'Be brief.' })).toMatchObject(failed)
    expect(session.messages()).toEqual(before)
  })
})

describe('a clock or id generator that throws', () => {
  it.each(['clock', 'ids'] as const)('ends the run with a line that names it: %s', async (port) => {
    let isBroken = false
    const read = <T>(asked: string, value: T): T => {
      if (isBroken && asked === port) throw new Error('no such device')
      return value
    }
    const world = createTestTidemark({
      clock: { now: () => read('clock', Date.now()), sleep: () => new Promise(() => {}) },
      ids: { next: () => read('ids', randomUUID()) },
    })
    const session = await world.tide.open('a')
    isBroken = true
    const message = `${port}: ${port === 'clock' ? 'now' : 'next'}() failed: no such device`
    expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({
      ok: false,
      reason: 'port',
      message,
    })
    await expect(session.append(user('Hello.'))).rejects.toMatchObject({ code: 'bad-option', message })
    isBroken = false
    expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({ ok: true })
  })

  it('is named if an id is no text', async () => {
    const session = await createTestTidemark({ ids: { next: () => 7 as never } }).tide.open('a')
    await expect(session.append(user('Hello.'))).rejects.toThrow(
      'ids: next() returned 7; expected a unique text.',
    )
  })
})
