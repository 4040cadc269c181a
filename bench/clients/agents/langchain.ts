/** `langchain`: `createAgent` with `ChatAnthropic` or `ChatOpenAI`, whose SDKs take a `fetch`. */
import { ChatAnthropic } from '@langchain/anthropic'
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai'
import { createAgent, ToolMessage, tool } from 'langchain'
import { type Client, type ClientProvider, type ClientTask, listTools } from '../client.ts'

type AgentModel = ChatAnthropic | ChatOpenAI

function chooseClaude(task: ClientTask): AgentModel {
  return new ChatAnthropic({
    model: task.model,
    apiKey: 'any',
    anthropicApiUrl: task.baseUrl,
    maxTokens: 4_000,
    clientOptions: { fetch: task.fetch },
  })
}

function chooseOpenai(task: ClientTask, fields: ChatOpenAIFields): AgentModel {
  return new ChatOpenAI({
    model: task.model,
    apiKey: 'any',
    maxRetries: 0,
    configuration: { baseURL: `${task.baseUrl}/v1`, fetch: task.fetch },
    ...fields,
  })
}

async function run(task: ClientTask, model: AgentModel, isStream = false): Promise<string> {
  const agent = createAgent({ model, tools: createTools(task), systemPrompt: task.system })
  // Every step of the agent takes two steps of its graph.
  const recursionLimit = 2 * task.steps + 20
  const input = { messages: [{ role: 'user' as const, content: task.prompt }] }
  if (!isStream) return (await agent.invoke(input, { recursionLimit })).messages.at(-1)?.text ?? ''
  let text = ''
  for await (const [mode, part] of await agent.stream(input, {
    recursionLimit,
    streamMode: ['messages', 'values'],
  }))
    if (mode === 'values') text = part.messages.at(-1)?.text ?? ''
  return text
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
  {
    name: 'LangChain, createAgent',
    door: 'fetch',
    caches: false,
    run: (task) => run(task, chooseClaude(task)),
  },
]

const GPT: ClientProvider = { api: 'responses', model: 'gpt-6-sol', thinkingTokens: 120 }
const CHAT: ClientProvider = { api: 'chat', model: 'gpt-4.1' }

const OPENAI_KINDS: readonly (readonly [name: string, provider: ClientProvider, fields: ChatOpenAIFields])[] =
  [
    ['ChatOpenAI on Responses', GPT, { useResponsesApi: true }],
    ['ChatOpenAI on Responses, zdrEnabled', GPT, { useResponsesApi: true, zdrEnabled: true }],
    ['ChatOpenAI', CHAT, {}],
  ]

export const langchainOpenaiClients: readonly Client[] = OPENAI_KINDS.flatMap(([name, provider, fields]) =>
  [false, true].map(
    (isStream): Client => ({
      name: `LangChain, ${name}${isStream ? ', stream' : ''}`,
      door: 'fetch',
      caches: true,
      provider,
      isStream,
      run: (task) => run(task, chooseOpenai(task, fields), isStream),
    }),
  ),
)
