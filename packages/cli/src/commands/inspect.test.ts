import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Terminal } from '@tidemark/terminal/terminal'
import { afterAll, describe, expect, it } from 'vitest'
import { buildLogLines, writeLog } from '../../test/made-up-logs.ts'
import { main } from './main.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-command-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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
    env: { TZ: 'UTC' },
    isTty: false,
    columns: 80,
    ...given,
  }
  const code = await main(['inspect', ...args], terminal)
  return { code, out, err }
}

const alpha = writeLog(folder, { name: 'alpha' })
const beta = writeLog(folder, {
  name: 'beta',
  model: 'claude-haiku-4-5',
  day: '2026-03-10',
  project: '/home/user/app',
})
/** A resumed session: its log repeats the responses of alpha. */
const gamma = writeLog(folder, {
  name: 'gamma',
  day: '2026-03-11',
  answers: ['alpha-1', 'alpha-2', 'gamma-3'],
})
const strange = writeLog(folder, {
  name: 'strange',
  model: 'llama-x',
  day: '2026-03-11',
  project: '/srv/shop',
})
// Calls that are in two logs are counted in the older file; if both have the same time, in the first by path.
const written = new Date()
for (const file of [alpha, beta, gamma, strange]) utimesSync(file, written, written)
const empty = join(folder, 'empty.jsonl')
writeFileSync(empty, '')

