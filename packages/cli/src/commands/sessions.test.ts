import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Terminal } from '@tidemark/terminal/terminal'
import { createFileJournal } from 'tidemark'
import { sessionPaths } from 'tidemark/internal'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { main } from './main.ts'

let home = ''

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-sessions-'))
  const journal = createFileJournal({ home })
  for (const id of ['login', 'docs']) {
    const message = { role: 'user' as const, content: `Please see to the ${id}.` }
    const timestamp = '2026-03-09T09:00:00.000Z'
    await journal.append(id, 0, [
      { type: 'user', uuid: id, parentUuid: null, timestamp, sessionId: id, message },
    ])
  }
  await journal.close()
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

async function run(args: readonly string[], given: Partial<Terminal> = {}) {
  let out = ''
  let err = ''
  const terminal: Terminal = {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: { TZ: 'UTC', TIDEMARK_HOME: home },
    isTty: false,
    columns: 80,
    ...given,
  }
  const code = await main(['sessions', ...args], terminal)
  return { code, out, err }
}

const isThere = (id: string): boolean => existsSync(sessionPaths(home, id).log)

describe('list', () => {
  it('is what the bare command does', async () => {
    const { code, out } = await run([])
    const rows = out.trimEnd().split('\n')
    expect([code, rows[0]]).toEqual([0, 'id     last used         first prompt'])
    expect(
      rows
        .slice(1)
        .map((row) => [row.slice(0, 5).trim(), row.slice(-25).trim()])
        .sort(),
    ).toEqual([
      ['docs', 'Please see to the docs.'],
      ['login', 'Please see to the login.'],
    ])
  })

  it('shows enough of the first prompt at 80 columns, and sizes where there is room', async () => {
    const id = 'chat-20260309-090000-a1b2c3'
    const text = 'Fix the login page, whose button does nothing on a phone.'
    const journal = createFileJournal({ home })
    await journal.append(id, 0, [
      {
        type: 'user',
        uuid: 'u',
        parentUuid: null,
        timestamp: '2026-03-09T09:00:00.000Z',
        sessionId: id,
        message: { role: 'user', content: text },
      },
    ])
    await journal.close()
    const { out } = await run([])
    const [row = ''] = out.split('\n').filter((line) => line.startsWith(id))
    expect(row.length).toBeLessThanOrEqual(80)
    expect(row).toContain('Fix the login page, whose')
    const wide = (await run([], { columns: 120 })).out
    expect(wide.split('\n')[0]).toMatch(/^id +last used +records +size +first prompt$/)
    expect(wide).toContain(text)
  })

  it('with --json is one value', async () => {
    const { home: told, sessions } = JSON.parse((await run(['list', '--json'])).out)
    expect([told, sessions.map(({ id }: { id: string }) => id).sort()]).toEqual([home, ['docs', 'login']])
  })

  it('reports that there are none', async () => {
    const env = { TIDEMARK_HOME: join(home, 'other') }
    expect(await run([], { env })).toEqual({
      code: 0,
      out: '',
      err: `No sessions in ${join(home, 'other')}.\n`,
    })
  })
})

it('a home that cannot be read is an error, not a home without sessions', async () => {
  rmSync(join(home, 'sessions'), { recursive: true })
  writeFileSync(join(home, 'sessions'), '')
  for (const args of [['list'], ['find', 'x']]) {
    const { code, out, err } = await run(args)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^tidemark: Could not list the sessions in .*ENOTDIR[^\n]*\n$/)
    expect(err).not.toContain('bug')
  }
})

it('a session that cannot be read is not counted as none', async () => {
  for (const id of ['login', 'docs']) writeFileSync(sessionPaths(home, id).log, 'no log')
  const { code, err } = await run(['list'])
  expect([code, err.includes('No sessions')]).toEqual([1, false])
})

describe('find', () => {
  it('shows author and line of each match', async () => {
    expect((await run(['find', 'LOGIN'])).out).toBe(
      ['id     line  author  text', 'login     2  person  Please see to the login.', ''].join('\n'),
    )
  })

  it('reports that nothing matches', async () => {
    expect(await run(['find', 'nothing'])).toEqual({
      code: 0,
      out: '',
      err: `No session in ${home} contains that text.\n`,
    })
  })
})

describe('delete', () => {
  it('needs --yes if the user cannot be asked', async () => {
    expect(await run(['delete', 'login'])).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: 1 session would be deleted permanently: confirm with --yes.\n',
    })
    expect(isThere('login')).toBe(true)
  })

  it('with --yes deletes what is named', async () => {
    expect(await run(['delete', 'login', 'docs', 'login', '--yes'])).toEqual({
      code: 0,
      out: 'deleted login\ndeleted docs\n',
      err: '',
    })
    expect([isThere('login'), isThere('docs')]).toEqual([false, false])
  })

  it.each([
    ['y', true],
    ['YES', true],
    ['', false],
    ['no', false],
  ])('asks the user: %j', async (answer, isGone) => {
    const asked: string[] = []
    const { code } = await run(['delete', 'login'], {
      ask: async (question) => {
        asked.push(question)
        return answer
      },
    })
    expect([code, isThere('login'), asked]).toEqual([
      isGone ? 0 : 1,
      !isGone,
      ['Delete 1 session permanently (login)? [y/N] '],
    ])
  })

  it('reports what does not exist, and deletes the rest', async () => {
    expect(await run(['delete', 'nope', 'login', '--yes'])).toEqual({
      code: 1,
      out: 'deleted login\n',
      err: 'tidemark: There is no session "nope".\n',
    })
  })

  it('does not ask about a session that does not exist', async () => {
    const asked: string[] = []
    const ask = async (question: string) => {
      asked.push(question)
      return 'y'
    }
    expect(await run(['delete', 'nope'], { ask })).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: There is no session "nope".\n',
    })
    expect((await run(['delete', 'nope', 'login'], { ask })).out).toBe('deleted login\n')
    expect(asked).toEqual(['Delete 1 session permanently (login)? [y/N] '])
  })

  it('deletes nothing if one id is not valid', async () => {
    expect(await run(['delete', 'login', '../x', '--yes'])).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: "../x" is not a session id; nothing was deleted.\n',
    })
    expect(isThere('login')).toBe(true)
  })
})
