import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { buildLogLines } from '../../test/made-up-logs.ts'
import { SAMPLE_LOG_PATH } from '../sample-session.ts'
import { main } from './main.ts'

let folder = ''
let log = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-notes-'))
  log = join(folder, 'session.jsonl')
  writeFileSync(log, toText(buildLogLines({ name: 'login' })))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function toText(lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

function buildPrompt(uuid: string, parentUuid: string, text: string): object {
  const common = {
    sessionId: 'login-0000-4000',
    cwd: '/home/user/shop',
    timestamp: '2026-03-09T10:00:00.000Z',
  }
  return { type: 'user', uuid, parentUuid, ...common, message: { role: 'user', content: text } }
}

interface Started {
  readonly ended: Promise<number>
  readonly stop: AbortController
  out: string
  err: string
}

function start(...args: readonly string[]): Started {
  const stop = new AbortController()
  const terminal = {
    write: (text: string): void => {
      started.out += text
    },
    warn: (text: string): void => {
      started.err += text
    },
    ...{ env: { TIDEMARK_HOME: folder }, isTty: false, columns: 80, interrupted: stop.signal },
  }
  const started: Started = { ended: Promise.resolve(0), stop, out: '', err: '' }
  return Object.assign(started, { ended: main(['notes', ...args], terminal) })
}

async function run(...args: readonly string[]) {
  const started = start(...args)
  const code = await started.ended
  return { code, out: started.out, err: started.err }
}

it('prints the notes of a session as Markdown', async () => {
  const { code, out, err } = await run(log)
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/^# Session title\n_.*_\n\nPlease look into login\n\n# Current state\n/)
  expect(out).toContain('Latest instruction:\n> Please look into login.\n')
})

it('prints for the sample what its page shows', async () => {
  const page = readFileSync(new URL('../../../../docs/notes.md', import.meta.url), 'utf8')
  const shown = /^```md\n([\s\S]*?)^```/m.exec(page)?.[1] ?? ''
  const { out } = await run(SAMPLE_LOG_PATH)
  const lines = out.split('\n')
  expect(shown.split('\n').filter((line) => line !== '…' && !lines.includes(line))).toEqual([])
  expect(shown.split('\n').length).toBeGreaterThan(20)
})

it('prints one JSON value with the sections under their short names', async () => {
  const { out } = await run(log, '--json')
  const { notes, sections, tokens, coveredUuid } = JSON.parse(out)
  expect(notes).toBe((await run(log)).out)
  expect(Object.keys(sections)).toEqual(
    'title state task files workflow errors system learnings results worklog'.split(' '),
  )
  expect(sections.title).toBe('Please look into login')
  expect(tokens).toBeGreaterThan(100)
  expect(coveredUuid).toBe('login-answer-1')
})

it('reads compressed logs, but does not follow them', async () => {
  const packed = `${log}.gz`
  writeFileSync(packed, gzipSync(toText(buildLogLines({ name: 'login' }))))
  expect((await run(packed)).out).toBe((await run(log)).out)
  expect(await run(packed, '--watch')).toEqual({
    ...{ code: 1, out: '' },
    err: `tidemark: ${packed} is compressed, so it does not grow: follow the log itself.\n`,
  })
})

it.each([
  ['missing.jsonl', null, 'does not exist.'],
  ['text.md', 'Hello\n', 'has no JSON lines'],
  ['empty.jsonl', '', 'is empty.'],
  ['other.jsonl', toText([{ type: 'summary', summary: 'x', leafUuid: 'y' }]), 'has no conversation'],
])('says in one line what is wrong with %s', async (name, content, problem) => {
  const path = join(folder, name)
  if (content !== null) writeFileSync(path, content)
  const { code, out, err } = await run(path)
  expect([code, out, err.split('\n').length]).toEqual([1, '', 2])
  expect(err).toContain(`tidemark: ${path} ${problem}`)
})

async function waitFor(holds: () => boolean): Promise<void> {
  await expect.poll(holds).toBe(true)
}

it('follows a live log: prints the notes again when they change, and ends with code 0', async () => {
  const watched = start(log, '--watch')
  await waitFor(() => watched.out.includes('> Please look into login.'))
  const line = JSON.stringify(buildPrompt('next', 'login-answer-1', 'Now write the test.'))
  appendFileSync(log, line.slice(0, 40))
  appendFileSync(log, `${line.slice(40)}\n`)
  await waitFor(() => watched.out.includes('Latest instruction:\n> Now write the test.'))
  // The parent of this prompt is an earlier record: what came after that record is no longer part of the session.
  appendFileSync(log, toText([buildPrompt('again', 'login-answer-0', 'Start over.')]))
  await waitFor(() => watched.out.includes('Latest instruction:\n> Start over.'))
  const last = watched.out.slice(watched.out.lastIndexOf('# Session title'))
  expect(last).not.toContain('Now write the test.')
  watched.stop.abort()
  expect([await watched.ended, watched.err, watched.out.split('# Session title').length]).toEqual([0, '', 4])
})

it.each([
  ['truncated', (path: string, text: string) => writeFileSync(path, text)],
  [
    'replaced',
    (path: string, text: string) => {
      writeFileSync(`${path}.new`, text)
      renameSync(`${path}.new`, path)
    },
  ],
])('reads a log that was %s from its start', async (_, write) => {
  const watched = start(log, '--watch', '--json')
  await waitFor(() => watched.out.includes('login'))
  const lines = buildLogLines({ name: 'checkout', answers: ['a', 'b', 'c', 'd'] })
  write(log, toText(lines))
  await waitFor(() => watched.out.includes('look into checkout'))
  watched.stop.abort()
  expect(await watched.ended).toBe(0)
  const versions = watched.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).sections.title)
  expect(versions).toEqual(['Please look into login', 'Please look into checkout'])
})

