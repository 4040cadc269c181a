import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionBuilder } from '@tidemark/core/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFileJournal } from '../storage/file-journal.ts'
import { sessionPaths } from '../storage/home-paths.ts'
import { deleteSession, listSessions, searchSessions } from './own-sessions.ts'

let home = ''

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-home-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

async function write(id: string, tell: (builder: SessionBuilder) => void): Promise<void> {
  const builder = new SessionBuilder(id)
  tell(builder)
  const journal = createFileJournal({ home })
  await journal.append(id, 0, builder.records)
  await journal.close()
}

const secret = `ghp_${'aZ3kQ9xB7mT2'.repeat(3)}`

describe('Tidemark sessions', () => {
  it('are listed with their first prompt', async () => {
    await write('login', (builder) => {
      builder.user('caveat', { isMeta: true })
      builder.user(`fix the login with ${secret}`)
    })
    expect(await listSessions(home)).toEqual({
      found: [
        {
          id: 'login',
          sizeBytes: expect.any(Number),
          modifiedAt: expect.stringMatching(/^\d{4}-.*Z$/),
          startedAt: '2023-11-14T22:13:21.000Z',
          records: 2,
          firstPrompt: 'fix the login with [redacted]',
          damaged: 0,
        },
      ],
      unreadable: [],
    })
  })

  it('are none if there is no home yet', async () => {
    expect(await listSessions(join(home, 'nowhere'))).toEqual({ found: [], unreadable: [] })
  })

  it('that cannot be read are reported beside the others', async () => {
    await write('good', (builder) => builder.user('hello'))
    writeFileSync(sessionPaths(home, 'bad').log, '')
    const { found, unreadable } = await listSessions(home)
    expect(found.map(({ id }) => id)).toEqual(['good'])
    expect(unreadable).toEqual([{ id: 'bad', why: `${sessionPaths(home, 'bad').log} is empty.` }])
  })

  it('are searched ignoring case, and secrets stay hidden', async () => {
    await write('login', (builder) => {
      builder.user(`The LOGIN fails. ${'x'.repeat(100)}`)
      builder.assistant('m1', [{ type: 'tool_use', id: 't1', name: 'Bash', input: {} }])
      builder.result('t1', `a login page\n\nwith token ${secret}`)
      builder.assistant('m2', 'Login fixed.')
      builder.user('about the login', { isMeta: true })
    })
    const { found } = await searchSessions(home, 'login')
    expect(found).toEqual([
      { id: 'login', line: 2, who: 'person', text: `The LOGIN fails. ${'x'.repeat(52)}…` },
      { id: 'login', line: 4, who: 'tool', text: 'a login page with token [redacted]' },
      { id: 'login', line: 5, who: 'model', text: 'Login fixed.' },
      { id: 'login', line: 6, who: 'engine', text: 'about the login' },
    ])
    expect((await searchSessions(home, secret)).found).toEqual([
      { id: 'login', line: 4, who: 'tool', text: '[redacted]' },
    ])
    expect((await searchSessions(home, 'nowhere')).found).toEqual([])
  })
})

describe('deleting a session', () => {
  it('removes its log, its folder and nothing else', async () => {
    await write('gone', (builder) => builder.user('x'))
    await write('kept', (builder) => builder.user('x'))
    const { folder, log, lock } = sessionPaths(home, 'gone')
    mkdirSync(folder)
    writeFileSync(join(folder, 'notes.md'), 'notes')
    expect(await deleteSession(home, 'gone')).toEqual({ ok: true, blobs: 0, blobsKept: null })
    expect([folder, log, lock, sessionPaths(home, 'kept').log].map((path) => existsSync(path))).toEqual([
      false,
      false,
      false,
      true,
    ])
  })

  it('that does not exist is refused', async () => {
    expect(await deleteSession(home, 'gone')).toEqual({
      ok: false,
      reason: 'missing',
      why: 'There is no session "gone".',
    })
  })

  it('that another process holds is refused', async () => {
    await write('held', (builder) => builder.user('x'))
    const holder = createFileJournal({ home, program: 'the holder' })
    await holder.acquire('held')
    const outcome = await deleteSession(home, 'held')
    expect(outcome).toMatchObject({ ok: false, reason: 'held', why: expect.stringContaining('the holder') })
    expect(existsSync(sessionPaths(home, 'held').log)).toBe(true)
    await holder.close()
  })

  it('never leads out of the sessions folder', async () => {
    await expect(deleteSession(home, '../x')).rejects.toThrow('cannot be a session id')
  })
})

describe('a home that cannot be read', () => {
  beforeEach(() => writeFileSync(join(home, 'sessions'), 'a file where a folder is expected'))

  it.each([
    ['listed', () => listSessions(home)],
    ['searched', () => searchSessions(home, 'x')],
    ['deleted from', () => deleteSession(home, 'login')],
  ])('is an error if it is %s, not a home without sessions', async (_what, act) => {
    await expect(act()).rejects.toMatchObject({ code: 'io-failed' })
  })
})
