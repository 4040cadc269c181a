/** `@openrouter/sdk`: a loop over `chat.send`, whose HTTP client takes a `fetch`. */
import { HTTPClient, OpenRouter } from '@openrouter/sdk'
import type { ChatMessages, ChatResult } from '@openrouter/sdk/models'
import { type Client, type ClientProvider, type ClientTask, listTools } from '../client.ts'

async function run(task: ClientTask): Promise<string> {
  const client = new OpenRouter({
    apiKey: 'any',
    serverURL: `${task.baseUrl}/v1`,
    httpClient: new HTTPClient({ fetcher: task.fetch }),
    retryConfig: { strategy: 'none' },
  })
  const messages: ChatMessages[] = [
    { role: 'system', content: task.system },
    { role: 'user', content: task.prompt },
  ]
  const tools = listTools(task).map(({ name, description, schema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: schema },
  }))
  for (;;) {
    const result = await client.chat.send({ chatRequest: { model: task.model, messages, tools } })
    const { message } = (result as ChatResult).choices[0] ?? {}
    if (message === undefined) throw new Error('an answer without a message')
    messages.push(message)
    const calls = message.toolCalls ?? []
    if (calls.length === 0) return String(message.content)
    for (const { id, function: called } of calls) {
      const { text } = task.runTool({ id, name: called.name, input: JSON.parse(called.arguments) })
      messages.push({ role: 'tool', toolCallId: id, content: text })
    }
  }
}

const provider: ClientProvider = {
  api: 'chat',
  model: 'gpt-5.4',
  dialect: 'openrouter',
  thinkingTokens: 120,
}

export const openrouterClients: readonly Client[] = [
  { name: 'OpenRouter SDK, chat.send', door: 'fetch', caches: true, provider, run },
]
