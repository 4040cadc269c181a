/** `tidemark simulate` as a process: what it prints, that it answers, how it ends, and what it refuses. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { TIDEMARK_COMMAND } from './command-line.ts'

const command = [...TIDEMARK_COMMAND, 'simulate']
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
    const child = spawn(process.execPath, [...command, '--json'], { env })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const { url, openaiUrl } = JSON.parse(String(line)) as Readonly<Record<'url' | 'openaiUrl', string>>
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(await ask(url)).toEqual({ status: 200, text: 'hello there' })
    const response = await fetch(`${openaiUrl}/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-5.1', input: 'hello there' }),
    })
    expect(await response.json()).toMatchObject({ output: [{ content: [{ text: 'hello there' }] }] })
    const summary = await ask(url, 'Write <analysis>, then <summary> with nine sections.')
    expect(summary.text).toMatch(/<summary>[\s\S]*<\/summary>/)
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('without --json has a line for each request', async () => {
    const child = spawn(process.execPath, command, { env })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed += String(chunk)
    })
    await once(child.stdout, 'data')
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
    await ask(url)
    await fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'red \u001b[31m',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'x' }],
      }),
    })
    while (!printed.includes('#2 ')) await once(child.stdout, 'data')
    child.kill('SIGINT')
    await once(child, 'exit')
    expect(printed).not.toContain('\u001b')
    expect(printed).toContain(`OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=any your-agent`)
    expect(printed).toMatch(
      /#1 \d\d:\d\d:\d\d claude-sonnet-5-5 {2}1 msgs {2}read 0 wrote 0 input \d+ → \d+ {2}end_turn/,
    )
  })

  it('with --rules, --binding, --cache-key and --keep-requests behaves as they say', async () => {
    const chosen = [
      '--rules',
      'firstRole=any',
      '--cache-key',
      'betas=false, ttl=true',
      '--keep-requests',
      '1',
    ]
    const thinking = ['--binding', 'enforced=false,foreignSignatures=allow']
    const child = spawn(process.execPath, [...command, ...chosen, ...thinking], { env })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed += String(chunk)
    })
    await once(child.stdout, 'data')
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? ''
    const send = (beta: string): Promise<Response> =>
      fetch(`${url}/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': 'any',
          'anthropic-version': '2023-06-01',
          'anthropic-beta': beta,
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          model: 'claude-opus-5',
          max_tokens: 99,
          system: [{ type: 'text', text: 'x'.repeat(4_000), cache_control: { type: 'ephemeral' } }],
          messages: [
            {
              role: 'assistant',
              content: [
                { type: 'thinking', thinking: 'x', signature: 'foreign' },
                { type: 'text', text: 'I begin.' },
              ],
            },
            {
              role: 'user',
              content: [{ type: 'text', text: 'Go on.', cache_control: { type: 'ephemeral' } }],
            },
          ],
        }),
      })
    expect([(await send('one')).status, (await send('two')).status]).toEqual([200, 200])
    const kept = (await (await fetch(`${url}/_simulator/requests`)).json()) as {
      readonly requests: readonly { readonly cache: { readonly hit: { readonly path: string } | null } }[]
    }
    expect(kept).toMatchObject({
      kept: 1,
      forgotten: 1,
      requests: [{ number: 2, cache: { hit: { path: 'messages.1.content.0' } } }],
    })
    while (!printed.includes('#2 ')) await once(child.stdout, 'data')
    child.kill('SIGINT')
    await once(child, 'exit')
    expect(printed).toContain('the newest 1 requests')
    expect(printed).toContain('Only the newest 1 requests are kept (--keep-requests). Totals count all.')
  })

  it.each([
    [['--script', 'missing.yaml'], 1, /^tidemark: .*missing\.yaml.*\n$/],
    [['--script', 'nobody'], 1, /^tidemark: nobody: expected a \.yaml.*\n$/],
    [['--port', '99999999'], 2, /^tidemark: .*port from 0 to 65535.*\n$/],
    [['--window', 'large'], 2, /^tidemark: .*whole number of tokens.*\n$/],
    [['--keep-requests', 'all'], 2, /^tidemark: .*Expected a whole number.*\n$/],
    [
      ['--binding', 'enforced=maybe'],
      2,
      /^tidemark: option '--binding': expected enforced=true\|false, .*; found enforced=maybe\n$/,
    ],
    [['--cache-key', 'ttl'], 2, /^tidemark: option '--cache-key': expected .*ttl=true\|false; found ttl\n$/],
    [
      ['--rules', 'role=any'],
      2,
      /^tidemark: option '--rules': expected firstRole=user\|any; found role=any\n$/,
    ],
    [
      ['--openai', 'dialect=latin'],
      2,
      /^tidemark: option '--openai': expected dialect=openai\|.*; found dialect=latin\n$/,
    ],
    [['--host', '0.0.0.0'], 1, /^tidemark: The simulator serves this machine only.*--allow-remote.*\n$/],
  ])('refuses %j in one line', (args, status, said) => {
    const run = spawnSync(process.execPath, [...command, ...args], {
      encoding: 'utf8',
      env,
      timeout: 200_000,
    })
    expect([run.status, run.stdout]).toEqual([status, ''])
    expect(run.stderr).toMatch(said)
  })
})
