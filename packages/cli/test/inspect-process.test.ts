/** `tidemark inspect` as a process: exit codes, output, and files that are not logs. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { main } from '../src/commands/main.ts'
import { TIDEMARK_COMMAND } from './command-line.ts'
import { buildLogLines, writeLog } from './made-up-logs.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-'))
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

const env = { PATH: process.env.PATH, HOME: folder, TZ: 'UTC', LANG: 'C.UTF-8' }

function tidemark(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...TIDEMARK_COMMAND, ...args], {
    encoding: 'utf8',
    env,
    maxBuffer: 1 << 28,
  })
  return { status, stdout, stderr }
}

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const good = buildLogLines({ name: 'good' }).map((line) => JSON.stringify(line))
const log = `${good.join('\n')}\n`
const packed = gzipSync(Buffer.from(log.repeat(200)))
const deep = `{"type":"user","uuid":"deep","parentUuid":null,"timestamp":"2026-03-09T09:00:00Z","sessionId":"s","message":{"role":"user","content":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
const huge = JSON.stringify({
  ...buildLogLines({ name: 'huge' })[0],
  message: { role: 'user', content: 'x'.repeat(50_000_000) },
})
const wrongTypes = [
  '42',
  'null',
  '[]',
  '{}',
  '{"type":7}',
  '{"type":"assistant","uuid":"a","parentUuid":3,"message":{"id":1,"usage":"none"}}',
  '{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"timestamp":7,"sessionId":"s","compactMetadata":5}',
]
const cycle = buildLogLines({ name: 'cycle' }).map((line) => ({ ...line, parentUuid: 'cycle-answer-1' }))

it('what is no log is one line each and exit code 1', () => {
  const given: readonly (readonly [path: string, said: string])[] = [
    [file('empty.jsonl', ''), 'is empty.'],
    [file('blank.jsonl', '\n \n\n'), 'has no lines:'],
    [
      file(
        'binary.jsonl',
        Uint8Array.from({ length: 9_999 }, (_, index) => (index * 7) % 256),
      ),
      'is binary:',
    ],
    [file('text.jsonl', 'hello\n'.repeat(500)), 'has no JSON lines:'],
    [file('other.jsonl', '{"a":1}\n{"b":2}\n'), 'has JSON lines, but none of a kind that is known:'],
    [file('head.jsonl.gz', packed.subarray(0, 15)), 'contains no readable part of a log:'],
  ]
  const { status, stdout, stderr } = tidemark('inspect', ...given.map(([path]) => path))
  const lines = stderr.trimEnd().split('\n')
  expect([status, stdout, lines.length]).toEqual([1, '', given.length])
  const missing = given.filter(
    ([path, said]) => !lines.some((line) => line.startsWith(`tidemark: ${path} ${said}`)),
  )
  expect(missing).toEqual([])
})

const damaged: readonly (readonly [what: string, path: string, kind: string])[] = [
  ['gzip that ends early', file('cut.jsonl.gz', packed.subarray(0, packed.length - 20)), 'torn-line'],
  ['a line of 50 MB that is no JSON', file('long.jsonl', `${log}${'y'.repeat(50_000_000)}\n`), 'bad-json'],
  ['wrong types', file('types.jsonl', `${log}${wrongTypes.join('\n')}\n`), 'bad-shape'],
  ['deep nesting', file('deep.jsonl', `${log}${deep}\n`), 'bad-shape'],
  ['repeated lines', file('twice.jsonl', log + log), 'duplicate-uuid'],
  [
    'a circle of parents',
    file('cycle.jsonl', cycle.map((line) => JSON.stringify(line)).join('\n')),
    'cyclic-parent',
  ],
  ['a page of zeros', file('zeros.jsonl', `${log}${'\0'.repeat(4_096)}`), 'torn-line'],
  ['a torn line', file('torn.jsonl', log.slice(0, -40)), 'torn-line'],
]

describe('a damaged log is read as far as possible, and its damage reported', () => {
  const paths = damaged.map(([, path]) => path)
  const whole = file('huge.jsonl', `${log}${huge}\n`)
  const { status, stdout, stderr } = tidemark('inspect', ...paths, whole, '--json')
  const { sessions } = JSON.parse(stdout)
  const of = (path: string) => sessions.find((session: { readonly file: string }) => session.file === path)

  it('and that is no failure', () => {
    expect([status, stderr, sessions.length]).toEqual([0, '', damaged.length + 1])
  })

  it.each(damaged)('%s', async (_what, path, kind) => {
    expect(of(path).damaged.map((place: { readonly kind: string }) => place.kind)).toContain(kind)
    let page = ''
    const write = (text: string): void => {
      page += text
    }
    const code = await main(['inspect', path], { write, warn: write, env, isTty: false, columns: 80 })
    expect([code, page.includes('\n! ')]).toEqual([0, true])
  })

  it('a line of 50 MB that is a record is read', () => {
    // The first prompt of the log is in the files before it, and is counted there.
    expect([of(whole).userMessages, of(whole).damaged]).toEqual([1, []])
  })
})

it('with --json standard output holds one value, and exit code 1 means that a file was not read', () => {
  const path = writeLog(folder, { name: 'one' })
  const { status, stdout, stderr } = tidemark('inspect', path, join(folder, 'nope.jsonl'), '--json')
  expect([status, stderr]).toEqual([1, `tidemark: ${join(folder, 'nope.jsonl')} does not exist.\n`])
  expect(JSON.parse(stdout).sessions.map((session: { file: string }) => session.file)).toEqual([path])
})

it('has no colours on a pipe, and is not stopped by a reader that has seen enough', async () => {
  const path = writeLog(folder, { name: 'piped' })
  expect(tidemark('inspect', path).stdout.includes('\u001b')).toBe(false)
  const child = spawn(process.execPath, [...TIDEMARK_COMMAND, 'inspect', path, '--json'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let told = ''
  child.stderr.on('data', (text) => {
    told += text
  })
  await new Promise((done) => child.once('close', done))
  expect(told).toBe('')
})

describe('Ctrl-C', () => {
  /** Sends itself the signal as soon as the process listens for it. */
  const interrupt = `data:text/javascript,${encodeURIComponent(
    "process.on('newListener', (name) => { if (name === 'SIGINT') setImmediate(() => process.kill(process.pid, 'SIGINT')) })",
  )}`
  const long = join(folder, 'several-pieces.jsonl')
  writeFileSync(long, log.repeat(20_000))

  it.each([
    ['inspect', [long]],
    ['repair', [long, '-o', join(folder, 'copy.jsonl')]],
  ])('ends %s with 130 and leaves nothing half-written', (command, args) => {
    const before = readdirSync(folder)
    const options = ['--import', interrupt, ...TIDEMARK_COMMAND, command, ...args]
    const { status, stdout, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8', env })
    expect({ status, stdout, stderr }).toEqual({ status: 130, stdout: '', stderr: '' })
    expect(readdirSync(folder)).toEqual(before)
  })
})
