/** `tidemark simulate` as a process: what it prints, that it answers, how it ends, and what it refuses. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('./run-sources.ts', import.meta.url))
const sources = ['--conditions=tidemark-source', script, 'simulate']
const env = { PATH: process.env.PATH, HOME: '/nonexistent', LANG: 'C.UTF-8' }

async function ask(
  url: string,
  content = 'hello there',
): Promise<{ readonly status: number; readonly text: unknown }> {
  const headers = {
    'x-api-key': 'any',
    'anthropic-version': '2023-06-01',
    'content-type': 'application/json',
  }
  const messages = [{ role: 'user', content }]
  const body = JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 99, messages })
  const response = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body })
  const answer = (await response.json()) as { readonly content?: readonly { readonly text?: string }[] }
  return { status: response.status, text: answer.content?.[0]?.text }
}

describe('tidemark simulate', () => {
  it('prints its address, answers, and ends in peace when interrupted', async () => {
    const child = spawn(process.execPath, [...sources, '--json'], { env })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const { url } = JSON.parse(String(line)) as { readonly url: string }
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(await ask(url)).toEqual({ status: 200, text: 'hello there' })
    const summary = await ask(url, 'Write <analysis>, then <summary> with nine sections.')
    expect(summary.text).toMatch(/<summary>[\s\S]*<\/summary>/)
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('without --json has a line for each request', async () => {
    const child = spawn(process.execPath, sources, { env })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed += String(chunk)
    })
    await once(child.stdout, 'data')
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
    await ask(url)
    while (!printed.includes('#1 ')) await once(child.stdout, 'data')
    child.kill('SIGINT')
    await once(child, 'exit')
    expect(printed).toMatch(
      /#1 \d\d:\d\d:\d\d claude-sonnet-5-5 {2}1 msgs {2}read 0 wrote 0 input \d+ → \d+ {2}end_turn/,
    )
  })

  it.each([
    [['--script', 'missing.yaml'], 1, /^tidemark: .*missing\.yaml.*\n$/],
    [['--script', 'nobody'], 1, /^tidemark: nobody: expected a \.yaml.*\n$/],
    [['--port', '99999999'], 2, /^tidemark: .*port from 0 to 65535.*\n$/],
    [['--window', 'large'], 2, /^tidemark: .*whole number of tokens.*\n$/],
    [['--host', '0.0.0.0'], 1, /^tidemark: The simulator serves this machine only.*--allow-remote.*\n$/],
  ])('refuses %j in one line', (args, status, said) => {
    const run = spawnSync(process.execPath, [...sources, ...args], { encoding: 'utf8', env, timeout: 30_000 })
    expect([run.status, run.stdout]).toEqual([status, ''])
    expect(run.stderr).toMatch(said)
  })
})