describe('several sessions', () => {
  it('are a table with totals', async () => {
    const { code, out, err } = await run([alpha, beta, gamma, strange], {
      isTty: true,
      env: { TZ: 'UTC', NO_COLOR: '1' },
    })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatchInlineSnapshot(`
      "Sessions                           4 sessions, 7 calls, >$0.69, 41.7% cache hits
      #  started           project  model      calls   peak   hits   cost
      1  2026-03-11 09:00  shop     opus-4-5       1  90.0k  66.7%  $0.22
      2  2026-03-11 09:00  shop     llama-x        2  60.0k  33.3%      ?
      3  2026-03-10 09:00  app      haiku-4-5      2  60.0k  33.3%  $0.08
      4  2026-03-09 09:00  shop     opus-4-5       2  60.0k  33.3%  $0.39

      By day      sessions  calls  tokens   hits    cost
      2026-03-11         2      3    180k  50.0%  >$0.22
      2026-03-10         1      2   90.1k  33.3%   $0.08
      2026-03-09         1      2   90.1k  33.3%   $0.39

      By model                  sessions  calls  tokens   hits   cost
      claude-opus-4-5-20251101         2      3    180k  50.0%  $0.61
      claude-haiku-4-5                 1      2   90.1k  33.3%  $0.08
      llama-x                          1      2   90.1k  33.3%      ?

      By project  sessions  calls  tokens   hits   cost
      user/shop          2      3    180k  50.0%  $0.61
      app                1      2   90.1k  33.3%  $0.08
      srv/shop           1      2   90.1k  33.3%      ?

      To see one session, add --session NUMBER or --session ID.
      "
    `)
  })

  it('are sorted and limited as asked; totals are of all', async () => {
    const { out } = await run([alpha, beta, gamma, '--sort', 'calls', '--limit', '1'])
    const rows = out.split('\n')
    expect(rows[0]).toBe('Sessions                            3 sessions, 5 calls, $0.69, 44.4% cache hits')
    expect(rows[2]?.slice(0, 40).trimEnd()).toBe('1  2026-03-09 09:00  shop     opus-4-5')
    expect(rows[3]).toBe('… and 2 more sessions, included in the totals (--limit 0 lists all)')
  })

  it.each([
    ['its number', '1'],
    ['its id', 'beta-0000'],
  ])('one is opened by %s', async (_how, which) => {
    const { code, out } = await run([alpha, beta, '--session', which])
    expect([code, out.split('\n')[0]?.trimEnd().split(/\s+/)]).toEqual([0, ['beta.jsonl', 'claude-code']])
  })

  it('are listed newest start first, whatever the order of the paths and the times of the files', async () => {
    const place = mkdtempSync(join(folder, 'order-'))
    const paths = ['old', 'middle', 'new'].map((name, index) => {
      const path = writeLog(place, { name, day: `2026-03-1${index}`, answers: [`${name}-1`] })
      utimesSync(path, 9 - index, 9 - index)
      return path
    })
    const list = async (...given: readonly string[]) =>
      JSON.parse((await run([...given, '--json'])).out).sessions.map(({ file }: { file: string }) => file)
    expect(await list(...paths)).toEqual(paths.toReversed())
    expect(await list(place)).toEqual(paths.toReversed())
  })

  it('of a program whose logs cannot be read yet are one line each, and the others are read', async () => {
    const place = mkdtempSync(join(folder, 'other-programs-'))
    writeLog(place, { name: 'own' })
    const pi = join(place, 'pi.jsonl')
    const lines = [
      { type: 'session', id: 's', timestamp: '2026-03-09T09:00:00Z', cwd: '/shop' },
      { type: 'message', timestamp: '2026-03-09T09:00:01Z', message: { role: 'user', content: [] } },
    ]
    writeFileSync(pi, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const refusal = `tidemark: ${pi} is a session of pi, which cannot be read yet: expected the JSON lines of a Claude Code session, of a Codex rollout or of a session of Tidemark.\n`
    expect(await run([pi])).toEqual({ code: 1, out: '', err: refusal })
    const { code, out, err } = await run([place])
    expect([code, out.split('\n')[0]?.split(' ')[0], err]).toEqual([1, 'own.jsonl', refusal])
  })

  it('one that is not there is one line', async () => {
    expect(await run([alpha, beta, '--session', 'x'])).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: no session has an id that begins with x.\n',
    })
  })

  it('a number of no row is the beginning of an id', async () => {
    const place = mkdtempSync(join(folder, 'numbers-'))
    const write = (name: string): string => {
      const path = writeLog(place, { name })
      utimesSync(path, written, written)
      return path
    }
    const paths = ['08aa', '1284', 'cafe'].map(write)
    const opened = async (which: string) =>
      (await run([...paths, '--session', which])).out.split('\n')[0]?.split(' ')[0]
    expect(await Promise.all(['08', '12', '3'].map(opened))).toEqual([
      '08aa.jsonl',
      '1284.jsonl',
      'cafe.jsonl',
    ])
    expect(await run([...paths, write('1285'), '--session', '12'])).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: 2 sessions have an id that begins with 12: 1284-000, 1285-000. Give more of it.\n',
    })
  })

  it('show their ids on a wide screen', async () => {
    const { out } = await run([alpha, beta], { columns: 160 })
    expect(out.split('\n')[2]?.slice(0, 40)).toBe('1  2026-03-10 09:00  beta-000  app      ')
  })

  it('with --since are shown whole, with totals since that day, and the page explains both', async () => {
    const long = join(folder, 'long.jsonl')
    const [prompt, first] = buildLogLines({ name: 'long' })
    const late = buildLogLines({ name: 'long', day: '2026-03-12' })[2]
    writeFileSync(long, [prompt, first, late].map((line) => `${JSON.stringify(line)}\n`).join(''))
    const { out } = await run([long, beta, '--since', '2026-03-10'])
    expect(out.split('\n').slice(0, 9)).toEqual([
      'Sessions                            2 sessions, 4 calls, $0.47, 33.3% cache hits',
      '#  started           project  model      calls   peak   hits   cost',
      '1  2026-03-10 09:00  app      haiku-4-5      2  60.0k  33.3%  $0.08',
      '2  2026-03-09 09:00  shop     opus-4-5       2  60.0k  33.3%  $0.39',
      '',
      'These are whole sessions, earlier days included. Since 2026-03-10, and below: 3',
      'calls, $0.28, 40.0% cache hits.',
      '',
      'By day      sessions  calls  tokens   hits   cost',
    ])
    expect(out).not.toContain('2026-03-09  ')
    const { totals, sessions } = JSON.parse((await run([long, '--since', '2026-03-10', '--json'])).out)
    expect([totals.since, totals.apiCalls, totals.byDay.length, sessions[0].apiCalls]).toEqual([
      '2026-03-10',
      1,
      1,
      2,
    ])
    const alone = await run([long, '--since', '2026-03-10'])
    expect(alone.out).toContain('This is the whole session, earlier days included. Since 2026-03-10: 1 call')
  })

  it('since a day leaves out the older ones', async () => {
    const { sessions } = JSON.parse((await run([alpha, beta, '--since', '2026-03-10', '--json'])).out)
    expect(sessions.map(({ file }: { file: string }) => file)).toEqual([beta])
  })
})

