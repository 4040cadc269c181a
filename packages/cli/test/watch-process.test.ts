/** `tidemark watch` as a process, between the official client and the simulator: what it sends, prints and refuses. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { sampleCases } from '@tidemark/core/testing'
import { type Coder, createCoder, type RequestRecord, serve, withSummaries } from '@tidemark/simulator'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TIDEMARK_COMMAND } from './command-line.ts'

const command = [...TIDEMARK_COMMAND, 'watch', '--port', '0']

interface Watched {
  readonly url: string
  readonly home: string
  readonly coder: Coder
  /** Requests as the provider got them. */
  readonly requests: readonly RequestRecord[]
  readonly child: ChildProcess
  readonly printed: () => string
}

async function startWatch(more: readonly string[], window?: number): Promise<Watched> {
  const coder = createCoder({ turns: 40, resultTokens: 1_200 })
  const requests: RequestRecord[] = []
  const simulator = await serve({
    script: withSummaries(coder.script),
    onRequest: (record) => void requests.push(record),
    ...(window === undefined ? {} : { window }),
  })
  const home = mkdtempSync(join(tmpdir(), 'tidemark-watch-'))
  const env = { PATH: process.env.PATH, HOME: home, TIDEMARK_HOME: home, LANG: 'C.UTF-8' }
  const child = spawn(process.execPath, [...command, '--upstream', simulator.url, ...more], { env })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += String(chunk)
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await simulator.close()
    rmSync(home, { recursive: true, force: true, maxRetries: 10 })
  })
  const findUrl = (): string | undefined => /http:\/\/127\.0\.0\.1:\d+\/[\w-]+/.exec(text)?.[0]
  while (findUrl() === undefined) await once(child.stdout, 'data')
  return { url: findUrl() ?? '', home, coder, requests, child, printed: () => text }
}

/** The official client with its own loop, as an agent that can only set a base URL. */
async function work(baseURL: string, coder: Coder, how: 'create' | 'stream'): Promise<number> {
  const client = new Anthropic({ apiKey: 'any', baseURL, maxRetries: 0 })
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Mend the sums.' }]
  for (let responses = 1; ; responses += 1) {
    const body = {
      model: 'claude-haiku-4-5',
      max_tokens: 2_000,
      system: 'You are a careful coder. '.repeat(300),
      tools: coder.tools as unknown as Anthropic.Tool[],
      metadata: { user_id: 'user_1_account__session_abc' },
      messages,
    }
    const { content } =
      how === 'create'
        ? await client.messages.create(body)
        : await client.messages.stream(body).finalMessage()
    messages.push({ role: 'assistant', content })
    const calls = content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return responses
    const results = calls.map(({ id, name, input }): Anthropic.ToolResultBlockParam => {
      const result = coder.toolResult({ id, name, input: Object(input) })
      return { type: 'tool_result', tool_use_id: id, content: String(result.content) }
    })
    messages.push({ role: 'user', content: results })
  }
}

