/** `@mastra/core`: an `Agent` whose model is one of the AI SDK's. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { Mastra } from '@mastra/core'
import { Agent, type AgentConfig } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'
import { CLAUDE, type Client, type ClientProvider, type ClientTask, listTools } from '../client.ts'

function chooseModel(task: ClientTask, { api }: ClientProvider) {
  const connection = { apiKey: 'any', baseURL: `${task.baseUrl}/v1`, fetch: task.fetch }
  if (api === 'messages') return createAnthropic(connection)(task.model)
  const openai = createOpenAI(connection)
  return api === 'chat' ? openai.chat(task.model) : openai(task.model)
}

async function run(task: ClientTask, provider: ClientProvider, isStream = false): Promise<string> {
  const agent = new Agent({
    id: 'coder',
    name: 'coder',
    instructions: task.system,
    // Its declarations and those of the AI SDK differ in a type that the agent does not use.
    model: chooseModel(task, provider) as unknown as AgentConfig['model'],
    tools: createTools(task),
  })
  // Without this, it prints every failed request.
  new Mastra({ agents: { agent }, logger: false })
  const options = {
    maxSteps: task.steps + 10,
    ...(provider.api === 'messages' ? { modelSettings: { maxOutputTokens: 4_000 } } : {}),
  }
  const result = isStream
    ? await (await agent.stream(task.prompt, options)).getFullOutput()
    : await agent.generate(task.prompt, options)
  if (result.error !== undefined) throw result.error
  return result.steps.at(-1)?.text ?? result.text
}

function createTools(task: ClientTask) {
  const tools = listTools(task).map(({ name, description, schema }) => [
    name,
    createTool({
      id: name,
      description,
      inputSchema: z.fromJSONSchema(schema),
      execute: async (input, { agent }) => {
        const { text, isError } = task.runTool({ id: agent?.toolCallId ?? '', name, input })
        if (isError) throw new Error(text)
        return text
      },
    }),
  ])
  return Object.fromEntries(tools)
}

export const mastraClients: readonly Client[] = [
  { name: 'Mastra, Agent', door: 'fetch', caches: false, run: (task) => run(task, CLAUDE) },
]

const GPT: ClientProvider = { api: 'responses', model: 'gpt-6-sol', thinkingTokens: 120 }
const CHAT: ClientProvider = { api: 'chat', model: 'gpt-4.1' }

const common = { door: 'fetch', caches: true } as const

export const mastraOpenaiClients: readonly Client[] = [
  { ...common, name: 'Mastra, Agent on openai', provider: GPT, run: (task) => run(task, GPT) },
  {
    ...common,
    name: 'Mastra, Agent on openai, stream',
    provider: GPT,
    isStream: true,
    run: (task) => run(task, GPT, true),
  },
  { ...common, name: 'Mastra, Agent on openai.chat', provider: CHAT, run: (task) => run(task, CHAT) },
]
