/** The program of docs/turn.md runs as it stands, and what it prints is what the page promises. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { createTestTidemark } from './support/test-tidemark.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const page = readFileSync(`${ROOT}docs/turn.md`, 'utf8')
const program = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code).join('\n')

async function run(): Promise<readonly string[]> {
  const flags = ['--conditions=tidemark-source', '--input-type=module-typescript', '-']
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
  const child = spawn(process.execPath, flags, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.end(program)
  const [said, wrong, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  if (code !== 0) throw new Error(wrong)
  return said.trimEnd().split('\n')
}

it('docs/turn.md is one program that runs: a turn and a cache break', async () => {
  const lines = await run()
  expect(lines.filter((line) => line.startsWith('tool ')).length).toBeGreaterThan(1)
  expect(lines).toContain('done: end_turn')
  expect(lines).toContain('broke: expired, true, true')
  expect(lines.find((line) => line.startsWith('Cache broke: '))).toMatch(
    /A 1-hour cache lifetime would have survived the pause/,
  )
})

/** Every event that a listener can name, as `on` lists them for a name that none has. */
async function listEvents(): Promise<readonly string[]> {
  const session = await createTestTidemark().tide.open('a')
  try {
    session.on('zzzzzzzz' as never, () => {})
    return []
  } catch (thrown) {
    const [, names = ''] = /Known: \*, (.*)\.$/.exec(String(thrown)) ?? []
    return names.split(', ')
  }
}

it('the page tells of every event', async () => {
  const events = await listEvents()
  expect(events.length).toBeGreaterThan(40)
  expect(events.filter((event) => !page.includes(`\`${event}\``))).toEqual([])
})
