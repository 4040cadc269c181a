/** `tidemark compact` as a process: what it prints, writes, refuses and leaves alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSummarizer, serve } from '@tidemark/simulator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { main } from '../packages/cli/src/commands/main.ts'
import { COMMAND_SAMPLE, TIDEMARK_COMMAND } from '../packages/cli/test/command-line.ts'
import type { Terminal } from '../packages/terminal/src/terminal.ts'
import { PROMPTS, writeWorkingSession } from '../packages/tidemark/test/working-session.ts'

let folder = ''
let foreign = ''
let own = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-compact-process-'))
  foreign = join(folder, 'working.jsonl')
  own = join(folder, 'own.jsonl')
  writeWorkingSession(foreign)
  copyFileSync(COMMAND_SAMPLE, own)
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

type Variables = Readonly<Record<string, string>>

function start(args: readonly string[], more: Variables = {}) {
  const env = { PATH: process.env.PATH, HOME: folder, TZ: 'UTC', LANG: 'C.UTF-8', ...more }
  return spawn(process.execPath, [...TIDEMARK_COMMAND, 'compact', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function tidemark(args: readonly string[], more: Variables = {}) {
  const child = start(args, more)
  const [out, err]: [string[], string[]] = [[], []]
  child.stdout.on('data', (data: Buffer) => out.push(String(data)))
  child.stderr.on('data', (data: Buffer) => err.push(String(data)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out: out.join(''), err: err.join('') }
}

function names(): readonly string[] {
  return readdirSync(folder).toSorted()
}

describe('a foreign log', () => {
  it('is only read: without -o it is a dry run, and says so', async () => {
    const before = readFileSync(foreign, 'utf8')
    const { code, out, err } = await tidemark([foreign, '--full'])
    expect([code, err, out.includes('\u001b')]).toEqual([0, '', false])
    const said = ['Compaction of ~/working.jsonl', 'Plan', 'Draft', 'Receipt', PROMPTS[0] ?? '']
    const unwrapped = out.replace(/\s+/g, ' ')
    expect(said.filter((words) => !unwrapped.includes(words))).toEqual([])
    expect(out).toContain('Dry run: logs of other programs are only read. Nothing was written;')
    expect([readFileSync(foreign, 'utf8'), names()]).toEqual([before, ['own.jsonl', 'working.jsonl']])
  })

  it('with --json is one value with the fields of the contract', async () => {
    const args = [foreign, '--at', '00000008', '--target', '52000', '--summarizer', 'local', '--json']
    const { code, out, err } = await tidemark(args)
    expect([code, err, out.trimEnd().includes('\n')]).toEqual([0, '', false])
    const value = JSON.parse(out)
    expect(Object.keys(value).slice(0, 7)).toEqual([
      'tokensBefore',
      'tokensAfter',
      'summary',
      'ledger',
      'messages',
      'receipt',
      'trace',
    ])
    expect(Object.keys(value.receipt)).toEqual([
      'summarised',
      'kept',
      'carried',
      'lost',
      'retrievable',
      'unfit',
      'unpinned',
    ])
    expect([value.receipt.lost.files, value.receipt.lost.userMessages, value.receipt.lost.errors]).toEqual([
      [],
      [],
      [],
    ])
    expect(value.tokensAfter).toBeLessThan(value.tokensBefore)
    expect([value.messages[0].role, value.at.slice(0, 8), value.written]).toEqual(['user', '00000008', null])
  })

  it('with -o becomes a session that goes on, is never replaced unasked, and is taken back', async () => {
    const out = join(folder, 'out.jsonl')
    const first = await tidemark([foreign, '-o', out, '--json'])
    const { id, messages } = JSON.parse(first.out)
    expect([first.code, names()]).toEqual([0, ['out.jsonl', 'own.jsonl', 'working.jsonl']])
    const written = readFileSync(out, 'utf8')
    const refused = await tidemark([foreign, '-o', out])
    expect([refused.code, refused.err.split('\n').length]).toEqual([2, 2])
    expect(readFileSync(out, 'utf8')).toBe(written)
    const undone = await tidemark([out, '--undo', id, '--yes', '--json'])
    expect([undone.code, JSON.parse(undone.out).undone, undone.err]).toEqual([0, id, ''])
    expect(readFileSync(out, 'utf8').startsWith(written)).toBe(true)
    expect(JSON.parse(undone.out).messages.length).toBeGreaterThan(messages.length)
    const again = await tidemark([out, '--undo', id, '--yes'])
    expect([again.code, again.out]).toEqual([1, ''])
    expect(names()).toEqual(['out.jsonl', 'own.jsonl', 'working.jsonl'])
  })
})

describe('a log of ours', () => {
  it('is not written where nobody can be asked, unless --yes says so', async () => {
    const before = readFileSync(own, 'utf8')
    const { code, out, err } = await tidemark([own])
    expect([code, out, err.split('\n').length]).toEqual([2, '', 2])
    expect(err).toContain('there is no terminal to confirm it: give --yes, --dry-run, or -o for a copy')
    expect(readFileSync(own, 'utf8')).toBe(before)
    const done = await tidemark([own, '--yes'])
    expect([done.code, done.err]).toEqual([0, ''])
    expect(readFileSync(own, 'utf8').startsWith(before)).toBe(true)
    expect(readFileSync(own, 'utf8').length).toBeGreaterThan(before.length)
    expect(names()).toEqual(['own.jsonl', 'working.jsonl'])
  })

  it('is left alone where it is the sample', async () => {
    const { code, out } = await tidemark([COMMAND_SAMPLE])
    expect([code, out.includes('Dry run: the sample is only read.')]).toEqual([0, true])
  })
})

describe('with a model', () => {
  const key = { ANTHROPIC_API_KEY: 'any' }

  it('the summary is the model’s, mended by what the log knows', async () => {
    const server = await serve({ script: createSummarizer() })
    try {
      const args = [foreign, '--summarizer', 'model', '--base-url', server.url, '--json']
      const { code, out } = await tidemark(args, key)
      const { summarizer, fallbackReason, messages } = JSON.parse(out)
      expect([code, summarizer, fallbackReason]).toEqual([0, 'model', null])
      const text = JSON.stringify(messages)
      expect(PROMPTS.filter((prompt) => !text.includes(prompt))).toEqual([])
    } finally {
      await server.close()
    }
  })

  it('where it has nothing to say the summary is made without it, and that is told', async () => {
    const server = await serve({})
    try {
      const args = [foreign, '--summarizer', 'model', '--base-url', server.url, '--json']
      const { code, out, err } = await tidemark(args, key)
      expect([code, JSON.parse(out).summarizer, err.split('\n').length]).toEqual([0, 'local', 2])
      expect(err).toContain('it was written without a model')
    } finally {
      await server.close()
    }
  })

  it('Ctrl-C while it is asked leaves everything as it was', async () => {
    const before = readFileSync(own, 'utf8')
    const server = createServer(() => {})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const child = start([own, '--yes', '--summarizer', 'model', '--base-url', url], key)
    await once(server, 'request')
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([130, null])
    server.closeAllConnections()
    server.close()
    expect([readFileSync(own, 'utf8'), names()]).toEqual([before, ['own.jsonl', 'working.jsonl']])
  })
})

async function run(args: readonly string[], given: Partial<Terminal> = {}) {
  let [out, err] = ['', '']
  const terminal: Terminal = {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: {},
    isTty: false,
    columns: 80,
    ...given,
  }
  return { code: await main(['compact', ...args], terminal), out, err }
}

describe('wrong use is one line and exit code 2', () => {
  it.each([
    [[], "missing required argument 'file'"],
    [['F', '--from', 'a', '--up-to', 'b'], '--from and --up-to exclude each other'],
    [['F', '--dry-run', '-o', 'x.jsonl'], '--dry-run and -o exclude each other'],
    [['F', '--undo', 'x', '--at', 'y'], '--undo cannot be combined with --at.'],
    [['F', '--base-url', 'http://x'], '--base-url needs --summarizer model.'],
    [['F', '--summarizer', 'model'], '--summarizer model needs a key'],
    [['F', '--summarizer', 'human'], 'Allowed choices are local, model.'],
    [['F', '--target', 'few'], 'Expected a whole number of tokens.'],
    [['F', '--instructions', ' '], '--instructions is empty.'],
    [['F', '--at', 'nope'], 'no record has the id nope.'],
    [['F', '--up-to', 'nope'], 'no record has the id nope.'],
    [['F', '--undo', 'nope'], 'no record has the id nope.'],
    [['F', '--window', '100'], 'A context window of 100 tokens is too small'],
    [['F', '-o', 'F'], 'is the log itself'],
    [['F', '-o', 'x.jsonl.gz'], 'leave off .gz'],
    [['.'], 'has 2 sessions: choose one with --session'],
    [['.', '--session', '9'], 'no session has number 9'],
  ])('%j', async (args, said) => {
    const given = args.map((arg) => (arg === 'F' ? foreign : arg === '.' ? folder : arg))
    const { code, out, err } = await run(given)
    expect([code, out, err.split('\n').length, err.startsWith('tidemark: ')]).toEqual([2, '', 2, true])
    expect(err).toContain(said)
    expect(err).toContain('See tidemark compact --help.')
    expect(names()).toEqual(['own.jsonl', 'working.jsonl'])
  })
})

describe('what fails is one line and exit code 1', () => {
  it.each([
    [['F', '--target', '20'], 'What cannot be left out still has'],
    [['no-such-file.jsonl'], 'no-such-file.jsonl does not exist.'],
    [['F', '--undo', '00000008'], 'There is no compaction or clearing to undo.'],
  ])('%j', async (args, said) => {
    const { code, out, err } = await run(args.map((arg) => (arg === 'F' ? foreign : arg)))
    expect([code, out, err.split('\n').length]).toEqual([1, '', 2])
    expect(err).toContain(said)
  })
})

describe('on a terminal the person is asked', () => {
  it.each([
    ['n', 1],
    [null, 1],
    ['yes', 0],
  ] as const)('and says %j', async (answer, code) => {
    const before = readFileSync(own, 'utf8')
    const asked: string[] = []
    const ask = async (question: string): Promise<string | null> => {
      asked.push(question)
      return answer
    }
    const outcome = await run([own], { isInputTty: true, ask })
    expect([outcome.code, asked.length, outcome.out.includes('Receipt')]).toEqual([code, 1, true])
    expect(readFileSync(own, 'utf8') === before).toBe(code === 1)
    expect(names()).toEqual(['own.jsonl', 'working.jsonl'])
  })

  it.each([
    [{ NO_COLOR: '1', LANG: 'C.UTF-8' }, false],
    [{ LANG: 'C.UTF-8' }, true],
  ])('and colours are as wanted: %j', async (env, isColoured) => {
    const { out } = await run([foreign], { isTty: true, env })
    expect(out.includes('\u001b')).toBe(isColoured)
  })

  it('which of several sessions is meant is said with --session', async () => {
    mkdirSync(join(folder, 'both'))
    copyFileSync(foreign, join(folder, 'both', 'one.jsonl'))
    copyFileSync(own, join(folder, 'both', 'two.jsonl'))
    const { code, out } = await run([join(folder, 'both'), '--session', 'working', '--json'])
    expect([code, JSON.parse(out).sessionId]).toEqual([0, 'working-0000'])
  })
})
