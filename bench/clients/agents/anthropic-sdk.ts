/** `@anthropic-ai/sdk`: a loop over `create`, a loop over `stream`, and its own tool runner. */
import Anthropic, { type Middleware } from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError'
import { type Client, type ClientTask, listTools } from '../client.ts'

type Send = (client: Anthropic, body: Anthropic.MessageCreateParamsNonStreaming) => Promise<Anthropic.Message>

const create: Send = (client, body) => client.messages.create(body)
const stream: Send = (client, body) => client.messages.stream(body).finalMessage()

/** The loop of most agents: the whole conversation with every request, until a response calls no tool. */
async function runLoop(task: ClientTask, send: Send, fields: object = {}): Promise<string> {
  const client = createClient(task)
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: task.prompt }]
  for (;;) {
    const { content } = await send(client, {
      ...createFields(task),
      ...fields,
      tools: task.tools as unknown as Anthropic.Tool[],
      messages,
    })
    messages.push({ role: 'assistant', content })
    const calls = content.filter((block) => block.type === 'tool_use')
    if (calls.length === 0) return readText(content)
    const results = calls.map(({ id, name, input }): Anthropic.ToolResultBlockParam => {
      const { text, isError } = task.runTool({ id, name, input })
      return { type: 'tool_result', tool_use_id: id, content: text, is_error: isError }
    })
    messages.push({ role: 'user', content: results })
  }
}

async function runToolRunner(task: ClientTask): Promise<string> {
  const client = createClient(task)
  const tools = listTools(task).map(({ name, description, schema }) =>
    betaTool({
      name,
      description,
      inputSchema: schema as { type: 'object' },
      run: (input, context) => {
        const { text, isError } = task.runTool({ id: context?.toolUse.id ?? '', name, input })
        if (isError) throw new ToolError(text)
        return text
      },
    }),
  )
  const messages = [{ role: 'user' as const, content: task.prompt }]
  const last = await client.beta.messages.toolRunner({ ...createFields(task), tools, messages })
  return readText(last.content)
}

function createClient({ baseUrl, fetch, middleware }: ClientTask): Anthropic {
  return new Anthropic({
    apiKey: 'any',
    baseURL: baseUrl,
    fetch,
    middleware: middleware as readonly Middleware[],
  })
}

function createFields({ model, system }: ClientTask) {
  return { model, max_tokens: 4_000, system }
}

function readText(content: readonly { readonly type: string }[]): string {
  return content.flatMap((block) => (block.type === 'text' && 'text' in block ? [block.text] : [])).join('')
}

const markers = { cache_control: { type: 'ephemeral' } }

export const anthropicClients: readonly Client[] = [
  { name: 'Anthropic SDK, create', door: 'fetch', caches: false, run: (task) => runLoop(task, create) },
  {
    name: 'Anthropic SDK, stream',
    door: 'fetch',
    caches: false,
    isStream: true,
    run: (task) => runLoop(task, stream),
  },
  {
    name: 'Anthropic SDK, create with cache_control',
    door: 'fetch',
    caches: true,
    run: (task) => runLoop(task, create, markers),
  },
  { name: 'Anthropic SDK, toolRunner', door: 'fetch', caches: false, run: runToolRunner },
  { name: 'Anthropic SDK, toolRunner, middleware', door: 'middleware', caches: false, run: runToolRunner },
]
