/** `ai` with `@ai-sdk/anthropic`: `generateText` and `streamText`, which run the tools themselves. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { generateText, jsonSchema, type LanguageModel, stepCountIs, streamText, type ToolSet, tool } from 'ai'
import { type Client, type ClientTask, listTools } from '../client.ts'

/** The model of a task, and options for the provider. */
interface Choice {
  readonly model: LanguageModel
  readonly maxRetries?: number
  readonly maxOutputTokens?: number
  readonly providerOptions?: { readonly openai: { readonly store: boolean; readonly include: string[] } }
}

export type Choose = (task: ClientTask) => Choice

export function readConnection({ baseUrl, fetch }: ClientTask) {
  return { apiKey: 'any', baseURL: `${baseUrl}/v1`, fetch }
}

const chooseClaude: Choose = (task) => ({
  model: createAnthropic(readConnection(task))(task.model),
  maxOutputTokens: 4_000,
})

function createCall(task: ClientTask, choose: Choose) {
  const { system, prompt, steps } = task
  return {
    ...choose(task),
    instructions: system,
    prompt,
    tools: createTools(task),
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

export async function runText(task: ClientTask, choose: Choose): Promise<string> {
  return (await generateText(createCall(task, choose))).text
}

export async function runStream(task: ClientTask, choose: Choose): Promise<string> {
  let failure: unknown = null
  const result = streamText({
    ...createCall(task, choose),
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
    run: (task) => runText(task, chooseClaude),
  },
  {
    name: 'AI SDK, streamText',
    door: 'fetch',
    caches: false,
    isStream: true,
    run: (task) => runStream(task, chooseClaude),
  },
]
