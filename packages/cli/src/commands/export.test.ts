import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { buildLogLines } from '../../test/made-up-logs.ts'
import { main } from './main.ts'

let folder = ''
let log = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-export-'))
  log = join(folder, 'session.jsonl')
  writeFileSync(
    log,
    buildLogLines({ name: 'told' })
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(''),
  )
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function run(...args: readonly string[]) {
  let [out, err] = ['', '']
  const write = (text: string): void => {
    out += text
  }
  const warn = (text: string): void => {
    err += text
  }
  const code = await main(['export', ...args], { write, warn, env: {}, isTty: false, columns: 80 })
  return { code, out, err }
}

it('writes Markdown to standard output, or to a new file', async () => {
  const { code, out, err } = await run(log, '--title', 'My session')
  expect([code, err, out.split('\n')[0], out.match(/^### /gm)?.length]).toEqual([0, '', '# My session', 3])
  const file = join(folder, 'out.md')
  expect(await run(log, '-o', file, '--title', 'My session')).toEqual({
    code: 0,
    out: `${file}: 3 records\n`,
    err: '',
  })
  expect(readFileSync(file, 'utf8')).toBe(out)
  expect(await run(log, '-o', file)).toEqual({
    ...{ code: 1, out: '' },
    err: `tidemark: ${file} exists already, and files are never overwritten: choose another name.\n`,
  })
})

it('prints one JSON value where that is asked', async () => {
  const markdown = (await run(log)).out
  expect(JSON.parse((await run(log, '--json')).out)).toEqual({
    ...{ records: 3, missingBlobs: [] },
    markdown,
  })
  const out = join(folder, 'out.md')
  expect(JSON.parse((await run(log, '--json', '-o', out)).out)).toEqual({
    ...{ path: log, out },
    ...{ records: 3, missingBlobs: [] },
  })
})

it('reports in one line that the file does not exist', async () => {
  const missing = join(folder, 'none.jsonl')
  expect(await run(missing)).toEqual({ code: 1, out: '', err: `tidemark: ${missing} does not exist.\n` })
})