it('waits for a session that has just begun', async () => {
  const path = join(folder, 'new.jsonl')
  writeFileSync(path, '')
  const watched = start(path, '--watch')
  await setTimeout(20)
  writeFileSync(path, toText(buildLogLines({ name: 'start' })))
  await waitFor(() => watched.out.includes('> Please look into start.'))
  watched.stop.abort()
  expect(await watched.ended).toBe(0)
})

it('warns of a damaged line and of a packed log that was cut off, because the notes lack what was there', async () => {
  writeFileSync(log, `${toText(buildLogLines({ name: 'login' }))}no JSON\n`)
  const garbage = await run(log)
  expect(garbage).toMatchObject({ code: 0, out: expect.stringContaining('# Current state') })
  expect(garbage.err).toMatch(
    /has a damaged place, so the notes may lack something\. Line \d+: the line is no JSON object/,
  )
  const path = join(folder, 'cut.jsonl.gz')
  const lines = Array.from({ length: 400 }, (_, index) =>
    buildPrompt(`u${index}`, '', `Step ${Math.sqrt(index)}`),
  )
  writeFileSync(path, gzipSync(toText(lines)).subarray(0, -1_500))
  const cut = await run(path, '--json')
  expect(cut.code).toBe(0)
  expect(cut.err).toContain('so the notes may lack something')
  expect(JSON.parse(cut.out).damage.length).toBeGreaterThan(0)
})

it('has no notes of a log without a message, and asks for a file if its name is empty', async () => {
  const { uuid, parentUuid, ...common } = buildPrompt('u1', '', '') as Record<string, unknown>
  writeFileSync(log, toText([{ ...common, uuid, parentUuid: null, type: 'system', subtype: 'notice' }]))
  const { code, err } = await run(log)
  expect(code).toBe(1)
  expect(err).toContain('has no conversation, so there are no notes of it.')
  expect(await run('')).toMatchObject({
    code: 2,
    err: expect.stringContaining('The name of the log is empty.'),
  })
})

it('has the title that the user gave the session, or else the one that a model made', async () => {
  const lines = buildLogLines({ name: 'login' })
  const readTitle = async (): Promise<string> => JSON.parse((await run(log, '--json')).out).sections.title
  writeFileSync(log, toText(lines))
  expect(await readTitle()).toBe('Please look into login')
  const made = [{ type: 'ai-title', aiTitle: 'Login with a plus sign' }]
  writeFileSync(log, toText([...lines, ...made]))
  expect(await readTitle()).toBe('Login with a plus sign')
  writeFileSync(log, toText([...lines, { type: 'custom-title', customTitle: 'Encoded twice' }, ...made]))
  expect(await readTitle()).toBe('Encoded twice')
})
