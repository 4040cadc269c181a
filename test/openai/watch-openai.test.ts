/** `tidemark watch` for clients of OpenAI: the same address with `/v1`, sent to another provider than Claude's clients. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCoder, serve, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import { serveLoopbackProxy } from 'tidemark/internal'
import { expect, it, onTestFinished } from 'vitest'

it('an OpenAI client under the proxy is managed, and reaches the provider of its own', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const coder = createCoder()
  const { url, close } = await serve({ script: withSummaries(coder.script) })
  onTestFinished(close)
  const proxy = await serveLoopbackProxy({
    upstream: 'http://127.0.0.1:1',
    upstreamOpenai: url,
    token: 'a-token-of-this-test',
    home,
  })
  onTestFinished(() => proxy.close())
  const client = new OpenAI({ apiKey: 'any', baseURL: `${proxy.url}/v1`, maxRetries: 0 })
  const tools = [{ type: 'function' as const, name: 'read', parameters: { type: 'object' }, strict: false }]
  const answer = await client.responses.create({ model: 'gpt-6-sol', input: 'Hello.', tools })
  expect(answer.status).toBe('completed')
  const chat = await client.chat.completions.create({
    model: 'gpt-4.1',
    messages: [{ role: 'user', content: 'Hello.' }],
  })
  expect(chat.choices).toHaveLength(1)
  expect((await client.models.list()).data.map(({ id }) => id)).toContain('gpt-6-sol')
})
