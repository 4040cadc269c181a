/** `langchain`: `createAgent` with `ChatAnthropic`, whose SDK takes a `fetch`. */
import { ChatAnthropic } from '@langchain/anthropic'
import { createAgent, ToolMessage, tool } from 'langchain'
import { type Client, type ClientTask, listTools } from '../client.ts'

async function run(task: ClientTask): Promise<string> {
  const model = new ChatAnthropic({
    model: task.model,
    apiKey: 'any',
    anthropicApiUrl: task.baseUrl,
    maxTokens: 4_000,
    clientOptions: { fetch: task.fetch },
  })
  const agent = createAgent({ model, tools: createTools(task), systemPrompt: task.system })
  // Every step of the agent takes two steps of its graph.
  const recursionLimit = 2 * task.steps + 20
  const { messages } = await agent.invoke(
    { messages: [{ role: 'user', content: task.prompt }] },
    { recursionLimit },
  )
  return messages.at(-1)?.text ?? ''
}

function createTools(task: ClientTask) {
  return listTools(task).map(({ name, description, schema }) =>
    tool(
      (input: unknown, { toolCall }: { readonly toolCall?: { readonly id?: string } }) => {
        const id = toolCall?.id ?? ''
        const { text, isError } = task.runTool({ id, name, input })
        return new ToolMessage({
          content: text,
          tool_call_id: id,
          name,
          status: isError ? 'error' : 'success',
        })
      },
      { name, description, schema },
    ),
  )
}

export const langchainClients: readonly Client[] = [
  { name: 'LangChain, createAgent', door: 'fetch', caches: false, run },
]
