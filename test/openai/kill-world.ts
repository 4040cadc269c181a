/** What a process that is killed and the test that goes on after it have in common: both APIs of OpenAI, and the Messages API. */
import { randomUUID } from 'node:crypto'
import Anthropic from '@anthropic-ai/sdk'
import { createCoder, withSummaries } from '@tidemark/simulator'
import OpenAI from 'openai'
import { anthropic, createTidemark, openai } from 'tidemark'
import { resolveSettings } from '../../packages/simulator/src/server/options.ts'
import { createSimulatorFrom } from '../../packages/simulator/src/server/simulator.ts'

export interface KillInput {
  readonly home: string
  readonly api: 'responses' | 'chat' | 'messages'
  /** `run`: a session of one's own. `fetch`: a client under `tide.fetch`. */
  readonly way: 'run' | 'fetch'
}

const WINDOW = 30_000
export const PROMPT = 'The sum of an order is wrong by a cent. Fix it.'
type Fetch = typeof globalThis.fetch

/** Without what the SDK's helper adds to an answer, which the provider does not take back. */
function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (key, each) => (key.startsWith('parsed') ? undefined : each)))
}

export function createKillWorld({ home, api, way }: KillInput) {
  const coder = createCoder({ turns: 2_000, resultTokens: 900 })
  // As one provider in both processes: it reads back what it has sealed, and gives no id twice.
  const settings = resolveSettings({ script: withSummaries(coder.script), window: WINDOW })
  const simulator = createSimulatorFrom({ ...settings, idSeed: randomUUID() })
  const options = { apiKey: 'any', window: WINDOW, maxOutput: 2_000 }
  const createModel = (fetch: Fetch) =>
    api === 'messages'
      ? anthropic('claude-sonnet-5-5', { ...options, fetch })
      : openai('gpt-5.4', { ...options, fetch, api })
  const open = (fetch: Fetch) => createTidemark({ model: createModel(fetch), home })
  const runTool = createToolRunner(coder)

  /** Works without end; `print` gets each answer that the agent has read to its end. */
  async function work(fetch: Fetch, print: (line: string) => void, rounds = Number.POSITIVE_INFINITY) {
    const tide = open(fetch)
    if (way === 'fetch') return workAsClient(tide.fetch({ session: 'killed', fetch }), print, rounds)
    const session = await tide.open('killed')
    const run = session.run(session.messages().length === 0 ? PROMPT : 'Go on.', {
      tools: coder.tools,
      maxCalls: rounds === Number.POSITIVE_INFINITY ? 2_000 : rounds,
      runTool: ({ id, name, input }) => runTool(id, name, Object(input)),
    })
    for await (const event of run) if (event.type === 'tool-started') print(`answered ${event.call.id}`)
    await run.outcome
    return tide
  }

  /** The list of a client is lost with its process: it begins with what the log has, as an agent that saves its list does. */
  async function workAsClient(
    fetch: Fetch,
    print: (line: string) => void,
    rounds: number,
    list: readonly object[] = [],
  ) {
    const connection = { apiKey: 'any', fetch, maxRetries: 0 }
    const items: object[] = list.length === 0 ? [{ role: 'user', content: PROMPT }] : [...list]
    const ask =
      api === 'messages'
        ? askMessages(new Anthropic(connection), coder)
        : (api === 'chat' ? askChat : askResponses)(new OpenAI(connection), coder)
    for (let round = 0; round < rounds; round += 1) {
      const calls = await ask(items)
      print(`answered ${calls[0]}`)
      print(`list ${JSON.stringify(items)}`)
    }
  }

  return { simulator, open, work, workAsClient }
}

type Coder = ReturnType<typeof createCoder>
/** Sends the list, adds the answer and the results of its calls to it, and returns the ids of the calls. */
type Ask = (items: object[]) => Promise<string[]>

function createToolRunner(coder: Coder) {
  return (id: string, name: string, args: object): string =>
    String(coder.toolResult({ type: 'tool_use', id, name, input: args as Record<string, never> }).content)
}

function toSchema({ name, input_schema: parameters }: Coder['tools'][number]) {
  return { name: String(name), parameters: Object(parameters) as Record<string, unknown> }
}

function askResponses(client: OpenAI, coder: Coder): Ask {
  const runTool = createToolRunner(coder)
  const tools = coder.tools.map((tool) => ({ type: 'function' as const, ...toSchema(tool), strict: false }))
  return async (items: object[]): Promise<string[]> => {
    const settings = { model: 'gpt-5.4', store: false, include: ['reasoning.encrypted_content' as const] }
    const input = items as OpenAI.Responses.ResponseInputItem[]
    const { output } = await client.responses.stream({ ...settings, input, tools }).finalResponse()
    items.push(...toPlain(output))
    const calls = output.filter((item) => item.type === 'function_call')
    for (const { call_id, name, arguments: text } of calls)
      items.push({
        type: 'function_call_output',
        call_id,
        output: runTool(call_id, name, JSON.parse(text)),
      })
    return calls.map((call) => call.call_id)
  }
}

function askChat(client: OpenAI, coder: Coder): Ask {
  const runTool = createToolRunner(coder)
  const tools = coder.tools.map((tool) => ({ type: 'function' as const, function: toSchema(tool) }))
  return async (items: object[]): Promise<string[]> => {
    const messages = items as OpenAI.ChatCompletionMessageParam[]
    const stream = client.chat.completions.stream({ model: 'gpt-5.4', messages, tools })
    const { message } = (await stream.finalChatCompletion()).choices[0] ?? {}
    const calls = (message?.tool_calls ?? []).filter((call) => call.type === 'function')
    items.push({ role: 'assistant', content: message?.content ?? null, tool_calls: calls })
    for (const {
      id,
      function: { name, arguments: text },
    } of calls)
      items.push({ role: 'tool', tool_call_id: id, content: runTool(id, name, JSON.parse(text)) })
    return calls.map(({ id }) => id)
  }
}

function askMessages(client: Anthropic, coder: Coder): Ask {
  const runTool = createToolRunner(coder)
  const tools = coder.tools as unknown as Anthropic.Tool[]
  return async (items: object[]): Promise<string[]> => {
    const messages = items as Anthropic.MessageParam[]
    const settings = { model: 'claude-sonnet-5-5', max_tokens: 2_000 }
    const { content } = await client.messages.stream({ ...settings, messages, tools }).finalMessage()
    const calls = content.filter((block) => block.type === 'tool_use')
    const results = calls.map(({ id, name, input }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: runTool(id, name, Object(input)),
    }))
    items.push({ role: 'assistant', content }, { role: 'user', content: results })
    return calls.map(({ id }) => id)
  }
}
