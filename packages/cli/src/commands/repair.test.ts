import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Terminal } from '@tidemark/terminal/terminal'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { buildLogLines } from '../../test/made-up-logs.ts'
import { main } from './main.ts'

let folder = ''
let log = ''
let out = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-repair-'))
  log = join(folder, 'torn.jsonl')
  out = join(folder, 'clean.jsonl')
  const lines = buildLogLines({ name: 'torn' }).map((line) => JSON.stringify(line))
  writeFileSync(log, `${lines[0]}\nnot json\n${lines.slice(1).join('\n')}\n{"type":"user","uu`)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function run(args: readonly string[], given: Partial<Terminal> = {}) {
  let written = ''
  let err = ''
  const terminal: Terminal = {
    write: (text) => {
      written += text
    },
    warn: (text) => {
      err += text
    },
    env: {},
    isTty: false,
    columns: 80,
    ...given,
  }
  const code = await main(['repair', ...args], terminal)
  return { code, out: written, err }
}

it('writes a clean copy and lists what it left out', async () => {
  const before = readFileSync(log, 'utf8')
  expect(await run([log, '-o', out])).toEqual({
    code: 0,
    out: [
      `${out}: 3 records from 5 lines`,
      '  line 2 left out: the line is no JSON object with a type',
      '  line 5 left out: the last line was cut off',
      '',
    ].join('\n'),
    err: '',
  })
  expect(readFileSync(log, 'utf8')).toBe(before)
  const again = join(folder, 'again.jsonl')
  expect((await run([out, '-o', again])).out).toBe(
    `${again}: 3 records\n  no damage found; every record was copied\n`,
  )
})

it('with --json prints one value', async () => {
  const { path, records, leftOut } = JSON.parse((await run([log, '-o', out, '--json'])).out)
  expect([path, records, leftOut.map(({ line }: { line: number }) => line)]).toEqual([log, 3, [2, 5]])
})

it('overwrites nothing', async () => {
  writeFileSync(out, 'mine')
  const { code, err } = await run([log, '-o', out])
  expect([code, err]).toEqual([
    1,
    `tidemark: ${out} exists already, and files are never overwritten: choose another name.\n`,
  ])
  expect(readFileSync(out, 'utf8')).toBe('mine')
})

it('leaves nothing half-written if the user interrupts it', async () => {
  const { code } = await run([log, '-o', out], { interrupted: AbortSignal.abort() })
  expect([code, existsSync(out), readdirSync(folder)]).toEqual([130, false, ['torn.jsonl']])
})

it('a file that is not there is one line; no place for the copy is wrong use', async () => {
  const missing = join(folder, 'nope.jsonl')
  expect(await run([missing, '-o', out])).toEqual({
    code: 1,
    out: '',
    err: `tidemark: ${missing} does not exist.\n`,
  })
  expect((await run([log])).code).toBe(2)
})

it('a place that is not there is named as it was given', async () => {
  const nowhere = join(folder, 'nonexist', 'q')
  expect(await run([log, '-o', nowhere])).toEqual({
    code: 1,
    out: '',
    err: `tidemark: Could not write ${nowhere}: ENOENT: no such file or directory, open '${nowhere}'\n`,
  })
})

it('lists a damaged line once, and says that the first record has no parent', async () => {
  const [first, ...rest] = buildLogLines({ name: 'torn' }).map((line) => JSON.stringify(line))
  const orphan = first?.replace('"parentUuid":null', '"parentUuid":"lost"') ?? ''
  const notUtf8 = Buffer.from([0xff])
  writeFileSync(
    log,
    Buffer.concat([Buffer.from(`${orphan}\n`), notUtf8, Buffer.from(`\n${rest.join('\n')}\n`)]),
  )
  expect((await run([log, '-o', out])).out.split('\n').slice(1)).toEqual([
    '  line 2 left out: the line is no JSON object with a type; the line has bytes that are not UTF-8; each was read as U+FFFD',
    '  line 1 repaired: its parent is not in the log; it is now the first record, without a parent',
    '',
  ])
})