describe('tidemark watch', () => {
  it.each(sampleCases(['stream', 'create'] as const, 1))(
    'manages an agent past its window, by %s, and says so',
    async (how) => {
      const { url, coder, requests, home, printed, child } = await startWatch([], 24_000)
      expect(await work(url, coder, how)).toBe(41)
      expect(readdirSync(join(home, 'sessions')).filter((name) => name.endsWith('.jsonl'))).toEqual([
        'abc.jsonl',
      ])
      expect(printed()).toMatch(/^\d\d:\d\d abc {7}Compacted: [\d,.k]+ → [\d,.k]+ tokens, with [\w ,]+$/m)
      expect(printed()).toMatch(
        /^\d\d:\d\d abc {7}[\d,.k]+ tokens in, \d+% from the cache, [\d,.k]+ out, \$\d/m,
      )
      // The first request that asks for the cache finds nothing there.
      expect(printed()).toMatch(/tokens in, 0% from the cache, which is being written \([\d,.k]+\), /)
      expect(requests.length).toBeGreaterThan(40)
      // As Ctrl-C does.
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
      expect(printed()).toMatch(/^\d+ calls in 1 session, \$\d.* tidemark sessions lists them\.\n$/m)
    },
  )

  it('with --observe sends what the agent sent, and records it', async () => {
    const { url, coder, requests, home, printed } = await startWatch(['--observe'])
    expect(printed()).toContain('Observing: nothing is changed, everything is recorded.')
    expect(printed()).toContain(`  OPENAI_BASE_URL=${url}/v1 your-agent\n`)
    expect(printed()).toContain(`model_providers.tidemark={name="tidemark",base_url="${url}/v1"`)
    expect(await work(url, coder, 'create')).toBe(41)
    expect(requests.every(({ usage }) => usage?.cacheRead === 0 && usage.write5m === 0)).toBe(true)
    expect(readFileSync(join(home, 'sessions', 'abc.jsonl'), 'utf8')).toContain('Mend the sums.')
    expect(printed()).toMatch(/^\d\d:\d\d abc {7}.*0% from the cache/m)
    expect(printed().match(/does not ask for the prompt cache/g)).toHaveLength(1)
  })

  it('follows the policy that it is given, within the window that it is given', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-policy-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'early.json')
    writeFileSync(file, JSON.stringify({ dropIn: { rewrite: 'early' } }))
    // The requests of the agent all fit this window, so that nothing is rewritten by default.
    const early = await startWatch(['--policy', file, '--window', '60000'])
    expect(early.printed()).toContain('early.json: requests are those of a session')
    expect(await work(early.url, early.coder, 'create')).toBe(41)
    expect(early.printed()).toMatch(/^\d\d:\d\d abc {7}(?:Cleared|Compacted)/m)
  })

  it('explains a policy that it does not know, and a policy beside --observe', async () => {
    for (const [given, why] of [
      [['--policy', 'cheap'], 'tidemark: there is no policy cheap: expected default, economy'],
      [
        ['--observe', '--policy', 'economy'],
        "option '--policy <name>' cannot be used with option '--observe'",
      ],
    ] as const) {
      const child = spawn(process.execPath, [...command, ...given])
      let text = ''
      child.stderr.on('data', (chunk: Buffer) => {
        text += String(chunk)
      })
      expect(await once(child, 'close')).toEqual([2, null])
      expect(text).toContain(why)
    }
  })

  it('refuses whoever does not know its address, and keeps that address', async () => {
    const { url, home } = await startWatch(['--json'])
    const { origin } = new URL(url)
    const refused = await fetch(`${origin}/v1/messages`, { method: 'POST', body: '{}' })
    expect([refused.status, await refused.json()]).toEqual([
      404,
      {
        type: 'error',
        error: { type: 'not_found_error', message: 'The address lacks the token that tidemark printed.' },
      },
    ])
    const unversioned = await fetch(`${url}/chat/completions`, { method: 'POST', body: '{}' })
    expect([unversioned.status, await unversioned.text()]).toEqual([
      404,
      expect.stringContaining('ends in /v1'),
    ])
    const token = readFileSync(join(home, 'watch-token'), 'utf8').trim()
    expect(url.endsWith(`/${token}`)).toBe(true)
    expect(statSync(join(home, 'watch-token')).mode & 0o077).toBe(0)
    const models = await fetch(`${url}/v1/models`, {
      headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01' },
    })
    expect(models.status).not.toBe(502)
  })

  it('says which errors the agent got, and which port is taken', async () => {
    // The system prompt alone does not fit, so nothing can be done for the agent.
    const { url, printed, child } = await startWatch([], 1_500)
    await fetch(new URL('/wrong/v1/messages', url), { method: 'POST', body: '{}' })
    await expect(work(url, createCoder({ turns: 2, resultTokens: 9_000 }), 'create')).rejects.toThrow()
    child.kill('SIGINT')
    await once(child, 'exit')
    expect(printed()).toMatch(/The agent got an error: 404 The address lacks the token/)
    expect(printed()).toMatch(/The agent got an error: 400 /)
    const taken = await startWatch([])
    const { port } = new URL(taken.url)
    const second = spawn(process.execPath, [...command.slice(0, -1), port], {
      env: { PATH: process.env.PATH, HOME: taken.home, TIDEMARK_HOME: taken.home },
    })
    let problem = ''
    second.stderr.on('data', (chunk: Buffer) => {
      problem += String(chunk)
    })
    expect(await once(second, 'close')).toEqual([1, null])
    expect(problem).toMatch(/^tidemark: .*cannot listen on 127\.0\.0\.1:\d+ .*Choose another port.*\n$/)
  })
})
