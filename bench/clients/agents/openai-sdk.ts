/** `openai`: loops over `responses` and `chat.completions`, their stream helpers, and its own tool runner. */
import OpenAI from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type {
  Response,
  ResponseCreateParamsNonStreaming,
  ResponseInput,
  ResponseInputItem,
  ResponseOutputItem,
  Tool,
} from 'openai/resources/responses/responses'
import { type Client, type ClientProvider, type ClientTask, listTools } from '../client.ts'
import { failInsideStream } from '../provider-faults.ts'

function createClient({ baseUrl, fetch }: ClientTask): OpenAI {
  return new OpenAI({ apiKey: 'any', baseURL: `${baseUrl}/v1`, fetch, maxRetries: 0 })
}

// The Responses API.

type Send = (client: OpenAI, body: ResponseCreateParamsNonStreaming) => Promise<Response>

const create: Send = (client, body) => client.responses.create(body)
const useHelper: Send = (client, body) => client.responses.stream({ ...body, stream: true }).finalResponse()

/** Reads the events themselves, as agents do that show the text while it comes. */
const readEvents: Send = async (client, body) => {
  for await (const event of await client.responses.create({ ...body, stream: true })) {
    if (event.type === 'error') throw new Error(event.message)
    if (event.type === 'response.failed') throw new Error(event.response.error?.message)
    if (event.type === 'response.completed') return event.response
  }
  throw new Error('the stream ended before the response')
}

/** The whole conversation with every request, until a response calls no tool. */
async function runResponses(task: ClientTask, send: Send, tools = createTools(task)): Promise<string> {
  const client = createClient(task)
  const input: ResponseInput = [{ role: 'user', content: task.prompt }]
  for (;;) {
    const response = await send(client, {
      model: task.model,
      instructions: task.system,
      input,
      tools,
      store: false,
      include: ['reasoning.encrypted_content'],
    })
    checkComplete(response)
    input.push(...(withoutHelperFields(response.output) as ResponseInput))
    const results = runCalls(response.output, task)
    if (results.length === 0) return readText(response.output)
    input.push(...results)
  }
}

/** Only what is new with every request; the provider keeps the rest. */
async function runStored(task: ClientTask, send: Send): Promise<string> {
  const client = createClient(task)
  let input: ResponseInput = [{ role: 'user', content: task.prompt }]
  let previous: string | undefined
  for (;;) {
    const response = await send(client, {
      model: task.model,
      instructions: task.system,
      input,
      tools: createTools(task),
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    })
    checkComplete(response)
    previous = response.id
    input = runCalls(response.output, task)
    if (input.length === 0) return readText(response.output)
  }
}

/** Where only a little of the window is left, an answer is cut there: the task cannot go on. */
function checkComplete({ status, incomplete_details: details }: Response): void {
  if (status === 'incomplete') throw new Error(`incomplete: ${details?.reason}`)
}

function readText(output: readonly ResponseOutputItem[]): string {
  return output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')
}

function createTools(task: ClientTask): Tool[] {
  return listTools(task).map(({ name, description, schema }) => ({
    type: 'function',
    name,
    description,
    parameters: schema,
    strict: false,
  }))
}

/** The same tools, with one for commands that takes free text. */
function createToolsWithFreeText(task: ClientTask): Tool[] {
  return createTools(task).map((tool) =>
    tool.type === 'function' && tool.name === 'Bash'
      ? { type: 'custom', name: tool.name, description: String(tool.description), format: { type: 'text' } }
      : tool,
  )
}

function runCalls(output: readonly ResponseOutputItem[], task: ClientTask): ResponseInputItem[] {
  return output.flatMap((item): ResponseInputItem[] => {
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') return []
    const { call_id, name } = item
    const input = JSON.parse(item.type === 'function_call' ? item.arguments : item.input)
    const { text: result } = task.runTool({ id: call_id, name, input })
    return [
      item.type === 'function_call'
        ? { type: 'function_call_output', call_id, output: result }
        : { type: 'custom_tool_call_output', call_id, output: result },
    ]
  })
}

/** The stream helper adds fields that the API does not take back (`parsed`, `parsed_arguments`). */
function withoutHelperFields(output: readonly ResponseOutputItem[]): unknown[] {
  return JSON.parse(JSON.stringify(output, (key, value) => (key.startsWith('parsed') ? undefined : value)))
}

// Chat Completions.

type SendChat = (client: OpenAI, body: ChatBody) => Promise<OpenAI.ChatCompletionMessage | undefined>
type ChatBody = OpenAI.ChatCompletionCreateParamsNonStreaming

const createChat: SendChat = async (client, body) =>
  (await client.chat.completions.create(body)).choices[0]?.message

