/** A session is released whatever the disk does, so that another process can write to it. */
import { createFakeClock, sampleRecords } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createSystemError } from '../testing/crash-file-node.ts'
import { createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createFakeProcessTable } from '../testing/fake-machine.ts'
import { createFileJournal } from './file-journal.ts'

const LOG = '/home/sessions/s.jsonl'
const LOCK = '/home/sessions/s.lock'

function scene() {
  const clock = createFakeClock()
  const files = createCrashFileSystem({ directories: ['/home', '/home/sessions'], now: () => clock.now() })
  const machine = createFakeProcessTable()
  const open = () => createFileJournal({ home: '/home', files, clock, processes: machine.start() })
  return { files, open }
}

describe('when the disk fails', () => {
  it('because it is full, a session is released all the same', async () => {
    const made = scene()
    const journal = made.open()
    await journal.append('s', 0, sampleRecords('a'))
    made.files.interfere(({ kind, path }) =>
      kind === 'append' ? { error: createSystemError('ENOSPC', path) } : undefined,
    )
    await journal.release('s')
    expect(await made.files.facts(LOCK)).toBe(null)
    made.files.interfere(null)
    expect(await made.open().append('s', 1, sampleRecords('b'))).toMatchObject({ ok: true })
  })

  it('at the closing of a log, its lock is released all the same, and so are the other sessions', async () => {
    const made = scene()
    const open = made.files.open.bind(made.files)
    const close = (): Promise<never> => Promise.reject(createSystemError('EIO', LOG))
    made.files.open = async (path, mode) => {
      const file = await open(path, mode)
      return file === null || path !== LOG ? file : { ...file, close }
    }
    const journal = made.open()
    await journal.append('s', 0, sampleRecords('a'))
    await journal.append('t', 0, sampleRecords('a'))
    await expect(journal.close()).rejects.toMatchObject({ code: 'io-failed' })
    expect(await made.files.facts(LOCK)).toBe(null)
    expect(await made.files.facts('/home/sessions/t.lock')).toBe(null)
  })
})