describe('--json', () => {
  it('is one value, sessions newest first as without paths, and nothing else', async () => {
    const { code, out, err } = await run([gamma, alpha, '--json'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const { sessions, totals, unreadable } = JSON.parse(out)
    const counts = sessions.map((one: Record<string, unknown>) => [one.file, one.apiCalls, one.copiedCalls])
    expect(counts).toEqual([
      [gamma, 1, 2],
      [alpha, 2, 0],
    ])
    expect([totals.apiCalls, unreadable]).toEqual([3, []])
  })

  it('has the names of the contract', async () => {
    const { sessions } = JSON.parse((await run([alpha, '--json'])).out)
    expect(Object.keys(sessions[0])).toEqual(
      expect.arrayContaining(
        'file format records apiCalls toolCalls userMessages models usage hitRate peakContextTokens compactions clearings tokensByClass duplicateReads costUsd outputEstimated damaged'.split(
          ' ',
        ),
      ),
    )
  })

  it('says of a name without a session where the ids are listed', async () => {
    const { code, err } = await run(['nosuchid'])
    expect(code).toBe(1)
    expect(err).toMatch(/nosuchid does not exist\. tidemark sessions lists the ids of sessions\.\n$/)
  })

  it('lists what cannot be read beside the rest, and ends with 1', async () => {
    const missing = join(folder, 'nope.jsonl')
    const { code, out, err } = await run([missing, alpha, empty, '--json'])
    expect({ code, err }).toEqual({
      code: 1,
      err: `tidemark: ${missing} does not exist.\ntidemark: ${empty} is empty.\n`,
    })
    const { sessions, unreadable } = JSON.parse(out)
    expect([sessions.length, unreadable.map(({ file }: { file: string }) => file)]).toEqual([
      1,
      [missing, empty],
    ])
  })

  it('has no secret, in whatever place', async () => {
    const secret = 'AKIAABCDEFG234567ABC'
    const place = mkdtempSync(join(folder, `${secret}-`))
    writeFileSync(join(place, 'bad.jsonl'), '')
    writeLog(place, { name: secret, project: `/home/${secret}`, model: `own-${secret}` })
    const { out, err } = await run([place, '--json'])
    expect(out + err).not.toContain(secret)
    expect(JSON.parse(out).sessions[0].project).toBe('/home/[redacted]')
  })
})

describe('a folder without sessions', () => {
  const nothing = mkdtempSync(join(folder, 'nothing-'))
  const err = `tidemark: ${nothing} has no session in it.\n`

  it('is one line and exit code 1', async () => {
    expect(await run([nothing])).toEqual({ code: 1, out: '', err })
  })

  it('is so beside others', async () => {
    const { code, err: told, out } = await run([nothing, alpha])
    expect([code, told, out.startsWith('alpha.jsonl')]).toEqual([1, err, true])
  })

  it('is so with --json, and named there', async () => {
    const { code, out, err: told } = await run([nothing, '--json'])
    const { sessions, unreadable } = JSON.parse(out)
    expect([code, told, sessions, unreadable]).toEqual([
      1,
      err,
      [],
      [{ file: nothing, why: `${nothing} has no session in it.` }],
    ])
  })

  it('reports that all sessions are too old, with and without --json', async () => {
    const text = await run([alpha, '--since', '2999-01-01'])
    const json = await run([alpha, '--since', '2999-01-01', '--json'])
    expect([text.code, text.err]).toEqual([json.code, json.err])
    expect(text.err).toMatch(/^tidemark: no session used since then in .*\n$/)
    expect(JSON.parse(json.out).sessions).toEqual([])
  })
})

describe('without a name', () => {
  const home = join(folder, 'home')
  mkdirSync(join(home, 'projects', '-home-user-shop'), { recursive: true })
  writeLog(join(home, 'projects', '-home-user-shop'), { name: 'own' })
  const env = {
    TZ: 'UTC',
    CLAUDE_CONFIG_DIR: home,
    CODEX_HOME: join(home, 'codex'),
    TIDEMARK_HOME: join(home, 't'),
  }

  it('the sessions of the known programs are meant', async () => {
    const { code, out } = await run([], { env })
    expect([code, out.split('\n')[0]?.trimEnd().split(/\s+/)]).toEqual([0, ['own.jsonl', 'claude-code']])
  })

  it('one that is wanted by its id need not be among the newest', async () => {
    const place = join(home, 'projects', '-home-user-shop')
    for (const name of ['new-1', 'new-2']) writeLog(place, { name })
    const { code, out } = await run(['--limit', '1', '--session', 'own'], { env })
    expect([code, out.split('\n')[0]?.trimEnd().split(/\s+/)]).toEqual([0, ['own.jsonl', 'claude-code']])
    const { sessions, notRead } = JSON.parse((await run(['--limit', '1', '--json'], { env })).out)
    expect([sessions.length, notRead]).toEqual([1, 2])
  })

  it('a number of no row is looked for among all ids', async () => {
    const place = join(home, 'projects', '-home-user-old')
    mkdirSync(place)
    for (const name of ['2aaa', '08aa', '2bbb']) utimesSync(writeLog(place, { name }), 1, 1)
    const opened = async (which: string) => {
      const { out, err } = await run(['--limit', '1', '--session', which], { env })
      return err === '' ? out.split(' ')[0] : err
    }
    expect([await opened('08'), await opened('2')]).toEqual([
      '08aa.jsonl',
      'tidemark: 2 sessions have an id that begins with 2: 2aaa-000, 2bbb-000. Give more of it.\n',
    ])
  })

  it('reports a folder that cannot be read', async () => {
    const circle = join(folder, 'circle')
    symlinkSync(circle, circle)
    const { code, out, err } = await run([], { env: { ...env, CLAUDE_CONFIG_DIR: circle } })
    expect([code, out, err.split(':').slice(0, 3).join(':')]).toEqual([
      1,
      '',
      `tidemark: ${join(circle, 'projects')} cannot be read: ELOOP`,
    ])
  })

  it('and none is there, the places are named', async () => {
    const nowhere = join(folder, 'nowhere')
    const none = { ...env, CLAUDE_CONFIG_DIR: nowhere }
    expect(await run([], { env: none })).toEqual({
      code: 1,
      out: '',
      err: `tidemark: no session in ${join(nowhere, 'projects')}, ${join(home, 'codex', 'sessions')}, ${join(home, 'codex', 'archived_sessions')}, ${join(home, 't', 'sessions')}. Name a file or a folder: tidemark inspect FILE.\n`,
    })
  })
})

describe('wrong use is one line and exit code 2', () => {
  it.each([
    [
      ['--sort', 'size'],
      "option '--sort <by>' argument 'size' is invalid. Allowed choices are cost, tokens, calls, date, hit.",
    ],
    [['--limit', '-1'], "option '--limit <rows>' argument '-1' is invalid. Expected a whole number."],
    [
      ['--since', 'yesterday'],
      "option '--since <when>' argument 'yesterday' is invalid. Expected a span such as 7d or 12h, or a day such as 2026-11-01.",
    ],
  ])('%j', async (args, message) => {
    expect(await run(args)).toEqual({
      code: 2,
      out: '',
      err: `tidemark: ${message} See tidemark inspect --help.\n`,
    })
  })
})

it('ends with 130 and prints nothing if the user interrupts it', async () => {
  expect(await run([alpha, beta], { interrupted: AbortSignal.abort() })).toEqual({
    code: 130,
    out: '',
    err: '',
  })
})

it('damage comes last on the page of its session', async () => {
  const torn = join(folder, 'torn.jsonl')
  const lines = buildLogLines({ name: 'torn' }).map((line) => JSON.stringify(line))
  writeFileSync(torn, `${lines.join('\n')}\nnot json\n{"type":"user","uu`)
  const { code, out } = await run([torn])
  expect([code, out.split('\n').slice(-4)]).toEqual([
    0,
    [
      '',
      '! line 4: the line is no JSON object with a type; it is left out',
      '! line 5: the last line was cut off; it is left out',
      '',
    ],
  ])
})

describe('a log that broke off', () => {
  const texts = buildLogLines({
    name: 'packed',
    answers: Array.from({ length: 9 }, (_, index) => `a-${index}`),
  })
  const packed = gzipSync(texts.map((line) => `${JSON.stringify({ ...line, salt: Math.PI })}\n`).join(''))
  const broken = join(folder, 'broken.jsonl.gz')
  writeFileSync(broken, packed.subarray(0, packed.length - 60))

  it('has a warning at the top of its page, and another with the line', async () => {
    const { out } = await run([broken])
    const lines = out.split('\n')
    expect(lines.slice(3, 7)).toEqual([
      '',
      '! the gzip data ends early: nothing behind this could be read. All figures cover',
      '  only the part before it',
      '',
    ])
    expect(out.match(/the gzip data ends early/g)).toHaveLength(2)
  })

  it('has a warning above the table', async () => {
    const { out } = await run([alpha, broken])
    expect(out.split('\n').slice(0, 3)).toEqual([
      '! 1 session is incomplete; only its readable part is counted: broken.jsonl.gz',
      '',
      expect.stringMatching(/^Sessions /),
    ])
  })
})
