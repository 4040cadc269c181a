/** `@openai/agents`: `run`, streaming and not, on the Responses API and on Chat Completions. */
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { type Client, type ClientProvider, type ClientTask, listTools } from '../client.ts'

// Otherwise it would send what it did to OpenAI.
setTracingDisabled(true)

async function runAgent(task: ClientTask, { api }: ClientProvider, isStream: boolean): Promise<string> {
  const client = new OpenAI({
    apiKey: 'any',
    baseURL: `${task.baseUrl}/v1`,
    fetch: task.fetch,
    maxRetries: 0,
  })
  const Model = api === 'chat' ? OpenAIChatCompletionsModel : OpenAIResponsesModel
  const agent = new Agent({
    name: 'coder',
    instructions: task.system,
    model: new Model(client, task.model),
    tools: createTools(task),
  })
  const maxTurns = task.steps + 10
  if (!isStream) return String((await run(agent, task.prompt, { maxTurns })).finalOutput)
  const result = await run(agent, task.prompt, { maxTurns, stream: true })
  for await (const _ of result);
  if (result.error !== null && result.error !== undefined) throw result.error
  return String(result.finalOutput)
}

function createTools(task: ClientTask) {
  return listTools(task).map(({ name, description, schema }) =>
    tool({
      name,
      description,
      strict: false,
      // Its type names fields that a schema may leave out.
      parameters: { required: [], properties: {}, ...schema, additionalProperties: true } as never,
      execute: async (input: unknown, _context, details) =>
        task.runTool({ id: details?.toolCall?.callId ?? '', name, input }).text,
    }),
  )
}

// Version 0.20 throws, while streaming, at the usage of models that report how long written tokens are kept (GPT-5.6 and later).
const GPT: ClientProvider = { api: 'responses', model: 'gpt-5.4', thinkingTokens: 120 }
const CHAT: ClientProvider = { api: 'chat', model: 'gpt-4.1' }

export const openaiAgentsClients: readonly Client[] = [GPT, CHAT].flatMap((provider) =>
  [false, true].map(
    (isStream): Client => ({
      name: `OpenAI Agents, run${provider === GPT ? '' : ' on chat'}${isStream ? ', stream' : ''}`,
      door: 'fetch',
      caches: true,
      provider,
      isStream,
      run: (task) => runAgent(task, provider, isStream),
    }),
  ),
)
