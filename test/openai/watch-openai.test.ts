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

/** An agent on Chat Completions with a model that no catalogue has. Returns the number of its answers. */
async function runAgent(baseURL: string, coder: ReturnType<typeof createCoder>): Promise<number> {
  const client = new OpenAI({ apiKey: 'any', baseURL, maxRetries: 0 })
  const tools = coder.tools.map(({ name, description, input_schema: parameters }) => ({
    type: 'function' as const,
    function: { name: String(name), description: String(description), parameters: Object(parameters) },
  }))
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Fix the sum.' }]
  for (let answers = 1; ; answers += 1) {
    const { choices } = await client.chat.completions.create({ model: 'our-own', messages, tools })
    const message = choices[0]?.message
    if (message === undefined) return answers
    messages.push(message)
    const calls = message.tool_calls?.filter((call) => call.type === 'function') ?? []
    if (calls.length === 0) return answers
    for (const { id, function: called } of calls) {
      const { content } = coder.toolResult({ id, name: called.name, input: JSON.parse(called.arguments) })
      messages.push({ role: 'tool', tool_call_id: id, content: String(content) })
    }
  }
}

it.each(['deepseek', 'vllm'] as const)(
  'a client of a %s server goes on past its window, with a model that no catalogue has',
  async (dialect) => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    const coder = createCoder({ turns: 24, resultTokens: 1_600, thinkingTokens: 60 })
    const window = 20_000
    const { url, close } = await serve({ script: withSummaries(coder.script), window, openai: { dialect } })
    onTestFinished(close)
    await expect(runAgent(`${url}/v1`, coder)).rejects.toThrow(/context length/)
    const proxy = await serveLoopbackProxy({
      upstream: 'http://127.0.0.1:1',
      upstreamOpenai: url,
      chatServer: { dialect, window },
      token: 'a-token-of-this-test',
      home,
    })
    onTestFinished(() => proxy.close())
    expect(await runAgent(`${proxy.url}/v1`, coder)).toBeGreaterThanOrEqual(24)
  },
)
