/** `ai` with `@ai-sdk/anthropic`: `generateText` and `streamText`, which run the tools themselves. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { generateText, jsonSchema, stepCountIs, streamText, type ToolSet, tool } from 'ai'
import { type Client, type ClientTask, listTools } from '../client.ts'

function createCall(task: ClientTask) {
  const { model, system, prompt, steps } = task
  const provider = createAnthropic({ apiKey: 'any', baseURL: `${task.baseUrl}/v1`, fetch: task.fetch })
  return {
    model: provider(model),
    instructions: system,
    prompt,
    tools: createTools(task),
    maxOutputTokens: 4_000,
    stopWhen: stepCountIs(steps + 10),
  }
}

export function createTools(task: ClientTask): ToolSet {
  const tools = listTools(task).map(({ name, description, schema }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<object>(schema),
      execute: (input, { toolCallId: id }) => {
        const { text, isError } = task.runTool({ id, name, input })
        if (isError) throw new Error(text)
        return text
      },
    }),
  ])
  return Object.fromEntries(tools)
}

async function runStream(task: ClientTask): Promise<string> {
  let failure: unknown = null
  const result = streamText({
    ...createCall(task),
    onError: ({ error }) => {
      failure = error
    },
  })
  await result.consumeStream()
  if (failure !== null) throw failure
  return await result.text
}

export const aiSdkClients: readonly Client[] = [
  {
    name: 'AI SDK, generateText',
    door: 'fetch',
    caches: false,
    run: async (task) => (await generateText(createCall(task))).text,
  },
  { name: 'AI SDK, streamText', door: 'fetch', caches: false, run: runStream },
]
