/** Large tool results are stored beside the sessions as blobs: every command must keep them with their session. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulator, type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark } from 'tidemark'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { main } from '../src/commands/main.ts'

const LINES = 9_000
/** A line in the middle of the large result, which no placeholder shows. */
const MIDDLE = `row 4500 of ${LINES}`

let folder = ''
let home = ''
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-large-'))
  home = join(folder, 'home')
  await runSession(home, 'big')
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

const script: Script = (_request, { turn }) =>
  turn % 2 === 0
    ? { blocks: [{ type: 'tool_use', name: 'list', input: {} }] }
    : { blocks: [{ type: 'text', text: 'Listed.' }] }

function open(at: string) {
  const { fetch } = createSimulator({ script: withSummaries(script) })
  return createTidemark({ model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }), home: at })
}

/** Runs a session whose only tool result is too large for the context. */
async function runSession(at: string, id: string): Promise<void> {
  const tide = open(at)
  const session = await tide.open(id)
  const rows = Array.from({ length: LINES }, (_, index) => `row ${index} of ${LINES}`).join('\n')
  const list = { description: 'lists', inputSchema: { type: 'object' as const }, run: () => rows }
  const end = await session.run('List it.', { tools: { list } }).outcome
  if (!end.ok) throw new Error(end.message)
  await tide.close()
}

async function run(...args: readonly string[]) {
  let [out, err] = ['', '']
  const write = (text: string): void => {
    out += text
  }
  const warn = (text: string): void => {
    err += text
  }
  const env = { TIDEMARK_HOME: join(folder, 'elsewhere') }
  const isOwn = args[0] === 'sessions' || args.includes('big')
  const code = await main(args, {
    ...{ write, warn, isTty: false, columns: 80 },
    env: isOwn ? { TIDEMARK_HOME: home } : env,
  })
  return { code, out, err }
}

const logAt = (at: string, id: string): string => join(at, 'sessions', `${id}.jsonl`)
const listBlobs = (at: string): readonly string[] =>
  existsSync(join(at, 'blobs'))
    ? readdirSync(join(at, 'blobs'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : []

describe('export', () => {
  it('has the whole large result of a session in any home, not only in the current one', async () => {
    const { code, out, err } = await run('export', logAt(home, 'big'))
    expect([code, err, out.includes(MIDDLE)]).toEqual([0, '', true])
  })

  it('reports a large result that is not there any more, in the document and with exit code 1', async () => {
    rmSync(join(home, 'blobs'), { recursive: true })
    const file = join(folder, 'out.md')
    const { code, err } = await run('export', logAt(home, 'big'), '-o', file)
    expect([code, err]).toEqual([
      1,
      'tidemark: 1 large result could not be read from the blobs: the export has only the beginning and end of each, and says where.\n',
    ])
    expect(readFileSync(file, 'utf8')).toContain('*Only the beginning and end of the result of <code>')
  })
})

describe('a copy in another home', () => {
  it.each(['repair', 'compact'])('that %s writes has the large results of the session', async (command) => {
    const other = join(folder, 'other')
    mkdirSync(join(other, 'sessions'), { recursive: true })
    const { code, out } = await run(command, logAt(home, 'big'), '-o', logAt(other, 'copy'))
    expect([code, out]).toEqual([
      0,
      expect.stringContaining(`1 large result copied to ${join(other, 'blobs')}`),
    ])
    rmSync(home, { recursive: true })
    const tide = open(other)
    const session = await tide.open('copy')
    const [blob] = listBlobs(other)
    expect((await session.history({ id: blob, text: `"${MIDDLE}"` })).body).toContain(MIDDLE)
    expect(await session.export()).toContain(MIDDLE)
    await tide.close()
  })

  it('that lies in no home is written with a note where the large results stay', async () => {
    const { out } = await run('repair', logAt(home, 'big'), '-o', join(folder, 'copy.jsonl'))
    expect(out).toContain(
      `1 large result not copied: only a copy in a folder HOME/sessions has blobs beside it; the originals are in ${join(home, 'blobs')}`,
    )
  })
})

describe('sessions', () => {
  it('find searches the large results', async () => {
    const { code, out } = await run('sessions', 'find', MIDDLE)
    expect([code, out]).toEqual([0, expect.stringMatching(/^big .* tool .*row 4500/m)])
  })

  it('find reports a large result that it could not search', async () => {
    rmSync(join(home, 'blobs'), { recursive: true })
    const { code, err } = await run('sessions', 'find', MIDDLE)
    expect([code, err.split('\n')[0]]).toEqual([
      1,
      'tidemark: Session "big": 1 large result could not be read from the blobs; only the beginning and end of each was searched.',
    ])
  })

  it('delete removes the large results of the session', async () => {
    expect(await run('sessions', 'delete', 'big', '--yes')).toEqual({
      ...{ code: 0, err: '' },
      out: 'deleted big, with 1 large result\n',
    })
    expect([listBlobs(home), readdirSync(join(home, 'sessions'))]).toEqual([[], []])
  })

  it('delete keeps the large results that another session has too, also if that session is damaged', async () => {
    const log = readFileSync(logAt(home, 'big'), 'utf8')
    writeFileSync(logAt(home, 'damaged'), log.replaceAll('{"seq"', '{seq'))
    expect((await run('sessions', 'delete', 'big', '--yes')).out).toBe('deleted big\n')
    expect(listBlobs(home)).toHaveLength(1)
  })

  it('delete keeps all large results, and says so, if another session cannot be read or is in use', async () => {
    copyFileSync(logAt(home, 'big'), logAt(home, 'second'))
    writeFileSync(logAt(home, 'packed'), Buffer.from([0x1f, 0x8b, 8, 0, 0, 0]))
    const { out, err } = await run('sessions', 'delete', 'big', '--yes')
    expect([out, err]).toEqual([
      'deleted big\n',
      expect.stringMatching(/^Its large results stay in .*packed/),
    ])
    rmSync(logAt(home, 'packed'))
    const tide = open(home)
    const session = await tide.open('open')
    await session.append({ role: 'user', content: 'hello' })
    const kept = await run('sessions', 'delete', 'second', '--yes')
    expect(kept.err).toMatch(/^Its large results stay in .*open/)
    await tide.close()
    expect(listBlobs(home)).toHaveLength(1)
  })
})

it('export, inspect, repair and compact take the id of an own session', async () => {
  expect((await run('export', 'big')).out).toContain(MIDDLE)
  expect((await run('inspect', 'big')).code).toBe(0)
  expect((await run('compact', 'big', '--dry-run')).code).toBe(0)
  expect((await run('repair', 'big', '-o', join(folder, 'copy.jsonl'))).code).toBe(0)
})

it('compact --undo with an unknown id says so before it asks for --yes', async () => {
  const { code, err } = await run('compact', 'big', '--undo', 'unknown-id')
  expect([code, err]).toEqual([2, expect.stringContaining('unknown-id')])
  expect(err).not.toContain('--yes')
})