const streamChat: SendChat = async (client, body) => {
  const stream = client.chat.completions.stream({
    ...body,
    stream: true,
    stream_options: { include_usage: true },
  })
  return (await stream.finalChatCompletion()).choices[0]?.message
}

async function runChat(task: ClientTask, send: SendChat): Promise<string> {
  const client = createClient(task)
  const messages: ChatCompletionMessageParam[] = [
    { role: 'system', content: task.system },
    { role: 'user', content: task.prompt },
  ]
  for (;;) {
    const message = await send(client, { model: task.model, messages, tools: createChatTools(task) })
    if (message === undefined) throw new Error('an answer without a message')
    messages.push(withoutParsed(message))
    const calls = (message.tool_calls ?? []).filter((call) => call.type === 'function')
    if (calls.length === 0) return message.content ?? ''
    for (const { id, function: called } of calls) {
      const { text } = task.runTool({ id, name: called.name, input: JSON.parse(called.arguments) })
      messages.push({ role: 'tool', tool_call_id: id, content: text })
    }
  }
}

function withoutParsed(message: OpenAI.ChatCompletionMessage): OpenAI.ChatCompletionMessage {
  return JSON.parse(JSON.stringify(message, (key, value) => (key.startsWith('parsed') ? undefined : value)))
}

function createChatTools(task: ClientTask): OpenAI.ChatCompletionTool[] {
  return listTools(task).map(({ name, description, schema }) => ({
    type: 'function',
    function: { name, description, parameters: schema },
  }))
}

/** The SDK's own loop, which calls the functions itself. It does not tell them the id of the call. */
async function runToolRunner(task: ClientTask): Promise<string> {
  let calls: readonly { readonly id: string }[] = []
  const runner = createClient(task).chat.completions.runTools(
    {
      model: task.model,
      messages: [
        { role: 'system', content: task.system },
        { role: 'user', content: task.prompt },
      ],
      tools: listTools(task).map(({ name, description, schema }) => ({
        type: 'function',
        function: {
          name,
          description,
          parameters: schema,
          parse: JSON.parse,
          function: (input: object) => {
            const [next, ...rest] = calls
            calls = rest
            return task.runTool({ id: next?.id ?? '', name, input }).text
          },
        },
      })),
    },
    { maxChatCompletions: task.steps + 10 },
  )
  runner.on('message', (message) => {
    if (message.role === 'assistant') calls = message.tool_calls ?? []
  })
  return (await runner.finalContent()) ?? ''
}

const GPT: ClientProvider = { api: 'responses', model: 'gpt-5.4' }
const REASONING: ClientProvider = { api: 'responses', model: 'gpt-6-sol', thinkingTokens: 120 }
const CHAT: ClientProvider = { api: 'chat', model: 'gpt-4.1' }
const DEEPSEEK: ClientProvider = { ...GPT, api: 'chat', dialect: 'deepseek', thinkingTokens: 120 }

const common = { door: 'fetch', caches: true } as const

export const openaiClients: readonly Client[] = [
  {
    ...common,
    name: 'OpenAI SDK, responses.create',
    provider: GPT,
    run: (task) => runResponses(task, create),
  },
  {
    ...common,
    name: 'OpenAI SDK, responses.create, reasoning',
    provider: REASONING,
    run: (task) => runResponses(task, create),
  },
  {
    ...common,
    name: 'OpenAI SDK, responses events, reasoning',
    provider: REASONING,
    isStream: true,
    run: (task) => runResponses(task, readEvents),
  },
  {
    ...common,
    name: 'OpenAI SDK, responses.stream, reasoning',
    provider: REASONING,
    isStream: true,
    run: (task) => runResponses(task, useHelper),
  },
  {
    ...common,
    name: 'OpenAI SDK, overflow inside the stream',
    provider: REASONING,
    isStream: true,
    wrapProvider: failInsideStream,
    run: (task) => runResponses(task, readEvents),
  },
  {
    ...common,
    name: 'OpenAI SDK, free-text tool',
    provider: REASONING,
    run: (task) => runResponses(task, create, createToolsWithFreeText(task)),
  },
  {
    ...common,
    name: 'OpenAI SDK, previous_response_id',
    provider: REASONING,
    run: (task) => runStored(task, create),
  },
  { ...common, name: 'OpenAI SDK, chat.create', provider: CHAT, run: (task) => runChat(task, createChat) },
  {
    ...common,
    name: 'OpenAI SDK, chat.stream',
    provider: CHAT,
    isStream: true,
    run: (task) => runChat(task, streamChat),
  },
  { ...common, name: 'OpenAI SDK, chat.runTools', provider: CHAT, run: runToolRunner },
  {
    ...common,
    name: 'OpenAI SDK, chat.create on DeepSeek',
    provider: DEEPSEEK,
    run: (task) => runChat(task, createChat),
  },
]
