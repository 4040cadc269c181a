/** `@mastra/core`: an `Agent` whose model is one of the AI SDK's. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { Mastra } from '@mastra/core'
import { Agent, type AgentConfig } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'
import { type Client, type ClientTask, listTools } from '../client.ts'

async function run(task: ClientTask): Promise<string> {
  const provider = createAnthropic({ apiKey: 'any', baseURL: `${task.baseUrl}/v1`, fetch: task.fetch })
  const agent = new Agent({
    id: 'coder',
    name: 'coder',
    instructions: task.system,
    // Its declarations and those of the AI SDK differ in a type that the agent does not use.
    model: provider(task.model) as unknown as AgentConfig['model'],
    tools: createTools(task),
  })
  // Without this, it prints every failed request.
  new Mastra({ agents: { agent }, logger: false })
  const result = await agent.generate(task.prompt, {
    maxSteps: task.steps + 10,
    modelSettings: { maxOutputTokens: 4_000 },
  })
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

export const mastraClients: readonly Client[] = [{ name: 'Mastra, Agent', door: 'fetch', caches: false, run }]
